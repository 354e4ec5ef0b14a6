// Package secondfactor makes and compares second factors: the six digits that an
// authenticator app shows (TOTP, RFC 6238), and recovery codes for when there is
// no app.
//
// The key of an app must be kept so that it can be read. [Codes] gives it out
// sealed, under a key that is derived from the service's secret and for one
// account alone: whoever has only the database has nobody's second factor. A
// recovery code has 80 random bits and is kept as its SHA-256 sum.
//
// Nothing here remembers what was used. A code is good once, which is for the
// database to see to: [Codes.Step] says which time step it belongs to.
package secondfactor
