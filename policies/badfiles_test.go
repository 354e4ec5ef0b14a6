package policies_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"authguard/policies"
)

const (
	subjects = "account, ip, ip/BITS with 32 to 128 bits, ip+account, device, api_key, tenant, global or part:NAME"
	keys     = "by, limit, counter, fixed, bucket, queue, backoff, distinct, refill, leak, shared, clients, counts, effect or on_outage"

	streakKeys = "free, base, max, lock, factor, forget or forget_beyond"
)

// Each file has one fault, and the error wanted is told without the file name.
var badFiles = map[string][]struct{ file, want string }{
	"rates": {
		{`a: {r: {by: ip, limit: 5}}`, `1:24: a/r: limit is 5, want N per DURATION, for instance 5 per 15m`},
		{`a: {r: {by: ip, limit: 5 15m}}`, `1:24: a/r: limit is "5 15m", want N per DURATION, for instance 5 per 15m`},
		{`a: {r: {by: ip, limit: 5 per 15 m}}`, `1:24: a/r: limit is "5 per 15 m", want N per DURATION, for instance 5 per 15m`},
		{`a: {r: {by: ip, limit: }}`, `1:24: a/r: limit is empty, want N per DURATION, for instance 5 per 15m`},
		{`a: {r: {by: ip, limit: []}}`, `1:24: a/r: limit is an empty list, want N per DURATION, for instance 5 per 15m`},
		{`a: {r: {by: ip, limit: [[5 per 1s]]}}`, `1:25: a/r: limit is a list, want N per DURATION, for instance 5 per 15m`},
		{`a: {r: {by: ip, fixed: {n: 1}}}`, `1:24: a/r: fixed is a map, want N per DURATION, for instance 5 per 15m`},
		{`a: {r: {by: ip, limit: 0 per 15m}}`, `1:24: a/r: limit "0 per 15m": 0 is out of range, want 1 to 1000000`},
		{`a: {r: {by: ip, counter: -5 per 15m}}`, `1:26: a/r: counter "-5 per 15m": -5 is out of range, want 1 to 1000000`},
		{`a: {r: {by: ip, fixed: 1000001 per 15m}}`, `1:24: a/r: fixed "1000001 per 15m": 1000001 is out of range, want 1 to 1000000`},
		{`a: {r: {by: ip, fixed: 99999999999999999999 per 15m}}`, `1:24: a/r: fixed "99999999999999999999 per 15m": 99999999999999999999 is out of range, want 1 to 1000000`},
		{`a: {r: {by: ip, limit: 010 per 15m}}`, `1:24: a/r: limit "010 per 15m": "010" is not a whole number such as 5`},
		{`a: {r: {by: ip, limit: 1.5 per 15m}}`, `1:24: a/r: limit "1.5 per 15m": "1.5" is not a whole number such as 5`},
		{`a: {r: {by: ip, limit: five per 15m}}`, `1:24: a/r: limit "five per 15m": "five" is not a whole number such as 5`},
		{`a: {r: {by: ip, limit: [1 per 1s, 1001 per 1h]}}`, `1:35: a/r: limit "1001 per 1h": an exact window holds at most 1000, write counter: 1001 per 1h`},
	},
	"durations": {
		{`a: {r: {by: ip, limit: 5 per 900}}`, `1:24: a/r: limit "5 per 900": 900 has no unit, write 900s`},
		{`a: {r: {by: ip, limit: 5 per 0}}`, `1:24: a/r: limit "5 per 0": 0 has no unit, write 0s`},
		{`a: {r: {by: ip, limit: 5 per 1.5}}`, `1:24: a/r: limit "5 per 1.5": 1.5 has no unit, write 1.5s`},
		{`a: {r: {by: ip, limit: 5 per 15min}}`, `1:24: a/r: limit "5 per 15min": "15min" is not a duration, want numbers with units (ms, s, m, h, d), for instance 15m`},
		{`a: {r: {by: ip, limit: 5 per hour}}`, `1:24: a/r: limit "5 per hour": "hour" is not a duration, want numbers with units (ms, s, m, h, d), for instance 15m`},
		{`a: {r: {by: ip, limit: 5 per 1.5d}}`, `1:24: a/r: limit "5 per 1.5d": "1.5d" is not a duration, want numbers with units (ms, s, m, h, d), for instance 15m`},
		{`a: {r: {by: ip, limit: 5 per 1h1d}}`, `1:24: a/r: limit "5 per 1h1d": "1h1d" is not a duration, want numbers with units (ms, s, m, h, d), for instance 15m`},
		{`a: {r: {by: ip, limit: 5 per 2d-1h}}`, `1:24: a/r: limit "5 per 2d-1h": "2d-1h" is not a duration, want numbers with units (ms, s, m, h, d), for instance 15m`},
		{`a: {r: {by: ip, limit: 5 per 1d0}}`, `1:24: a/r: limit "5 per 1d0": "1d0" is not a duration, want numbers with units (ms, s, m, h, d), for instance 15m`},
		{`a: {r: {by: ip, limit: 5 per 0s}}`, `1:24: a/r: limit "5 per 0s": 0s is out of range, want 1ms to 31d`},
		{`a: {r: {by: ip, limit: 5 per -15m}}`, `1:24: a/r: limit "5 per -15m": -15m is out of range, want 1ms to 31d`},
		{`a: {r: {by: ip, limit: 5 per 999us}}`, `1:24: a/r: limit "5 per 999us": 999us is out of range, want 1ms to 31d`},
		{`a: {r: {by: ip, limit: 5 per 32d}}`, `1:24: a/r: limit "5 per 32d": 32d is out of range, want 1ms to 31d`},
		{`a: {r: {by: ip, limit: 5 per 1000000d}}`, `1:24: a/r: limit "5 per 1000000d": 1000000d is out of range, want 1ms to 31d`},
		{`a: {r: {by: ip, limit: 5 per 31d1us}}`, `1:24: a/r: limit "5 per 31d1us": 31d1us is out of range, want 1ms to 31d`},
	},
	"limits that their law refuses": {
		{`a: {r: {by: ip, counter: 5 per 16d}}`, `1:26: a/r: counter "5 per 16d": SlidingWindowCounter.Window is 384h0m0s, want at most 372h0m0s`},
		{`a: {r: {by: ip, bucket: 1000, refill: 1 per 1d}}`, `1:25: a/r: bucket 1000: TokenBucket of Capacity 1000 at 1 per 24h0m0s takes longer than 744h0m0s from end to end`},
	},
	"buckets": {
		{`a: {r: {by: ip, bucket: ten, refill: 1 per 1s}}`, `1:25: a/r: bucket is "ten", want a whole number, for instance 10`},
		{`a: {r: {by: ip, bucket: "10", refill: 1 per 1s}}`, `1:25: a/r: bucket is "10", want a whole number, for instance 10`},
		{`a: {r: {by: ip, bucket: [10], refill: 1 per 1s}}`, `1:25: a/r: bucket is a list, want a whole number, for instance 10`},
		{`a: {r: {by: ip, bucket: 0, refill: 1 per 1s}}`, `1:25: a/r: bucket: 0 is out of range, want 1 to 1000000`},
		{`a: {r: {by: ip, bucket: 1.5, refill: 1 per 1s}}`, `1:25: a/r: bucket: "1.5" is not a whole number such as 5`},
		{`a: {r: {by: ip, bucket: 0x10, refill: 1 per 1s}}`, `1:25: a/r: bucket: "0x10" is not a whole number such as 5`},
		{`a: {r: {by: ip, bucket: 10, refill: 1}}`, `1:37: a/r: refill is 1, want N per DURATION, for instance 5 per 15m`},
		{`a: {r: {by: ip, bucket: 10, refill: [1 per 1s]}}`, `1:37: a/r: refill is a list, want N per DURATION, for instance 5 per 15m`},
		{`a: {r: {by: ip, bucket: 10}}`, `1:25: a/r: bucket 10 has no refill, want for instance refill: 1 per 1s`},
		{`a: {r: {by: ip, refill: 1 per 1s}}`, `1:25: a/r: refill "1 per 1s" has no bucket, want its capacity, for instance bucket: 10`},
		{`a: {r: {by: ip, bucket: 10, refill: 1 per 1s, counts: failures}}`, `1:55: a/r: counts failures cannot go with bucket, which cannot take back a charge exactly; use limit, counter or fixed`},
	},
	"queues": {
		{`a: {r: {by: ip, queue: "10", leak: 1 per 1s}}`, `1:24: a/r: queue is "10", want a whole number, for instance 10`},
		{`a: {r: {by: ip, queue: 10, leak: 1}}`, `1:34: a/r: leak is 1, want N per DURATION, for instance 5 per 15m`},
		{`a: {r: {by: ip, queue: 10}}`, `1:24: a/r: queue 10 has no leak, want for instance leak: 1 per 1s`},
		{`a: {r: {by: ip, leak: 1 per 1s}}`, `1:23: a/r: leak "1 per 1s" has no queue, want its capacity, for instance queue: 10`},
		{`a: {r: {by: ip, queue: 10, refill: 1 per 1s}}`, `1:24: a/r: queue 10 has no leak, want for instance leak: 1 per 1s` + "\n" +
			`bad.yaml:1:36: a/r: refill "1 per 1s" has no bucket, want its capacity, for instance bucket: 10`},
		{`a: {r: {by: ip, queue: 1000, leak: 1 per 1d}}`, `1:24: a/r: queue 1000: LeakyBucket of Capacity 1000 at 1 per 24h0m0s takes longer than 744h0m0s from end to end`},
		{`a: {r: {by: ip, queue: 10, leak: 1 per 1s, counts: failures}}`, `1:52: a/r: counts failures cannot go with queue, which cannot take back a charge exactly; use limit, counter or fixed`},
	},
	"backoffs": {
		{`a: {r: {by: ip, backoff: 10}}`, `1:26: a/r: backoff is 10, want a map of ` + streakKeys},
		{`a: {r: {by: ip, backoff: {free: 10, base: 30s}}}`, `1:26: a/r: backoff has no max, want for instance {free: 10, base: 30s, max: 1h, lock: 80}`},
		{`a: {r: {by: ip, backoff: {free: 0, base: 30s, max: 1h}}}`, `1:33: a/r: backoff: free: 0 is out of range, want 1 to 1000000`},
		{`a: {r: {by: ip, backoff: {free: "10", base: 30s, max: 1h}}}`, `1:33: a/r: backoff: free is "10", want a whole number, for instance 10`},
		{`a: {r: {by: ip, backoff: {free: 10, base: 30, max: 1h}}}`, `1:43: a/r: backoff: base: 30 has no unit, write 30s`},
		{`a: {r: {by: ip, backoff: {free: 10, base: , max: 1h}}}`, `1:43: a/r: backoff: base is empty, want a duration, for instance 15m`},
		{`a: {r: {by: ip, backoff: {free: 10, base: [1s], max: 1h}}}`, `1:43: a/r: backoff: base is a list, want a duration, for instance 15m`},
		{`a: {r: {by: ip, backoff: {free: 10, base: 30s, max: 32d}}}`, `1:53: a/r: backoff: max: 32d is out of range, want 1ms to 31d`},
		{`a: {r: {by: ip, backoff: {free: 10, base: 2h, max: 1h}}}`, `1:43: a/r: backoff: base is 2h0m0s, want at most max, 1h0m0s`},
		{`a: {r: {by: ip, backoff: {free: 10, base: 30s, max: 1h, lock: 10}}}`, `1:63: a/r: backoff: lock is 10, want more than free, 10`},
		{`a: {r: {by: ip, backoff: {free: 10, base: 30s, max: 1h, factor: 1001}}}`, `1:65: a/r: backoff: factor: 1001 is out of range, want 1 to 1000`},
		{`a: {r: {by: ip, backoff: {free: 10, base: 30s, max: 1h, forget_beyond: 367d}}}`, `1:72: a/r: backoff: forget_beyond: 367d is out of range, want 1ms to 366d`},
		{`a: {r: {by: ip, backoff: {free: 10, base: 30s, max: 1h, forget: 91d}}}`, `1:65: a/r: backoff: forget_beyond is 2160h0m0s, want at least forget, 2184h0m0s, and max, 1h0m0s`},
		{`a: {r: {by: ip, backoff: {free: 10, base: 30s, max: 1h, locked: 80}}}`, `1:57: a/r: backoff: unknown key "locked", did you mean lock?`},
		{`a: {r: {by: ip, backoff: {free: 10, base: 30s, max: 1h, jitter: 80}}}`, `1:57: a/r: backoff: unknown key "jitter", want ` + streakKeys},
		{`a: {r: {by: ip, backoff: {free: 10, base: 30s, max: 1h}, counts: attempts}}`, `1:66: a/r: counts attempts cannot go with backoff, which counts consecutive failures; leave counts out`},
		{`a: {r: {by: ip, backoff: {free: 10, base: 30s, max: 1h}, bucket: 1, refill: 1 per 1s}}`, `1:66: a/r: bucket cannot go with backoff: a rule with backoff counts failures, and a bucket cannot take back a charge exactly; write two rules`},
	},
	"distinct and shared": {
		{`a: {r: {by: ip, distinct: acount, limit: 1 per 1s}}`, `1:27: a/r: distinct is "acount", did you mean account?`},
		{`a: {r: {by: ip, distinct: account}}`, `1:27: a/r: distinct "account" has no limit, want for instance limit: 10 per 1h`},
		{`a: {r: {by: ip, distinct: account, counter: 1 per 1s}}`, `1:27: a/r: distinct "account" has no limit, want for instance limit: 10 per 1h` + "\n" +
			`bad.yaml:1:45: a/r: counter cannot go with distinct, which counts by limit; write two rules`},
		{`a: {r: {by: ip, distinct: ip, limit: 1 per 1s}}`, `1:27: a/r: distinct is "ip" like by, so there is only one to count`},
		{`a: {r: {by: ip, distinct: account, limit: 1001 per 1s}}`, `1:43: a/r: limit "1001 per 1s": Distinct.Limit is 1001, want 1 to 1000`},
		{`a: {r: {by: ip, shared: a b, limit: 1 per 1s}}`, `1:25: a/r: shared is "a b", want 1 to 32 of a-z, 0-9 and _`},
		{`a: {r: {by: ip, shared: 7, limit: 1 per 1s}}`, `1:25: a/r: shared is 7, want 1 to 32 of a-z, 0-9 and _`},
		{"a: {r: {by: ip, shared: s, limit: 1 per 1s}}\nb: {q: {by: ip, shared: s, limit: 2 per 1s}}", `2:25: b/q: shared "s" is used by a/r with another by, distinct or limit`},
		{`a: {r: {by: ip, shared: s, limit: 1 per 1s}, q: {by: ip, shared: s, limit: 1 per 1s}}`, `1:66: a/q: shared "s" is used by a/r already, and is for rules of different actions`},
	},
	"clients": {
		{`a: {r: {by: ip, clients: known, limit: 1 per 1s}}`, `1:26: a/r: clients is "known", want all, untrusted or trusted`},
		{`a: {r: {by: device, limit: 1 per 1s}}`, `1:13: a/r: by device goes with clients: trusted only, for nobody else has a device`},
		{`a: {r: {by: account, distinct: device, clients: untrusted, limit: 1 per 1s}}`, `1:32: a/r: distinct device goes with clients: trusted only, for nobody else has a device`},
		{`a: {r: {by: ip, clients: untrusted, limit: 1 per 1s}}`, `1:1: a: guard: policy a has no rule that counts trusted clients, so that nothing bounds them`},
		{`a: {r: {by: ip, shared: s, clients: untrusted, limit: 1 per 1s}, q: {by: ip, shared: s, clients: trusted, limit: 2 per 1s}, t: {by: ip, shared: s, clients: trusted, limit: 2 per 1s}}`,
			`1:145: a/t: shared "s" is used by a/q already, and is for rules of different actions`},
		{"a: {r: {by: ip, shared: s, limit: 1 per 1s}}\nb: {q: {by: ip, shared: s, clients: untrusted, limit: 1 per 1s}, t: {by: ip, clients: trusted, limit: 1 per 1s}}",
			`2:25: b/q: shared "s" is used by a/r for all clients, and untrusted clients count apart`},
	},
	"limits that cannot act": {
		{`a: {r: {by: ip, limit: [30 per 15m, 5 per 24h]}}`, `1:25: a/r: limit "30 per 15m" cannot deny: 5 per 24h0m0s always denies first`},
		{`a: {r: {by: ip, limit: [5 per 15m, 20 per 1h]}}`, `1:36: a/r: limit "20 per 1h" cannot deny: 5 per 15m0s always denies first`},
		{`a: {r: {by: ip, limit: [1 per 1m, 61 per 1h]}}`, `1:35: a/r: limit "61 per 1h" cannot deny: 1 per 1m0s always denies first`},
		{`a: {r: {by: ip, limit: [5 per 15m, 5 per 24h]}}`, `1:25: a/r: limit "5 per 15m" cannot deny: 5 per 24h0m0s always denies first`},
		{`a: {r: {by: ip, limit: [5 per 15m, 30 per 24h, 6 per 15m]}}`, `1:48: a/r: limit "6 per 15m" cannot deny: 5 per 15m0s always denies first`},
		{`a: {r: {by: ip, limit: [5 per 15m, 5 per 15m]}}`, `1:36: a/r: limit "5 per 15m" cannot deny: 5 per 15m0s always denies first`},
		{`a: {r: {by: ip, counter: [30 per 15m, 5 per 1h]}}`, `1:27: a/r: counter "30 per 15m" cannot deny: about 5 per 1h0m0s always denies first`},
		{`a: {r: {by: ip, fixed: [5 per 1d, 30 per 1h]}}`, `1:35: a/r: fixed "30 per 1h" cannot deny: 5 per fixed 24h0m0s always denies first`},
		{`a: {r: {by: ip, distinct: account, limit: [10 per 1h, 10 per 1d]}}`, `1:44: a/r: limit "10 per 1h" cannot deny: 10 different per 24h0m0s always denies first`},
	},
	"keys of a rule": {
		{`a: {r: {by: ip}}`, `1:5: a/r has no limit, want limit, counter, fixed, bucket, queue or backoff`},
		{`a: {r: {limit: 5 per 1s}}`, `1:5: a/r has no by, want ` + subjects},
		{`a: {r: {by: ip, limt: 5 per 1s}}`, `1:17: a/r: unknown key "limt", did you mean limit?`},
		{`a: {r: {by: ip, Limit: 5 per 1s}}`, `1:17: a/r: unknown key "Limit", did you mean limit?`},
		{`a: {r: {by: ip, limit: 5 per 1s, window: 1s}}`, `1:34: a/r: unknown key "window", want ` + keys},
		{`a: {r: {by: ip, limit: 5 per 1s, by: ip}}`, `1:34: a/r has the key "by" twice, first on line 1`},
		{`a: {r: {by: ip, limit: 5 per 1s, 7: ip}}`, `1:34: a/r has a key that is 7, want a string`},
		{`a: {r: {by: country, limit: 5 per 1s}}`, `1:13: a/r: by is "country", want ` + subjects},
		{`a: {r: {by: ip/31, limit: 5 per 1s}}`, `1:13: a/r: by is "ip/31", want ` + subjects},
		{`a: {r: {by: "part:", limit: 5 per 1s}}`, `1:13: a/r: by is "part:", want ` + subjects},
		{`a: {r: {by: [ip], limit: 5 per 1s}}`, `1:13: a/r: by is a list, want ` + subjects},
		{`a: {r: {by: ip, limit: 5 per 1s, counts: failure}}`, `1:42: a/r: counts is "failure", want attempts or failures`},
		{`a: {r: {by: ip, limit: 5 per 1s, effect: true}}`, `1:42: a/r: effect is true, want deny, challenge, silent or observe`},
		{`a: {r: {by: ip, limit: 5 per 1s, on_outage: open}}`, `1:45: a/r: on_outage is "open", want local, deny or allow`},
		{`a: {r: {by: ip, limit: 5 per 1s, counts: failures, on_outage: allow}}`, `1:1: a: guard: policy a: rule r counts failures, so it guards a secret, which no outage may open: OnOutage is allow, want deny or local`},
		{`a: {r: {by: ip, limit: 5 per 1s, effect: Deny}}`, `1:42: a/r: effect is "Deny", want deny, challenge, silent or observe`},
	},
	"actions and rules": {
		{``, `1:1: file is empty, want a map of actions`},
		{"# nothing\n", `1:1: file is empty, want a map of actions`},
		{"---\n", `2:1: file is empty, want a map of actions`},
		{`{}`, `1:1: file is an empty map, want a map of actions`},
		{`- login`, `1:1: file is a list, want a map of actions`},
		{`login`, `1:1: file is "login", want a map of actions`},
		{`login:`, `1:7: login is empty, want a map of rules`},
		{`login: {}`, `1:8: login is an empty map, want a map of rules`},
		{`login: [{by: ip}]`, `1:8: login is a list, want a map of rules`},
		{`a: {r: 5 per 15m}`, `1:8: a/r is "5 per 15m", want a map of ` + keys},
		{`a: {r: {}}`, `1:8: a/r is an empty map, want a map of ` + keys},
		{`log-in: {r: {by: ip, limit: 5 per 1s}}`, `1:1: action "log-in": want 1 to 32 of a-z, 0-9 and _`},
		{`? [a]` + "\n" + `: {r: {by: ip, limit: 5 per 1s}}`, `1:3: file has a key that is a list, want a string`},
		{`a: {R: {by: ip, limit: 5 per 1s}}`, `1:5: a: rule "R": want 1 to 32 of a-z, 0-9 and _`},
		{"a: {r: {by: ip, limit: 5 per 1s}}\na: {q: {by: ip, limit: 5 per 1s}}", `2:1: file has the key "a" twice, first on line 1`},
		{"a:\n  r: {by: ip, limit: 5 per 1s}\n  r: {by: ip, limit: 5 per 1s}", `3:3: a has the key "r" twice, first on line 2`},
	},
	"values that would not fit on a line": {
		{`a: {r: {by: ` + strings.Repeat("é", 61) + `, limit: 5 per 1s}}`, `1:13: a/r: by is "` + strings.Repeat("é", 60) + `…", want ` + subjects},
		{`a: {"r\n": {by: ip, limit: 5 per 1s}}`, `1:5: a: rule "r\n": want 1 to 32 of a-z, 0-9 and _`},
		{`"\e[2J": 5`, `1:1: action "\x1b[2J": want 1 to 32 of a-z, 0-9 and _` + "\nbad.yaml:1:10: \ufffd[2J is 5, want a map of rules"},
	},
	"features of YAML": {
		{`a: {r: &x {by: ip, limit: 5 per 1s}}`, `1:8: anchor &x: anchors are not allowed, write the rule out`},
		{`a: {r: {by: *x, limit: 5 per 1s}}`, `1:13: alias *x: aliases are not allowed, write the rule out`},
		{`a: {r: {by: ip, <<: {limit: 5 per 1s}}}`, `1:17: merge key <<: merging is not allowed, write the rule out`},
		{`a: {r: {by: !!str ip, limit: 5 per 1s}}`, `1:13: tag !!str: tags are not allowed`},
		{`a: {r: {by: ip, bucket: !!int "10", refill: 1 per 1s}}`, `1:25: tag !!int: tags are not allowed`},
		{"a: {r: {by: ip, limit: 5 per 1s}}\n---\nb: {}", `2:1: a second document starts here, want one`},
		{"a: {r: {by: ip, limit: 5 per 1s}}\n---\n", `2:1: a second document starts here, want one`},
	},
	"not YAML at all": {
		{"a:\n\tr: 1", `2:2: not YAML: found character that cannot start any token`},
		{"a:\n  r: {by: ip, limit: [5 per 15m, 30 per 24h}\n", `2:3: not YAML: did not find expected ',' or ']'`},
		{"a:\n  r: 1\n s: 2\n", `3:2: not YAML: did not find expected key`},
		{"a: b: c", `1:1: not YAML: mapping values are not allowed in this context`},
		{"a: {r: {by: ip, limit: 5 per 1s}}\n---\n[", `3:1: not YAML: did not find expected node content`},
		{"a: é\xff", `1:5: byte 0xff is not UTF-8`},
		{"a:\n  r\x00: 1", `2:4: control character U+0000`},
	},
}

