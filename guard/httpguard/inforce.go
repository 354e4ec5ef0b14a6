package httpguard

import (
	"fmt"
	"log/slog"

	"authguard/guard"
)

// fieldsInForce are prepared for one version of a guard's policies.
type fieldsInForce struct {
	version uint64
	of      map[string]*actionFields // by action
}

func prepareAll(g *guard.Guard, d Dialect) (*fieldsInForce, error) {
	// Read before the policies: what is replaced in between is prepared once more.
	f := &fieldsInForce{version: g.PoliciesVersion(), of: make(map[string]*actionFields)}
	for _, p := range g.Policies() {
		var err error
		if f.of[p.Action], err = prepare(p, d); err != nil {
			return nil, fmt.Errorf("httpguard: fields of %s: %w", p.Action, err)
		}
	}
	return f, nil
}

// fieldsOf are those of an action, by the policies in force: they are prepared anew
// by the first request that finds them replaced.
func (e *Edge) fieldsOf(action string) *actionFields {
	f := e.fields.Load()
	if f.version != e.guard.PoliciesVersion() {
		next, err := prepareAll(e.guard, e.dialect)
		if err != nil { // no policy that a guard takes is one that fields cannot tell of
			e.once(slog.LevelError, err.Error())
			return f.of[action]
		}
		f = next
		e.fields.Store(f)
	}
	return f.of[action]
}
