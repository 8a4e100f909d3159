package trustbench

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"repute/internal/attack"
	"repute/trust/rating"
)

const docs = "../../../docs"

// TestTrustPageTellsTheReport: the figures and charts of docs/explanation/trust.md are those of the
// report beside it, and the report is of the parameters that the product has.
func TestTrustPageTellsTheReport(t *testing.T) {
	var r struct {
		Config struct {
			Params string `json:"params_hash"`
			Tags   string `json:"tags_hash"`
		}
		Measurements TrustMeasurements
	}
	if err := json.Unmarshal(page(t, "bench/trust.json"), &r); err != nil {
		t.Fatal(err)
	}
	p, err := rating.DefaultParams()
	if err != nil {
		t.Fatal(err)
	}
	if r.Config.Params != p.Hash.Hex() || r.Config.Tags != p.TagsHash.Hex() {
		t.Errorf("the report is of parameters %s and tags %s, not of %s and %s: make it again", r.Config.Params,
			r.Config.Tags, p.Hash, p.TagsHash)
	}
	m := told{&r.Measurements}
	text := string(page(t, "explanation/trust.md"))
	for _, row := range slices.Concat(m.attacks(), m.others(), m.sources()) {
		if !strings.Contains(text, row) {
			t.Errorf("docs/explanation/trust.md does not say what its report does:\n%s", row)
		}
	}
	for name, svg := range r.Measurements.Plots() {
		if string(page(t, "bench/"+name)) != svg {
			t.Errorf("docs/bench/%s is not the report's", name)
		}
	}
}

