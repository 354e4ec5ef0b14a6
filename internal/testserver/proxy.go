package testserver

import (
	"net"
	"testing"
)

// Fate is what a proxy does with a request.
type Fate int

const (
	Pass  Fate = iota // the server executes it, and the client reads the answer
	Lose              // it is lost with its connection, and never executed
	Cut               // it is executed, and the answer is lost with the connection
	Stall             // it is never executed and never answered, and the connection stays
)

// Proxy passes on what comes to its address, if fate, which is asked about each
// request, says so. fate may be slow, as a network may, and must be safe for
// several connections at once.
func Proxy(t testing.TB, server string, fate func(request string) Fate) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go proxy(client, server, fate)
		}
	}()
	return l.Addr().String()
}

// proxy serves one connection, on which an answer follows each request.
func proxy(client net.Conn, server string, fate func(string) Fate) {
	defer client.Close()
	up, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer up.Close()
	cut := make(chan struct{})
	go func() {
		defer client.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := up.Read(buf)
			if err != nil {
				return
			}
			select {
			case <-cut:
				return
			default:
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		switch fate(string(buf[:n])) {
		case Lose:
			return
		case Stall:
			client.Read(buf) // until the client gives up
			return
		case Cut:
			close(cut)
			up.Write(buf[:n])
			client.Read(buf) // until the other goroutine has the answer
			return
		case Pass:
			if _, err := up.Write(buf[:n]); err != nil {
				return
			}
		}
	}
}
