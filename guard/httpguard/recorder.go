package httpguard

import (
	"bufio"
	"net"
	"net/http"
)

// recorder is a ResponseWriter that remembers the status. What it does not have
// itself, http.ResponseController finds behind it.
type recorder struct {
	http.ResponseWriter
	status   int // 0 until it is known
	hijacked bool
}

// succeeded reports an answer that says yes. A handler that took the connection over
// has said nothing; nor has one that writes nothing, though net/http makes 200 of it
// in the end: a framework may answer an error, or swallow a panic, further out.
func (w *recorder) succeeded() bool {
	return !w.hijacked && (w.status >= 200 && w.status < 300 || w.status == http.StatusNotModified)
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) { // others only announce one
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(b)
}

func (w *recorder) begin() {
	if w.status == 0 {
		w.status = http.StatusOK
	}
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// FlushError and Flush send what was written, if the server can.
func (w *recorder) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush implements http.Flusher.
func (w *recorder) Flush() { _ = w.FlushError() }

// Hijack implements http.Hijacker, if the server can.
func (w *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.hijacked = w.hijacked || err == nil
	return conn, rw, err
}