func TestParseRefuses(t *testing.T) {
	for group, files := range badFiles {
		t.Run(group, func(t *testing.T) {
			for _, f := range files {
				got, err := policies.Parse("bad.yaml", []byte(f.file))
				require.EqualError(t, err, "bad.yaml:"+f.want, f.file)
				require.Nil(t, got, f.file)
			}
		})
	}
}

func TestParseTellsAliasesWithTheirAnchors(t *testing.T) {
	_, err := policies.Parse("bad.yaml", []byte("a: {r: &x {by: ip, limit: 5 per 1s}, s: *x, t: {<<: *x, limit: 9 per 1s}}"))
	require.EqualError(t, err, `bad.yaml:1:8: anchor &x: anchors are not allowed, write the rule out
bad.yaml:1:41: alias *x: aliases are not allowed, write the rule out
bad.yaml:1:49: merge key <<: merging is not allowed, write the rule out
bad.yaml:1:53: alias *x: aliases are not allowed, write the rule out`)
}

// Only what is certain is refused: these windows of the clock do not lie within
// one another, and other laws deny for other reasons.
func TestParseTakesLimitsThatMayAct(t *testing.T) {
	for _, rule := range []string{
		"limit: [5 per 15m, 30 per 24h]", "counter: [30 per 7m, 5 per 10m]", "fixed: [30 per 7m, 5 per 10m]",
		"limit: 30 per 15m, counter: 5 per 24h", "limit: 30 per 15m, fixed: 5 per 24h",
		"distinct: account, limit: [5 per 15m, 30 per 24h]",
		"bucket: 1, refill: 1 per 1h, queue: 10, leak: 1 per 1s",
	} {
		_, err := policies.Parse("ok.yaml", []byte("a: {r: {by: ip, "+rule+"}}"))
		require.NoError(t, err, rule)
	}
}
