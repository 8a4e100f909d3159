package trustbench

import (
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"
)

// plot is a chart of lines. Equal plots make equal bytes.
type plot struct {
	title, x, y string
	logX, logY  bool
	low, high   float64 // of y; the axis of x follows from the points
	lines       []line
}

// line is one row of points, drawn in the order given.
type line struct {
	name   string
	points [][2]float64
}

const (
	plotWidth, plotHeight     = 760, 420
	plotLeft, plotRight       = 70, 540 // the names of lines are right of it
	plotTop, plotBottom       = 50, 360
	plotTicks                 = 5
	plotFont                  = `font-family="sans-serif" font-size="13"`
	plotGrid, plotInk, plotBG = "#d8d8d8", "#222222", "#ffffff"
)

// plotColors distinguish lines, for the color-blind too.
var plotColors = [...]string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666"}

// svg draws the plot.
func (p *plot) svg() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n",
		plotWidth, plotHeight, escape(p.title))
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="%s"/>`+"\n", plotWidth, plotHeight, plotBG)
	text(&b, plotLeft, 28, "start", p.title, ` font-weight="bold"`)
	text(&b, (plotLeft+plotRight)/2, plotBottom+44, "middle", p.x, "")
	text(&b, plotLeft-10, plotTop-10, "start", p.y, "")
	p.grid(&b)
	for i, l := range p.lines {
		p.draw(&b, i, l)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// escape makes a text fit for an element or an attribute of XML.
func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a builder does not fail
	return b.String()
}

// text writes a label. It is escaped: names of formulas and worlds come from data.
func text(b *strings.Builder, x, y float64, anchor, s, more string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s" %s%s>%s</text>`+"\n", x, y, anchor, plotInk,
		plotFont, more, escape(s))
}

// grid draws a line at each power of ten of a logarithmic axis, and at even steps of others.
func (p *plot) grid(b *strings.Builder) {
	low, high := p.span()
	for _, v := range ticks(low, high, p.logX) {
		x, _ := p.place(v, p.low)
		fmt.Fprintf(b, `<path d="M%.1f %dV%d" stroke="%s"/>`+"\n", x, plotTop, plotBottom, plotGrid)
		text(b, x, plotBottom+20, "middle", number(v), "")
	}
	for _, v := range ticks(p.low, p.high, p.logY) {
		_, y := p.place(low, v)
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="%s"/>`+"\n", plotLeft, y, plotRight, plotGrid)
		text(b, plotLeft-8, y+4, "end", number(v), "")
	}
}

// ticks are the values at which a line is drawn.
func ticks(low, high float64, logarithmic bool) (out []float64) {
	if logarithmic {
		for v := math.Pow(10, math.Ceil(math.Log10(low)-1e-9)); v <= high*1.0001; v *= 10 {
			out = append(out, v)
		}
		return out
	}
	for i := range plotTicks + 1 {
		out = append(out, low+(high-low)*float64(i)/plotTicks)
	}
	return out
}

// number is the label of a value: 1e4 and more as a power, others with four digits.
func number(v float64) string {
	if v >= 10_000 {
		return strings.Replace(fmt.Sprintf("%.0e", v), "e+0", "e", 1)
	}
	return fmt.Sprintf("%.4g", v)
}

// span is the lowest and highest x.
func (p *plot) span() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, l := range p.lines {
		for _, at := range l.points {
			low, high = min(low, at[0]), max(high, at[0])
		}
	}
	return low, high
}

// place returns the pixel of a point. Values beyond an axis are drawn at its end.
func (p *plot) place(x, y float64) (px, py float64) {
	low, high := p.span()
	part := func(v, low, high float64, logarithmic bool) float64 {
		if logarithmic {
			v, low, high = math.Log10(v), math.Log10(low), math.Log10(high)
		}
		if high == low {
			return 0.5
		}
		return max(0, min(1, (v-low)/(high-low)))
	}
	return plotLeft + (plotRight-plotLeft)*part(x, low, high, p.logX),
		plotBottom - (plotBottom-plotTop)*part(y, p.low, p.high, p.logY)
}

// draw draws the i-th line with its color and its name at the right. The first one is wider.
func (p *plot) draw(b *strings.Builder, i int, l line) {
	color := plotColors[i%len(plotColors)]
	var path []string
	for _, at := range l.points {
		x, y := p.place(at[0], at[1])
		path = append(path, fmt.Sprintf("%.1f,%.1f", x, y))
	}
	width := 2
	if i == 0 {
		width = 4
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="%d"/>`+"\n", strings.Join(path, " "),
		color, width)
	y := float64(plotTop + 12 + i*22)
	fmt.Fprintf(b, `<path d="M%d %.1fh24" stroke="%s" stroke-width="%d"/>`+"\n", plotRight+20, y-4, color, width)
	text(b, plotRight+52, y, "start", l.name, "")
}

// Plots draws what was measured: SVG files by name. A chart whose figures were not measured is left out.
func (m *TrustMeasurements) Plots() map[string]string {
	out := map[string]string{}
	if len(m.Worlds) > 0 {
		out["wallets.svg"] = m.Worlds[0].wallets().svg()
	}
	if len(m.OnOff.Timeline) > 0 {
		out["onoff.svg"] = m.onOff().svg()
	}
	if len(m.Cost) > 1 {
		out["cost.svg"] = m.cost().svg()
	}
	return out
}

// wallets is what new wallets buy with each formula.
func (w *TrustWorld) wallets() *plot {
	p := &plot{title: "A new agent praised by fresh wallets", x: "fresh wallets", y: "score", logX: true, high: 100,
		lines: []line{{name: "repute, raw mean"}}}
	var names []string
	for _, o := range w.Outcomes {
		for name := range o.Baselines {
			if !slices.Contains(names, name) && name != "EigenTrust percentile" {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	for _, name := range names {
		p.lines = append(p.lines, line{name: name})
	}
	for _, o := range w.Outcomes {
		if !strings.HasPrefix(o.Attack, "T1 ") {
			continue
		}
		// The mean, not the score: an unrated agent has none, and would look as if wallets bought nothing for this reason.
		p.lines[0].points = append(p.lines[0].points, [2]float64{float64(o.Size), o.Mean})
		for i, name := range names {
			p.lines[i+1].points = append(p.lines[i+1].points, [2]float64{float64(o.Size), o.Baselines[name]})
		}
	}
	return p
}

// onOff is what becomes of an agent that turns bad and good again, by three formulas.
func (m *TrustMeasurements) onOff() *plot {
	p := &plot{title: "A year of good work, 15 bad days, good days again", x: "days", y: "score", low: -100, high: 100,
		lines: []line{{name: "repute"}, {name: "plain mean"}, {name: "Bayesian mean"}}}
	for _, s := range m.OnOff.Timeline {
		for i, v := range []float64{s.Mean, s.Plain, s.Bayesian} {
			p.lines[i].points = append(p.lines[i].points, [2]float64{float64(s.Day), v})
		}
	}
	return p
}

// cost is the time of a recomputation by the number of ratings. Times below a millisecond are drawn as one.
func (m *TrustMeasurements) cost() *plot {
	p := &plot{title: "Recomputing every score of a chain", x: "ratings", y: "seconds", logX: true, logY: true,
		low: 0.001, high: 10,
		lines: []line{{name: "walk and scores"}, {name: "walk"}, {name: "scores"}}}
	for _, c := range m.Cost {
		for i, v := range []float64{c.Total(), c.Walk, c.Scores} {
			p.lines[i].points = append(p.lines[i].points, [2]float64{float64(c.Edges), max(v, p.low)})
		}
	}
	return p
}
