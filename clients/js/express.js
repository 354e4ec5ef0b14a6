// Serves behind express-rate-limit, a path for each of its dialects, all with the
// same limit. It prints its port, and ends with its standard input.
//
//   node express.js LIMIT MILLISECONDS

import express from 'express'
import { rateLimit } from 'express-rate-limit'

const [limit, windowMs] = process.argv.slice(2).map(Number)

const app = express()
app.use('/x', rateLimit({ limit, windowMs, legacyHeaders: true, standardHeaders: false }))
for (const dialect of ['draft-6', 'draft-7', 'draft-8']) {
	app.use('/' + dialect, rateLimit({ limit, windowMs, legacyHeaders: false, standardHeaders: dialect }))
}
app.use((_, response) => response.end())

const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port))
process.stdin.resume().on('end', () => process.exit())
