package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// released is the channel on which the server tells each key that denied and that
// a refund or Forget has set free. Scripts publish it in the step that does so.
const released = "ag:released"

// forgetScript drops a key and tells of it in one step.
const forgetScript = `redis.call('DEL', KEYS[1])
redis.pcall('PUBLISH', 'ag:released', KEYS[1])
return 1`

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
//
// On a cluster it listens to every primary, where the keys of that one are told
// first of all, and the sign of life is the oldest of theirs.
func (s *Store) Listen(ctx context.Context, free func(key string), alive func(age time.Duration)) error {
	if s.cluster == nil {
		return listen(ctx, s.single, free, alive)
	}
	nodes, err := s.primaries(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		listening sync.WaitGroup
		mu        sync.Mutex
		heard     = map[*redis.Client]time.Time{}
	)
	for _, node := range nodes {
		listening.Go(func() {
			cancel(listen(ctx, node, func(key string) {
				mu.Lock()
				defer mu.Unlock()
				free(key)
			}, func(age time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				oldest := time.Now().Add(-age)
				heard[node] = oldest
				for _, at := range heard {
					if at.Before(oldest) {
						oldest = at
					}
				}
				if len(heard) == len(nodes) {
					alive(time.Since(oldest))
				}
			}))
		})
	}
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			if now, err := s.primaries(ctx); err == nil && !sameNodes(nodes, now) {
				cancel(errors.New("redisstore: the cluster's primaries have changed"))
			}
		}
	}
	listening.Wait()
	return context.Cause(ctx)
}

// primaries are the cluster's, as its client knows them.
func (s *Store) primaries(ctx context.Context) ([]*redis.Client, error) {
	var mu sync.Mutex
	var nodes []*redis.Client
	err := s.cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, node)
		return nil
	})
	if err == nil && len(nodes) == 0 {
		err = errors.New("the cluster has no primaries")
	}
	if err != nil {
		return nil, fault(err)
	}
	return nodes, nil
}

func sameNodes(a, b []*redis.Client) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(n *redis.Client) bool { return !slices.Contains(b, n) })
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
