package password

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// phc is a hash in the PHC string format, taken apart.
type phc struct {
	Params
	salt, key []byte
}

var errHash = errors.New("password: stored hash is no argon2id PHC string within bounds")

var b64 = base64.RawStdEncoding.Strict()

func (p phc) String() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version,
		p.MemoryKiB, p.Passes, p.Threads, b64.EncodeToString(p.salt), b64.EncodeToString(p.key))
}

// parsePHC reads what String wrote, and nothing else: a hash that does not
// come back byte for byte is refused, and so is one whose costs are absurd.
func parsePHC(s string) (phc, error) {
	var p phc
	parts := strings.Split(s, "$")
	if len(parts) != 6 {
		return phc{}, errHash
	}
	_, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.MemoryKiB, &p.Passes, &p.Threads)
	if err != nil || p.validate() != nil {
		return phc{}, errHash
	}
	if p.salt, err = b64.DecodeString(parts[4]); err != nil || len(p.salt) < 8 || len(p.salt) > 64 {
		return phc{}, errHash
	}
	if p.key, err = b64.DecodeString(parts[5]); err != nil || len(p.key) < 16 || len(p.key) > 64 {
		return phc{}, errHash
	}
	if p.String() != s {
		return phc{}, errHash
	}
	return p, nil
}
