// Reads the fields of answers by ratelimit-header-parser, which finds out by itself
// which dialect they are in. Times are seconds since 1970.
//
//   echo '[{"X-RateLimit-Limit": "5", …}]' | node read.js

import { readFileSync } from 'node:fs'
import { parseRateLimit } from 'ratelimit-header-parser'

const answers = JSON.parse(readFileSync(0, 'utf8'))
console.log(JSON.stringify(answers.map((headers) => {
	const before = Date.now() / 1000
	const { limit, used, remaining, reset } = parseRateLimit(new Headers(headers))
	return { limit, used, remaining, reset: reset.getTime() / 1000, before, after: Date.now() / 1000 }
})))
