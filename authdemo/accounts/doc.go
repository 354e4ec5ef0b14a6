// Package accounts keeps the demo's accounts in one SQLite file: e-mail
// addresses and password hashes, second factors, the tokens of mailed links, API
// keys and sessions.
//
// An e-mail address is stored in the canonical form of guard.Canonical, and
// looked up by it. No secret is stored as it is: passwords are hashed by the
// caller, tokens and keys of 256 random bits are kept as SHA-256 sums. Those of second
// factors, which must be readable, come sealed by the caller.
//
// Several processes may share the file. Whatever must happen once (using up a
// token or a code, the fifth API key) is one statement or one transaction.
package accounts
