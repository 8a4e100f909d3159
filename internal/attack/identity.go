package attack

import (
	"repute/trust"
	"repute/trust/fixed"
)

// Price is T11: what payments buy, and how many independent identities it takes.
type Price struct {
	Strangers float64 `json:"strangers_paying_mean"` // 100 strangers praise, each after a payment of a million dollars
	Unpaid    float64 `json:"strangers_mean"`        // the same without payments
	To50      int     `json:"raters_to_50"`          // raters of full weight until the mean is 50
	To80      int     `json:"raters_to_80"`          // and 80, 0 when all there are do not get there
	Paying50  int     `json:"paying_raters_to_50"`   // the same where each paid a hundred dollars
	Formula50 float64 `json:"stake_units_to_50"`     // by arithmetic, for an agent nobody vouches for: units of stake
	Formula80 float64 `json:"stake_units_to_80"`     //
	// until the gate of full service is passed, which reads the lower bound
	Low50 int `json:"raters_to_full_service"`
}

// Price measures T11. The ratings are added to the evidence alone: what they would do to the weights of raters is not a
// part of the price.
func (b *Bench) Price() (p Price) {
	engine, target := NewEngine(b.World, b.Params), b.World.Next()
	raters := b.fullRaters(64)
	ask := func(from []int, paid fixed.Fixed) trust.Result {
		e := engine.Evidence(target)
		for i, rater := range from {
			row := RowOf(len(b.World.Ratings)+i, Rating{rater, target, 1, b.World.Now})
			row.Paid = paid
			e.Rows = append(e.Rows, row)
		}
		return engine.scorer.Score(e)
	}
	var strangers []int
	for i := range 100 {
		strangers = append(strangers, target+1+i)
	}
	p.Strangers, p.Unpaid = points(ask(strangers, fixed.Int(1_000_000)).Mean), points(ask(strangers, 0).Mean)
	until := func(paid fixed.Fixed, enough func(trust.Result) bool) int {
		for n := 1; n <= len(raters); n++ {
			if enough(ask(raters[:n], paid)) {
				return n
			}
		}
		return 0
	}
	p.To50 = until(0, func(r trust.Result) bool { return r.Mean >= 50_000 })
	p.To80 = until(0, func(r trust.Result) bool { return r.Mean >= 80_000 })
	p.Paying50 = until(fixed.Int(100), func(r trust.Result) bool { return r.Mean >= 50_000 })
	p.Low50 = until(0, func(r trust.Result) bool { return r.Low >= 50_000 && r.PathsFor >= 3 })
	base := float64(b.Params.Evidence.Base) / float64(fixed.One)
	p.Formula50, p.Formula80 = base*0.5/0.5, base*0.8/0.2
	return p
}
