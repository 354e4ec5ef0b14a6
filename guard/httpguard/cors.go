package httpguard

import (
	"net/http"
	"slices"
	"strings"
)

const exposeHeaders = "Access-Control-Expose-Headers"

// expose lets a page of another origin read the named fields of an answer to it,
// beside those that others have exposed.
func expose(h http.Header, r *http.Request, names ...string) {
	if r.Header.Get("Origin") == "" {
		return
	}
	var exposed []string
	for name := range strings.SplitSeq(strings.Join(h.Values(exposeHeaders), ","), ",") {
		if name = strings.TrimSpace(name); name != "" {
			exposed = append(exposed, name)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(exposed, func(e string) bool { return strings.EqualFold(e, name) }) {
			exposed = append(exposed, name)
		}
	}
	if len(exposed) == 0 {
		return
	}
	h.Set(exposeHeaders, strings.Join(exposed, ", "))
}

// isOptions answers a request that only asks what may be asked. It is charged
// nothing, so the handler must not see it: one that does not look at the method
// would do for nothing what it does for a charge.
func isOptions(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodOptions {
		return false
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}
