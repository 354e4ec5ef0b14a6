// Package accounts stands for what an application has already: who there is, and
// how a password is compared. The examples share it.
package accounts
