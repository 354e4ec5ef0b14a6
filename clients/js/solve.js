// Solves challenges by the script that the demo gives to browsers, outside of one.
//
//   echo '{"bits": 19, "tokens": [...]}' | node solve.js ../authdemo/pages/solver.js

import { readFileSync } from 'node:fs'
import { createContext, runInContext } from 'node:vm'

const { bits, tokens } = JSON.parse(readFileSync(0, 'utf8'))
const answers = []
const worker = createContext({ self: { postMessage: (answer) => answers.push(answer) } })
runInContext(readFileSync(process.argv[2], 'utf8'), worker)
for (const token of tokens) worker.self.onmessage({ data: { token, bits } })
process.stdout.write(JSON.stringify(answers))
