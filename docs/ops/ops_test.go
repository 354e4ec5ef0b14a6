// Package ops_test holds the dashboard and the rules in this folder against a real
// Prometheus that reads the metrics of a guard under attack.
package ops_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"authguard/guard"
	"authguard/guard/promguard"
	"authguard/internal/testserver"
	"authguard/limiter"
	"authguard/limiter/memstore"
	"authguard/policies"
)

// flaky fails while it is down.
type flaky struct {
	limiter.Store
	down atomic.Bool
}

func (s *flaky) Take(ctx context.Context, c []limiter.Charge) (bool, error) {
	if s.down.Load() {
		return false, errors.New("down")
	}
	return s.Store.Take(ctx, c)
}

// attacked is a server of the metrics of a guard with the presets, and one action
// that is refused while the store is down. From when they are first read, whatever
// can be counted keeps happening to it until the test ends.
func attacked(t *testing.T) *httptest.Server {
	t.Helper()
	limits := append(policies.Default(), guard.Policy{Action: "strict", Rules: []guard.Rule{
		{Name: "ip", By: guard.ByIP, Limits: []limiter.Limit{limiter.SlidingWindow{Limit: 5, Window: time.Minute}}},
	}})
	metrics, err := promguard.New(limits)
	require.NoError(t, err)
	memory := memstore.New(memstore.Config{MaxBytes: 512 << 10}) // which soon evicts
	store := &flaky{Store: memory}
	g, err := guard.New(guard.Config{Store: store, Secret: []byte(strings.Repeat("s", 32)), Policies: limits, Observer: metrics})
	require.NoError(t, err)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics, promguard.Memory(memory))
	read, exposed := make(chan struct{}), promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	begin := sync.OnceFunc(func() { close(read) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		exposed.ServeHTTP(w, r)
		begin()
	}))
	t.Cleanup(server.Close)

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-ctx.Done():
		case <-read:
		}
		for round := 0; ctx.Err() == nil; round++ {
			attack(ctx, g, &store.down, round)
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
	return server
}

// attack is a round of everything. What becomes of it is what the metrics are for.
func attack(ctx context.Context, g *guard.Guard, down *atomic.Bool, round int) {
	try := func(action, account string, addr netip.Addr, right bool) {
		a := guard.Attempt{Action: action, Account: account, IP: addr}
		g.Do(ctx, a, func(context.Context, *guard.Pass) (bool, error) { return right, nil })
	}
	here := netip.AddrFrom4([4]byte{198, 51, 100, byte(round)})
	try("login", "owner", here, true)
	for i := range 12 { // sprayed, and one account guessed at
		try("login", fmt.Sprintf("account %d of %d", i, round), here, false)
		try("login", "bob", netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}), false)
	}
	for range 5 { // more mails than one person gets
		try("password_reset", fmt.Sprintf("bob %d", round), here, true)
	}
	try("login", "nobody", netip.Addr{}, false)
	for i := range 300 { // more names than the store holds
		try("signup", fmt.Sprintf("%d of %d", i, round), netip.AddrFrom4([4]byte{10, byte(round), byte(i >> 8), byte(i)}), true)
	}
	down.Store(true)
	try("login", "owner", here, true)
	try("strict", "", here, true)
	down.Store(false)
	g.Unlock(ctx, "bob")
}

// started is a Prometheus with this folder's configuration, but in a hurry, that
// has scraped the server a few times.
func started(t *testing.T, server *httptest.Server) prom {
	t.Helper()
	config, err := os.ReadFile("prometheus.yml")
	require.NoError(t, err)
	rules, err := filepath.Abs("rules.yml")
	require.NoError(t, err)
	text := string(config)
	for given, own := range map[string]string{
		"15s":            "250ms",
		"rules.yml":      rules,
		"127.0.0.1:8080": server.Listener.Addr().String(),
	} {
		require.Contains(t, text, given)
		text = strings.ReplaceAll(text, given, own)
	}
	p := prom{t, testserver.Prometheus(t, text)}
	for _, query := range []string{ // the scraped, and what rules make of it
		`count_over_time(authguard_attempts_total{action="login",outcome="admitted"}[1m]) >= 4`,
		`increase(authguard_memstore_evictions_total[15m]) > 0`,
		`job_action:authguard_failures:rate10m > 0`,
		`job_action_rule:authguard_denials:rate10m > 0`,
	} {
		for deadline := time.Now().Add(time.Minute); len(p.query(query)) == 0; time.Sleep(50 * time.Millisecond) {
			require.True(t, time.Now().Before(deadline), "no result: %s", query)
		}
	}
	return p
}

// prom is a Prometheus that a test asks.
type prom struct {
	t   *testing.T
	url string
}

// sample is one series of a result, at one instant.
type sample struct {
	Metric map[string]string
	Value  [2]any // time, value
}

func (s sample) value() float64 {
	text, _ := s.Value[1].(string)
	v, _ := strconv.ParseFloat(text, 64)
	return v
}

