package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"authguard/policies"
)

func TestAPolicyForNoActionIsRefused(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.yaml")
	load := func(text string) error {
		require.NoError(t, os.WriteFile(own, []byte(text), 0o600))
		_, _, err := loadLimits(own)
		return err
	}
	const rule = ": {ip: {by: ip, limit: 5 per 1m}}\n"
	require.EqualError(t, load("logn"+rule+"login"+rule+"payments"+rule), own+": logn: no such action, did you mean login?\n"+
		own+": payments: no such action\n"+
		own+": the actions are login, reauth, otp, password_reset, reset_confirm, signup, signup_confirm, api, api_pro, api_unauthenticated, admin")
	for _, typed := range []string{"logins", "logim", "lgoin", "loginn"} {
		require.ErrorContains(t, load(typed+rule), "did you mean login?", typed)
	}
	require.ErrorAs(t, load("logn"+rule), new(policyError))
	for _, p := range policies.Default() {
		require.NoError(t, load(p.Action+rule))
	}
	_, _, err := loadLimits(own + ".absent")
	require.ErrorContains(t, err, "no such file")
}
