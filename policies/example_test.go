package policies_test

import (
	"context"
	"fmt"

	"authguard/policies"
)

func Example() {
	own, err := policies.Parse("own.yaml", []byte(`
login:
  account: {by: account, limit: [3 per 10m, 20 per 1d], counts: failures}
  ip:      {by: ip, counter: 50 per 1h, counts: failures}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	all := policies.Override(policies.Default(), own)
	fmt.Print(policies.Format(all[:1]))
	fmt.Print(policies.Format(all[4:5]))
	// Output:
	// login/account  3 per 10m0s and 20 per 24h0m0s  by account  failures  deny
	// login/ip       about 50 per 1h0m0s             by ip       failures  deny
	// reset_confirm/ip  about 20 per 15m0s  by ip  attempts  deny
}

// What a file leaves to guessers, found out by trying.
func ExampleExplain() {
	own, err := policies.Parse("own.yaml", []byte(`
pin:
  account: {by: account, limit: 5 per 1h, counts: failures}
  streak:  {by: account, backoff: {free: 5, base: 1m, max: 1h, lock: 20, forget: 90d}}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	left, err := policies.Explain(context.Background(), own)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range left {
		if l.Guesser == policies.Botnet {
			fmt.Printf("owner %s: %v guesses a day, %v a year\n", l.Owner, l.Day, l.Year)
		}
	}
	// Output:
	// owner idle: 20 guesses a day, 100 a year
	// owner logging in: 38 guesses a day, 6,954 a year
}

// A mistake is told with its place, all mistakes of a file at once.
func ExampleParse_errors() {
	_, err := policies.Parse("own.yaml", []byte(`
login:
  account: {by: account, limit: 5 per 900, count: failures}
`))
	fmt.Println(err)
	// Output:
	// own.yaml:3:33: login/account: limit "5 per 900": 900 has no unit, write 900s
	// own.yaml:3:44: login/account: unknown key "count", did you mean counts?
}
