package svg

import (
	"fmt"
	"html"
	"strconv"
	"strings"
)

// A Drawing is an SVG on a white card, which reads well on a page of any colour.
type Drawing struct {
	width, height float64
	title, about  string // for those who do not see it
	style         string // beside the common one
	body          strings.Builder
}

// Classes of text are "h" (heading), "b" (bold) and "" (plain), and "note" for
// what is secondary. The lightest text has a contrast of 6:1 on white.
const style = `
text { font: 13px Helvetica, Arial, "Liberation Sans", sans-serif; fill: #1f2328 }
.h { font-size: 17px; font-weight: bold }
.b { font-weight: bold }
.note { fill: #57606a }
.card { fill: #ffffff; stroke: #d0d7de }
.axis { stroke: #57606a; fill: none }
.grid { stroke: #d8dee4; fill: none }
.mark { stroke: #57606a; stroke-dasharray: 4 3; fill: none }
.yes { fill: #0a5cad; stroke: #0a5cad }
.no { fill: #ffffff; stroke: #b35900 }
.curve { stroke: #0a5cad; stroke-width: 2.5; fill: none }
.cross { stroke: #b35900; stroke-width: 2; fill: none }
.link { stroke: #8c959f; fill: none }
`

// New begins a drawing with its heading. about describes it for those who do not
// see it.
func New(width, height float64, title, subtitle, about string) *Drawing {
	d := &Drawing{width: width, height: height, title: title, about: about}
	d.Text(24, 34, "start", "h", title)
	d.Text(24, 56, "start", "note", subtitle)
	return d
}

// Style adds rules of CSS for classes of the drawing's own.
func (d *Drawing) Style(css string) { d.style += css }

// Bytes is the SVG.
func (d *Drawing) Bytes() []byte {
	w, h := number(d.width), number(d.height)
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 %s %s\" width=\"%s\" height=\"%s\">\n", w, h, w, h)
	fmt.Fprintf(&b, "<title>%s</title>\n<desc>%s</desc>\n<style>%s</style>\n", html.EscapeString(d.title), html.EscapeString(d.about), style+d.style)
	fmt.Fprintf(&b, "<rect class=\"card\" x=\"0.5\" y=\"0.5\" width=\"%s\" height=\"%s\" rx=\"8\"/>\n", number(d.width-1), number(d.height-1))
	b.WriteString(d.body.String())
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// Text is one line; anchor is "start", "middle" or "end".
func (d *Drawing) Text(x, y float64, anchor, class, s string) {
	d.add(`<text class="%s" x="%s" y="%s" text-anchor="%s">%s</text>`, class, number(x), number(y), anchor, html.EscapeString(s))
}

// Line is a straight line of a class of style.
func (d *Drawing) Line(class string, x1, y1, x2, y2 float64) {
	d.add(`<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, number(x1), number(y1), number(x2), number(y2))
}

// Rect has its upper left corner at x and y.
func (d *Drawing) Rect(class string, x, y, width, height float64) {
	d.add(`<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`, class, number(x), number(y), number(width), number(height))
}

// Dot is a circle.
func (d *Drawing) Dot(class string, x, y, radius float64) {
	d.add(`<circle class="%s" cx="%s" cy="%s" r="%s"/>`, class, number(x), number(y), number(radius))
}

// Cross is the mark of what was denied.
func (d *Drawing) Cross(x, y float64) {
	d.Line("cross", x-4, y-4, x+4, y+4)
	d.Line("cross", x-4, y+4, x+4, y-4)
}

// Steps is a line that keeps its height until the next point.
func (d *Drawing) Steps(class string, points [][2]float64) {
	var path strings.Builder
	for i, p := range points {
		if i == 0 {
			fmt.Fprintf(&path, "M%s %s", number(p[0]), number(p[1]))
			continue
		}
		fmt.Fprintf(&path, "H%sV%s", number(p[0]), number(p[1]))
	}
	d.add(`<path class="%s" d="%s"/>`, class, path.String())
}

// Path joins points by straight lines.
func (d *Drawing) Path(class string, points [][2]float64) {
	var path strings.Builder
	for i, p := range points {
		fmt.Fprintf(&path, "%c%s %s", "ML"[min(i, 1)], number(p[0]), number(p[1]))
	}
	d.add(`<path class="%s" d="%s"/>`, class, path.String())
}

func (d *Drawing) add(format string, args ...any) {
	fmt.Fprintf(&d.body, format+"\n", args...)
}

// number is x to a tenth of a pixel.
func number(x float64) string {
	s := strconv.FormatFloat(x, 'f', 1, 64)
	return strings.TrimSuffix(s, ".0")
}

// Scale maps from one range to another.
func Scale(x, from, to, left, right float64) float64 {
	return left + (x-from)/(to-from)*(right-left)
}
