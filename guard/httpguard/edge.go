package httpguard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"authguard/guard"
)

// ChallengeHeader is where a client sends the answer to a challenge, if
// Config.Challenge does not say otherwise. Pages of other origins need CORS for it.
const ChallengeHeader = "Challenge-Answer"

// An Edge stands between HTTP and a guard: middleware that asks the guard and
// settles, the fields of answers, and refusals. Make it once, with [New]. It is
// safe for any number of goroutines.
type Edge struct {
	guard   *guard.Guard
	device  string // the cookie's name, or ""
	answer  func(*http.Request) string
	dialect Dialect
	fields  atomic.Pointer[fieldsInForce]
	pieces  []string // of Draft7
	page    func(http.ResponseWriter, *http.Request, Problem)
	queue   queue
	log     *slog.Logger

	mu   sync.Mutex
	said map[string]bool // what was logged once
}

// Config is what an Edge is made of.
type Config struct {
	// Guard decides.
	Guard *guard.Guard

	// DeviceCookie is the name of the device cookie ([guard.Guard.TrustDevice]),
	// by which [Edge.Guard] tells trusted clients; "" means that there is none.
	DeviceCookie string

	// Challenge reads the answer to a challenge from a request to [Edge.Guard]; nil
	// means the header [ChallengeHeader]. What a form brings is read by
	// r.PostFormValue, which leaves the rest to the handler. "" is no answer.
	Challenge func(*http.Request) string

	// Fields is the dialect in which clients are told where their limits stand.
	Fields Dialect

	// Page, if not nil, draws refusals for browsers: it writes p.Status and a
	// page. The fields of the answer are set by then. JSON is never drawn by it.
	Page func(w http.ResponseWriter, r *http.Request, p Problem)

	// Waiting is how many admitted requests may wait at once for their turn in
	// a queue ([limiter.LeakyBucket]), 0 means 1,000; and LongestWait how long
	// one of them may, 0 means 5 s. What is beyond is refused as unavailable.
	// All clients share the room. After a wait of ten seconds nothing is given
	// back any more ([guard.Pass.Succeed]), whatever becomes of the request.
	Waiting     int
	LongestWait time.Duration

	// Log is told of mistakes in how the Edge is used, each once; nil means
	// slog.Default.
	Log *slog.Logger
}

// New checks c and makes an Edge of it.
func New(c Config) (*Edge, error) {
	switch {
	case c.Guard == nil:
		return nil, errors.New("httpguard: Config.Guard is nil")
	case c.Fields > Draft12:
		return nil, fmt.Errorf("httpguard: Config.Fields is %v, want one of the dialects", c.Fields)
	case c.Waiting < 0:
		return nil, fmt.Errorf("httpguard: Config.Waiting is %d, want at least 0", c.Waiting)
	case c.LongestWait < 0:
		return nil, fmt.Errorf("httpguard: Config.LongestWait is %v, want at least 0", c.LongestWait)
	}
	e := &Edge{
		guard:   c.Guard,
		device:  c.DeviceCookie,
		answer:  c.Challenge,
		dialect: c.Fields,
		page:    c.Page,
		queue:   newQueue(c.Waiting, c.LongestWait),
		log:     c.Log,
		said:    make(map[string]bool),
	}
	if e.page == nil {
		e.page = drawPage
	}
	if e.answer == nil {
		e.answer = func(r *http.Request) string { return r.Header.Get(ChallengeHeader) }
	}
	if e.log == nil {
		e.log = slog.Default()
	}
	var err error
	if e.pieces, err = pieces(); err != nil {
		return nil, fmt.Errorf("httpguard: %w", err)
	}
	fields, err := prepareAll(c.Guard, c.Fields)
	if err != nil {
		return nil, err
	}
	e.fields.Store(fields)
	return e, nil
}

// Refuse answers an error of [guard.Guard.Check] or [guard.Guard.Do] like the
// function [Refuse], with the Edge's pages. Mistakes of the program are logged.
func (e *Edge) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := ProblemOf(err)
	switch {
	case p.Status != http.StatusInternalServerError:
	case errors.Is(err, guard.ErrNoPolicy), errors.Is(err, guard.ErrMissing), errors.Is(err, errNoIdentity):
		e.once(slog.LevelError, err.Error())
	default:
		e.log.ErrorContext(r.Context(), "httpguard: request failed", "err", err)
	}
	answer(w, r, p, e.page)
}

// maxSaid bounds what an Edge remembers to have said.
const maxSaid = 100

// once logs a mistake in how the Edge is used, the first time that it is seen.
func (e *Edge) once(level slog.Level, text string) {
	e.mu.Lock()
	news := !e.said[text] && len(e.said) < maxSaid
	if news {
		e.said[text] = true
	}
	e.mu.Unlock()
	if news {
		e.log.Log(context.Background(), level, text)
	}
}

// knows logs that an action has no policy, as soon as it is wired up.
func (e *Edge) knows(action string) {
	if e.fieldsOf(action) == nil {
		e.once(slog.LevelError, fmt.Sprintf("%v: %q", guard.ErrNoPolicy, action))
	}
}