func page(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(docs, name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// told is a report in the page's words: the worse of both worlds.
type told struct{ m *TrustMeasurements }

// attacks are the rows of the table that compares formulas.
func (m told) attacks() (rows []string) {
	for _, a := range []struct {
		row, attack string
		size        int
	}{
		{"T1 1 fresh wallet praises a new agent | ≤ 10", "T1 sybils", 1}, {"T1 3 fresh wallets | ≤ 10", "T1 sybils", 3},
		{"T1 10 fresh wallets | ≤ 10", "T1 sybils", 10},
		{"T1 10,000 fresh wallets | ≤ 10", "T1 sybils", 10_000}, {"T2 1,000 with camouflage | ≤ 10", "T2", 1000},
		{"T3 one compromised identity and 100 wallets | ≤ 30", "T3", 1}, {"T3 two | < 50", "T3", 2},
		{"T4 twenty weak ratings for one of 100 wallets | ≤ 30", "T4", 20},
		{"T5 three bribed raters of full weight | < 50", "T5 bribed", 3},
		{"T6 slander by 10,000 wallets, worst drop | ≤ 10", "T6", 10_000},
		{"T7 slander by one rater of full weight, worst drop | ≤ 10", "T7", 1}, {"T7 slander by three | ≤ 27", "T7", 3},
	} {
		rows = append(rows, "| "+a.row+" | "+m.worst(a.attack, a.size)+" |")
	}
	for _, a := range []struct {
		row, attack string
		sizes       []int
	}{
		{"T17 one compromised root, 50 wallets and up to 100 raters of weight ≤ 0.003 | ≤ 30", "T17 a compromised root",
			[]int{0, 5, 20, 100}},
		{"T17 the same with a compromised rater of full weight | ≤ 32", "T17 a compromised rater",
			[]int{0, 5, 20, 100}},
		{"T17 slander of the twenty best by the same, worst drop | ≤ 10", "T17 slander", []int{0, 5, 20, 100}},
		{"T18 six to twelve shells, each praised once by an honest rater, who praise each other and one agent or a hundred | ≤ 30",
			"T18", []int{6, 12}},
		{"T18 forty shells, the same | ≤ 50", "T18", []int{40}},
	} {
		rows = append(rows, "| "+a.row+" | "+m.worst(a.attack, a.sizes...)+" |")
	}
	return append(rows,
		fmt.Sprintf("| T5 five raters of a fifth of full weight; the same in three channels, each with a payment of $100 | < 50 | %s; %s |",
			strings.Split(m.worst("T5 raters", 5), " | ")[0], strings.Split(m.worst("T5 the same", 5), " | ")[0]))
}

// worst is what an attack of these sizes reached at most, by each formula.
func (m told) worst(name string, sizes ...int) string {
	var best float64
	baselines := map[string]float64{}
	take := func(is string, n int, value float64, of map[string]float64) {
		if !slices.Contains(sizes, n) || !strings.HasPrefix(is, name) {
			return
		}
		best = max(best, value)
		for name, v := range of {
			baselines[name] = max(baselines[name], v)
		}
	}
	for _, w := range m.m.Worlds {
		for _, o := range w.Outcomes {
			take(o.Attack, o.Size, o.Mean, o.Baselines)
		}
		for _, d := range w.Drops {
			take(d.Attack, d.Size, d.Worst, d.Baselines)
		}
	}
	digits, cells := 1, []string{strconv.FormatFloat(best, 'f', 1, 64)}
	if name == "T6" {
		digits = 0
	}
	for _, formula := range []string{"plain mean", "QuickNode v1.3", "nsgoods", "MainStreet"} {
		cells = append(cells, short(baselines[formula], digits))
	}
	return strings.Join(cells, " | ")
}

func short(v float64, digits int) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', digits, 64), ".0")
}

// shared is what an agent has whose owner has so many known agents, of which one is bad; and without the bad one.
func (m told) shared() string {
	var scores []string
	for i := 1; i <= 4; i++ {
		scores = append(scores, m.span(func(w *TrustWorld) float64 { return w.Whitewash.Shared[i].Score }))
	}
	return strings.Join(scores, ", ") + "; " + m.span(func(w *TrustWorld) float64 { return w.Whitewash.Praised })
}

// guard are the rows of who is accountable for a bad agent and who is not.
func (m told) guard() (rows []string) {
	for i, c := range m.m.Worlds[0].Whitewash.Cases {
		of := func(value func(*attack.GuardCase) float64) string {
			return m.span(func(w *TrustWorld) float64 { return value(&w.Whitewash.Cases[i]) })
		}
		rows = append(rows,
			fmt.Sprintf("| T10 other agent of the %s; the bad one. Agent of the %s; without the bad one | no better; loss ≤ 2 | %s, %s; %s, %s |",
				c.Accountable, c.Bystander, of(func(c *attack.GuardCase) float64 { return c.Score }),
				of(func(c *attack.GuardCase) float64 { return c.Bad }),
				of(func(c *attack.GuardCase) float64 { return c.Unlimited }),
				of(func(c *attack.GuardCase) float64 { return c.Free })))
	}
	return rows
}

// others are the ends of the rows of what is not compared.
func (m told) others() []string {
	d, n := m.m.Detection, m.m.Negatives
	rows := []string{
		fmt.Sprintf("share of the bound that was reached | ≤ 1 | %.2f |",
			m.over(func(w *TrustWorld) float64 { return w.Bounds.Strangers }, math.Max)),
		fmt.Sprintf("| ≤ 3, ≤ 12, ≥ 60 | %d, %d, %d |", m.m.OnOff.Below50, m.m.OnOff.Below10, m.m.OnOff.Recovery),
		fmt.Sprintf("| %s, as the bad one, tier %.0f |", m.span(func(w *TrustWorld) float64 { return w.Whitewash.Old }),
			m.over(func(w *TrustWorld) float64 { return float64(w.Whitewash.BestTier) }, math.Max)),
		fmt.Sprintf("| as the bad one; loss ≤ 2 of 1,000 | %s |", m.shared()),
		fmt.Sprintf("| as without it | %s, as without |",
			m.span(func(w *TrustWorld) float64 { return w.Whitewash.Gifted })),
		fmt.Sprintf("| 0, no full service | %.0f, none; %s |",
			m.over(func(w *TrustWorld) float64 { return w.Whitewash.Unlinked }, math.Max),
			m.span(func(w *TrustWorld) float64 { return w.Whitewash.Praised })),
		fmt.Sprintf("| no effect | %s and %s |", m.span(func(w *TrustWorld) float64 { return w.Price.Strangers }),
			m.span(func(w *TrustWorld) float64 { return w.Price.Unpaid })),
		fmt.Sprintf("to full service | | %s, %s, %s |",
			m.span(func(w *TrustWorld) float64 { return float64(w.Price.To50) }),
			m.span(func(w *TrustWorld) float64 { return float64(w.Price.To80) }),
			m.span(func(w *TrustWorld) float64 { return float64(w.Price.Low50) })),
		fmt.Sprintf("| ≥ .90, ≥ .82 | %s, %s |", part(d.AUC), part(d.First3)),
		fmt.Sprintf("| above 0 | %s, 95 %% between %s and %s |", part(d.Better), part(d.Low), part(d.High)),
		fmt.Sprintf("| ≤ .265, ≥ .41 | %s, %s; %s, %s |", part(d.Error), part(d.Pearson), part(d.MeanError),
			part(d.MeanPearson)),
		fmt.Sprintf("AUC by the shipped parameters; first three | | %s; %s |", part(d.Shipped), part(d.ShippedFirst3)),
		fmt.Sprintf("on the score that users see | ≥ .905, ≥ .84, both missed | %s; %s |", part(d.Seen),
			part(d.SeenFirst3)),
		fmt.Sprintf("fresh; four half-lives old | ; ≤ 0.1 | %.3g; %.3g |", m.m.VouchAge[0], m.m.VouchAge[4]),
		fmt.Sprintf("points lost; if all were on the tag's own | ≤ 2 | %.1f; %.1f |",
			m.over(func(w *TrustWorld) float64 { return w.Scales.Inferred }, math.Max),
			m.over(func(w *TrustWorld) float64 { return w.Scales.AsWritten }, math.Max)),
		fmt.Sprintf("that are rated | ≥ 90 %% | %.0f %% |",
			100*m.over(func(w *TrustWorld) float64 { return float64(w.Rated) / float64(w.Honest) }, math.Min)),
	}
	rows = append(rows, m.guard()...)
	for i, rule := range []string{
		"| once | %s | %s | %d | **%d** | **%d** |", "| twice | **%s** | **%s** | %d | %d | %d |",
		"| twice from four paths on | **%s** | **%s** | %d | %d | %d |",
		"| **by paths: 0.8 for one and two, rising to 2 for eleven; less against who is not well known** | %s | %s | %d | %d | %d |",
	} {
		rows = append(rows, fmt.Sprintf(rule, strconv.FormatFloat(n[i].One, 'f', 1, 64),
			strconv.FormatFloat(n[i].Three, 'f', 1, 64), n[i].Below50, n[i].Below10, n[i].Recovery))
	}
	last := m.m.Cost[len(m.m.Cost)-1]
	return append(rows, fmt.Sprintf("take about %.0f MB", math.Round(last.Memory/50)*50))
}

func part(v float64) string { return strings.TrimPrefix(strconv.FormatFloat(v, 'f', 3, 64), "0") }

func (m told) over(of func(*TrustWorld) float64, pick func(x, y float64) float64) float64 {
	v := of(&m.m.Worlds[0])
	for i := range m.m.Worlds {
		v = pick(v, of(&m.m.Worlds[i]))
	}
	return v
}

// span is the range of both worlds, the one nearer to 0 first.
func (m told) span(of func(*TrustWorld) float64) string {
	low, high := short(m.over(of, math.Min), 1), short(m.over(of, math.Max), 1)
	switch {
	case low == high:
		return low
	case strings.HasPrefix(low, "-"):
		low, high = high, low
	}
	return low + " to " + high
}
