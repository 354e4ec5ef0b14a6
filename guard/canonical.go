package guard

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// maxAccount bounds an account's name, in bytes, before and after folding.
const maxAccount = 256

// Canonical folds a user name or e-mail address, so that all spellings that
// some database may take for one account are one: surrounding space and
// invisible characters are dropped, compatibility forms and case are folded
// (Unicode's toNFKC_Casefold, section 3.13 of the Standard). Applications store
// and look accounts up by this form; it is idempotent. Dots and +tags of an
// e-mail address are kept: whether they matter is up to each provider.
//
// Accents stay: é and e are two names. So the look-up must compare byte for byte.
// A database whose collation ignores accents (MySQL's default does) finds one
// account under many names, each with a budget of its own; there, compare in
// binary, or return the row's id from Config.Resolve.
//
// It is an error if name is longer than 256 bytes before or after folding, is
// no valid UTF-8 or has a control character.
func Canonical(name string) (string, error) {
	if len(name) > maxAccount {
		return "", fmt.Errorf("guard: account name is %d bytes, want at most %d", len(name), maxAccount)
	}
	if ascii, ok := canonicalASCII(name); ok {
		return ascii, nil
	}
	if !utf8.ValidString(name) {
		return "", errors.New("guard: account name is not valid UTF-8")
	}
	name = strings.TrimSpace(name)
	// Folding can bring forth what another round would fold again. Unicode's
	// own definition stops there; a few rounds reach the fixed point.
	for range 4 {
		folded := foldOnce(name)
		if folded == name {
			if strings.ContainsFunc(name, unicode.IsControl) {
				return "", errors.New("guard: account name has a control character")
			}
			if len(name) > maxAccount {
				return "", fmt.Errorf("guard: folded account name is %d bytes, want at most %d", len(name), maxAccount)
			}
			return name, nil
		}
		name = folded
	}
	return "", errors.New("guard: account name does not fold to a fixed point")
}

func foldOnce(s string) string {
	s = strings.Map(func(r rune) rune {
		if invisible(r) {
			return -1
		}
		return r
	}, s)
	s = norm.NFKC.String(cases.Fold().String(norm.NFKC.String(s)))
	return strings.TrimSpace(s)
}

// invisible is Unicode's Default_Ignorable_Code_Point as far as the standard
// library's tables tell it: characters that show nothing, and that some
// collations skip when they compare.
func invisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// canonicalASCII is Canonical for names of plain printable ASCII, which is most
// of them; it allocates only to lower a capital.
func canonicalASCII(name string) (string, bool) {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c > '~' {
			return "", false
		}
	}
	return strings.ToLower(strings.Trim(name, " ")), true
}
