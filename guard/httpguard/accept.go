package httpguard

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// maxAccept bounds, in bytes, the Accept that is read; browsers send some 150.
const maxAccept = 512

// Prefers reports whether the client would rather have media type a than b, by
// its Accept (RFC 9110, section 12.5.1). A client that takes anything prefers
// nothing.
func Prefers(r *http.Request, a, b string) bool { return quality(r, a) > quality(r, b) }

// wantsPage reports whether the client is a browser that shows a page.
func wantsPage(r *http.Request) bool {
	return Prefers(r, "text/html", "application/json") && Prefers(r, "text/html", "application/problem+json")
}

// quality is how much the client likes a media type, by the most specific range
// of its Accept that covers it.
func quality(r *http.Request, media string) float64 {
	kind, _, _ := strings.Cut(media, "/")
	ranges := map[string]int{media: 3, kind + "/*": 2, "*/*": 1}
	best, q := 0, 0.0
	accept := strings.Join(r.Header.Values("Accept"), ",")
	if len(accept) > maxAccept {
		return 0 // refusing must stay cheap, whatever is sent along
	}
	for item := range strings.SplitSeq(accept, ",") {
		name, params, err := mime.ParseMediaType(item)
		if err != nil || ranges[name] <= best {
			continue
		}
		best, q = ranges[name], 1
		if v, given := params["q"]; given {
			if q, err = strconv.ParseFloat(v, 64); err != nil || !(q >= 0 && q <= 1) {
				q = 0
			}
		}
	}
	return q
}
