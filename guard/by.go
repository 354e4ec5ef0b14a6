package guard

import (
	"fmt"
	"strconv"
	"strings"
)

// By names the subject that a rule counts by: one of the constants,
// [IPPrefix] or [Part].
type By string

const (
	// ByAccount counts by the account that is attempted, under its canonical
	// name or, with a resolver, its id. An attempt without an account is not
	// charged to such rules.
	ByAccount By = "account"

	// ByIP counts by client address: an IPv4 address, or an IPv6 /64.
	ByIP By = "ip"

	// ByIPAndAccount counts by the pair.
	ByIPAndAccount By = "ip+account"

	// ByDevice counts by the device that the client was recognised by, and goes
	// with TrustedClients only.
	ByDevice By = "device"

	// ByAPIKey counts by the API key presented (Attempt.APIKey).
	ByAPIKey By = "api_key"

	// ByTenant counts by the customer whose users these are (Attempt.Tenant).
	ByTenant By = "tenant"

	// Global counts all attempts of the action together.
	Global By = "global"
)

// IPPrefix counts by a wider or narrower IPv6 prefix than ByIP does: 32 to 128
// bits. IPv4 addresses are counted one by one in every such rule, because
// neighbouring IPv4 addresses are strangers.
func IPPrefix(bits int) By { return By("ip/" + strconv.Itoa(bits)) }

// Part counts by a part of the attempt that the application names itself
// (Attempt.Parts).
func Part(name string) By { return By("part:" + name) }

// subjectKind is By, parsed.
type subjectKind struct {
	kind byte   // one of the kind constants
	bits int    // of an IPv6 prefix, for kindIP and kindIPAccount
	part string // for kindPart
}

func (k subjectKind) ofAccount() bool { return k.kind == kindAccount || k.kind == kindIPAccount }
func (k subjectKind) ofAddress() bool { return k.kind == kindIP || k.kind == kindIPAccount }

// fixes reports that all attempts of one subject of k have the same subject of m.
func (k subjectKind) fixes(m subjectKind) bool {
	switch {
	case k == m, m.kind == kindGlobal, k.kind == kindIPAccount && m.kind == kindAccount:
		return true
	}
	if k.kind == kindDevice {
		return m.kind == kindAccount // each entry of a cookie is for one
	}
	return k.ofAddress() && m.kind == kindIP && m.bits <= k.bits
}

const (
	kindAccount   = 'a'
	kindIP        = 'i'
	kindIPAccount = 'b'
	kindDevice    = 'd'
	kindAPIKey    = 'k'
	kindTenant    = 't'
	kindGlobal    = 'g'
	kindPart      = 'p'
	kindChallenge = 'c' // of no rule: see challenge.go
)

const defaultV6Bits = 64

func (b By) parse() (subjectKind, error) {
	switch b {
	case ByAccount:
		return subjectKind{kind: kindAccount}, nil
	case ByIP:
		return subjectKind{kind: kindIP, bits: defaultV6Bits}, nil
	case ByIPAndAccount:
		return subjectKind{kind: kindIPAccount, bits: defaultV6Bits}, nil
	case ByDevice:
		return subjectKind{kind: kindDevice}, nil
	case ByAPIKey:
		return subjectKind{kind: kindAPIKey}, nil
	case ByTenant:
		return subjectKind{kind: kindTenant}, nil
	case Global:
		return subjectKind{kind: kindGlobal}, nil
	}
	if s, ok := strings.CutPrefix(string(b), "ip/"); ok {
		bits, err := strconv.Atoi(s)
		if err != nil || bits < 32 || bits > 128 || strconv.Itoa(bits) != s {
			return subjectKind{}, fmt.Errorf("is %q, want an IPv6 prefix of 32 to 128 bits such as ip/48", b)
		}
		return subjectKind{kind: kindIP, bits: bits}, nil
	}
	if s, ok := strings.CutPrefix(string(b), "part:"); ok {
		if err := checkName(s); err != nil {
			return subjectKind{}, fmt.Errorf("part %w", err)
		}
		return subjectKind{kind: kindPart, part: s}, nil
	}
	return subjectKind{}, fmt.Errorf("is %q, want account, ip, ip/BITS, ip+account, device, api_key, tenant, global or part:NAME", b)
}
