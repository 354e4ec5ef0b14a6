// Parses fields by structured-headers (RFC 9651) and prints what they say, and how
// the same is written canonically.
//
//   echo '[{"form": "list", "text": "\"a\";q=5"}]' | node parse.js

import { readFileSync } from 'node:fs'
import {
	parseDictionary, parseItem, parseList, serializeDictionary, serializeItem, serializeList,
} from 'structured-headers'

const forms = {
	list: { parse: parseList, serialize: serializeList, members: (list) => list.map((item) => ['', item]) },
	dictionary: { parse: parseDictionary, serialize: serializeDictionary, members: (dictionary) => [...dictionary] },
	item: { parse: parseItem, serialize: serializeItem, members: (item) => [['', item]] },
}

const member = ([key, [value, params]]) => ({ key, value: bare(value), params: Object.fromEntries([...params].map(([k, v]) => [k, bare(v)])) })

// bare is a value with its type: a Token is no String.
function bare(value) {
	if (typeof value === 'string') return { type: 'String', text: value }
	if (Number.isInteger(value)) return { type: 'Integer', text: String(value) }
	return { type: value?.constructor?.name ?? typeof value, text: String(value) }
}

const fields = JSON.parse(readFileSync(0, 'utf8'))
console.log(JSON.stringify(fields.map(({ form, text }) => {
	const { parse, serialize, members } = forms[form]
	const parsed = parse(text)
	return { canonical: serialize(parsed), members: members(parsed).map(member) }
})))
