package memcachestore

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

const (
	maxKey = 250 // bytes that Memcached takes

	// hashed begins the keys that stand for others. A key that begins so itself is
	// hashed, too, and so cannot be taken for one.
	hashed = "sha256:"
)

// legal is key, or what stands for it where Memcached would not take it: it is
// too long, empty, or has blanks or control characters.
func legal(key string) string {
	if key != "" && len(key) <= maxKey && !strings.HasPrefix(key, hashed) && strings.IndexFunc(key, blank) < 0 {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hashed + base64.RawURLEncoding.EncodeToString(sum[:])
}

func blank(r rune) bool { return r <= ' ' || r == 0x7f }
