package main

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/authdemo"
	"authguard/limiter/memstore"
	"authguard/policies"
)

// halfSent is a service that has begun to read a request of which half was sent.
// end asks it to end.
func halfSent(t *testing.T, wait timeouts) (answers *bufio.Reader, end func() error) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	svc, err := authdemo.New(t.Context(), authdemo.Config{
		DB: filepath.Join(t.TempDir(), "demo.db"), Store: memstore.New(memstore.Config{}), Secret: make([]byte, 32),
		Policies: policies.Default(), Development: true, Log: log,
	})
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, ln, svc, log, wait) }()

	conn, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = io.WriteString(conn, "POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"+
		"Content-Length: 50\r\nExpect: 100-continue\r\n\r\n")
	require.NoError(t, err)
	answers = bufio.NewReader(conn)
	line, err := answers.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 100 Continue\r\n", line, "the body is being read")
	_, err = answers.ReadString('\n')
	require.NoError(t, err)
	_, err = io.WriteString(conn, `{"email":`)
	require.NoError(t, err)
	return answers, func() error { cancel(); return <-ended }
}

func TestAHalfSentRequestEndsBeforeTheDrainDoes(t *testing.T) {
	require.Greater(t, usualTimeouts.drain, usualTimeouts.read)
	answers, end := halfSent(t, timeouts{read: 500 * time.Millisecond, drain: time.Minute, close: time.Minute})
	require.NoError(t, end())
	resp, err := http.ReadResponse(answers, nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
}

func TestRequestsThatDoNotEndAreCutOff(t *testing.T) {
	answers, end := halfSent(t, timeouts{read: time.Minute, drain: 10 * time.Millisecond, close: time.Minute})
	require.EqualError(t, end(), "requests did not end within 10ms and were cut off")
	_, err := http.ReadResponse(answers, nil)
	require.Error(t, err)
}
