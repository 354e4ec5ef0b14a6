package accounts

import (
	"crypto/sha256"
	"crypto/subtle"

	"golang.org/x/crypto/bcrypt"
)

// What there is: one account, and one API key that belongs to it.
const (
	Email    = "alice@example.com"
	Password = "correct horse battery staple"
	Key      = "ex_Zm9yIHRlc3RzIG9ubHku"
	KeyID    = "1"
)

// Accounts are known by name. They are safe for any number of goroutines.
type Accounts struct {
	// Compared, if not nil, is called whenever the account's password is
	// compared: tests count.
	Compared func()

	hash, dummy []byte
}

// New hashes the password at a cost of bcrypt, such as bcrypt.DefaultCost.
func New(cost int) (*Accounts, error) {
	a := new(Accounts)
	for text, hash := range map[string]*[]byte{Password: &a.hash, "nobody's": &a.dummy} {
		var err error
		if *hash, err = bcrypt.GenerateFromPassword([]byte(text), cost); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// Verify compares a password. For a name that nobody has it compares a dummy, so
// that the time tells nothing.
func (a *Accounts) Verify(account, password string) bool {
	if account != Email {
		_ = bcrypt.CompareHashAndPassword(a.dummy, []byte(password))
		return false
	}
	if a.Compared != nil {
		a.Compared()
	}
	return bcrypt.CompareHashAndPassword(a.hash, []byte(password)) == nil
}

var keySum = sha256.Sum256([]byte(Key))

// ByKey is the id of an API key. Keys are random, so a fast hash will do.
func (a *Accounts) ByKey(key string) (id string, ok bool) {
	sum := sha256.Sum256([]byte(key))
	if subtle.ConstantTimeCompare(sum[:], keySum[:]) != 1 {
		return "", false
	}
	return KeyID, true
}
