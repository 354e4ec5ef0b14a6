package main

import (
	"fmt"
	"html"
	"strconv"
	"strings"
)

// drawing is an SVG on a white card, which reads well on a page of any colour.
type drawing struct {
	width, height float64
	title, about  string // for those who do not see it
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

func newDrawing(width, height float64, title, subtitle, about string) *drawing {
	d := &drawing{width: width, height: height, title: title, about: about}
	d.text(24, 34, "start", "h", title)
	d.text(24, 56, "start", "note", subtitle)
	return d
}

func (d *drawing) bytes() []byte {
	w, h := number(d.width), number(d.height)
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 %s %s\" width=\"%s\" height=\"%s\">\n", w, h, w, h)
	fmt.Fprintf(&b, "<title>%s</title>\n<desc>%s</desc>\n<style>%s</style>\n", html.EscapeString(d.title), html.EscapeString(d.about), style)
	fmt.Fprintf(&b, "<rect class=\"card\" x=\"0.5\" y=\"0.5\" width=\"%s\" height=\"%s\" rx=\"8\"/>\n", number(d.width-1), number(d.height-1))
	b.WriteString(d.body.String())
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// text is one line; anchor is "start", "middle" or "end".
func (d *drawing) text(x, y float64, anchor, class, s string) {
	d.add(`<text class="%s" x="%s" y="%s" text-anchor="%s">%s</text>`, class, number(x), number(y), anchor, html.EscapeString(s))
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	d.add(`<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, number(x1), number(y1), number(x2), number(y2))
}

func (d *drawing) rect(class string, x, y, width, height float64) {
	d.add(`<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`, class, number(x), number(y), number(width), number(height))
}

func (d *drawing) dot(class string, x, y, radius float64) {
	d.add(`<circle class="%s" cx="%s" cy="%s" r="%s"/>`, class, number(x), number(y), number(radius))
}

// cross is the mark of what was denied.
func (d *drawing) cross(x, y float64) {
	d.line("cross", x-4, y-4, x+4, y+4)
	d.line("cross", x-4, y+4, x+4, y-4)
}

// steps is a line that keeps its height until the next point.
func (d *drawing) steps(class string, points [][2]float64) {
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

func (d *drawing) add(format string, args ...any) {
	fmt.Fprintf(&d.body, format+"\n", args...)
}

// number is x to a tenth of a pixel.
func number(x float64) string {
	s := strconv.FormatFloat(x, 'f', 1, 64)
	return strings.TrimSuffix(s, ".0")
}

// scale maps from one range to another.
func scale(x, from, to, left, right float64) float64 {
	return left + (x-from)/(to-from)*(right-left)
}
