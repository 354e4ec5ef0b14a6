// Sends one request by the client that is named, as often as the client thinks it
// must, at most three times, and prints the status of the last answer.
//
//   echo '{"url": …, "method": …, "headers": …, "body": …}' | node retry.js ky

import { readFileSync } from 'node:fs'

const { url, method, headers, body } = JSON.parse(readFileSync(0, 'utf8'))

// A login is a POST, which none of these sends again unless told to.
const clients = {
	async ky() {
		const { default: ky } = await import('ky')
		const answer = await ky(url, { method, headers, body, retry: { limit: 2, methods: [method.toLowerCase()] } })
		return answer.status
	},

	async got() {
		const { default: got } = await import('got')
		const answer = await got(url, { method, headers, body, retry: { limit: 2, methods: [method] } })
		return answer.statusCode
	},

	async 'axios-retry'() {
		const { default: axios } = await import('axios')
		const { default: axiosRetry } = await import('axios-retry')
		const client = axios.create()
		// By itself it takes 429 for an answer like any other.
		axiosRetry(client, { retries: 2, retryCondition: (error) => error.response?.status === 429 })
		const answer = await client.request({ url, method, headers, data: body })
		return answer.status
	},

	async undici() {
		const { Agent, RetryAgent, request } = await import('undici')
		const dispatcher = new RetryAgent(new Agent(), { maxRetries: 2, methods: [method], statusCodes: [429] })
		const answer = await request(url, { dispatcher, method, headers, body })
		await answer.body.dump()
		await dispatcher.close()
		return answer.statusCode
	},
}

console.log(await clients[process.argv[2]]())
