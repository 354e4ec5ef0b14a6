// Package password keeps passwords: [Acceptable] says which may be chosen,
// [Hasher] turns them into argon2id strings and compares them, and [Gate] lets
// only so many of these expensive computations run at once, one address after
// the other.
//
// The three are independent. A login handler uses them in this order, after
// its limiter said yes:
//
//	leave, err := gate.Enter(ctx, password.Client{Addr: clientAddress, Trusted: pass.Trusted()})
//	if err != nil { … } // ErrFull: answer 503
//	defer leave()
//	ok, err := hasher.Verify(typed, account.Password)
package password
