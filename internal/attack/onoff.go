package attack

import (
	"repute"
	"repute/trust"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
)

// OnOff is T9: what becomes of an agent that served well for a year, then badly every
// day. Raters are all roots, so that nothing but time and number counts.
type OnOff struct {
	Below50  int         `json:"days_below_50"`       // bad days until the mean is below 50
	Below10  int         `json:"days_below_minus_10"` // and below -10
	Recovery int         `json:"recovery_days"`       // good days after 15 bad ones until it is 50 again
	Timeline []OnOffStep `json:"timeline"`
}

// OnOffStep is a day of the timeline: 15 bad days, then good ones.
type OnOffStep struct {
	Day      int     `json:"day"`
	Mean     float64 `json:"mean"`
	Plain    float64 `json:"plain_mean"`
	Bayesian float64 `json:"bayesian_mean"`
}

const (
	onOffGood   = 60                      // ratings of the good year
	onOffBad    = 15                      // bad days before recovery
	onOffMost   = 200                     // days until a measurement gives up
	onOffRaters = onOffGood + 2*onOffMost // one for each rating, so that none replaces another
	onOffNow    = 1_800_000_000
	secondsDay  = 24 * 60 * 60
)

// MeasureOnOff runs T9.
func MeasureOnOff(p *rating.Params) (o OnOff) {
	b := flow.NewGraphBuilder()
	var roots []flow.Root
	for i := range onOffRaters {
		b.Add(Address(i))
		roots = append(roots, flow.Root{Address: Address(i), Weight: fixed.One})
	}
	x := &onOff{weights: b.Build().Walk(roots, p.Walk)}
	x.scorer = trust.NewScorer(x.weights, p)
	o.Below50 = firstDay(func(bad int) bool { return x.mean(bad, 0) < 50 })
	o.Below10 = firstDay(func(bad int) bool { return x.mean(bad, 0) < -10 })
	o.Recovery = firstDay(func(good int) bool { return x.mean(onOffBad, good) >= 50 })
	for day := range 120 {
		bad, good := min(day, onOffBad), max(0, day-onOffBad)
		_, values := x.rows(bad, good)
		o.Timeline = append(o.Timeline, OnOffStep{Day: day, Mean: x.mean(bad, good), Plain: plainMean(values),
			Bayesian: bayesianMean(values)})
	}
	return o
}

// firstDay is the first day on which something holds, or onOffMost.
func firstDay(is func(int) bool) int {
	for day := range onOffMost {
		if is(day) {
			return day
		}
	}
	return onOffMost
}

// onOff is an agent whose raters are all roots. Weights are walked once: ratings of the agent make no difference to
// them.
type onOff struct {
	weights *flow.Weights
	scorer  *trust.Scorer
}

// rows are sixty good ratings over a year, one bad one on each of bad days and then one good
// one a day, up to now.
func (x *onOff) rows(bad, good int) (rows []rating.Row, values []float64) {
	add := func(value float64, age int64) {
		r := RowOf(len(rows), Rating{From: len(rows), Value: value, Time: onOffNow - age*secondsDay})
		rows, values = append(rows, r), append(values, value)
	}
	for i := range onOffGood {
		add(0.8, int64(bad+good)+int64(onOffGood-i)*6)
	}
	for i := range bad {
		add(-1, int64(bad+good-i-1))
	}
	for i := range good {
		add(0.8, int64(good-i-1))
	}
	return rows, values
}

// mean is the mean of the agent after so many bad days and so many good ones after them.
func (x *onOff) mean(bad, good int) float64 {
	rows, _ := x.rows(bad, good)
	r := x.scorer.Score(trust.Evidence{Agent: repute.AgentID{ChainID: 1}, Owner: Address(onOffRaters), Rows: rows,
		Weights: x.weights, Block: blockAt(onOffNow)})
	return points(r.Mean)
}
