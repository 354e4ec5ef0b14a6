package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"authguard/limiter"
)

// A walk is a table that leads one key through time:
//
//	```go
//	limiter.TokenBucket{Capacity: 5, Refill: 1, Per: 2 * time.Second}
//	```
//
//	| at | ask | answer | remaining | retry after | |
//	|---|---|---|---|---|---|
//	| 0s | 4 | yes | 1 | | a burst |
//
// Its first column is "at"; the limits are the literals of the Go block before
// it. The columns "at" and "ask" are what happens, and "numbers" is a literal,
// without the package, that takes the limit's place from then on. An ask is a cost, the name of a
// member, "look" (charges nothing), "refund of 5s" (of the charge made then) or
// "success of 5s" (a refund that clears). The columns answer, remaining, retry
// after, delay, state and denied by are what the law says. All others are the
// author's.
type walk struct {
	key     *key
	columns []string
	charges map[time.Duration]limiter.Ask
}

// answerWalks fills in what the laws say in the walks of a page, and returns
// the limits that were walked.
func answerWalks(page string) (string, []limiter.Limit, error) {
	var (
		lines  = strings.Split(page, "\n")
		walked []limiter.Limit
		limits []limiter.Limit // of the last Go block
		inGo   bool
		w      *walk
	)
	for i, line := range lines {
		cells := cellsOf(line)
		var err error
		switch {
		case line == "```go":
			inGo, limits = true, nil
		case line == "```":
			inGo = false
		case inGo && strings.HasPrefix(line, "limiter."):
			limit, ok := parseLimit(strings.TrimSuffix(line, ","))
			if ok {
				limits = append(limits, limit)
			}
		case len(cells) == 0:
			w = nil
		case w == nil && cells[0] == "at":
			if len(limits) == 0 {
				err = errors.New("a walk needs a limit in the Go block before it")
			}
			w = &walk{newKey(limits...), cells, map[time.Duration]limiter.Ask{}}
			walked = append(walked, limits...)
		case w != nil && !strings.HasPrefix(line, "|-"):
			if len(cells) != len(w.columns) {
				err = fmt.Errorf("%d cells under %d columns", len(cells), len(w.columns))
				break
			}
			if cells, err = w.step(cells); err == nil {
				lines[i] = "| " + strings.Join(cells, " | ") + " |"
			}
		}
		if err != nil {
			return "", nil, fmt.Errorf("%d: %w", i+1, err)
		}
	}
	return strings.Join(lines, "\n"), walked, nil
}

func cellsOf(line string) []string {
	if !strings.HasPrefix(line, "|") {
		return nil
	}
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// step does what a row says, and returns the row with its answers.
func (w *walk) step(cells []string) ([]string, error) {
	at, err := time.ParseDuration(cells[0])
	if err != nil {
		return nil, err
	}
	if numbers := w.column("numbers"); numbers >= 0 && cells[numbers] != "" {
		limit, ok := parseLimit("limiter." + strings.Trim(cells[numbers], "`"))
		if !ok {
			return nil, fmt.Errorf("%q is no limit", cells[numbers])
		}
		w.key.limits[0] = limit
	}
	said, answer, err := w.do(at, cells[w.column("ask")])
	if err != nil {
		return nil, err
	}
	cells = slices.Clone(cells)
	for i, column := range w.columns {
		if fill, ok := answers[column]; ok {
			cells[i] = fill(w, said, answer)
		}
	}
	return cells, nil
}

func (w *walk) column(name string) int { return slices.Index(w.columns, name) }

// do carries an ask out. The answer to a look is in brackets.
func (w *walk) do(at time.Duration, what string) (said []limiter.Decision, answer string, err error) {
	if verb, when, ok := strings.Cut(what, " of "); ok {
		charged, err := time.ParseDuration(when)
		ask, known := w.charges[charged]
		if err != nil || !known {
			return nil, "", fmt.Errorf("nothing was charged at %q", when)
		}
		if verb == "success" {
			ask.Cost = limiter.MaxLimit
		}
		if err := w.key.refund(at, charged, ask); err != nil {
			return nil, "", err
		}
		said, err = w.key.look(at, limiter.Ask{})
		return said, "", err
	}
	if what == "look" {
		said, err = w.key.look(at, limiter.Ask{Cost: 1})
		if err == nil && !said[deciding(said)].Allowed {
			return said, "(no)", nil
		}
		return said, "(yes)", err
	}
	ask := limiter.Ask{Cost: 1, Member: limiter.Member(what)}
	if n, err := strconv.ParseInt(what, 10, 64); err == nil {
		ask = limiter.Ask{Cost: n}
	}
	admitted, said, err := w.key.take(at, ask)
	switch {
	case errors.Is(err, limiter.ErrCostTooHigh):
		said, err = w.key.look(at, limiter.Ask{})
		return said, "error: cost too high", err
	case admitted:
		w.charges[at] = ask
		return said, "yes", err
	}
	return said, "no", err
}

// answers are the columns that the laws fill in.
var answers = map[string]func(w *walk, said []limiter.Decision, answer string) string{
	"answer": func(_ *walk, said []limiter.Decision, answer string) string {
		if said[deciding(said)].Locked {
			return "locked"
		}
		return answer
	},
	"remaining": func(_ *walk, said []limiter.Decision, _ string) string {
		return fmt.Sprint(said[deciding(said)].Remaining)
	},
	"retry after": func(_ *walk, said []limiter.Decision, _ string) string {
		if d := said[deciding(said)]; !d.Allowed {
			return short(d.RetryAfter)
		}
		return ""
	},
	"delay": func(_ *walk, said []limiter.Decision, answer string) string {
		if answer != "yes" {
			return ""
		}
		return said[0].Delay.String()
	},
	"state": func(w *walk, _ []limiter.Decision, _ string) string {
		return fmt.Sprintf("%d B", len(w.key.states[0]))
	},
	"denied by": func(w *walk, said []limiter.Decision, _ string) string {
		if i := deciding(said); !said[i].Allowed {
			return fmt.Sprint(w.key.limits[i])
		}
		return ""
	},
}

// deciding is the limit that denies longest, or leaves least: that of
// limiter.Result.
func deciding(said []limiter.Decision) int {
	best := 0
	for i, d := range said {
		b := said[best]
		if d.Allowed != b.Allowed && !d.Allowed || d.Allowed == b.Allowed && (d.RetryAfter > b.RetryAfter || d.Allowed && d.Remaining < b.Remaining) {
			best = i
		}
	}
	return best
}

// short is d without units that are zero: 1m, not 1m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
