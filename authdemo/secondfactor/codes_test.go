package secondfactor_test

import (
	"bytes"
	"encoding/base32"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
	"github.com/stretchr/testify/require"

	"authguard/authdemo/secondfactor"
)

func newCodes(t *testing.T, secret string) *secondfactor.Codes {
	t.Helper()
	c, err := secondfactor.New([]byte(secret), nil)
	require.NoError(t, err)
	return c
}

const serviceSecret = "a secret of the service, 32 bytes"

func TestAKeyOpensForItsAccountAndSecretAlone(t *testing.T) {
	c := newCodes(t, serviceSecret)
	key, sealed, err := c.NewKey(7, "authguard demo", "a@example.com")
	require.NoError(t, err)
	raw, err := base32.StdEncoding.DecodeString(key.Secret())
	require.NoError(t, err)
	require.Len(t, raw, 20, "RFC 4226, section 4, wants 160 bits")
	require.NotContains(t, string(sealed), key.Secret())
	require.NotContains(t, string(sealed), string(raw))

	now := time.Unix(1_800_000_000, 0)
	code, err := totp.GenerateCode(key.Secret(), now)
	require.NoError(t, err)
	step, ok, err := newCodes(t, serviceSecret).Step(7, sealed, code, now)
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 60_000_000, step)

	before := c.Compared()
	for name, try := range map[string]func() (int64, bool, error){
		"another account": func() (int64, bool, error) { return c.Step(8, sealed, code, now) },
		"another secret":  func() (int64, bool, error) { return newCodes(t, serviceSecret+"x").Step(7, sealed, code, now) },
		"changed":         func() (int64, bool, error) { return c.Step(7, append(bytes.Clone(sealed[1:]), 0), code, now) },
		"empty":           func() (int64, bool, error) { return c.Step(7, nil, code, now) },
	} {
		_, ok, err := try()
		require.ErrorContains(t, err, "cannot be opened", name)
		require.False(t, ok)
	}
	require.Equal(t, before, c.Compared(), "and nothing was compared")
}

// The codes of RFC 6238, appendix B, for SHA-1, whose last six digits count.
func TestCodesAreThoseOfTheRFC(t *testing.T) {
	for at, want := range map[int64]string{59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037", 20000000000: "353130"} {
		code, err := totp.GenerateCode(base32.StdEncoding.EncodeToString([]byte("12345678901234567890")), time.Unix(at, 0))
		require.NoError(t, err)
		require.Equal(t, want, code)
	}
}

func TestAStepAndItsNeighboursAreGood(t *testing.T) {
	c := newCodes(t, serviceSecret)
	key, sealed, err := c.NewKey(7, "authguard demo", "a@example.com")
	require.NoError(t, err)
	present := int64(60_000_000)
	now := time.Unix(present*30+17, 0)
	good := map[string]int64{}
	for n := present - 1; n <= present+1; n++ {
		code, err := totp.GenerateCode(key.Secret(), time.Unix(n*30, 0))
		require.NoError(t, err)
		good[code] = n
	}
	for n := present - 20; n <= present+20; n++ {
		code, err := totp.GenerateCode(key.Secret(), time.Unix(n*30, 0))
		require.NoError(t, err)
		step, ok, err := c.Step(7, sealed, code, now)
		require.NoError(t, err)
		require.Equal(t, good[code] != 0, ok, n-present)
		require.Equal(t, good[code], step)
	}
	for _, typed := range []string{"", "x", "12345", "1234567", "１２３４５６", "\x00\x00\x00\x00\x00\x00"} {
		_, ok, err := c.Step(7, sealed, typed, now)
		require.NoError(t, err)
		require.False(t, ok, typed)
	}
}

func TestRecoveryCodes(t *testing.T) {
	c := newCodes(t, serviceSecret)
	codes, sums := secondfactor.NewRecoveryCodes()
	require.Len(t, codes, 10)
	require.Len(t, sums, 10)
	seen := map[string]bool{}
	for i, code := range codes {
		require.Regexp(t, `^[a-z2-7]{4}(-[a-z2-7]{4}){3}$`, code, "16 characters of 5 bits")
		require.False(t, seen[code])
		seen[code] = true
		for _, typed := range []string{code, " " + code + "\t", strings.ToUpper(code)} {
			clean := secondfactor.Clean(typed)
			require.False(t, secondfactor.IsTimed(clean))
			require.Equal(t, sums[i], c.RecoverySum(clean))
		}
	}
	require.NotContains(t, sums, c.RecoverySum(""))
}

func TestKindsOfCodesAreToldApartByShape(t *testing.T) {
	for typed, timed := range map[string]bool{"123456": true, " 123 456 ": true, "123-456": true, "12345": false, "1234567": false, "12345a": false, "": false, "１２３４５６": false} {
		require.Equal(t, timed, secondfactor.IsTimed(secondfactor.Clean(typed)), typed)
	}
}
