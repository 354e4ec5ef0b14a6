package guard

import "net/netip"

// An Attempt is what somebody tries to do. Which fields are needed depends on
// the rules of the action's policy.
type Attempt struct {
	Action  string     // names the policy
	Account string     // as typed
	IP      netip.Addr // the client's address, from a source that the client cannot write
	Device  string     // the value of the client's device cookie as it came; see [Guard.TrustDevice]
	APIKey  string     // the key presented, or its id
	Tenant  string
	Parts   map[string]string // what rules by part:NAME count by
	Cost    int64             // 0 means 1

	// Challenge is the answer to the challenge that the same attempt was refused
	// with, Denied.Challenge: its token, a dot and the solution, as it came.
	Challenge string
}
