package adminapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"authguard/guard"
)

// A Client is the Operator of an application that has mounted the API. Make it with
// [NewClient].
type Client struct {
	base  string
	token string
	http  *http.Client
}

const maxAnswer = 16 << 20

// NewClient makes a Client of the API at base, such as
// "https://login.example.com/admin". The token is sent over TLS, or to this machine,
// and nowhere else, redirects included.
func NewClient(base, token string) (*Client, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("the URL is %q, want one such as https://login.example.com/admin", base)
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return nil, fmt.Errorf("the URL is %q: the token would travel in clear; use https, or a tunnel to this machine", base)
	case token == "":
		return nil, errors.New("there is no token")
	}
	return &Client{
		base:  strings.TrimSuffix(base, "/"),
		token: token,
		http: &http.Client{
			Timeout:       30 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// Inspect implements [Operator].
func (c *Client) Inspect(ctx context.Context, q Question) (r Report, err error) {
	in := map[string]string{"action": q.Action, "account": q.Account, "device": q.Device}
	if q.IP.IsValid() {
		in["ip"] = q.IP.String()
	}
	return r, c.call(ctx, http.MethodPost, "/inspect", in, &r)
}

// Refused implements [Operator].
func (c *Client) Refused(ctx context.Context, most int) ([]Limit, error) {
	var l listing
	err := c.call(ctx, http.MethodGet, fmt.Sprintf("/refused?n=%d", most), nil, &l)
	return l.Refused, err
}

// Unlock implements [Operator].
func (c *Client) Unlock(ctx context.Context, account string, actions ...string) error {
	return c.call(ctx, http.MethodPost, "/unlock", map[string]string{"account": account, "actions": strings.Join(actions, ",")}, new(done))
}

// Block implements [Operator].
func (c *Client) Block(ctx context.Context, who guard.Subject, duration time.Duration) error {
	in := named(who)
	in["for"] = duration.String()
	return c.call(ctx, http.MethodPost, "/block", in, new(done))
}

// Unblock implements [Operator].
func (c *Client) Unblock(ctx context.Context, who guard.Subject) error {
	return c.call(ctx, http.MethodPost, "/unblock", named(who), new(done))
}

func named(who guard.Subject) map[string]string {
	in := map[string]string{}
	if who.Account != "" {
		in["account"] = who.Account
	}
	if who.IP.IsValid() {
		in["ip"] = who.IP.String()
	}
	return in
}

// call makes one request and reads its answer into out.
func (c *Client) call(ctx context.Context, method, path string, in map[string]string, out any) error {
	var body io.Reader
	if in != nil {
		text, _ := json.Marshal(in) // text: never fails
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Accept", "application/json")
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(r)
	if err != nil {
		if connecting := (*net.OpError)(nil); errors.As(err, &connecting) {
			return fmt.Errorf("%s does not answer: %w", c.base, connecting)
		}
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%s: the answer ended early: %w", c.base, err)
	}
	if resp.StatusCode != http.StatusOK {
		return c.refusal(resp, text)
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("%s%s answers something else than this API; is the path right?", c.base, path)
	}
	return nil
}

func (c *Client) refusal(resp *http.Response, text []byte) error {
	var p problem
	_ = json.Unmarshal(text, &p) // what is none stays empty
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return fmt.Errorf("%s does not take this token", c.base)
	case http.StatusNotFound:
		return fmt.Errorf("%s has no such API; is the path right, and was the application given a token?", c.base)
	case http.StatusTooManyRequests:
		return fmt.Errorf("%s refuses operators for a while, since too many wrong tokens have come; again in %s s", c.base, resp.Header.Get("Retry-After"))
	}
	if p.Detail == "" {
		p.Detail = resp.Status
	}
	return errors.New(strings.TrimPrefix(p.Detail, "guard: "))
}
