package harness

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Number is x to three digits, with commas between thousands.
func Number(x float64) string {
	abs := math.Abs(x)
	switch {
	case x == 0:
		return "0"
	case abs < 1000:
		digits := 2 - int(math.Floor(math.Log10(abs)))
		s := strconv.FormatFloat(x, 'f', max(0, min(4, digits)), 64)
		if strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		return s
	}
	unit := math.Pow(10, math.Floor(math.Log10(abs))-2)
	s := strconv.FormatInt(int64(math.Round(x/unit)*unit), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// spread is the median of xs and, where they differ, the least and the most.
func spread(xs []float64) string {
	if len(xs) == 0 {
		return "–"
	}
	least, most := Number(Quantile(xs, 0)), Number(Quantile(xs, 1))
	if least == most {
		return Number(Median(xs))
	}
	return fmt.Sprintf("%s (%s–%s)", Number(Median(xs)), least, most)
}

// Table writes rows as Markdown that reads well as plain text, too. The first
// row is the heading; all columns but the first are set to the right.
func Table(rows [][]string) string {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell), 4)
		}
	}
	var b strings.Builder
	line := func(row []string) {
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				b.WriteString("| " + cell + pad + " |")
			} else {
				b.WriteString(" " + pad + cell + " |")
			}
		}
		b.WriteByte('\n')
	}
	line(rows[0])
	for i := range width {
		if i == 0 {
			b.WriteString("|" + strings.Repeat("-", width[i]+2) + "|")
		} else {
			b.WriteString(strings.Repeat("-", width[i]+1) + ":|")
		}
	}
	b.WriteByte('\n')
	for _, row := range rows[1:] {
		line(row)
	}
	return b.String()
}

// tables shows an experiment's result, and then what became of its goals.
func tables(e Experiment, r Result) string {
	head := []string{""}
	for _, m := range e.Metrics {
		head = append(head, string(m))
	}
	for _, x := range e.Ratios {
		head = append(head, fmt.Sprintf("%s, × %s", x.Metric, x.Per))
	}
	rows := [][]string{head}
	for _, c := range e.Contenders {
		row := []string{c.Name}
		for _, m := range e.Metrics {
			row = append(row, spread(r.Values(c.Name, m)))
		}
		for _, x := range e.Ratios {
			cell := "–"
			if ratio, ok := r.ratio(c.Name, x.Metric, x.Per); ok {
				cell = Number(ratio)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	text := Table(rows)
	if len(e.Goals) == 0 {
		return text
	}
	rows = [][]string{{"goal", "wanted", "measured", ""}}
	for _, g := range e.Goals {
		want, got, met := r.judge(g)
		verdict := "**missed**"
		if met {
			verdict = "met"
		}
		rows = append(rows, []string{g.Of + ": " + string(g.Metric), want, Number(got), verdict})
	}
	return text + "\n" + Table(rows)
}
