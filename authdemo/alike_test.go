package authdemo

import (
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wire is a service behind a real server, on whose connections every byte is seen.
type wire struct {
	*world
	addr string
}

func newWire(t *testing.T, prepare func(*world)) wire {
	t.Helper()
	w := newWorld(t, behind("127.0.0.1/32"))
	prepare(w)
	w.advance(time.Unix(1_800_000_000, 0).Add(3 * time.Hour).Sub(w.clock())) // when nothing is charged any more
	srv := httptest.NewServer(w.svc)
	t.Cleanup(srv.Close)
	return wire{w, srv.Listener.Addr().String()}
}

var date = regexp.MustCompile(`(?m)^Date: [^\r\n]*\r\n`)

// answer is all that the server sends, but for the Date, which net/http takes from
// the machine's clock.
func (w wire) answer(client, path, accept string, nameValue ...string) string {
	w.Helper()
	contentType, sent := "application/json", body(nameValue)
	if accept == browser {
		form := url.Values{}
		for name, value := range pairs(nameValue) {
			form.Set(name, value)
		}
		contentType, sent = "application/x-www-form-urlencoded", form.Encode()
	}
	conn, err := net.Dial("tcp", w.addr)
	require.NoError(w, err)
	defer conn.Close()
	require.NoError(w, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: login.example.com\r\nX-Forwarded-For: %s\r\nAccept: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		path, client, accept, contentType, len(sent), sent)
	require.NoError(w, err)
	text, err := io.ReadAll(conn)
	require.NoError(w, err)
	require.Len(w, date.FindAll(text, -1), 1)
	return date.ReplaceAllString(string(text), "")
}

// EN-01, EN-06, PR-10: the one name, in services that have no such account, an
// account, one that was never confirmed, and one with a second factor. Each byte of
// the answers is the same, status line, headers in their order and body, but for the
// Date. There is no other exception: cookies would be seen, and none is set.
func TestAnswersTellNobodyWhichAccountsThereAre(t *testing.T) {
	services := map[string]func(*world){
		"no such account": func(*world) {},
		"account":         func(w *world) { w.withOwner() },
		"never confirmed": func(w *world) {
			w.from("192.0.2.200").post("/register", "email", owner, "password", ownerPassword)
			require.NotEmpty(t, w.mails(owner))
		},
		"second factor": func(w *world) { w.withOwner().turnOn(owner) },
	}
	for name, do := range map[string]func(w wire, accept string) []string{
		"login": func(w wire, accept string) (answers []string) {
			for i := range 7 {
				answers = append(answers, w.answer(fmt.Sprintf("198.51.100.%d", i), "/login", accept, "email", owner, "password", "guess"))
			}
			require.Contains(t, answers[4], " 401 Unauthorized\r\n")
			require.Contains(t, answers[5], " 429 Too Many Requests\r\n")
			require.Contains(t, answers[5], "\r\nRetry-After: 900\r\n")
			return answers
		},
		"login, from one address": func(w wire, accept string) (answers []string) {
			for range 7 {
				answers = append(answers, w.answer("198.51.100.9", "/login", accept, "email", owner, "password", "guess"))
			}
			return answers
		},
		"login, locked": func(w wire, accept string) (answers []string) {
			w.guessAt(owner, failuresToLock)
			for i := range 7 {
				answers = append(answers, w.answer(fmt.Sprintf("198.51.100.%d", i), "/login", accept, "email", owner, "password", ownerPassword))
				w.advance(time.Hour)
			}
			require.Contains(t, answers[0], "\r\nRetry-After: 3600\r\n")
			return answers
		},
		"password reset": func(w wire, accept string) (answers []string) {
			for i := range 7 { // three mails, and then silence
				answers = append(answers, w.answer(fmt.Sprintf("198.51.100.%d", i), "/password-reset", accept, "email", owner))
			}
			for range 12 { // until the address is refused
				answers = append(answers, w.answer("198.51.100.9", "/password-reset", accept, "email", owner))
			}
			require.Contains(t, answers[18], " 429 Too Many Requests\r\n")
			return answers
		},
		"register": func(w wire, accept string) (answers []string) {
			for i := range 7 {
				answers = append(answers, w.answer(fmt.Sprintf("198.51.100.%d", i), "/register", accept, "email", owner, "password", "a good passphrase"))
			}
			for range 7 {
				answers = append(answers, w.answer("198.51.100.9", "/register", accept, "email", owner, "password", "a good passphrase"))
			}
			for i := range 2 {
				answers = append(answers, w.answer(fmt.Sprintf("192.0.2.%d", i), "/register", accept, "email", owner, "password", "12345678"))
			}
			require.Contains(t, answers[13], " 429 Too Many Requests\r\n")
			return answers
		},
		// What asks for the password again is for who has a session, and so an
		// account; to all others it says nothing.
		"without a session": func(w wire, accept string) (answers []string) {
			for range 7 {
				answers = append(answers,
					w.answer("198.51.100.9", "/account/password", accept, "current", ownerPassword, "new", "a good passphrase"),
					w.answer("198.51.100.9", "/account/otp", accept, "current", ownerPassword),
					w.answer("198.51.100.9", "/otp", accept, "code", "123456"))
			}
			return answers
		},
	} {
		for _, accept := range []string{"application/json", browser} {
			want := do(newWire(t, services["no such account"]), accept)
			for of, prepare := range services {
				w := newWire(t, prepare)
				got := do(w, accept)
				require.Len(t, got, len(want))
				for i := range want {
					require.NotContains(t, got[i], "\r\nSet-Cookie:")
					require.Equal(t, want[i], got[i], "%s, %s, %s: answer %d", name, of, accept, i+1)
				}
			}
		}
	}
}

// The comparison sees what it should: another body, another header.
func TestTheWireShowsEveryByte(t *testing.T) {
	w := newWire(t, func(w *world) { w.withOwner() })
	in := w.answer("198.51.100.9", "/login", "application/json", "email", owner, "password", ownerPassword)
	require.True(t, strings.HasPrefix(in, "HTTP/1.1 200 OK\r\n"), in)
	require.Contains(t, in, "\r\nSet-Cookie: ")
	require.True(t, strings.HasSuffix(in, "\r\n\r\n{\"email\":\"owner@example.com\"}\n"), in)
}
