package password_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"authguard/authdemo/password"
)

var cheap = password.Params{MemoryKiB: 8, Passes: 1, Threads: 1}

func newHasher(t *testing.T, p password.Params) *password.Hasher {
	t.Helper()
	h, err := password.NewHasher(p)
	require.NoError(t, err)
	return h
}

func TestHashAndVerify(t *testing.T) {
	h := newHasher(t, password.Default())
	hash := h.Hash("correct horse battery staple")
	assert.True(t, strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$"), hash)
	assert.NotEqual(t, hash, h.Hash("correct horse battery staple"), "every hash has a salt of its own")

	ok, err := h.Verify("correct horse battery staple", hash)
	require.NoError(t, err)
	assert.True(t, ok)
	ok, err = h.Verify("Correct horse battery staple", hash)
	require.NoError(t, err)
	assert.False(t, ok)
}

// The vector is what the reference implementation prints for
// echo -n password | argon2 somesalt -id -t 2 -k 65536 -p 1 -e
func TestVerifyForeignHash(t *testing.T) {
	ok, err := newHasher(t, cheap).Verify("password",
		"$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc")
	require.NoError(t, err)
	assert.True(t, ok, "a hash is compared under its own parameters")
}

func TestUnknownAccountCostsAsMuchAsAKnownOne(t *testing.T) {
	h := newHasher(t, cheap)
	hash := h.Hash("a password")
	before := h.Computed()
	_, err := h.Verify("guess", hash)
	require.NoError(t, err)
	known := h.Computed() - before
	ok, err := h.Verify("guess", "")
	require.NoError(t, err)
	assert.False(t, ok)
	assert.Equal(t, known, h.Computed()-before-known)
}

func TestVerifyRefusesWhatIsNoHash(t *testing.T) {
	h := newHasher(t, cheap)
	good := h.Hash("a password")
	for _, hash := range []string{
		"a password",
		"$argon2i" + strings.TrimPrefix(good, "$argon2id"),
		strings.Replace(good, "v=19", "v=16", 1),
		strings.Replace(good, "m=8,", "m=4294967295,", 1),
		strings.Replace(good, "t=1,", "t=0,", 1),
		strings.Replace(good, "m=8,", "m=+8,", 1),
		good + "$",
		good[:len(good)-40],
	} {
		before := h.Computed()
		ok, err := h.Verify("a password", hash)
		assert.Error(t, err, hash)
		assert.False(t, ok)
		assert.Equal(t, before, h.Computed())
	}
}

func TestNewHasherNamesTheField(t *testing.T) {
	for field, p := range map[string]password.Params{
		"MemoryKiB": {MemoryKiB: 7, Passes: 1, Threads: 1},
		"Passes":    {MemoryKiB: 8, Threads: 1},
		"Threads":   {MemoryKiB: 8, Passes: 1},
	} {
		_, err := password.NewHasher(p)
		assert.ErrorContains(t, err, field)
	}
}

func TestAcceptable(t *testing.T) {
	const email = "longname@example.com"
	for _, tt := range []struct {
		password string
		want     error
	}{
		{"correct horse battery staple", nil},
		{"Ünïcödé", nil},
		{strings.Repeat("x", 1024), nil},
		{"", password.ErrTooShort},
		{"1234567", password.ErrTooShort},
		{strings.Repeat("x", 1025), password.ErrTooLong},
		{"12345678", password.ErrCommon},
		{"PassWord1", password.ErrCommon},
		{"LongName@example.com", password.ErrName},
		{"longname", password.ErrName},
	} {
		assert.ErrorIs(t, password.Acceptable(tt.password, email), tt.want, tt.password)
	}
}
