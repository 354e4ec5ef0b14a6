package guard

import "fmt"

// Clients says whose attempts a rule counts: of clients that are known to belong
// to the owner of the account they try, of all others, or of both. A client is
// trusted if it brings a device cookie of that account (Attempt.Device), and is
// charged to the rules of its class only. So what strangers do to an account, or
// behind an address, keeps no trusted client out.
type Clients uint8

const (
	// AllClients counts everybody. It is the zero value.
	AllClients Clients = iota

	// UntrustedClients counts those without a device cookie of the account.
	UntrustedClients

	// TrustedClients counts those with one.
	TrustedClients
)

func (c Clients) String() string {
	switch c {
	case AllClients:
		return "all"
	case UntrustedClients:
		return "untrusted"
	case TrustedClients:
		return "trusted"
	}
	return fmt.Sprintf("Clients(%d)", uint8(c))
}

// have reports that clients of a class, trusted or not, are counted.
func (c Clients) have(trusted bool) bool {
	return c == AllClients || (c == TrustedClients) == trusted
}
