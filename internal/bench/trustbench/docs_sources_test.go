package trustbench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// sources are the rows of what credentials reach: the worse of both worlds.
func (m told) sources() (rows []string) {
	praise := func(prefix string, sizes ...int) string {
		var all []string
		for _, n := range sizes {
			most := math.Inf(-1)
			for i := range m.m.Worlds {
				for _, o := range m.m.Worlds[i].Sources.Outcomes {
					if strings.HasPrefix(o.Attack, prefix) && o.Size == n {
						most = max(most, o.Mean)
					}
				}
			}
			all = append(all, short(most, 1))
		}
		return strings.Join(all, ", ")
	}
	drop := func(name string) string {
		most := 0.0
		for i := range m.m.Worlds {
			w := &m.m.Worlds[i]
			for _, d := range slices.Concat(w.Drops, w.Sources.Drops) {
				if d.Attack == name {
					most = max(most, d.Worst)
				}
			}
		}
		return short(most, 1)
	}
	over := func(of func(*TrustWorld) float64) string { return short(m.over(of, math.Max), 1) }
	const kyc = "S3 one holder with three wallets, "
	s := m.m.Sources
	rows = []string{
		fmt.Sprintf("100 credentials of class A, B, C, of every source | tier ≤ 2, no gate opens | %s, %s, %s, %s |",
			praise("S1 praise by credentials of class A", 100), praise("S1 praise by credentials of class B", 100),
			praise("S1 praise by credentials of class C", 100), praise("S1 praise by credentials of every", 100)),
		fmt.Sprintf("of every source | tier ≤ 2, no gate opens | %s |", praise("S2 compromised roots", 1, 2)),
		fmt.Sprintf("S2 the same with bribed raters of full weight | tier ≤ 2, no gate opens | %s |",
			praise("S2 bribed", 1, 2)),
		fmt.Sprintf("told as one person; not told apart | | %s; %s |", praise(kyc+"told", 3),
			praise(kyc+"not told", 3)),
		fmt.Sprintf("each by | together ≤ 60 units | %s |", praise("S4", 20, 200, 2000)),
		fmt.Sprintf("worst drop | ≤ 26, nobody rejected | %s, %s, %s, %s |",
			drop("S5 slander by credentials of class A"),
			drop("S5 slander by credentials of class B"), drop("S5 slander by credentials of class C"),
			drop("S5 slander by credentials of every source")),
		fmt.Sprintf("beside one rater of full weight | | %s |", drop("S5 the same with raters of full weight")),
		fmt.Sprintf("most that blame took | never; ≤ 26 | %s in %d; %s |", m.broken(),
			m.m.Worlds[0].Sources.Bounds.Trials,
			over(func(w *TrustWorld) float64 { return w.Sources.Bounds.Drop })),
		fmt.Sprintf("up, down; gone | ≤ 37.5, ≤ 26; ≤ 37.5 | %s, %s; %s |",
			over(func(w *TrustWorld) float64 { return w.Sources.Sway.Up }),
			over(func(w *TrustWorld) float64 { return w.Sources.Sway.Down }),
			over(func(w *TrustWorld) float64 { return w.Sources.Sway.Gone })),
		fmt.Sprintf("a revoked credential has no effect | ≤ 1 | %d |", s.Lag.Epochs),
		fmt.Sprintf("orders of ratings and credentials | one digest | %d |", len(s.Digests)),
		fmt.Sprintf("the source with most calls | ≤ 20 | %d |", s.Calls.Calls),
		fmt.Sprintf("600 copies without weight: change | 12 paths, 0 | %.0f paths, %s |",
			m.over(func(w *TrustWorld) float64 { return float64(w.Batch.Paths) }, math.Min),
			over(func(w *TrustWorld) float64 { return math.Abs(w.Batch.Copied - w.Batch.Mean) })),
	}
	for _, p := range s.Prices {
		price := "out of reach"
		if p.To50 > 0 {
			price = fmt.Sprintf("$%.0f, %d credentials", p.To50, p.Credentials)
		}
		gates := map[bool]string{true: "open", false: "closed"}[p.Opens]
		rows = append(rows, fmt.Sprintf("| %s | %s | %s, %s |", price, gates, short(p.Best, 1), short(p.Low, 1)))
	}
	return append(rows, m.coverage()...)
}

// broken is how often a rule was broken in random trials.
func (m told) broken() string {
	n := 0
	for i := range m.m.Worlds {
		x := m.m.Worlds[i].Sources.Bounds
		n += x.Opened + x.Kept + x.Raised
	}
	return cmp.Or(map[bool]string{true: "never"}[n == 0], fmt.Sprint(n, " times"))
}

// coverage are the rows of who is rated.
func (m told) coverage() (rows []string) {
	percent := func(part float64) string { return fmt.Sprintf("%.0f", 100*part) }
	for i := range m.m.Sources.Coverage[0].Lines {
		l := m.m.Sources.Coverage[0].Lines[i]
		row := fmt.Sprintf("| %s by two of %s |", short(l.Units, 2), short(l.Each, 2))
		for _, c := range m.m.Sources.Coverage {
			row += " " + percent(c.Lines[i].Rated) + " |"
		}
		rows = append(rows, row)
	}
	for _, c := range m.m.Sources.Coverage {
		for _, r := range c.Rows {
			by := "sources"
			if r.Writers {
				by = "and writers"
			}
			rows = append(rows, fmt.Sprintf("| %s | %s %% | %s | %s (%s) | %s (%s) | %s, %s | %s, %s |", c.Name,
				percent(r.Share), by,
				percent(r.Rated), percent(r.Several), percent(r.Thin), percent(r.Heard), percent(r.PersonsRated),
				percent(r.PersonsThin), percent(r.Raters), percent(r.Records)))
		}
	}
	return rows
}
