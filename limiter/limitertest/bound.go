package limitertest

// A Bound is what a law's formula permits: the most units that may stand
// admitted from one instant to another, both included, in microseconds since
// 1970. It is written down apart from the law, for [Law] to check promise 9.
type Bound func(from, to int64) int64

// An entry of the ledger is one admission, or what a refund gave back.
type entry struct{ at, units int64 }

// admit writes an admission down, and checks promise 9 for every span that ends
// with it. The ledger begins anew when the clock is set back, because the same
// instants then come a second time.
func (h *history) admit(units int64) {
	h.ledger = append(h.ledger, entry{h.now, units})
	var sum int64
	for i := len(h.ledger) - 1; i >= 0; i-- {
		from := h.ledger[i].at
		sum += h.ledger[i].units
		if i > 0 && h.ledger[i-1].at == from {
			continue
		}
		if from == h.now && sum > h.most {
			h.fail("promise 9: %d admitted at one instant, limit %d", sum, h.most)
		}
		for _, bound := range h.bounds {
			if most := bound(from, h.now); sum > most {
				h.fail("promise 9: %d stand admitted in %v from %v on, at most %d may", sum, micros(h.now-from), h.clock(from), most)
			}
		}
	}
}

// giveBack takes a refunded charge out of the ledger. One that is not exact
// counts from now on instead, and so does one of before the clock was set back:
// its instant may have come again since, and its receipt then fits a younger
// charge, too.
func (h *history) giveBack(r receipt, exact bool) {
	if exact && r.era == h.era {
		h.ledger[r.entry].units = 0
		return
	}
	h.ledger = append(h.ledger, entry{h.now, -r.cost})
}
