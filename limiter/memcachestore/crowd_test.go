package memcachestore_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/internal/testserver"
	"authguard/limiter"
	"authguard/limiter/memcachestore"
)

// far is a connection to a server that is some way off.
type far struct{ net.Conn }

func (c far) Write(b []byte) (int, error) {
	time.Sleep(20 * time.Millisecond)
	return c.Conn.Write(b)
}

// However many come at once, a server that answers is not down: whoever sends a crowd
// must not be able to choose an outage.
func TestACrowdIsNoOutage(t *testing.T) {
	s := newStore(t, memcachestore.Config{
		Addrs:   []string{testserver.Memcached(t)},
		Timeout: 400 * time.Millisecond,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return far{conn}, err
		},
	})
	var overloaded atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, 600)
	for i := range errs {
		wg.Go(func() {
			var charges []limiter.Charge
			for k := range 4 {
				charges = append(charges, limiter.Charge{Key: fmt.Sprint("k", i, "-", k), Limit: limiter.SlidingWindow{Limit: 10, Window: time.Hour}, Ask: limiter.Ask{Cost: 1}})
			}
			if _, errs[i] = s.Take(context.Background(), charges); errs[i] != nil {
				overloaded.Add(1)
			}
		})
	}
	wg.Wait()
	require.NotZero(t, overloaded.Load())
	for _, err := range errs {
		if err != nil {
			require.ErrorIs(t, err, limiter.ErrOverloaded)
		}
	}
}
