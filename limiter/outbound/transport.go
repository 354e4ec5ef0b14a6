package outbound

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"authguard/limiter"
)

// Config of a Transport.
type Config struct {
	// Limiter is asked for one unit a request, under the request's key. A
	// LeakyBucket sends at an even pace.
	Limiter *limiter.Limiter

	// Base sends the requests; nil means http.DefaultTransport.
	Base http.RoundTripper

	// Key says which requests share a quota; nil means those to one host.
	Key func(*http.Request) string

	// MaxWait bounds how long a request waits for its turn; 0 means 30 s.
	MaxWait time.Duration

	// MaxWaiting bounds how many requests of a key wait at once; 0 means 100.
	MaxWaiting int
}

// ErrNotSent is wrapped by every error for a request that was held back: the
// queue is full, or its turn would come later than MaxWait or the context allow.
var ErrNotSent = errors.New("outbound: request not sent")

// A HeldError says how long the request would have had to wait.
type HeldError struct {
	Key   string
	Wait  time.Duration // 0: unknown, because too many wait already
	cause error
}

func (e *HeldError) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%v: %s: %v", ErrNotSent, e.Key, e.cause)
	}
	return fmt.Sprintf("%v: %s asked for a pause of another %v", ErrNotSent, e.Key, e.Wait.Round(time.Millisecond))
}

// Is makes every HeldError an [ErrNotSent].
func (e *HeldError) Is(target error) bool { return target == ErrNotSent }

func (e *HeldError) Unwrap() error { return e.cause }

// A Transport is an http.RoundTripper that waits before it sends. It is safe
// for any number of goroutines. Make it with [New].
type Transport struct {
	config Config

	mu   sync.Mutex
	keys map[string]*queue
}

// queue is what a Transport knows of a key.
type queue struct {
	waiting int
	until   time.Time // no request before, as the server asked
}

// New checks c and makes a Transport of it.
func New(c Config) (*Transport, error) {
	if c.Limiter == nil {
		return nil, errors.New("outbound: Config.Limiter is nil")
	}
	if c.MaxWait < 0 {
		return nil, fmt.Errorf("outbound: Config.MaxWait is %v, want at least 0", c.MaxWait)
	}
	if c.MaxWaiting < 0 {
		return nil, fmt.Errorf("outbound: Config.MaxWaiting is %d, want at least 0", c.MaxWaiting)
	}
	if c.Base == nil {
		c.Base = http.DefaultTransport
	}
	if c.Key == nil {
		c.Key = func(r *http.Request) string { return strings.ToLower(r.URL.Host) }
	}
	if c.MaxWait == 0 {
		c.MaxWait = 30 * time.Second
	}
	if c.MaxWaiting == 0 {
		c.MaxWaiting = 100
	}
	return &Transport{config: c, keys: map[string]*queue{}}, nil
}

// RoundTrip waits for r's turn and sends it, once. If it cannot be sent in time
// the error is a *[HeldError]; if r's context ends, it is the context's.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	key := t.config.Key(r)
	if err := t.wait(r.Context(), key); err != nil {
		if r.Body != nil {
			r.Body.Close() // a RoundTripper closes it, whatever happens
		}
		return nil, err
	}
	resp, err := t.config.Base.RoundTrip(r)
	if err == nil && (resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable) {
		if pause, ok := retryAfter(resp.Header, time.Now()); ok {
			t.pause(key, pause)
		}
	}
	return resp, err
}

// wait returns when it is the turn of a request of key, or says why never.
func (t *Transport) wait(ctx context.Context, key string) error {
	if !t.enter(key) {
		return &HeldError{Key: key, cause: fmt.Errorf("%d requests wait already", t.config.MaxWaiting)}
	}
	defer t.leave(key)
	limit := time.Now().Add(t.config.MaxWait)
	ctx, cancel := context.WithDeadlineCause(ctx, limit, errTooLong)
	defer cancel()
	charged := false
	for {
		if err := t.waitOut(ctx, key); err != nil {
			return err
		}
		if charged { // and no pause was asked for since
			return nil
		}
		switch err := t.config.Limiter.Wait(ctx, key); {
		case errors.Is(err, limiter.ErrDenied):
			return &HeldError{Key: key, cause: err}
		case err != nil:
			return endOf(ctx, key, err)
		}
		charged = true
	}
}

var errTooLong = errors.New("its turn did not come within MaxWait")

// waitOut sleeps while the server wants a pause.
func (t *Transport) waitOut(ctx context.Context, key string) error {
	for {
		pause := time.Until(t.pausedUntil(key))
		if pause <= 0 {
			return nil
		}
		if deadline, _ := ctx.Deadline(); time.Until(deadline) < pause {
			return &HeldError{Key: key, Wait: pause}
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return endOf(ctx, key, ctx.Err())
		}
	}
}

// endOf tells our own bound from the end of the caller's context.
func endOf(ctx context.Context, key string, err error) error {
	if context.Cause(ctx) == errTooLong {
		return &HeldError{Key: key, cause: errTooLong}
	}
	return err
}

const maxKeys = 1024 // from where on keys that say nothing are forgotten

func (t *Transport) enter(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.queue(key)
	if q.waiting >= t.config.MaxWaiting {
		return false
	}
	q.waiting++
	return true
}

func (t *Transport) leave(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue(key).waiting--
}

func (t *Transport) pausedUntil(key string) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.queue(key).until
}

// pause holds requests of key back, never for less than was asked before.
func (t *Transport) pause(key string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if until := time.Now().Add(d); until.After(t.queue(key).until) {
		t.queue(key).until = until
	}
}

func (t *Transport) queue(key string) *queue {
	q := t.keys[key]
	if q == nil {
		if len(t.keys) >= maxKeys {
			for k, q := range t.keys {
				if q.waiting == 0 && !q.until.After(time.Now()) {
					delete(t.keys, k)
				}
			}
		}
		q = &queue{}
		t.keys[key] = q
	}
	return q
}
