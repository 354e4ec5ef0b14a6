package adminapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/internal/fields"
)

// Action is the action whose policy bounds guesses at the token: the guard must have
// one of that name, as policies.Default does.
const Action = "admin"

const (
	minToken = 16
	maxList  = 10_000
)

// Config of the API.
type Config struct {
	Guard *guard.Guard

	// Token is the operators', at least 16 bytes; 32 random ones are best. There is
	// no API without one.
	Token string
}

type api struct {
	guard    *guard.Guard
	operator Operator
	token    [sha256.Size]byte
}

// New checks c and makes the API. Where it is mounted, addresses must be those of
// clients: behind a proxy put [httpguard.Clients] before it.
func New(c Config) (http.Handler, error) {
	if c.Guard == nil {
		return nil, errors.New("adminapi: Config.Guard is nil")
	}
	if len(c.Token) < minToken {
		return nil, fmt.Errorf("adminapi: Config.Token has %d bytes, want at least %d", len(c.Token), minToken)
	}
	bounded := false
	for _, p := range c.Guard.Policies() {
		bounded = bounded || p.Action == Action
	}
	if !bounded {
		return nil, fmt.Errorf("adminapi: %w: %q, which bounds guesses at the token", guard.ErrNoPolicy, Action)
	}
	a := &api{c.Guard, Of(c.Guard), sha256.Sum256([]byte(c.Token))}
	mux := http.NewServeMux()
	mux.Handle("GET /refused", a.answer(a.refused))
	mux.Handle("POST /inspect", a.answer(a.inspect))
	mux.Handle("POST /unlock", a.answer(a.unlock))
	mux.Handle("POST /block", a.answer(a.block))
	mux.Handle("POST /unblock", a.answer(a.unblock))
	return http.NewCrossOriginProtection().Handler(a.operatorsOnly(mux)), nil
}

// operatorsOnly lets pass who has the token. What routes there are is told to nobody
// else.
func (a *api) operatorsOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		token := presented(r.Header)
		if token == "" {
			unauthorized(w)
			return
		}
		attempt := guard.Attempt{Action: Action, IP: httpguard.ClientIP(r)}
		ok, err := a.guard.Do(r.Context(), attempt, func(context.Context, *guard.Pass) (bool, error) {
			given := sha256.Sum256([]byte(token)) // of one length with the other
			return subtle.ConstantTimeCompare(given[:], a.token[:]) == 1, nil
		})
		switch {
		case err != nil:
			httpguard.Refuse(w, r, err)
		case !ok:
			unauthorized(w)
		case path.Clean(r.URL.Path) != r.URL.Path:
			http.NotFound(w, r) // the mux would redirect to a path outside of where this is mounted
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// presented is the one token of a request, or "".
func presented(h http.Header) string {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

func unauthorized(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	write(w, http.StatusUnauthorized, problem{Code: "unauthorized"})
}

// problem is an answer that says no.
type problem struct {
	Code   string `json:"error"`
	Detail string `json:"detail,omitempty"`
}

// done is the answer to a change.
type done struct {
	Done string `json:"done"`
}

// errRequest is a mistake in what was asked.
type errRequest struct{ error }

// answer has do answer, as JSON.
func (a *api) answer(do func(http.ResponseWriter, *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := do(w, r)
		if err == nil {
			write(w, http.StatusOK, body)
			return
		}
		status, p := http.StatusBadRequest, problem{"invalid_request", err.Error()}
		var malformed *fields.Error
		switch {
		case errors.As(err, &malformed):
			status, p.Detail = malformed.Status, malformed.Detail
		case errors.Is(err, guard.ErrNoIndex):
			status, p.Code = http.StatusNotImplemented, "no_index"
		case errors.Is(err, guard.ErrUnavailable):
			status, p = http.StatusServiceUnavailable, problem{"unavailable", "the store or the resolver does not answer; a change may have been made or not"}
		case errors.Is(err, guard.ErrNoPolicy), errors.Is(err, guard.ErrMissing), errors.As(err, new(errRequest)):
		default:
			status, p = http.StatusInternalServerError, problem{Code: "internal"}
		}
		write(w, status, p)
	})
}

func write(w http.ResponseWriter, status int, body any) {
	text, _ := json.Marshal(body) // plain fields: never fails
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	w.Write(append(text, '\n'))
}

// read reads the named fields of a JSON body, each of which may be missing.
func read(w http.ResponseWriter, r *http.Request, names ...string) (fields.Values, error) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, &fields.Error{Status: http.StatusUnsupportedMediaType, Detail: "the content type must be application/json"}
	}
	in, err := fields.ReadOptional(w, r, names...)
	if err != nil && !errors.As(err, new(*fields.Error)) {
		err = errRequest{errors.New("the body ended early")}
	}
	return in, err
}

func (a *api) inspect(w http.ResponseWriter, r *http.Request) (any, error) {
	in, err := read(w, r, "action", "account", "ip", "device")
	if err != nil {
		return nil, err
	}
	addr, err := address(in["ip"])
	if err != nil {
		return nil, errRequest{err}
	}
	return a.operator.Inspect(r.Context(), Question{Action: in["action"], Account: in["account"], IP: addr, Device: in["device"]})
}

func (a *api) refused(_ http.ResponseWriter, r *http.Request) (any, error) {
	n, err := strconv.Atoi(r.URL.Query().Get("n"))
	if err != nil || n < 1 || n > maxList {
		return nil, errRequest{fmt.Errorf("n is %q, want a number from 1 to %d", r.URL.Query().Get("n"), maxList)}
	}
	limits, err := a.operator.Refused(r.Context(), n)
	return listing{limits}, err
}

// listing is the answer to who is refused.
type listing struct {
	Refused []Limit `json:"refused"`
}

func (a *api) unlock(w http.ResponseWriter, r *http.Request) (any, error) {
	in, err := read(w, r, "account", "actions")
	if err != nil {
		return nil, err
	}
	var actions []string
	if in["actions"] != "" {
		actions = strings.Split(in["actions"], ",")
	}
	return done{"unlocked"}, a.operator.Unlock(r.Context(), in["account"], actions...)
}

func (a *api) block(w http.ResponseWriter, r *http.Request) (any, error) {
	in, err := read(w, r, "account", "ip", "for")
	if err != nil {
		return nil, err
	}
	who, err := subject(in["account"], in["ip"])
	if err != nil {
		return nil, errRequest{err}
	}
	if from := httpguard.ClientIP(r); who.IP.IsValid() && from.IsValid() && guard.SameClient(who.IP, from) {
		return nil, errRequest{errors.New("ip is the address that you come from: this API would refuse you, too, and could not end it")}
	}
	d, err := time.ParseDuration(in["for"])
	if err != nil || d < time.Second || d > guard.MaxBlock {
		return nil, errRequest{fmt.Errorf("for is %q, want a duration from 1s to %v, such as 36h", in["for"], guard.MaxBlock)}
	}
	return done{"blocked"}, a.operator.Block(r.Context(), who, d)
}

func (a *api) unblock(w http.ResponseWriter, r *http.Request) (any, error) {
	in, err := read(w, r, "account", "ip")
	if err != nil {
		return nil, err
	}
	who, err := subject(in["account"], in["ip"])
	if err != nil {
		return nil, errRequest{err}
	}
	return done{"unblocked"}, a.operator.Unblock(r.Context(), who)
}
