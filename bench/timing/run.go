package timing

import (
	"fmt"
	"math/rand/v2"
	"net/http"

	"authguard/bench/harness"
)

const (
	pairs  = 200
	warmUp = 10 // pairs that are not counted
	quick  = 20
)

// A question compares two kinds of calls.
type question struct {
	name         string
	known, other func(i int) call
	before       func(i int, known bool) *call // made first, and not timed; nil: nothing
}

// Run measures the family.
func Run(s *harness.Session) error {
	n := pairs
	if s.Quick {
		n = quick
	}
	s.Section("Time tells no account", fmt.Sprintf("The demo service as it comes, on loopback, with argon2id of 19 MiB and the limits of the presets. "+
		"Of each question %d pairs of calls, one about an account and one not, in random order, each from an address of its own and, where an attempt is charged, about a name of its own. "+
		"The difference is the estimator of Hodges and Lehmann, the median of all differences between one of the known and one of the others, with the distribution-free interval of 99 %% that belongs to the "+
		"test of Mann and Whitney (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 4.2 and 4.3). An interval that has no 0 in it tells the two apart; by chance one in a hundred does.", n))
	rows := [][]string{{"known and other, ms", "known", "other", "difference, µs", "99 % interval, µs", "of the known, %", ""}}
	site, err := newSite(names("known", n+warmUp+1))
	if err != nil {
		return err
	}
	defer site.close()
	qs, err := questions(site, n+warmUp)
	if err != nil {
		return err
	}
	for _, q := range qs {
		known, other, err := ask(site, q, n)
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		shift := harness.ShiftOf(known, other, harness.Z99)
		verdict := "**told apart**"
		if shift.Zero() {
			verdict = "alike"
		}
		median := harness.Median(known)
		rows = append(rows, []string{q.name, harness.Number(median / 1000), harness.Number(harness.Median(other) / 1000), harness.Number(shift.Median),
			fmt.Sprintf("%s to %s", harness.Number(shift.Low), harness.Number(shift.High)), harness.Number(100 * shift.Median / median), verdict})
	}
	s.Write(harness.Table(rows) + "\n")
	return nil
}

// questions are those that are asked; what they need is made.
func questions(s *site, n int) ([]question, error) {
	known, unknown, free := names("known", n+1), names("other", n+1), names("newby", n)
	asks, others := names("known", n), names("reset", n)
	pending := names("begun", n)
	for _, email := range pending {
		if _, err := s.timed(register(email)); err != nil {
			return nil, err
		}
	}
	// Two whose failures are used up.
	spentKnown, spentUnknown := known[n], unknown[n]
	for range 5 {
		for _, email := range []string{spentKnown, spentUnknown} {
			if _, err := s.timed(login(email, http.StatusUnauthorized)); err != nil {
				return nil, err
			}
		}
	}
	page := call{"/login", "", http.StatusOK}
	return []question{
		{"login, wrong password: an account, none",
			func(i int) call { return login(known[i], http.StatusUnauthorized) }, func(i int) call { return login(unknown[i], http.StatusUnauthorized) }, nil},
		{"login, wrong password: never confirmed, none",
			func(i int) call { return login(pending[i], http.StatusUnauthorized) }, func(i int) call { return login(unknown[i], http.StatusUnauthorized) }, nil},
		{"login, refused: an account, none",
			func(int) call { return login(spentKnown, http.StatusTooManyRequests) }, func(int) call { return login(spentUnknown, http.StatusTooManyRequests) }, nil},
		{"register: taken, free",
			func(i int) call { return register(known[i]) }, func(i int) call { return register(free[i]) }, nil},
		{"password reset: an account, none",
			func(i int) call { return reset(asks[i]) }, func(i int) call { return reset(others[i]) }, nil},
		{"the page after a password reset: an account, none",
			func(int) call { return page }, func(int) call { return page },
			func(i int, isKnown bool) *call {
				c := reset(others[i])
				if isKnown {
					c = reset(asks[i])
				}
				return &c
			}},
	}, nil
}

func login(email string, status int) call {
	return call{"/login", fmt.Sprintf(`{"email":%q,"password":"a wrong password"}`, email), status}
}

func register(email string) call {
	return call{"/register", fmt.Sprintf(`{"email":%q,"password":"words that nobody guesses"}`, email), http.StatusCreated}
}

func reset(email string) call {
	return call{"/password-reset", fmt.Sprintf(`{"email":%q}`, email), http.StatusAccepted}
}

// names are n addresses of one length.
func names(kind string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s%04d@example.com", kind, i)
	}
	return all
}

// ask makes n pairs of calls, and tells how many microseconds each took.
func ask(s *site, q question, n int) (known, other []float64, err error) {
	one := func(i int, isKnown bool) error {
		c, all := q.other, &other
		if isKnown {
			c, all = q.known, &known
		}
		if q.before != nil {
			if _, err := s.timed(*q.before(i, isKnown)); err != nil {
				return err
			}
		}
		took, err := s.timed(c(i))
		if i >= warmUp {
			*all = append(*all, float64(took.Nanoseconds())/1000)
		}
		return err
	}
	for i := range n + warmUp {
		first := rand.IntN(2) == 0 // the collector likes to come every second time
		for _, isKnown := range []bool{first, !first} {
			if err := one(i, isKnown); err != nil {
				return nil, nil, err
			}
		}
	}
	return known, other, nil
}
