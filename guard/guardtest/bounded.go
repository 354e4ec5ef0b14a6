package guardtest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// A Target is a handler whose secret somebody guesses, and the means to see how
// often it was compared.
type Target struct {
	// Handler is the whole application, with its router and middleware. It may
	// break: it is sent DELETE, too.
	Handler http.Handler

	// Request makes one wrong attempt at the secret, a new request in each call,
	// at the path and with the method that are meant for it. It may come from
	// another address each time, so that only the limit by account is left.
	Request func() *http.Request

	// Verified is how often the secret that Request guesses at was compared so
	// far; see [Counter].
	Verified func() int64

	// Limit is how many comparisons are admitted before attempts are refused.
	// The limit's window must be longer than the test, or its clock stand still.
	Limit int64
}

func (t *Target) check() error {
	switch {
	case t.Handler == nil:
		return errors.New("Target.Handler is nil")
	case t.Request == nil:
		return errors.New("Target.Request is nil")
	case t.Verified == nil:
		return errors.New("Target.Verified is nil")
	case t.Limit < 1:
		return fmt.Errorf("Target.Limit is %d, want at least 1", t.Limit)
	}
	return nil
}

// atOnce is how many attempts come at one instant.
const atOnce = 100

// Bounded checks that the secret of target is compared exactly Limit times in
// all, and that what is refused is answered 429 with a Retry-After:
//
//   - by 100 attempts at one instant;
//   - by an attempt in each other spelling, one after the other: paths with a
//     slash more, in capitals, percent-encoded, with dot segments or parameters;
//     queries; all methods, and headers that override them; the body as JSON, as
//     a form, as multipart, as a query;
//   - by all spellings at one instant.
//
// The attempts share whatever limits the application has, so it must be fresh:
// nothing may have been charged for this account and address before. A spelling
// that is not found, or answered in another way, is as good as a refusal as long
// as nothing is compared. An error names the spelling that got through.
func Bounded(t testing.TB, target Target) {
	t.Helper()
	if err := target.check(); err != nil {
		t.Fatalf("guardtest: %v", err)
	}
	all, err := spellings(target.Request())
	if err != nil {
		t.Fatalf("guardtest: Target.Request: %v", err)
	}
	b := &bound{Target: target, start: target.Verified()}
	b.burst(t)
	if !b.exhaust(t) {
		return
	}
	b.eachSpelling(t, all)
	b.allSpellings(t, all)
}

// bound is a Target under attack.
type bound struct {
	Target
	start int64
}

// compared is how often the secret was compared by our attempts.
func (b *bound) compared() int64 { return b.Verified() - b.start }

// burst sends plain attempts at one instant.
func (b *bound) burst(t testing.TB) {
	t.Helper()
	requests := make([]*http.Request, atOnce)
	for i := range requests {
		requests[i] = b.Request()
	}
	name := nameOf(requests[0])
	answers := together(b.Handler, requests)
	compared := b.compared()
	if compared > b.Limit {
		t.Errorf("guardtest: %s: %d attempts at one instant had the secret compared %d times, want at most %d: is each charged before the comparison?",
			name, atOnce, compared, b.Limit)
	}
	neither := int64(0)
	others := map[string]int{}
	for _, a := range answers {
		if !a.busy() {
			neither++
			others[a.String()]++
		}
	}
	if compared > 0 && neither > compared {
		t.Errorf("guardtest: %s: %d of %d attempts were neither compared nor refused with 429, but answered (and how often): %v",
			name, neither-compared, atOnce, others)
	}
	for _, a := range answers {
		if a.busy() && !a.saysWhen() {
			t.Errorf("guardtest: %s is answered %v with Retry-After %q, want seconds, at least 1, or a date", name, a, a.retryAfter)
			break
		}
	}
}

// exhaust sends attempts one after the other, in case that there was no room for
// all of the burst, until they are refused. It reports that they were, and that
// the secret was ever compared: otherwise nothing else could fail.
func (b *bound) exhaust(t testing.TB) bool {
	t.Helper()
	r := b.Request()
	var (
		a      answer
		before int64
	)
	for more := true; more; more = a.fault() != "" && b.compared() > before && b.compared() <= b.Limit {
		before = b.compared()
		a = serve(b.Handler, r)
		r = b.Request()
	}
	switch compared := b.compared(); {
	case compared == 0:
		t.Fatalf("guardtest: %s is answered %v, and the secret is never compared: is Request an attempt, and does Verified count?", nameOf(r), a)
	case a.fault() != "":
		t.Errorf("guardtest: %s %s after %d comparisons", nameOf(r), a.fault(), compared)
		return false
	case compared > before:
		t.Errorf("guardtest: %s is answered 429, but has the secret compared all the same", nameOf(r))
		return false
	case compared < b.Limit:
		t.Errorf("guardtest: %s is refused after %d comparisons, want %d: does another limit refuse first, or was something charged before?",
			nameOf(r), compared, b.Limit)
	}
	return true
}

// eachSpelling sends the spellings one by one, now that nothing may be compared.
func (b *bound) eachSpelling(t testing.TB, all []spelling) {
	t.Helper()
	var through, silent []string
	for _, s := range all {
		before := b.Verified()
		a := serve(b.Handler, s.of(t, b.Request()))
		switch {
		case b.Verified() > before:
			through = append(through, s.name)
		case a.status == http.StatusTooManyRequests && !a.saysWhen():
			silent = append(silent, s.name)
		}
	}
	if len(through) > 0 {
		t.Errorf("guardtest: the secret is compared beyond the limit of %d by %s", b.Limit, list(through))
	}
	if len(silent) > 0 {
		t.Errorf("guardtest: 429 without Retry-After by %s", list(silent))
	}
}

// allSpellings sends them at one instant.
func (b *bound) allSpellings(t testing.TB, all []spelling) {
	t.Helper()
	requests := make([]*http.Request, len(all))
	for i, s := range all {
		requests[i] = s.of(t, b.Request())
	}
	before := b.Verified()
	together(b.Handler, requests)
	if n := b.Verified() - before; n > 0 {
		t.Errorf("guardtest: the secret is compared %d times beyond the limit of %d when %d spellings of %s come at one instant",
			n, b.Limit, len(all), nameOf(b.Request()))
	}
}

// together serves requests that are released at one instant.
func together(h http.Handler, requests []*http.Request) []answer {
	var (
		answers     = make([]answer, len(requests))
		ready, done sync.WaitGroup
		released    = make(chan struct{})
	)
	for i, r := range requests {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-released
			answers[i] = serve(h, r)
		})
	}
	ready.Wait()
	close(released)
	done.Wait()
	return answers
}

// list is names in lines of their own, one for all methods of a path.
func list(names []string) string {
	var rests []string
	methods := map[string][]string{}
	for _, name := range names {
		method, rest, _ := strings.Cut(name, " ")
		if methods[rest] == nil {
			rests = append(rests, rest)
		}
		methods[rest] = append(methods[rest], method)
	}
	var b strings.Builder
	for _, rest := range rests {
		fmt.Fprintf(&b, "\n\t%s %s", strings.Join(methods[rest], ", "), rest)
	}
	return b.String()
}
