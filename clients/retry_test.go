package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/stretchr/testify/require"
)

// client sends a request, again where it must, and returns the last status.
type client struct {
	name    string
	version func(*testing.T) string
	send    func(*testing.T, request) (status int)
}

var retrying = []client{
	npmClient("ky", "ky"),
	npmClient("got", "got"),
	npmClient("axios-retry", "axios-retry"),
	npmClient("undici RetryAgent", "undici"),
	{"go-retryablehttp", func(t *testing.T) string { return moduleVersion(t, "github.com/hashicorp/go-retryablehttp") }, retryableHTTP},
	{"curl --retry", curlVersion, curl},
}

// HD-03, HD-11: who is refused by a window of three seconds and waits as long as
// Retry-After says, by programs that we did not write, is admitted at the second try.
func TestClientsComeBackWhenTheyAreToldAndAreAdmitted(t *testing.T) {
	program := buildDemo(t)
	rows := make([]string, len(retrying)) // of the table
	t.Run("clients", func(t *testing.T) {
		for i, c := range retrying {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				demo := startDemo(t, program)
				key := newKey(t, demo)
				for _, call := range []struct {
					name         string
					spend, asked func(url string) request
					spent        int
				}{
					{"POST /login",
						func(url string) request { return login(url, "wrong") },
						func(url string) request { return login(url, rightPassword) }, http.StatusUnauthorized},
					{"GET /api/quote",
						func(url string) request { return quote(url, key) },
						func(url string) request { return quote(url, key) }, http.StatusOK},
				} {
					var passed []try
					for range 5 {
						w := newWire(t, demo, func() {
							if got := call.spend(demo).send(t, http.DefaultClient).StatusCode; got != call.spent {
								t.Errorf("%s: the budget is spent with %d, want %d", call.name, got, call.spent)
							}
						})
						require.Equal(t, http.StatusOK, c.send(t, call.asked(w.url)), call.name)
						passed = w.passed()
						if passed[0].status != http.StatusOK {
							break // else this machine stood still until the window was over
						}
					}
					promised, waited := judge(t, passed)
					rows[i] += fmt.Sprintf("%-18s %-7s  %-14s %6d s  %.3f s  %5d\n",
						c.name, c.version(t), call.name, promised, waited.Seconds(), len(passed))
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	fmt.Printf("%-18s %-7s  %-14s %s  %7s  %s\n%s\n", "client", "version", "request", "promised", "waited", "tries", strings.Join(rows, ""))
}

// judge holds what passed to the promise: a refusal, a wait that is no shorter than
// it said, and an admission.
func judge(t *testing.T, passed []try) (promised int64, waited time.Duration) {
	t.Helper()
	require.Len(t, passed, 2)
	refused, admitted := passed[0], passed[1]
	require.Equal(t, http.StatusTooManyRequests, refused.status)
	require.Equal(t, http.StatusOK, admitted.status)
	require.Empty(t, admitted.retryAfter)

	promised, err := strconv.ParseInt(refused.retryAfter, 10, 64)
	require.NoError(t, err, "Retry-After")
	require.Positive(t, promised)
	require.LessOrEqual(t, time.Duration(promised)*time.Second, window)

	waited = admitted.came.Sub(refused.answered)
	// A timer that counts milliseconds may end a part of one early.
	require.GreaterOrEqual(t, waited, time.Duration(promised)*time.Second-2*time.Millisecond)
	require.Less(t, waited, time.Duration(promised)*time.Second+20*time.Second, "it did wait for what it was told")
	return promised, waited
}

func npmClient(name, pkg string) client {
	return client{name,
		func(t *testing.T) string { return packageVersion(t, pkg) },
		func(t *testing.T, r request) (status int) {
			node(t, "retry.js", r, &status, pkg)
			return status
		}}
}

func retryableHTTP(t *testing.T, r request) int {
	c := retryablehttp.NewClient()
	c.RetryMax, c.Logger = 2, nil
	req, err := retryablehttp.NewRequest(r.Method, r.URL, []byte(r.Body))
	require.NoError(t, err)
	for name, value := range r.Headers {
		req.Header.Set(name, value)
	}
	resp, err := c.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	return resp.StatusCode
}

func curl(t *testing.T, r request) (status int) {
	args := []string{"--silent", "--retry", "2", "--request", r.Method, "--output", "-", "--write-out", "\n%{http_code}"}
	for name, value := range r.Headers {
		args = append(args, "--header", name+": "+value)
	}
	if r.Body != "" {
		args = append(args, "--data", r.Body)
	}
	out, err := exec.Command("curl", append(args, r.URL)...).Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out[bytes.LastIndexByte(out, '\n')+1:], &status))
	return status
}

func curlVersion(t *testing.T) string {
	out, err := exec.Command("curl", "--version").Output()
	require.NoError(t, err)
	return strings.Fields(string(out))[1]
}
