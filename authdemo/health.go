package authdemo

import (
	"context"
	"net/http"
	"slices"
	"time"

	"authguard/guard"
	"authguard/limiter"
)

// healthz: GET /healthz says that the process answers.
func (s *Service) healthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readyz: GET /readyz says whether logins can be answered: that takes the
// database and, where a rule refuses all attempts without it, the store of limits.
func (s *Service) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	err := s.accounts.Ping(ctx)
	if err == nil && needsStore(s.guard.Policies()) {
		probe := limiter.Charge{Key: "ready", Limit: limiter.TokenBucket{Capacity: 1, Refill: 1, Per: time.Second}, Ask: limiter.Ask{Cost: 1}}
		err = s.cfg.Store.Peek(ctx, []limiter.Charge{probe})
	}
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "not ready", "err", err)
		writeJSON(w, http.StatusServiceUnavailable, map[string]string{"status": "not ready"})
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

// needsStore reports that some attempts are refused while the store is down.
func needsStore(policies []guard.Policy) bool {
	return slices.ContainsFunc(policies, func(p guard.Policy) bool {
		return slices.ContainsFunc(p.Rules, func(r guard.Rule) bool {
			return r.OnOutage == guard.OutageDeny && (r.Effect == guard.Deny || r.Effect == guard.Challenge)
		})
	})
}
