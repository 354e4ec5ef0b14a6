package harness

import (
	"fmt"
	"math"
	"runtime"

	"authguard/internal/svg"
)

// A Curve is one figure that grows with something, for several contenders: a table
// and a plot, both axes of which are logarithmic.
type Curve struct {
	Name  string
	About string
	File  string // of the plot
	X, Y  string // what the axes are, with units
	At    []int  // the values of x, growing
	Lines []Line
}

// curveRounds bounds the rounds of a curve, which has many points.
const curveRounds = 3

// A Line is a contender. Run measures it once at x and checks its answers.
type Line struct {
	Name string
	Most int // the largest x that it is asked for; 0: all
	Run  func(x int) (y float64, err error)
}

// Draw measures c, all lines of an x before the next x, and shows it. A round goes
// over all of x.
func (s *Session) Draw(c Curve) error {
	got := make([][][]float64, len(c.Lines)) // by line and x
	for i := range got {
		got[i] = make([][]float64, len(c.At))
	}
	for range s.rounds(curveRounds) {
		for k, x := range c.At {
			for i, l := range c.Lines {
				if l.Most > 0 && x > l.Most {
					continue
				}
				runtime.GC()
				y, err := l.Run(x)
				if err != nil {
					return fmt.Errorf("%s: %s at %d: %w", c.Name, l.Name, x, err)
				}
				got[i][k] = append(got[i][k], y)
			}
		}
	}
	head := []string{c.X}
	for _, l := range c.Lines {
		head = append(head, l.Name)
	}
	rows := [][]string{head}
	for k, x := range c.At {
		row := []string{Number(float64(x))}
		for i := range c.Lines {
			row = append(row, spread(got[i][k]))
		}
		rows = append(rows, row)
	}
	s.Write(fmt.Sprintf("### %s\n\n%s\n\n", c.Name, c.About))
	s.Plot(c.File, c.Name, c.plot(got))
	s.Write(c.Y + ":\n\n" + Table(rows) + "\n")
	return nil
}

// Colours that are told apart by those who see few; lines also end with their
// names.
var colours = []string{"#0a5cad", "#b35900", "#1a7f37", "#8250df", "#57606a", "#a40e26"}

func (c Curve) plot(got [][][]float64) []byte {
	const left, right, top, bottom = 90.0, 640.0, 92.0, 420.0
	d := svg.New(900, 480, c.Name, c.Y, fmt.Sprintf("%s by %s, for %d contenders; the table below has the numbers.", c.Y, c.X, len(c.Lines)))
	low, high := bounds(got)
	x := func(v int) float64 {
		return svg.Scale(math.Log(float64(v)), math.Log(float64(c.At[0])), math.Log(float64(c.At[len(c.At)-1])), left, right)
	}
	y := func(v float64) float64 {
		return svg.Scale(math.Log10(v), math.Log10(low), math.Log10(high), bottom, top)
	}
	for v := low; v <= high*1.001; v *= 10 {
		d.Line("grid", left, y(v), right, y(v))
		d.Text(left-8, y(v)+4, "end", "note", Number(v))
	}
	for _, v := range c.At {
		d.Line("axis", x(v), bottom, x(v), bottom+5)
		d.Text(x(v), bottom+22, "middle", "note", short(v))
	}
	d.Line("axis", left, bottom, right, bottom)
	d.Text((left+right)/2, bottom+44, "middle", "", c.X)
	for i, l := range c.Lines {
		class, colour := fmt.Sprintf("c%d", i), colours[i%len(colours)]
		d.Style(fmt.Sprintf(".%s { stroke: %s; stroke-width: 2; fill: none }\n.%sd { fill: %s }\n", class, colour, class, colour))
		var points [][2]float64
		for k, v := range c.At {
			if ys := got[i][k]; len(ys) > 0 && Median(ys) > 0 {
				points = append(points, [2]float64{x(v), y(Median(ys))})
			}
		}
		d.Path(class, points)
		for _, p := range points {
			d.Dot(class+"d", p[0], p[1], 3.5)
		}
		at := top + 22*float64(i)
		d.Line(class, right+24, at-4, right+48, at-4)
		d.Text(right+56, at, "start", "", l.Name)
	}
	return d.Bytes()
}

// bounds are the powers of ten around all medians.
func bounds(got [][][]float64) (low, high float64) {
	low, high = math.Inf(1), 0
	for _, line := range got {
		for _, ys := range line {
			if y := Median(ys); y > 0 {
				low, high = min(low, y), max(high, y)
			}
		}
	}
	if high == 0 {
		return 1, 10
	}
	low = math.Pow(10, math.Floor(math.Log10(low)))
	high = math.Pow(10, math.Ceil(math.Log10(high)))
	return low, max(high, 10*low)
}

// short is v as axes show it.
func short(v int) string {
	switch {
	case v >= 1_000_000 && v%1_000_000 == 0:
		return fmt.Sprintf("%dM", v/1_000_000)
	case v >= 1_000 && v%1_000 == 0:
		return fmt.Sprintf("%dk", v/1_000)
	}
	return fmt.Sprint(v)
}
