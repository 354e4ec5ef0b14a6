package policies_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/limiter"
	"authguard/policies"
)

// Whatever a file says: it yields valid policies that can be written down and
// read again, or errors that all say where they are.
func FuzzParse(f *testing.F) {
	for _, name := range policies.Names() {
		text, err := os.ReadFile(filepath.Join("presets", name+".yaml"))
		require.NoError(f, err)
		f.Add(text)
	}
	for _, files := range badFiles {
		for _, bad := range files {
			f.Add([]byte(bad.file))
		}
	}
	located := regexp.MustCompile(`^fuzz\.yaml:[1-9][0-9]*:[1-9][0-9]*: .`)
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := policies.Parse("fuzz.yaml", data)
		if err != nil {
			require.Nil(t, got)
			lines := strings.Split(err.Error(), "\n")
			require.LessOrEqual(t, len(lines), 20)
			for _, line := range lines {
				require.Regexp(t, located, line)
			}
			return
		}
		require.NotEmpty(t, got)
		for _, p := range got {
			require.NoError(t, p.Validate())
			for _, r := range p.Rules {
				require.NotEmpty(t, r.Limits)
				for _, l := range r.Limits {
					require.NoError(t, l.Validate())
				}
			}
		}
		requireRoundTrip(t, got)
	})
}

func TestPresetsSurviveARoundTrip(t *testing.T) {
	requireRoundTrip(t, policies.Default())
	requireRoundTrip(t, preset(t, "login_strict"))
	requireRoundTrip(t, preset(t, "api_tiered"))
}

func requireRoundTrip(t *testing.T, ps []guard.Policy) {
	t.Helper()
	again, err := policies.Parse("again.yaml", []byte(write(ps)))
	require.NoError(t, err, write(ps))
	require.Equal(t, ps, again)
}

// write is the file that yields ps. Limits of one law that do not stand
// together in a rule are the one thing that a file cannot say.
func write(ps []guard.Policy) string {
	var b strings.Builder
	for _, p := range ps {
		fmt.Fprintf(&b, "%q:\n", p.Action)
		for _, r := range p.Rules {
			fmt.Fprintf(&b, "  %q:\n    by: %s\n    counts: %s\n    effect: %s\n", r.Name, r.By, r.Counts, r.Effect)
			if r.Members != "" {
				fmt.Fprintf(&b, "    distinct: %s\n", r.Members)
			}
			if r.Clients != guard.AllClients {
				fmt.Fprintf(&b, "    clients: %s\n", r.Clients)
			}
			if r.Shared != "" {
				fmt.Fprintf(&b, "    shared: %q\n", r.Shared)
			}
			last := ""
			for _, l := range r.Limits {
				key, value := written(l)
				if key != last {
					fmt.Fprintf(&b, "    %s:\n", key)
				}
				last = key
				fmt.Fprintf(&b, "      %s\n", value)
			}
		}
	}
	return b.String()
}

func written(l limiter.Limit) (key, value string) {
	switch l := l.(type) {
	case limiter.SlidingWindow:
		return "limit", fmt.Sprintf("- %d per %v", l.Limit, l.Window)
	case limiter.SlidingWindowCounter:
		return "counter", fmt.Sprintf("- %d per %v", l.Limit, l.Window)
	case limiter.FixedWindow:
		return "fixed", fmt.Sprintf("- %d per %v", l.Limit, l.Window)
	case limiter.TokenBucket:
		return "bucket", fmt.Sprintf("%d\n    refill: %d per %v", l.Capacity, l.Refill, l.Per)
	case limiter.LeakyBucket:
		return "queue", fmt.Sprintf("%d\n    leak: %d per %v", l.Capacity, l.Leak, l.Per)
	case limiter.Distinct:
		return "limit", fmt.Sprintf("- %d per %v", l.Limit, l.Window)
	case limiter.Backoff:
		lock := ""
		if l.LockAfter > 0 {
			lock = fmt.Sprintf("lock: %d, ", l.LockAfter)
		}
		return "backoff", fmt.Sprintf("{free: %d, base: %v, factor: %d, max: %v, %sforget: %v, forget_beyond: %v}",
			l.Free, l.Base, l.Factor, l.Max, lock, l.Forget, l.ForgetBeyond)
	}
	panic(fmt.Sprintf("no key for %T", l))
}
