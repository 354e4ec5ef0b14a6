package policies

import (
	"authguard/guard"
	"authguard/limiter"
)

// vessels are the laws that are written as two keys: a capacity and a rate.
var vessels = []struct{ capacity, rate string }{{"bucket", "refill"}, {"queue", "leak"}}

// complete notes which keys the rule lacks.
func (rr *ruleReader) complete() {
	if rr.seen["by"] == nil {
		rr.at(rr.name, "%s has no by, want %s", rr.where, wantBy)
	}
	for key, by := range map[string]guard.By{"by": rr.rule.By, "distinct": rr.rule.Members} {
		if by == guard.ByDevice && rr.rule.Clients != guard.TrustedClients {
			rr.at(rr.seen[key], "%s: %s device goes with clients: trusted only, for nobody else has a device", rr.where, key)
		}
	}
	limited := false
	for _, key := range lawKeys {
		limited = limited || rr.seen[key] != nil
	}
	for _, v := range vessels {
		switch capacity, rate := rr.seen[v.capacity], rr.seen[v.rate]; {
		case capacity != nil && rate == nil:
			rr.at(capacity, "%s: %s %s has no %s, want for instance %s: 1 per 1s", rr.where, v.capacity, describe(capacity), v.rate, v.rate)
		case capacity == nil && rate != nil:
			rr.at(rate, "%s: %s %s has no %s, want its capacity, for instance %s: 10", rr.where, v.rate, describe(rate), v.capacity, v.capacity)
			limited = true // half a limit: one complaint is enough
		}
	}
	switch distinct := rr.seen["distinct"]; {
	case distinct != nil && rr.seen["limit"] == nil:
		rr.at(distinct, "%s: distinct %s has no limit, want for instance limit: 10 per 1h", rr.where, describe(distinct))
	case !limited:
		rr.at(rr.name, "%s has no limit, want limit, counter, fixed, bucket, queue or backoff", rr.where)
	}
}

// lawsAgree notes laws that cannot stand in one rule, and settles what a
// backoff implies.
func (rr *ruleReader) lawsAgree() {
	counts, backoff, distinct := rr.seen["counts"], rr.seen["backoff"], rr.seen["distinct"]
	switch {
	case backoff == nil:
	case counts == nil:
		rr.rule.Counts = guard.Failures
	case isString(counts) && counts.Value == guard.Attempts.String():
		rr.at(counts, "%s: counts attempts cannot go with backoff, which counts consecutive failures; leave counts out", rr.where)
	}
	for _, v := range vessels {
		capacity := rr.seen[v.capacity]
		switch {
		case capacity == nil || rr.rule.Counts != guard.Failures:
		case counts != nil:
			rr.at(counts, "%s: counts failures cannot go with %s, which cannot take back a charge exactly; use limit, counter or fixed", rr.where, v.capacity)
		default:
			rr.at(capacity, "%s: %s cannot go with backoff: a rule with backoff counts failures, and a %s cannot take back a charge exactly; write two rules", rr.where, v.capacity, v.capacity)
		}
	}
	if distinct == nil {
		return
	}
	for _, p := range rr.placed {
		if p.field != "limit" {
			rr.at(p.node, "%s: %s cannot go with distinct, which counts by limit; write two rules", rr.where, p.field)
		}
	}
	if by := rr.seen["by"]; by != nil && rr.rule.By != "" && rr.rule.By == rr.rule.Members {
		rr.at(distinct, "%s: distinct is %s like by, so there is only one to count", rr.where, describe(distinct))
	}
}

// checkLimits puts together what stands in several keys, and notes limits that
// their law refuses or that can never act.
func (rr *ruleReader) checkLimits(sound bool) {
	for i, p := range rr.placed {
		switch l := rr.rule.Limits[i].(type) {
		case limiter.SlidingWindow:
			if rr.seen["distinct"] != nil {
				rr.rule.Limits[i] = limiter.Distinct(l)
			}
		case limiter.TokenBucket:
			l.Refill, l.Per = rr.rates["refill"].count, rr.rates["refill"].per
			rr.rule.Limits[i] = l
			p.sound = sound
		case limiter.LeakyBucket:
			l.Leak, l.Per = rr.rates["leak"].count, rr.rates["leak"].per
			rr.rule.Limits[i] = l
			p.sound = sound
		}
		if p.sound {
			rr.check(p.node, rr.where, p.field, rr.rule.Limits[i])
		}
	}
	if sound {
		rr.idle()
	}
}
