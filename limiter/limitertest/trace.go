package limitertest

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"authguard/limiter"
)

//go:embed testdata/*.trace
var traceFiles embed.FS

// A trace is one history of one key, read from a file such as
//
//	# What it shows, with the code of the case.
//	sliding_window 5 per 5m
//	0s              take 4 as a  → allow remaining 1 reset 5m
//	1s              take 2       → deny retry 4m59s
//	2s..8s every 2s peek         → allow remaining 1
//	9s              take 6       → too high
//	10s             refund a
//
// The law's numbers are "5 per 5m" for windows and "10 at 1 per 1s" for a
// bucket of ten. Instants count from one at which windows begin; they may go
// back, as a clock may. A cost of one is left out. What an answer does not say
// is not compared, but an admission never has a retry and a denial always says
// its own: "retry 5s", or "until 10s" for the instant at which it ends.
type trace struct {
	name  string
	limit limiter.Limit
	steps []step
}

type step struct {
	line  string // where in which file
	at    time.Duration
	verb  string // take, peek, refund or forget
	cost  int64
	label string // of the receipt that a take leaves and a refund needs
	want  answer
}

type answer struct {
	tooHigh, allowed    bool
	remaining           *int64
	retry, until, reset *time.Duration
}

// readTraces parses all files.
func readTraces() ([]trace, error) {
	names, err := fs.Glob(traceFiles, "testdata/*.trace")
	if err != nil {
		return nil, err
	}
	var traces []trace
	for _, name := range names {
		text, err := traceFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		t, err := parseTrace(name, string(text))
		if err != nil {
			return nil, err
		}
		traces = append(traces, t)
	}
	return traces, nil
}

func parseTrace(name, text string) (trace, error) {
	t := trace{name: name}
	labels := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		where := fmt.Sprintf("%s:%d", name, i+1)
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		var err error
		if t.limit == nil {
			t.limit, err = parseLimit(words)
		} else {
			t.steps, err = appendSteps(t.steps, where, words, labels)
		}
		if err != nil {
			return trace{}, fmt.Errorf("%s: %w", where, err)
		}
	}
	if t.limit == nil || len(t.steps) == 0 {
		return trace{}, fmt.Errorf("%s: a trace is a law and at least one step", name)
	}
	return t, nil
}

// parseLimit reads "sliding_window 5 per 5m" or "token_bucket 10 at 1 per 1s".
func parseLimit(words []string) (limiter.Limit, error) {
	p := parser{words: words}
	law, n := p.next(), p.count()
	var limit limiter.Limit
	switch law {
	case "token_bucket":
		p.want("at")
		refill := p.count()
		p.want("per")
		limit = limiter.TokenBucket{Capacity: n, Refill: refill, Per: p.duration()}
	case "fixed_window", "sliding_window", "sliding_window_counter":
		p.want("per")
		window := p.duration()
		limit = map[string]limiter.Limit{
			"fixed_window":           limiter.FixedWindow{Limit: n, Window: window},
			"sliding_window":         limiter.SlidingWindow{Limit: n, Window: window},
			"sliding_window_counter": limiter.SlidingWindowCounter{Limit: n, Window: window},
		}[law]
	default:
		return nil, fmt.Errorf("%q is no law", law)
	}
	if p.end(); p.err != nil {
		return nil, p.err
	}
	return limit, limit.Validate()
}

// appendSteps reads one line, which is one step or the same step every so often.
func appendSteps(steps []step, where string, words []string, labels map[string]bool) ([]step, error) {
	s := step{line: where, cost: 1}
	asked, answered := words, []string(nil)
	if i := slices.Index(words, "→"); i >= 0 {
		asked, answered = words[:i], words[i+1:]
	}
	p := parser{words: asked}
	first, last, every := p.instants()
	switch s.verb = p.next(); s.verb {
	case "take", "peek":
		if c := p.peek(); c != "" && c != "as" {
			s.cost = p.count()
		}
		if s.verb == "take" && p.peek() == "as" {
			p.next()
			s.label = p.next()
			labels[s.label] = true
		}
		if answered == nil && p.err == nil {
			return nil, fmt.Errorf("%s needs an answer after a →", s.verb)
		}
	case "refund":
		if s.label = p.next(); !labels[s.label] && p.err == nil {
			return nil, fmt.Errorf("nothing was taken as %q", s.label)
		}
	case "forget":
	default:
		return nil, fmt.Errorf("%q is none of take, peek, refund and forget", s.verb)
	}
	if p.end(); p.err != nil {
		return nil, p.err
	}
	if answered != nil {
		if s.verb != "take" && s.verb != "peek" {
			return nil, fmt.Errorf("%s has no answer", s.verb)
		}
		var err error
		if s.want, err = parseAnswer(answered); err != nil {
			return nil, err
		}
	}
	for s.at = first; s.at <= last; s.at += every {
		steps = append(steps, s)
	}
	return steps, nil
}

func parseAnswer(words []string) (answer, error) {
	p := parser{words: words}
	var a answer
	switch verdict := p.next(); verdict {
	case "too":
		p.want("high")
		a.tooHigh = true
		p.end()
		return a, p.err
	case "allow":
		a.allowed = true
	case "deny":
	default:
		return a, fmt.Errorf("%q is none of allow, deny and too high", verdict)
	}
	for p.peek() != "" && p.err == nil {
		switch fact := p.next(); fact {
		case "remaining":
			n := p.count()
			a.remaining = &n
		case "retry", "until", "reset":
			d := p.duration()
			*map[string]**time.Duration{"retry": &a.retry, "until": &a.until, "reset": &a.reset}[fact] = &d
		default:
			return a, fmt.Errorf("%q is none of remaining, retry, until and reset", fact)
		}
	}
	if waits := a.retry != nil || a.until != nil; p.err == nil && waits == a.allowed {
		return a, fmt.Errorf("a denial says retry or until, and an admission does not")
	}
	return a, p.err
}

// A parser reads words, and keeps the first error.
type parser struct {
	words []string
	err   error
}

func (p *parser) peek() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.words[0]
}

func (p *parser) next() string {
	if len(p.words) == 0 {
		p.fail("the line ends too soon")
		return ""
	}
	word := p.words[0]
	p.words = p.words[1:]
	return word
}

func (p *parser) want(word string) {
	if got := p.next(); got != word {
		p.fail("%q where %q was expected", got, word)
	}
}

func (p *parser) count() int64 {
	word := p.next()
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		p.fail("%q is no whole number", word)
	}
	return n
}

func (p *parser) duration() time.Duration {
	word := p.next()
	d, err := time.ParseDuration(word)
	if err != nil {
		p.fail("%q is no duration", word)
	}
	return d
}

// instants reads "5s" or "5s..9s every 2s".
func (p *parser) instants() (first, last, every time.Duration) {
	from, to, ranged := strings.Cut(p.next(), "..")
	first = (&parser{words: []string{from}}).into(p)
	if !ranged {
		return first, first, 1
	}
	last = (&parser{words: []string{to}}).into(p)
	p.want("every")
	if every = p.duration(); every <= 0 || last < first {
		p.fail("%s..%s every %v is no time", from, to, every)
		every = 1
	}
	return first, last, every
}

// into reads a duration, and reports its error to the other parser.
func (p *parser) into(other *parser) time.Duration {
	d := p.duration()
	if p.err != nil {
		other.fail("%v", p.err)
	}
	return d
}

func (p *parser) end() {
	if len(p.words) > 0 {
		p.fail("%q is too much", strings.Join(p.words, " "))
	}
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}
