package password

import (
	"errors"
	"strings"
	"sync"

	"github.com/trustelem/zxcvbn/frequency"
)

// Lengths in bytes. Eight is the least that NIST SP 800-63B-4 section 3.1.1.2
// permits beside a second factor; nothing is gained beyond the upper bound.
const (
	MinLength = 8
	MaxLength = 1024
)

// Why a password may not be chosen. The texts are fit for whoever chose it, so
// the lower bound is said in characters, which nobody has fewer of than bytes:
// eight of them always suffice. Of the upper bound that would be untrue.
var (
	ErrTooShort = errors.New("the password must have at least 8 characters")
	ErrTooLong  = errors.New("the password must have at most 1024 bytes")
	ErrCommon   = errors.New("the password is one of the most common ones, which are guessed first")
	ErrName     = errors.New("the password must not be the e-mail address or its first part")
)

// Acceptable reports why the account called email may not choose the password,
// or nil. There are no rules of composition: they make passwords predictable.
func Acceptable(password, email string) error {
	switch {
	case len(password) < MinLength:
		return ErrTooShort
	case len(password) > MaxLength:
		return ErrTooLong
	}
	folded := strings.ToLower(password)
	if common()[folded] {
		return ErrCommon
	}
	if email != "" && (folded == email || folded == localPart(email)) {
		return ErrName
	}
	return nil
}

// common holds the passwords that zxcvbn counted most often in leaks, in lower
// case; the short ones are refused anyway.
var common = sync.OnceValue(func() map[string]bool {
	set := make(map[string]bool)
	for _, p := range frequency.FrequencyLists["passwords"] {
		if len(p) >= MinLength {
			set[p] = true
		}
	}
	return set
})

func localPart(email string) string {
	local, _, _ := strings.Cut(email, "@")
	return local
}
