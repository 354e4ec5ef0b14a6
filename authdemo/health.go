package authdemo

import (
	"context"
	"net/http"
	"time"

	"authguard/limiter"
)

// healthz: GET /healthz says that the process answers.
func (s *Service) healthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readyz: GET /readyz says whether logins can be answered: that takes the
// database and the store of limits, without which every attempt is refused.
func (s *Service) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	err := s.accounts.Ping(ctx)
	if err == nil {
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
