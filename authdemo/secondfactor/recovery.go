package secondfactor

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

const (
	recoveryCodes = 10
	recoveryBytes = 10 // 80 bits, 16 characters
	groupLen      = 4  // of characters between hyphens
)

// NewRecoveryCodes makes ten recovery codes, and their sums for the database.
func NewRecoveryCodes() (codes []string, sums [][]byte) {
	for range recoveryCodes {
		b := make([]byte, recoveryBytes)
		rand.Read(b) // never fails: crypto/rand ends the program instead
		text := strings.ToLower(base32.StdEncoding.EncodeToString(b))
		codes = append(codes, Groups(text, "-"))
		sums = append(sums, sum(text))
	}
	return codes, sums
}

// RecoverySum is what is kept of the recovery code that was typed.
func (c *Codes) RecoverySum(code string) []byte {
	c.compared.Add(1)
	return sum(code)
}

// sum needs no salt and no stretching, since nobody can try 2^80 codes.
func sum(code string) []byte {
	h := sha256.Sum256([]byte(strings.ToLower(Clean(code))))
	return h[:]
}

// Groups parts a text by fours, so that people can read it off.
func Groups(text, separator string) string {
	var groups []string
	for len(text) > groupLen {
		groups, text = append(groups, text[:groupLen]), text[groupLen:]
	}
	return strings.Join(append(groups, text), separator)
}
