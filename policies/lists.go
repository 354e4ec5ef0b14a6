package policies

import (
	"net/netip"
	"strings"

	"authguard/guard"
	"go.yaml.in/yaml/v3"
)

// listsKey is the key of a file that names no action.
const listsKey = "lists"

// readLists reads the value of listsKey.
func (r *reader) readLists(n *yaml.Node) {
	r.entries(n, listsKey, "deny or allow", func(key, n *yaml.Node) {
		where := listsKey + "/" + clip(key.Value)
		switch key.Value {
		case "deny":
			r.entries(n, where, "addresses or accounts", func(key, n *yaml.Node) {
				switch key.Value {
				case "addresses":
					r.addresses(n, where, &r.lists.DenyAddresses, func(p netip.Prefix) guard.Lists {
						return guard.Lists{DenyAddresses: []netip.Prefix{p}}
					})
				case "accounts":
					r.items(n, where+": accounts", func(n *yaml.Node) {
						if _, err := guard.Canonical(n.Value); err != nil || strings.TrimSpace(n.Value) == "" {
							r.at(n, "%s: accounts has %s, which is no account name", where, describe(n))
						}
						r.lists.DenyAccounts = append(r.lists.DenyAccounts, n.Value)
					})
				default:
					r.unknown(key, where, []string{"addresses", "accounts"}, "addresses or accounts")
				}
			})
		case "allow":
			r.entries(n, where, "addresses", func(key, n *yaml.Node) {
				if key.Value != "addresses" {
					r.unknown(key, where, []string{"addresses"}, "addresses: rules by account, device or code cannot be lifted")
					return
				}
				r.addresses(n, where, &r.lists.AllowAddresses, func(p netip.Prefix) guard.Lists {
					return guard.Lists{AllowAddresses: []netip.Prefix{p}}
				})
			})
		default:
			r.unknown(key, listsKey, []string{"deny", "allow"}, "deny or allow")
		}
	})
}

// addresses reads a list of addresses and prefixes, each of which alone must make a
// list that is valid.
func (r *reader) addresses(n *yaml.Node, where string, into *[]netip.Prefix, alone func(netip.Prefix) guard.Lists) {
	r.items(n, where+": addresses", func(n *yaml.Node) {
		p, err := netip.ParsePrefix(n.Value)
		if addr, e := netip.ParseAddr(n.Value); e == nil && addr.Zone() == "" {
			addr = addr.Unmap()
			p, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		switch {
		case err != nil:
			r.at(n, "%s: addresses has %s, want addresses or prefixes such as 203.0.113.0/24", where, describe(n))
		case p != p.Masked():
			r.at(n, "%s: addresses has %s, did you mean %v?", where, describe(n), p.Masked())
		default:
			if err := alone(p).Validate(); err != nil {
				r.at(n, "%s: %s", where, strings.TrimPrefix(err.Error(), "guard: Lists."))
			}
			*into = append(*into, p)
		}
	})
}

// items visits the strings of a list, which must not be empty.
func (r *reader) items(n *yaml.Node, where string, visit func(*yaml.Node)) {
	if r.refused[n] {
		return
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		r.at(n, "%s is %s, want a list", where, describe(n))
		return
	}
	for _, item := range n.Content {
		switch {
		case r.refused[item]:
		case !isString(item):
			r.at(item, "%s has %s, want strings", where, describe(item))
		default:
			visit(item)
		}
	}
}
