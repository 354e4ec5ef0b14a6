package policies

import (
	"slices"

	"authguard/guard"
)

// classOf is p as it counts clients of one class.
func classOf(p guard.Policy, trusted bool) guard.Policy {
	other := guard.TrustedClients
	if trusted {
		other = guard.UntrustedClients
	}
	p.Rules = slices.DeleteFunc(slices.Clone(p.Rules), func(r guard.Rule) bool { return r.Clients == other })
	return p
}

// unlifted is p as it counts somebody who solves every challenge.
func unlifted(p guard.Policy) guard.Policy {
	p.Rules = slices.DeleteFunc(slices.Clone(p.Rules), asks)
	return p
}

func asks(r guard.Rule) bool { return r.Effect == guard.Challenge }

// tellsDevices reports that p counts trusted clients apart.
func tellsDevices(p guard.Policy) bool {
	return slices.ContainsFunc(p.Rules, func(r guard.Rule) bool { return r.Clients == guard.TrustedClients })
}

// sparesDevices reports that nothing which untrusted clients do can refuse a
// trusted one: no rule for the trusted counts anybody else, or another account.
func sparesDevices(p guard.Policy) bool {
	return tellsDevices(p) && !slices.ContainsFunc(classOf(p, true).Rules, func(r guard.Rule) bool {
		own := r.Clients == guard.TrustedClients && (r.By == guard.ByAccount || r.By == guard.ByDevice)
		return !own && r.Effect != guard.Observe
	})
}
