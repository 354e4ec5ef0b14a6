package guardtest

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// ChiRoutes are the routes of a chi router for [Table].Routes, those of mounted
// routers included.
func ChiRoutes(r chi.Routes) []string {
	var routes []string
	chi.Walk(r, func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		routes = append(routes, method+" "+pattern)
		return nil // so Walk returns none
	})
	return routes
}
