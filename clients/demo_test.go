package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/internal/testkit"
)

// window is what one wrong password, and one call, have to be paid with. The
// clients wait for real, so it is short.
const window = 3 * time.Second

const demoPolicies = `login: {account: {by: account, limit: 1 per 3s, counts: failures}}
api: {key: {by: api_key, limit: 1 per 3s}}
`

// buildDemo builds the service from source.
func buildDemo(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "demo")
	cmd := exec.Command("go", "build", "-o", program, "./cmd/demo")
	cmd.Dir = ".."
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// startDemo starts the service on a free port, with a database of its own. It ends
// with the test.
func startDemo(t *testing.T, program string) (url string) {
	t.Helper()
	dir := t.TempDir()
	limits := filepath.Join(dir, "policies.yaml")
	require.NoError(t, os.WriteFile(limits, []byte(demoPolicies), 0o600))
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "-addr", "127.0.0.1:0", "-db", filepath.Join(dir, "demo.db"), "-policies", limits)
	out, log := new(testkit.Buffer), new(testkit.Buffer)
	cmd.Stdout, cmd.Stderr = out, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		var killed *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &killed) {
			t.Errorf("the demo ended by itself: %v\n%s", err, log)
		}
	})
	banner := regexp.MustCompile(`listens on (http://127\.0\.0\.1:\d+),`)
	require.Eventually(t, func() bool { return banner.MatchString(out.String()) }, 30*time.Second, 10*time.Millisecond, "%v", log)
	return banner.FindStringSubmatch(out.String())[1]
}

// request is what a client is to send.
type request struct {
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body,omitempty"`
}

func (r request) send(t *testing.T, client *http.Client) *http.Response {
	t.Helper()
	req, err := http.NewRequest(r.Method, r.URL, strings.NewReader(r.Body))
	require.NoError(t, err)
	for name, value := range r.Headers {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func login(url, password string) request {
	return request{
		URL: url + "/login", Method: "POST",
		Headers: map[string]string{"Content-Type": "application/json"},
		Body:    fmt.Sprintf(`{"email":"demo@example.com","password":%q}`, password),
	}
}

func quote(url, key string) request {
	return request{URL: url + "/api/quote", Method: "GET", Headers: map[string]string{"Authorization": "Bearer " + key}}
}

// newKey makes an API key at the demo.
func newKey(t *testing.T, url string) (key string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	session := &http.Client{Jar: jar}
	require.Equal(t, http.StatusOK, login(url, rightPassword).send(t, session).StatusCode)
	resp := request{URL: url + "/api/keys", Method: "POST"}.send(t, session)
	require.Equal(t, http.StatusCreated, resp.StatusCode)
	var made struct{ Key string }
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&made))
	return made.Key
}

const rightPassword = "correct horse battery staple"
