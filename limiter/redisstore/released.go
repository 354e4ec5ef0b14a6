package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// released is the channel on which the server tells each key that denied and that
// a refund or Forget has set free. Scripts publish it in the step that does so.
const released = "ag:released"

// forgetScript drops keys and tells of them in one step.
const forgetScript = `for _, key in ipairs(KEYS) do
  redis.call('DEL', key)
  redis.pcall('PUBLISH', 'ag:released', key)
end
return #KEYS`

const (
	// beat is how often a listener sends itself a message.
	beat = 500 * time.Millisecond

	// unheard is how long none of them may arrive until the channel is given up.
	unheard = 5 * time.Second
)

// Listen implements denycache.Channel. It tells the keys that other stores on this
// server set free, too.
//
// Its sign of life is a message that it publishes, as the store publishes keys, to
// a channel of its own and receives where it receives keys: the server delivers in
// order, so whatever was published before has been received. That proves, too, that
// the store and the listener have the same server, after a failover, and that this
// user may publish. Processes under other users must be allowed to as well:
// channels ag:released and ag:released.*, commands publish and subscribe.
func (s *Store) Listen(ctx context.Context, free func(key string), alive func(age time.Duration)) error {
	return listen(ctx, s.client, free, alive)
}

// listen is Listen on one server.
func listen(ctx context.Context, node *redis.Client, free func(key string), alive func(age time.Duration)) error {
	own := released + "." + rand.Text()
	sub := node.Subscribe(ctx, released, own) // what fails here fails again below
	defer sub.Close()
	for subscribed := 0; subscribed < 2; {
		m, err := sub.ReceiveTimeout(ctx, unheard)
		if err != nil {
			return fault(err)
		}
		if _, ok := m.(*redis.Subscription); ok {
			subscribed++
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var (
		beating sync.WaitGroup
		heard   atomic.Int64 // when the youngest beat that has come back was sent
		start   = time.Now()
	)
	defer beating.Wait()
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { sub.Close() })() // which ends a Receive
	beating.Go(func() { cancel(sendBeats(ctx, node, own, start, &heard)) })
	for {
		m, err := sub.Receive(ctx)
		if err != nil {
			return fault(cmp.Or(context.Cause(ctx), err))
		}
		switch m := m.(type) {
		case *redis.Message:
			if m.Channel != own {
				free(m.Payload)
				continue
			}
			sent, err := strconv.ParseInt(m.Payload, 10, 64)
			if err != nil {
				return fmt.Errorf("redisstore: somebody else publishes on the channel %s", own)
			}
			heard.Store(sent)
			alive(time.Since(start) - time.Duration(sent))
		case *redis.Subscription:
			return errors.New("redisstore: the client has subscribed anew, and may have missed something")
		}
	}
}

// sendBeats publishes the time since start to channel own, again and again, until
// ctx ends or none has come back for too long.
func sendBeats(ctx context.Context, node *redis.Client, own string, start time.Time, heard *atomic.Int64) error {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		sent := time.Since(start)
		sending, cancel := context.WithTimeout(ctx, beat)
		err := node.Publish(sending, own, int64(sent)).Err()
		cancel()
		if sent-time.Duration(heard.Load()) > unheard {
			return cmp.Or(err, fmt.Errorf("no message has come back for %v", unheard))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