// get asks the HTTP API, which must not refuse.
func (p prom) get(path string, params url.Values, data any) {
	p.t.Helper()
	resp, err := http.Get(p.url + path + "?" + params.Encode())
	require.NoError(p.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(p.t, err)
	require.Equal(p.t, http.StatusOK, resp.StatusCode, "%v: %s", params, body)
	answer := struct{ Data any }{data}
	require.NoError(p.t, json.Unmarshal(body, &answer))
}

func (p prom) query(promQL string) []sample {
	p.t.Helper()
	var data struct{ Result []sample }
	p.get("/api/v1/query", url.Values{"query": {promQL}}, &data)
	return data.Result
}

type dashboard struct {
	Templating struct {
		List []struct{ Name, Type, Definition, AllValue string }
	}
	Panels []struct {
		Title   string
		Targets []struct{ Expr, LegendFormat string }
	}
}

// rule is a recording rule or an alert.
type rule struct{ Record, Alert, Expr string }

func (r rule) name() string { return r.Record + r.Alert }

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	require.NotEmpty(t, d.Panels)
	return d
}

func readRules(t *testing.T) (rules []rule) {
	t.Helper()
	text, err := os.ReadFile("rules.yml")
	require.NoError(t, err)
	var file struct{ Groups []struct{ Rules []rule } }
	require.NoError(t, yaml.Unmarshal(text, &file))
	for _, g := range file.Groups {
		rules = append(rules, g.Rules...)
	}
	require.NotEmpty(t, rules)
	return rules
}

// Every query of the dashboard and of the rules finds what it is about.
func TestDashboardAndRulesAskForWhatThereIs(t *testing.T) {
	server := attacked(t)
	p := started(t, server)
	d := readDashboard(t)

	filled := []string{"$__rate_interval", "1m"}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		filled = append(filled, "$"+v.Name, v.AllValue)
		m := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(v.Definition)
		require.NotNil(t, m, v.Definition)
		var values []string
		p.get("/api/v1/label/"+m[2]+"/values", url.Values{"match[]": {m[1]}}, &values)
		require.NotEmpty(t, values, v.Definition)
	}
	for _, panel := range d.Panels {
		highest := 0.0
		for _, target := range panel.Targets {
			expr := strings.NewReplacer(filled...).Replace(target.Expr)
			require.NotContains(t, expr, "$", panel.Title)
			samples := p.query(expr)
			require.NotEmpty(t, samples, expr)
			for _, s := range samples {
				highest = max(highest, s.value())
				for _, label := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(target.LegendFormat, -1) {
					require.Contains(t, s.Metric, label[1], expr)
				}
			}
		}
		require.Positive(t, highest, "%s shows nothing of the attack", panel.Title)
	}

	selector := regexp.MustCompile(`(?:\bup|[a-z_:]*authguard_[a-z0-9_:]+)(?:{[^}]*})?`)
	for _, r := range readRules(t) {
		p.query(r.Expr)
		found := selector.FindAllString(r.Expr, -1)
		require.NotEmpty(t, found, r.name())
		for _, s := range found {
			require.NotEmpty(t, p.query(s), "%s: %s", r.name(), s)
		}
	}
	var state struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	p.get("/api/v1/rules", nil, &state)
	for _, g := range state.Groups {
		for _, r := range g.Rules {
			require.Equal(t, "ok", r.Health, "%s: %s", r.Name, r.LastError)
		}
	}
	p.requireTrue(readRules(t), "AuthguardRefusesUnchecked", "AuthguardLimitsUnchecked", "AuthguardEvicts", "AuthguardNoAddress")
	checkFormat(t, server)
}

// requireTrue requires that these alerts' conditions hold, and that of the others
// those that tell of silence do not.
func (p prom) requireTrue(rules []rule, alerts ...string) {
	p.t.Helper()
	seen := 0
	for _, r := range rules {
		if slices.Contains(alerts, r.Alert) {
			seen++
			require.NotEmpty(p.t, p.query(r.Expr), r.Alert)
		}
		if r.Alert == "AuthguardNoMetrics" {
			require.Empty(p.t, p.query(r.Expr), r.Alert)
		}
	}
	require.Len(p.t, alerts, seen)
}

// checkFormat has promtool look at what a Prometheus is sent.
func checkFormat(t *testing.T, server *httptest.Server) {
	t.Helper()
	resp, err := http.Get(server.URL)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	testserver.Promtool(t, string(text), "check", "metrics")
}

// The rules' own tests, in which each alert is raised and stays away.
func TestRules(t *testing.T) {
	testserver.Promtool(t, "", "check", "config", "prometheus.yml") // and the rules it names
	testserver.Promtool(t, "", "test", "rules", "rules_test.yml")
}

func TestEachAlertIsTested(t *testing.T) {
	text, err := os.ReadFile("rules_test.yml")
	require.NoError(t, err)
	for _, r := range readRules(t) {
		if r.Alert == "" {
			continue
		}
		raised := regexp.MustCompile(`alertname: ` + r.Alert + `\n +exp_alerts:`)
		require.Regexp(t, raised, string(text))
		require.Contains(t, string(text), "alertname: "+r.Alert+"}", "and a time when it is not raised")
	}
}
