package limiter_test

import (
	"testing"
	"time"

	"authguard/limiter"
)

// BenchmarkLaw is one law asked through the interface, as a store asks it. The last
// two are a law that does nothing, with its decision filled in and returned.
func BenchmarkLaw(b *testing.B) {
	for _, l := range []limiter.Limit{
		limiter.TokenBucket{Capacity: 1000, Refill: 1, Per: time.Second},
		limiter.FixedWindow{Limit: 1000, Window: time.Hour},
		limiter.SlidingWindowCounter{Limit: 1000, Window: time.Hour},
		limiter.SlidingWindow{Limit: 5, Window: time.Hour},
		limiter.Backoff{Free: 10, Base: time.Second, Factor: 2, Max: time.Hour, Forget: time.Hour, ForgetBeyond: time.Hour},
		nothing{7},
	} {
		b.Run(l.Law(), func(b *testing.B) {
			d, buf := new(limiter.Decision), make([]byte, 0, 64)
			for i := int64(0); b.Loop(); i++ {
				if _, err := l.Take(d, buf, nil, i, limiter.Ask{Cost: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for _, l := range []returner{nothing{7}} {
		b.Run("nothing, returned", func(b *testing.B) {
			d, buf := new(limiter.Decision), make([]byte, 0, 64)
			for i := int64(0); b.Loop(); i++ {
				var err error
				if *d, _, err = l.Return(buf, nil, i, limiter.Ask{Cost: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

type nothing struct{ limit int64 }

type returner interface {
	Return(dst, state []byte, now int64, ask limiter.Ask) (limiter.Decision, []byte, error)
}

func (nothing) Law() string     { return "nothing" }
func (nothing) Validate() error { return nil }

// Laws are too long to be inlined.
//
//go:noinline
func (l nothing) Take(d *limiter.Decision, dst, _ []byte, now int64, ask limiter.Ask) ([]byte, error) {
	*d = limiter.Decision{}
	d.Allowed, d.Limit, d.Remaining, d.At = true, l.limit, l.limit-ask.Cost, now
	return dst, nil
}

//go:noinline
func (l nothing) Return(dst, _ []byte, now int64, ask limiter.Ask) (d limiter.Decision, _ []byte, _ error) {
	d.Allowed, d.Limit, d.Remaining, d.At = true, l.limit, l.limit-ask.Cost, now
	return d, dst, nil
}

func (nothing) Refund(dst, _ []byte, _, _ int64, _ limiter.Ask) ([]byte, error) { return dst, nil }
