package authdemo

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"authguard/authdemo/accounts"
	"authguard/guard"
	"authguard/limiter"
)

// A warning is a mail that tells owners what happened at their account, at most once
// a day each. It has no link that opens anything.
type warning struct {
	kind    string // in the database: never changed
	subject string
	what    string // happened
	todo    string
}

// What owners are told.
var (
	warnLocked = warning{"locked", "Logins on new devices are locked",
		"so many wrong passwords in a row were tried at your account that logins on new devices are locked.",
		"Devices on which you have logged in before can still log in. To lift the lock, set a new password there or here:"}
	warnCode = warning{"wrong_code", "Somebody gave your password and a wrong code",
		"somebody gave the right password of your account and a wrong code of the second factor.",
		"If you mistyped it, there is nothing to do. If it was not you, somebody knows your password: set a new one now, here:"}
	warnNewDevice = warning{"new_device", "A login on a new device",
		"somebody logged in to your account on a new device, after at least five attempts with a wrong password.",
		"If it was you, there is nothing to do. If it was not you, set a new password now, which ends all sessions, here:"}
	warnPassword = warning{"password", "Your password was changed",
		"the password of your account was changed. All other sessions have ended.",
		"If it was you, there is nothing to do. If it was not you, set a new password now, here:"}
	warnFactorOn = warning{"factor_on", "Your second factor was turned on",
		"a second factor was turned on for your account.",
		"If it was you, there is nothing to do. If it was not you, somebody knows your password: set a new one now, here:"}
	warnFactorOff = warning{"factor_off", "Your second factor was turned off",
		"the second factor of your account was turned off. The password alone logs in.",
		"If it was you, there is nothing to do. If it was not you, set a new password now, here:"}
)

// warnOwner has the owner of an address told, if it has an account. It does the same
// work for one that has none: whether there is a mail is found out later.
func (s *Service) warnOwner(r *http.Request, email string, w warning) {
	now, page := s.cfg.Now(), s.origin(r)+"/password-reset"
	if !s.lately.first(w.kind+" "+email, now) {
		return
	}
	s.mails.enqueue(func(ctx context.Context) error {
		a, err := s.accounts.ByEmail(ctx, email)
		if errors.Is(err, accounts.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if ok, err := s.accounts.TakeNotice(ctx, a.ID, w.kind); err != nil || !ok {
			return err
		}
		return s.sendMail(ctx, Mail{
			To: a.Email, Subject: w.subject,
			Text: "On " + now.UTC().Format("2 January 2006 at 15:04 UTC") + " " + w.what + "\n\n" + w.todo + "\n" + page +
				"\n\nYou are told of this at most once a day.\n",
		})
	})
}

// warnIfLocked has the owner told, if err says that the account is locked to
// strangers.
func (s *Service) warnIfLocked(r *http.Request, account string, err error) {
	var denied *guard.Denied
	if !errors.As(err, &denied) || !denied.Locked {
		return
	}
	email, err := guard.Canonical(account)
	if err != nil {
		return
	}
	for _, l := range denied.Limits() {
		if l.Decision.Locked && l.Clients != guard.TrustedClients {
			s.warnOwner(r, email, warnLocked)
			return
		}
	}
}

// manyFailures are those after which a login on a new device is told of.
const manyFailures = 5

// followsFailures reports that an attempt which succeeds came from a client that is no
// known device, after many failures at the account: in a row where a rule counts them
// so, else in some rule's window.
func followsFailures(p *guard.Pass) bool {
	if p.Trusted() {
		return false
	}
	most, inARow := int64(0), false
	for _, l := range p.Limits() {
		if l.By != guard.ByAccount {
			continue
		}
		_, streak := l.Limit.(limiter.Backoff)
		switch failures := l.Used() - 1; { // without this attempt's own charge
		case streak && !inARow:
			most, inARow = failures, true
		case streak == inARow:
			most = max(most, failures)
		}
	}
	return most >= manyFailures
}

// lately remembers what was told of within a minute, so that a flood of attempts at
// one account does not fill the room for mails. What is told in a day the database
// knows.
type lately struct {
	mu sync.Mutex
	at map[string]time.Time
}

const (
	latelyLasts = time.Minute
	latelyKept  = 4096
)

// first reports that key is new.
func (l *lately) first(key string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, known := l.at[key]; known && now.Sub(at) < latelyLasts {
		return false
	}
	if l.at == nil || len(l.at) >= latelyKept {
		l.at = make(map[string]time.Time) // some are then looked up twice
	}
	l.at[key] = now
	return true
}
