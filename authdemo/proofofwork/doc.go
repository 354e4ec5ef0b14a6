// Package proofofwork is a challenge that needs no service: [Challenger] asks a
// client for an answer whose SHA-256 begins with [Bits] zero bits, as hashcash does.
// [Solve] is for clients in Go; the demo's login page has a solver in JavaScript.
//
// It makes a flood dearer for whoever has only a few computers, and shows how
// challenges work without an account at a CAPTCHA service. It slows nobody who is
// paid: native code is many times as fast as a browser's script, and graphics cards
// are made for such work. What bounds such people are the rules that no challenge
// lifts.
package proofofwork
