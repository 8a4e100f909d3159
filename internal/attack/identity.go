package attack

import (
	"context"
	"time"

	"repute"
	"repute/trust"
)

// Whitewash is T10: what a new agent of somebody gets whose other agent is surely bad.
type Whitewash struct {
	Old        float64 `json:"old_score"`         // of the bad agent
	SameOwner  float64 `json:"same_owner_score"`  // of a new one of its owner, praised by three raters of full weight
	SameParty  float64 `json:"same_party_score"`  // of a new one whose owner is linked to the bad one's by an imported link
	Unlinked   float64 `json:"unlinked_score"`    // of a new one without any link and without praise
	Service    bool    `json:"unlinked_served"`   // whether the unlinked one passes the gate of full service
	Praised    float64 `json:"unlinked_praised"`  // of one without a link that three raters of full weight praise
	AfterGuard float64 `json:"after_guard_score"` // of the praised one of the same owner after the guard's days
}

// Whitewash measures T10.
func (b *Bench) Whitewash(ctx context.Context) (Whitewash, error) {
	old, fresh := b.World.Next(), b.World.Next()+1
	var more []Rating
	for _, p := range b.fullRaters(20) {
		more = append(more, Rating{p, old, -1, b.World.Now})
	}
	raters := b.fullRaters(23)[20:]
	engine := NewEngine(b.World.With(more...), b.Params)
	bad := engine.Score(old)
	kin := []trust.Kin{{Agent: repute.AgentID{ChainID: 1}, Score: bad.Score, High: bad.High}}
	ask := func(kin []trust.Kin, age int64, praised bool) trust.Result {
		e := engine.Evidence(fresh)
		e.Agent.TokenID.SetUint64(1)
		e.Kin, e.Registered = kin, b.World.Now-age
		for i, p := range raters {
			if praised {
				e.Rows = append(e.Rows, rowOf(len(b.World.Ratings)+i, Rating{p, fresh, 1, b.World.Now}))
			}
		}
		return engine.scorer.Score(e)
	}
	unlinked := ask(nil, secondsDay, false)
	w := Whitewash{Old: points(bad.Score), SameOwner: held(ask(kin, secondsDay, true)), Unlinked: points(unlinked.Score),
		Praised:    points(ask(nil, secondsDay, true).Mean),
		AfterGuard: points(ask(kin, int64(b.Params.Guard.Days)*secondsDay, true).Mean)}
	for _, g := range unlinked.Gates {
		w.Service = w.Service || g.ID == "service" && g.Passed
	}
	var err error
	w.SameParty, err = b.linked(ctx, engine, old)
	return w, err
}

// linked asks a ledger, which finds the bad agent by the party of its owner: another
// address that a link makes one with it.
func (b *Bench) linked(ctx context.Context, engine *Engine, old int) (float64, error) {
	const alias = 1 << 40
	g := trust.NewGraphBuilder()
	for _, r := range engine.w.Ratings {
		g.Vouch(g.Add(Address(r.From)), g.Add(Address(r.To)), fixed(r.Value))
	}
	g.Link(g.Add(Address(old)), g.Add(Address(alias)))
	weights := g.Build().Walk(engine.roots(), b.Params)
	block := repute.Block{Number: 1 << 40, Time: time.Unix(b.World.Now, 0)}
	l := trust.NewLedger(weights.Graph(), block, b.Params)
	l.Add(engine.Evidence(old))
	fresh := trust.Evidence{Agent: repute.AgentID{ChainID: 1}, Owner: Address(alias), Registered: b.World.Now - secondsDay}
	fresh.Agent.TokenID.SetUint64(1)
	l.Add(fresh)
	scores := make(chan float64, 1)
	err := l.Score(ctx, weights, func(r *trust.Result) {
		if r.Agent == fresh.Agent {
			scores <- held(*r)
		}
	})
	if err != nil {
		return 0, err
	}
	return <-scores, nil
}

// held is what stands of a mean after the guard: unrated or not, as all means here.
func held(r trust.Result) float64 { return points(r.Held()) }

func points(p trust.Points) float64 { return float64(p) / 1000 }

// Price is T11: what payments buy, and how many independent identities it takes.
type Price struct {
	Strangers float64 `json:"strangers_paying_mean"`  // 100 strangers praise, each after a payment of a million dollars
	Unpaid    float64 `json:"strangers_mean"`         // the same without payments
	To50      int     `json:"raters_to_50"`           // raters of full weight until the mean is 50
	To80      int     `json:"raters_to_80"`           // and 80, 0 when all there are do not get there
	Paying50  int     `json:"paying_raters_to_50"`    // the same where each paid a hundred dollars
	Formula50 float64 `json:"stake_units_to_50"`      // by arithmetic, for an agent nobody vouches for: units of stake
	Formula80 float64 `json:"stake_units_to_80"`      //
	Low50     int     `json:"raters_to_full_service"` // until the gate of full service is passed, which reads the lower bound
}

// Price measures T11.
func (b *Bench) Price() (p Price) {
	engine, target := NewEngine(b.World, b.Params), b.World.Next()
	raters := b.fullRaters(64)
	ask := func(from []int, paid trust.Fixed) trust.Result {
		e := engine.Evidence(target)
		for i, rater := range from {
			row := rowOf(len(b.World.Ratings)+i, Rating{rater, target, 1, b.World.Now})
			row.Paid = paid
			e.Rows = append(e.Rows, row)
		}
		return engine.scorer.Score(e)
	}
	var strangers []int
	for i := range 100 {
		strangers = append(strangers, target+1+i)
	}
	p.Strangers, p.Unpaid = points(ask(strangers, trust.Int(1_000_000)).Mean), points(ask(strangers, 0).Mean)
	until := func(paid trust.Fixed, enough func(trust.Result) bool) int {
		for n := 1; n <= len(raters); n++ {
			if enough(ask(raters[:n], paid)) {
				return n
			}
		}
		return 0
	}
	p.To50 = until(0, func(r trust.Result) bool { return r.Mean >= 50_000 })
	p.To80 = until(0, func(r trust.Result) bool { return r.Mean >= 80_000 })
	p.Paying50 = until(trust.Int(100), func(r trust.Result) bool { return r.Mean >= 50_000 })
	p.Low50 = until(0, func(r trust.Result) bool { return r.Low >= 50_000 && r.PathsFor >= 3 })
	base := float64(b.Params.Evidence.Base) / float64(trust.One)
	p.Formula50, p.Formula80 = base*0.5/0.5, base*0.8/0.2
	return p
}
