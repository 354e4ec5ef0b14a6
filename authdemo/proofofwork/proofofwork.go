package proofofwork

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"strconv"

	"authguard/guard"
)

// Kind names the puzzle to clients.
const Kind = "proof-of-work"

// Bits is how many bits of the answer's SHA-256 are zero: 2^19 tries on average,
// about a second of a browser.
const Bits = 19

// Challenger implements [guard.Challenger].
type Challenger struct{}

// Pose implements [guard.Challenger]. A client looks for a number n such that the
// SHA-256 of "TOKEN.n", which is also the whole answer, begins with Bits zero bits.
func (Challenger) Pose(token string) guard.Puzzle {
	return guard.Puzzle{Kind: Kind, Token: token, Params: map[string]string{"bits": strconv.Itoa(Bits)}}
}

// maxDigits bounds a solution: what a client counts to.
const maxDigits = 16

// Verify implements [guard.Challenger]. It computes one hash and asks nobody.
func (Challenger) Verify(_ context.Context, token, solution string, _ guard.Attempt) (bool, error) {
	if len(solution) == 0 || len(solution) > maxDigits {
		return false, nil
	}
	for _, c := range []byte(solution) {
		if c < '0' || c > '9' {
			return false, nil
		}
	}
	return solves([]byte(token + "." + solution)), nil
}

// Solve is the answer to the challenge with this token, found in a fraction of a
// second, or ctx's error.
func Solve(ctx context.Context, token string) (string, error) {
	prefix := []byte(token + ".")
	for n := int64(0); ; n++ {
		if n%(1<<16) == 0 && ctx.Err() != nil {
			return "", ctx.Err()
		}
		if answer := strconv.AppendInt(prefix, n, 10); solves(answer) {
			return string(answer), nil
		}
	}
}

func solves(answer []byte) bool {
	sum := sha256.Sum256(answer)
	return bits.LeadingZeros32(binary.BigEndian.Uint32(sum[:])) >= Bits
}
