package policies

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"authguard/guard"
)

//go:embed presets/*.yaml
var presetFiles embed.FS

// defaults are the presets that make up Default, in its order. Each file is
// named after its action; the other files are variants.
var defaults = []string{
	"login", "reauth", "otp",
	"password_reset", "reset_confirm",
	"signup", "signup_confirm",
	"api", "api_pro", "api_unauthenticated",
	"admin",
}

var parsedDefaults = sync.OnceValue(func() []guard.Policy {
	var all []guard.Policy
	for _, name := range defaults {
		p, err := Preset(name)
		if err != nil {
			panic(err) // the file is part of the program, and a test reads it
		}
		all = append(all, p...)
	}
	return all
})

// Default returns the policies for the actions login, reauth, otp,
// password_reset, reset_confirm, signup, signup_confirm, api, api_pro,
// api_unauthenticated and admin. The caller owns them.
//
// api and api_pro are service tiers: the application looks the key up and names
// the action of its customer's tier. A costly endpoint asks for more than one
// unit (guard.Attempt.Cost).
func Default() []guard.Policy { return clone(parsedDefaults()) }

// Preset returns the policies of one preset: the name of an action of
// [Default], or a variant. "login_strict" is a login of which every attempt
// counts, "api_tiered" an API quota by second, minute, hour and day.
func Preset(name string) ([]guard.Policy, error) {
	file := path.Join("presets", name+".yaml")
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("policies: no preset %q, want one of %s", name, strings.Join(Names(), ", "))
	}
	data, err := presetFiles.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("policies: %w", err)
	}
	return Parse(file, data)
}

// Names returns the names of all presets, variants included, sorted.
func Names() []string {
	files, _ := fs.Glob(presetFiles, "presets/*.yaml") // fails only for a bad pattern
	for i, f := range files {
		files[i] = strings.TrimSuffix(path.Base(f), ".yaml")
	}
	return files
}

// Override returns base with the policies of over in it: in place of those of
// the same action, and behind them for other actions. A policy is replaced as a
// whole, so that a file shows all rules of the actions that it names.
func Override(base, over []guard.Policy) []guard.Policy {
	merged := clone(base)
	for _, p := range clone(over) {
		i := slices.IndexFunc(merged, func(q guard.Policy) bool { return q.Action == p.Action })
		if i < 0 {
			merged = append(merged, p)
		} else {
			merged[i] = p
		}
	}
	return merged
}

// clone copies everything that a caller could write to.
func clone(ps []guard.Policy) []guard.Policy {
	ps = slices.Clone(ps)
	for i := range ps {
		ps[i].Rules = slices.Clone(ps[i].Rules)
		for j := range ps[i].Rules {
			ps[i].Rules[j].Limits = slices.Clone(ps[i].Rules[j].Limits)
		}
	}
	return ps
}
