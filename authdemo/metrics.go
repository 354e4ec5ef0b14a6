package authdemo

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"authguard/authdemo/pages"
	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/guard/promguard"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

const minAdminToken = 16

// expose serves what is measured: the guard's decisions, the reloads of its
// policies, the process, and the store if it is this process's memory.
func expose(m *promguard.Metrics, reloads *reloads, store limiter.Store) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(m, reloads.successful, reloads.at, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if memory, ok := store.(*memstore.Store); ok {
		r.MustRegister(promguard.Memory(memory))
	}
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

// metrics: GET /metrics, from this machine or with the operators' token.
func (s *Service) metrics(w http.ResponseWriter, r *http.Request) {
	if !fromHere(r) {
		if err := s.requireAdmin(r); err != nil {
			s.refuse(w, r, err, pages.Error, pages.View{})
			return
		}
	}
	s.exposed.ServeHTTP(w, r)
}

// requireAdmin reports why a request is not an operator's. Who sends no token
// makes no guess, and is told as little as who sends a wrong one.
func (s *Service) requireAdmin(r *http.Request) error {
	token := presentedKey(r.Header)
	if token == "" || s.cfg.AdminToken == "" {
		return errNotFound
	}
	attempt := guard.Attempt{Action: actAdmin, IP: httpguard.ClientIP(r)}
	ok, err := s.guard.Do(r.Context(), attempt, func(context.Context, *guard.Pass) (bool, error) {
		given, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.cfg.AdminToken)) // of one length
		return subtle.ConstantTimeCompare(given[:], want[:]) == 1, nil
	})
	if err == nil && !ok {
		err = errNotFound
	}
	return err
}
