// Package policies holds ready-made policies for package guard and reads
// users' policy files. Presets and files go through the same reader.
//
// [Default] has one policy for each action that usually needs one: log in,
// reset a password, sign up, call an API. [Preset] has variants of them, and
// [Override] puts a variant or a file of your own in their place:
//
//	own, err := policies.Load("policies.yaml")
//	...
//	g, err := guard.New(guard.Config{
//		Store: store, Secret: secret,
//		Policies: policies.Override(policies.Default(), own),
//	})
//
// A file maps actions to rules, and each rule says whom it counts and how many
// it admits:
//
//	login:
//	  account: {by: account, limit: [5 per 15m, 30 per 24h], counts: failures}
//	  ip:      {by: ip, counter: 100 per 1h, counts: failures}
//	api:
//	  key:     {by: api_key, bucket: 10, refill: 1 per 1s}
//
// The keys of a rule:
//
//	by       account, ip, ip/BITS, ip+account, device, api_key, tenant, global or part:NAME
//	limit    N per DURATION: an exact sliding window of at most 1,000 (limiter.SlidingWindow)
//	distinct like by; limit then counts different ones of these (limiter.Distinct)
//	counter  N per DURATION: an approximate sliding window (limiter.SlidingWindowCounter)
//	fixed    N per DURATION: a window of the clock (limiter.FixedWindow)
//	bucket   capacity, with refill: N per DURATION (limiter.TokenBucket)
//	queue    capacity, with leak: N per DURATION (limiter.LeakyBucket)
//	backoff  a streak of failures, see below (limiter.Backoff)
//	shared   a name: state that rules of several actions count in together
//	clients  all (default), untrusted or trusted: those with a device cookie of the account
//	counts   attempts (default) or failures
//	effect   deny (default), challenge, silent or observe
//	on_outage local (default), deny or allow: what the rule does while the store is down (guard.Outage)
//
// Windows also take a list, and a rule may combine laws: all of them must admit
// the attempt. They become the rule's Limits in the order of the file.
// Durations have a unit, as in 90s, 15m, 1h30m or 7d; d is 24 hours.
//
// A streak costs waits after free failures in a row, of base, then factor (2)
// times as long each, up to max, and locks after lock of them (without it,
// never). It is forgotten forget (7d) after the last failure or, beyond the free
// ones, forget_beyond (90d) after it. It counts failures without being told:
//
//	login:
//	  streak:   {by: account, shared: password, backoff: {free: 10, base: 30s, max: 1h, lock: 80}}
//	  spraying: {by: ip, distinct: account, limit: 10 per 1h, counts: failures}
//
// A rule with effect challenge has the client solve one instead of waiting, where the
// application can pose them (guard.Config.Challenger). Elsewhere it denies or, by
// global, only observes:
//
//	login:
//	  spraying: {by: ip, distinct: account, limit: 10 per 1h, counts: failures, effect: challenge}
//
// Owners whom an application tells apart from strangers, by guard.TrustDevice,
// have limits of their own, so that no stranger can keep them out:
//
//	login:
//	  account: {by: account, clients: untrusted, limit: 5 per 15m, counts: failures}
//	  device:  {by: device, clients: trusted, limit: 5 per 15m, counts: failures}
//
// Beside actions a file may have lists of whom the guard denies whatever is counted,
// and of addresses that rules by address do not count ([LoadFile], guard.Lists):
//
//	lists:
//	  deny:  {addresses: [203.0.113.0/24, 198.51.100.7], accounts: [root]}
//	  allow: {addresses: [192.0.2.0/28]}
//
// Files are read strictly, since a misspelt limit is a limit that is missing:
// unknown and repeated keys, bare numbers as durations, limits that cannot work
// or never act, and the YAML features that let a file mean something else than
// it shows (anchors, aliases, merge keys, tags, several documents) are errors.
// Every error says file, line and column, and all errors of a file are told at once.
//
// [Explain] tells what policies leave to guessers, by attacking them.
package policies
