// Package authdemo is a small login service that shows how an application is
// guarded: sign-up, login with a second factor, password reset and an API with
// keys, over JSON and as plain HTML forms.
//
// A [Service] is an http.Handler; routes.go has all its routes. Behind each of
// them the order is the same:
//
//  1. The body is read strictly (package fields). What is malformed is charged
//     to the client's address.
//  2. The guard is asked. A refused request ends here: it computes no hash and
//     learns nothing. A login may be asked for a challenge (package proofofwork).
//  3. Whoever needs a password computed waits his turn at a gate (package
//     password), so that a flood costs bounded memory and time. Known devices go first.
//  4. The account is looked up (package accounts) and the secret compared.
//  5. The attempt is settled: a success gives its own charge back, and makes the
//     browser known, so that no stranger can keep the owner out of it (device.go).
//
// Nothing tells whether an address has an account. Login computes one argon2id
// hash either way. Sign-up and reset answer before they look the address up;
// what there is to say goes to the mailbox. An account comes to be only when
// the mailed link is opened, and with the password chosen then: whoever signs
// up with somebody else's address gets nothing by it.
//
// A login of an account with a second factor (package secondfactor) has two steps,
// each guarded for itself. Between them the session knows whose code is awaited,
// and is good for nothing else.
//
// Owners are told by mail, once a day each, of what may be somebody else's doing
// (warning.go). [Service.Reload] puts other limits in force while requests are answered.
package authdemo
