// Package flood measures what a flood of guesses leaves to those who log in
// honestly, while each password is an argon2id.
//
// site.go is how a login is guarded, honest.go those who log in, attack.go those
// who guess.
package flood
