package limitertest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLawTraces(t *testing.T) { LawTraces(t) }

func TestTraceErrorsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                                    "x.trace: a trace is a law and at least one step",
		"sliding_window 5 per 5m":                             "x.trace: a trace is a law and at least one step",
		"leaky_window 5 per 5m":                               `x.trace:1: "leaky_window" is no law`,
		"sliding_window five per 5m":                          `x.trace:1: "five" is no whole number`,
		"sliding_window 5 in 5m":                              `x.trace:1: "in" where "per" was expected`,
		"sliding_window 5 per 5":                              `x.trace:1: "5" is no duration`,
		"sliding_window 0 per 5m":                             "x.trace:1: limiter: SlidingWindow.Limit is 0",
		"token_bucket 5 at 1":                                 "x.trace:1: the line ends too soon",
		"fixed_window 1 per 1s\n\n0s":                         "x.trace:3: ",
		"fixed_window 1 per 1s\n0s grab → allow":              `x.trace:2: "grab" is none of take, peek, refund and forget`,
		"fixed_window 1 per 1s\n0s take":                      "x.trace:2: take needs an answer after a →",
		"fixed_window 1 per 1s\n0s take → maybe":              `x.trace:2: "maybe" is none of allow, deny and too high`,
		"fixed_window 1 per 1s\n0s take → deny":               "x.trace:2: a denial says retry or until",
		"fixed_window 1 per 1s\n0s take → allow retry 1s":     "x.trace:2: a denial says retry or until",
		"fixed_window 1 per 1s\n0s take → allow left 1":       `x.trace:2: "left" is none of remaining`,
		"fixed_window 1 per 1s\n0s refund a":                  `x.trace:2: nothing was taken as "a"`,
		"fixed_window 1 per 1s\n0s forget → allow":            "x.trace:2: forget has no answer",
		"fixed_window 1 per 1s\n0s take 1 2 → allow":          `x.trace:2: "2" is too much`,
		"fixed_window 1 per 1s\n9s..1s every 1s take → allow": "x.trace:2: 9s..1s every 1s is no time",
		"fixed_window 1 per 1s\n0s..1s every 0s take → allow": "x.trace:2: 0s..1s every 0s is no time",
	} {
		_, err := parseTrace("x.trace", text)
		require.ErrorContains(t, err, want, text)
	}
}
