package authdemo

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"authguard/authdemo/pages"
	"authguard/guard/httpguard"
)

// outboxSize bounds the mails that are kept.
const outboxSize = 100

// An Outbox is a Mailer that keeps mails instead of sending them: the last
// hundred. The zero value is empty and ready.
type Outbox struct {
	mu    sync.Mutex
	mails []Mail // oldest first
}

// Send keeps m.
func (o *Outbox) Send(_ context.Context, m Mail) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.mails) == outboxSize {
		o.mails = slices.Delete(o.mails, 0, 1)
	}
	o.mails = append(o.mails, m)
	return nil
}

// Mails are those that are kept, newest first.
func (o *Outbox) Mails() []Mail {
	o.mu.Lock()
	defer o.mu.Unlock()
	mails := append([]Mail{}, o.mails...) // never nil, which JSON would show as null
	slices.Reverse(mails)
	return mails
}

// showOutbox: GET /dev/outbox. It waits for the mails under way, so that
// whoever looks after an answer sees the mail.
func (s *Service) showOutbox(w http.ResponseWriter, r *http.Request) {
	if s.outbox == nil {
		s.failing(errNotFound)(w, r)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	s.mails.flush(ctx)
	if httpguard.Prefers(r, "application/json", "text/html") {
		writeJSON(w, http.StatusOK, s.outbox.Mails())
		return
	}
	s.render(w, r, http.StatusOK, pages.Outbox, pages.View{Data: s.outbox.Mails()})
}
