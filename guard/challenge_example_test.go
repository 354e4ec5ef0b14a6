package guard_test

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
	"slices"
	"strings"
	"time"

	"authguard/guard"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

// turnstile is a guard.Challenger that asks a siteverify service, Cloudflare's in
// this case. Those of hCaptcha and reCAPTCHA are asked alike, and tell no cdata: a
// solution there is good for any token, and still once only.
type turnstile struct {
	client    *http.Client
	url       string // https://challenges.cloudflare.com/turnstile/v0/siteverify
	siteKey   string // what the page's widget is drawn with
	secretKey string
}

// Pose: the page draws the widget with data-sitekey, and with the token as data-cdata.
func (t turnstile) Pose(token string) guard.Puzzle {
	return guard.Puzzle{Kind: "turnstile", Token: token, Params: map[string]string{"sitekey": t.siteKey}}
}

func (t turnstile) Verify(ctx context.Context, token, solution string, a guard.Attempt) (bool, error) {
	form := url.Values{"secret": {t.secretKey}, "response": {solution}, "remoteip": {a.IP.String()}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, strings.NewReader(form.Encode()))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := t.client.Do(r)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	var said struct {
		Success bool     `json:"success"`
		CData   string   `json:"cdata"`
		Errors  []string `json:"error-codes"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&said); err != nil {
		return false, fmt.Errorf("siteverify answers %s: %w", resp.Status, err)
	}
	for _, fault := range []string{"internal-error", "missing-input-secret", "invalid-input-secret"} {
		if slices.Contains(said.Errors, fault) {
			return false, errors.New("siteverify: " + fault) // theirs or ours, not the visitor's
		}
	}
	return said.Success && said.CData == token, nil
}

// A CAPTCHA service decides where a rule asks for a challenge; here a fake of it on
// this machine, for which the solution is "human" and the widget's cdata.
func ExampleChallenger() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		solver, cdata, _ := strings.Cut(r.PostFormValue("response"), " ")
		ok := r.PostFormValue("secret") == "our secret key" && solver == "human"
		json.NewEncoder(w).Encode(map[string]any{"success": ok, "cdata": cdata, "error-codes": []string{}})
	}))
	defer service.Close()
	g, err := guard.New(guard.Config{
		Store: memstore.New(memstore.Config{}), Secret: secret,
		Challenger: turnstile{service.Client(), service.URL, "our site key", "our secret key"},
		Policies: []guard.Policy{{Action: "login", Rules: []guard.Rule{{
			Name: "spraying", By: guard.ByIP, Members: guard.ByAccount, Counts: guard.Failures, Effect: guard.Challenge,
			Limits: []limiter.Limit{limiter.Distinct{Limit: 1, Window: time.Hour}},
		}}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	try := func(account, answer string) *guard.Puzzle {
		a := guard.Attempt{Action: "login", Account: account, IP: netip.MustParseAddr("203.0.113.7"), Challenge: answer}
		pass, err := g.Check(context.Background(), a)
		if denied := (*guard.Denied)(nil); errors.As(err, &denied) && denied.Challenge != nil {
			fmt.Println(account, "is asked for", denied.Challenge.Kind)
			return denied.Challenge
		}
		fmt.Println(account, "may try:", err == nil)
		if err == nil {
			pass.Fail(context.Background())
		}
		return nil
	}
	try("ann@example.com", "")
	c := try("bob@example.com", "")
	try("bob@example.com", c.Token+".robot "+c.Token)
	try("bob@example.com", c.Token+".human "+c.Token)
	try("bob@example.com", c.Token+".human "+c.Token) // used
	service.Close()
	try("bob@example.com", c.Token+".human "+c.Token)
	// Output:
	// ann@example.com may try: true
	// bob@example.com is asked for turnstile
	// bob@example.com is asked for turnstile
	// bob@example.com may try: true
	// bob@example.com is asked for turnstile
	// bob@example.com is asked for turnstile
}
