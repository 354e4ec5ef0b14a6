package authdemo

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// A Mail is one message to one person.
type Mail struct {
	To      string `json:"to"`
	Subject string `json:"subject"`
	Text    string `json:"text"` // plain, with the link in it
	Link    string `json:"link"` // "" if there is none to open

	Written time.Time `json:"-"`
}

// A Mailer sends mail. Send is called by one goroutine at a time, with a
// context that ends after mailTimeout.
type Mailer interface {
	Send(ctx context.Context, m Mail) error
}

const (
	mailTimeout = 30 * time.Second
	mailPlaces  = 256
)

// A mailRoom writes and sends mails in the background, one after the other, so
// that a request's answer tells nothing of what its mail says, or whether there
// is one. Its queue is bounded: what finds no place is dropped, and asked for
// again by whoever misses it.
type mailRoom struct {
	jobs    chan func(context.Context) error
	closing chan struct{}
	once    sync.Once // closes closing
	done    chan struct{}
	log     *slog.Logger
}

func newMailRoom(log *slog.Logger) *mailRoom {
	m := &mailRoom{
		jobs:    make(chan func(context.Context) error, mailPlaces),
		closing: make(chan struct{}),
		done:    make(chan struct{}),
		log:     log,
	}
	go m.work()
	return m
}

func (m *mailRoom) work() {
	defer close(m.done)
	for {
		select {
		case job := <-m.jobs:
			m.send(job)
		case <-m.closing:
			for len(m.jobs) > 0 {
				m.send(<-m.jobs)
			}
			return
		}
	}
}

func (m *mailRoom) send(job func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), mailTimeout)
	defer cancel()
	if err := job(ctx); err != nil {
		m.log.Error("mail not sent", "err", err)
	}
}

// enqueue has job run after those before it, and reports whether there was a
// place. It does not wait.
func (m *mailRoom) enqueue(job func(context.Context) error) bool {
	select {
	case m.jobs <- job:
		return true
	default:
		m.log.Error("mail dropped: too many are waiting", "places", mailPlaces)
		return false
	}
}

// flush waits until all that is in the queue now has been sent.
func (m *mailRoom) flush(ctx context.Context) {
	sent := make(chan struct{})
	select {
	case m.jobs <- func(context.Context) error { close(sent); return nil }:
	case <-ctx.Done():
		return
	}
	select {
	case <-sent:
	case <-ctx.Done():
	}
}

// close sends what is in the queue, as long as ctx permits. What is enqueued
// later is not sent.
func (m *mailRoom) close(ctx context.Context) error {
	m.once.Do(func() { close(m.closing) })
	select {
	case <-m.done:
	case <-ctx.Done():
	}
	select {
	case <-m.done: // also if ctx has ended: nothing was left
		return nil
	default:
		return fmt.Errorf("authdemo: mails not sent: %w", ctx.Err())
	}
}
