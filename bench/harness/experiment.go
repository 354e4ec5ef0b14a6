package harness

import (
	"errors"
	"fmt"
)

// An Experiment is one question, and who is measured to answer it.
type Experiment struct {
	Name       string // of the table
	About      string // a paragraph: what a figure means, what was asked of whom
	Rounds     int    // at most, if they take long; 0: the session's
	Metrics    []Metric
	Contenders []Contender
	Ratios     []Ratio
	Goals      []Goal
}

// Metric is a column: what is measured, with its unit.
type Metric string

// A Contender is a row. Run measures it once, with a state of its own: no run
// sees what another left. It must check its answers, and fail if one is wrong.
type Contender struct {
	Name string
	Run  func() (Sample, error)
}

// Ratio is a column that divides a metric by that of a contender, Per.
type Ratio struct {
	Metric Metric
	Per    string
}

// A Goal bounds a metric of a contender, as a multiple of that of Per or, without
// Per, itself.
type Goal struct {
	Of      string
	Metric  Metric
	Per     string
	AtMost  float64 // one of AtMost and
	AtLeast float64 // AtLeast
}

func (e Experiment) validate() error {
	rows, columns := map[string]bool{}, map[Metric]bool{}
	for _, c := range e.Contenders {
		if rows[c.Name] {
			return fmt.Errorf("harness: %s has two contenders named %q", e.Name, c.Name)
		}
		rows[c.Name] = true
	}
	for _, m := range e.Metrics {
		columns[m] = true
	}
	for _, r := range e.Ratios {
		if !rows[r.Per] || !columns[r.Metric] {
			return fmt.Errorf("harness: %s has no %q of %q for a ratio", e.Name, r.Metric, r.Per)
		}
	}
	for _, g := range e.Goals {
		if !rows[g.Of] || !columns[g.Metric] || g.Per != "" && !rows[g.Per] {
			return fmt.Errorf("harness: %s has no %q of %q and %q for a goal", e.Name, g.Metric, g.Of, g.Per)
		}
		if (g.AtMost == 0) == (g.AtLeast == 0) {
			return errors.New("harness: a goal needs one of AtMost and AtLeast")
		}
	}
	return nil
}

// Result is what an experiment measured: of each contender, its samples by round.
type Result map[string][]Sample

// Values are a contender's figures of a metric, by round.
func (r Result) Values(contender string, m Metric) []float64 {
	var xs []float64
	for _, s := range r[contender] {
		if x, ok := s[string(m)]; ok {
			xs = append(xs, x)
		}
	}
	return xs
}

// ratio is the median of the ratios of each round.
func (r Result) ratio(contender string, m Metric, per string) (x float64, ok bool) {
	rs := ratios(r.Values(contender, m), r.Values(per, m))
	return Median(rs), len(rs) > 0
}

// judge says what a goal wants, what came out, and whether that will do.
func (r Result) judge(g Goal) (want string, got float64, met bool) {
	bound, least := g.AtMost, false
	if g.AtLeast != 0 {
		bound, least = g.AtLeast, true
	}
	got, ok := Median(r.Values(g.Of, g.Metric)), len(r.Values(g.Of, g.Metric)) > 0
	if g.Per != "" {
		got, ok = r.ratio(g.Of, g.Metric, g.Per)
	}
	met = ok && (least && got >= bound || !least && got <= bound)
	want = "at most "
	if least {
		want = "at least "
	}
	want += Number(bound)
	if g.Per != "" {
		want += " × " + g.Per
	}
	return want, got, met
}
