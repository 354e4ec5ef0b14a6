package adminapi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"authguard/guard"
)

// An Operator asks about what a guard refuses, and changes it.
type Operator interface {
	Inspect(ctx context.Context, q Question) (Report, error)
	Refused(ctx context.Context, most int) ([]Limit, error)
	Unlock(ctx context.Context, account string, actions ...string) error
	Block(ctx context.Context, who guard.Subject, duration time.Duration) error
	Unblock(ctx context.Context, who guard.Subject) error
}

// A Question is the attempt that Inspect explains.
type Question struct {
	Action  string     // such as "login"
	Account string     // as typed; "" asks about the address alone
	IP      netip.Addr // the zero Addr asks about the account alone
	Device  string     // the value of a device cookie, to ask for a known device
}

// A Report is what a guard would say to an attempt now.
type Report struct {
	Action  string `json:"action"`
	Account string `json:"account,omitempty"` // as it was asked for
	IP      string `json:"ip,omitempty"`

	// Clients is of which clients this is told: "trusted" or "untrusted" if a device
	// cookie was given, else "all": then limits have those of both classes.
	Clients string  `json:"clients"`
	Limits  []Limit `json:"limits"`
}

// Refusing are the limits that refuse a class of clients, "trusted" or "untrusted".
func (r Report) Refusing(clients string) []Limit {
	var refusing []Limit
	for _, l := range r.Limits {
		refuses := l.Effect == guard.Deny.String() || l.Effect == guard.Challenge.String()
		if l.Refuses && refuses && !l.Lifted && (l.Clients == guard.AllClients.String() || l.Clients == clients) {
			refusing = append(refusing, l)
		}
	}
	return refusing
}

// A Limit is where one limit stands for one subject.
type Limit struct {
	Action    string    `json:"action,omitempty"` // empty for a block, which is of all
	Rule      string    `json:"rule"`             // "blocked" and "denied" are the guard's own
	By        string    `json:"by,omitempty"`
	Name      string    `json:"name,omitempty"` // of the subject, in a listing; empty if it is not known
	Subject   string    `json:"subject"`        // its keyed hash, as in the log
	Clients   string    `json:"clients"`
	Effect    string    `json:"effect"`
	Limit     string    `json:"limit,omitempty"` // such as "5 per 15m0s"
	Used      int64     `json:"used"`
	Of        int64     `json:"of"`
	Refuses   bool      `json:"refuses"`
	Locked    bool      `json:"locked,omitempty"` // no wait helps, only recovery or an operator
	Lifted    bool      `json:"lifted,omitempty"` // by the allow list
	Retry     float64   `json:"retry_after"`      // seconds until the next attempt is admitted
	NextAt    time.Time `json:"next_at"`          // the same as an instant
	ResetAt   time.Time `json:"reset_at"`         // when nothing is held against the subject any more
	Remaining int64     `json:"remaining"`
}

// Of is the Operator of a guard.
func Of(g *guard.Guard) Operator { return operator{g} }

type operator struct{ guard *guard.Guard }

func (o operator) Inspect(ctx context.Context, q Question) (Report, error) {
	statuses, err := o.guard.Inspect(ctx, guard.Attempt{Action: q.Action, Account: q.Account, IP: q.IP, Device: q.Device})
	if err != nil {
		return Report{}, err
	}
	r := Report{Action: q.Action, Account: q.Account, Clients: guard.AllClients.String(), Limits: []Limit{}}
	if q.IP.IsValid() {
		r.IP = q.IP.String()
	}
	var trusted, untrusted bool
	for _, s := range statuses {
		trusted = trusted || s.Clients == guard.TrustedClients
		untrusted = untrusted || s.Clients == guard.UntrustedClients
		r.Limits = append(r.Limits, limitOf(s, ""))
	}
	switch { // the guard tells one class only of a device that it knows
	case q.Device == "":
	case trusted && !untrusted:
		r.Clients = guard.TrustedClients.String()
	default:
		r.Clients = guard.UntrustedClients.String()
		r.Limits = slices.DeleteFunc(r.Limits, func(l Limit) bool { return l.Clients == guard.TrustedClients.String() })
	}
	return r, nil
}

func (o operator) Refused(ctx context.Context, most int) ([]Limit, error) {
	refused, err := o.guard.Refused(ctx, most)
	if err != nil {
		return nil, err
	}
	limits := make([]Limit, len(refused))
	for i, r := range refused {
		limits[i] = limitOf(r.Status, r.Name)
	}
	return limits, nil
}

func (o operator) Unlock(ctx context.Context, account string, actions ...string) error {
	return o.guard.Unlock(ctx, account, actions...)
}

func (o operator) Block(ctx context.Context, who guard.Subject, duration time.Duration) error {
	return o.guard.Block(ctx, who, duration)
}

func (o operator) Unblock(ctx context.Context, who guard.Subject) error {
	return o.guard.Unblock(ctx, who)
}

func limitOf(s guard.Status, name string) Limit {
	d := s.Decision
	l := Limit{
		Action: s.Action, Rule: s.Rule, By: string(s.By), Name: name, Subject: s.Subject, Clients: s.Clients.String(), Effect: s.Effect.String(),
		Used: s.Used(), Of: d.Limit, Refuses: !d.Allowed, Locked: d.Locked, Lifted: s.Lifted, Remaining: d.Remaining,
		Retry: d.RetryAfter.Seconds(), NextAt: d.Time().Add(d.RetryAfter).UTC(), ResetAt: d.Time().Add(d.ResetAfter).UTC(),
	}
	if s.Limit != nil {
		l.Limit = fmt.Sprint(s.Limit)
	}
	return l
}

// errNobody is the mistake of naming nobody, or two.
var errNobody = errors.New("want an account or an ip, and not both")

// subject reads whom an operator means.
func subject(account, ip string) (guard.Subject, error) {
	if (account == "") == (ip == "") {
		return guard.Subject{}, errNobody
	}
	addr, err := address(ip)
	return guard.Subject{Account: account, IP: addr}, err
}

func address(ip string) (netip.Addr, error) {
	if ip == "" {
		return netip.Addr{}, nil
	}
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("ip is %q, want an address such as 203.0.113.7 or 2001:db8::1", ip)
	}
	return addr, nil
}
