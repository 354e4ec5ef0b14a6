package password

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/crypto/argon2"
)

// Params are the costs of argon2id.
type Params struct {
	MemoryKiB uint32
	Passes    uint32
	Threads   uint8
}

// Default is the second of the equivalent settings that OWASP's password
// storage cheat sheet recommends: 19 MiB, two passes, one thread. It takes
// about 20 ms of one processor.
func Default() Params { return Params{MemoryKiB: 19 * 1024, Passes: 2, Threads: 1} }

// Bounds on what is computed, for what a configuration or a stored hash asks.
const (
	maxMemoryKiB = 1 << 20
	maxPasses    = 64
)

func (p Params) validate() error {
	switch {
	case p.MemoryKiB < 8*uint32(p.Threads) || p.MemoryKiB > maxMemoryKiB:
		return fmt.Errorf("password: MemoryKiB is %d, want 8 for each thread to %d", p.MemoryKiB, maxMemoryKiB)
	case p.Passes < 1 || p.Passes > maxPasses:
		return fmt.Errorf("password: Passes is %d, want 1 to %d", p.Passes, maxPasses)
	case p.Threads < 1:
		return errors.New("password: Threads is 0, want at least 1")
	}
	return nil
}

const (
	saltLength = 16
	keyLength  = 32
)

// A Hasher computes argon2id. It is safe for concurrent use, and bounds
// nothing: callers come through a [Gate].
type Hasher struct {
	params   Params
	dummy    phc
	computed atomic.Int64
}

// NewHasher returns a Hasher that makes new hashes with params.
func NewHasher(params Params) (*Hasher, error) {
	if err := params.validate(); err != nil {
		return nil, err
	}
	// No password is known to fit the dummy: its key is random.
	dummy := phc{Params: params, salt: random(saltLength), key: random(keyLength)}
	return &Hasher{params: params, dummy: dummy}, nil
}

// Hash returns the password's hash as a PHC string, which names its own
// parameters: "$argon2id$v=19$m=19456,t=2,p=1$salt$key".
func (h *Hasher) Hash(password string) string {
	salt := random(saltLength)
	key := h.compute(password, salt, h.params, keyLength)
	return phc{Params: h.params, salt: salt, key: key}.String()
}

// Verify reports whether password is the one that hash was made of. The empty
// hash stands for an account that does not exist: comparing with it takes the
// same computation as with a real one, and fails.
func (h *Hasher) Verify(password, hash string) (bool, error) {
	p := h.dummy
	if hash != "" {
		var err error
		if p, err = parsePHC(hash); err != nil {
			return false, err
		}
	}
	key := h.compute(password, p.salt, p.Params, len(p.key))
	return subtle.ConstantTimeCompare(key, p.key) == 1 && hash != "", nil
}

// Computed is how many times argon2id ran, so that a test can tell that a
// refused attempt cost none and an unknown account as many as a known one.
func (h *Hasher) Computed() int64 { return h.computed.Load() }

func (h *Hasher) compute(password string, salt []byte, p Params, length int) []byte {
	h.computed.Add(1)
	return argon2.IDKey([]byte(password), salt, p.Passes, p.MemoryKiB, p.Threads, uint32(length))
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails: crypto/rand ends the program instead
	return b
}
