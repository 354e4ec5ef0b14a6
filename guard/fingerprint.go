package guard

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Fingerprint is a short text that is the same for the same Config.Secret, and of
// no use to find it out. Processes that share a store compare theirs when they
// start: guards with different secrets count apart, so that every limit holds for
// each of them and not for all together.
func Fingerprint(secret []byte) (string, error) {
	if err := checkSecret(secret); err != nil {
		return "", err
	}
	sum, err := hkdf.Key(sha256.New, secret, nil, "authguard fingerprint v1", 8)
	if err != nil {
		return "", fmt.Errorf("guard: Secret: %w", err)
	}
	return hex.EncodeToString(sum), nil
}

func checkSecret(secret []byte) error {
	if len(secret) < minSecret {
		return fmt.Errorf("guard: Config.Secret is %d bytes, want at least %d", len(secret), minSecret)
	}
	return nil
}
