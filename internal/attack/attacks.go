package attack

import (
	"cmp"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"

	"repute/trust"
	"repute/trust/fixed"
	"repute/trust/rating"
)

// Outcome is what an attack reached, for the engine and for other scorers.
type Outcome struct {
	Attack string  `json:"attack"`
	Size   int     `json:"size"` // identities that the attacker needs
	World  string  `json:"world"`
	Mean   float64 `json:"mean"` // of the engine, before the rule for unrated agents
	Score  float64 `json:"score"`
	Paths  int     `json:"paths"`
	Tier   int     `json:"tier"`
	// Where sources take part: whether a gate that admits opens, and the units of praise by sources.
	Opens     bool               `json:"opens,omitempty"`
	Units     float64            `json:"units,omitempty"`
	Baselines map[string]float64 `json:"baselines,omitempty"` // 0 to 100
}

// Bench runs attacks on a world. Attacks do not change it, and none sees another one.
type Bench struct {
	World  *World
	Params *rating.Params
	seed   uint64
}

// NewBench prepares attacks on a world; equal seeds choose equal victims.
func NewBench(w *World, p *rating.Params, seed uint64) *Bench { return &Bench{w, p, seed} }

// rng begins the same series at each call, so that an attack does not depend on those before it.
func (b *Bench) rng() *rand.Rand { return rand.New(rand.NewPCG(b.seed, 1)) }

// sybils are n new identities that praise target, and each other in a ring. Their numbers follow that of target, which
// MUST be the last known one.
func (b *Bench) sybils(n, target int) (out []Rating) {
	first := target + 1
	for i := range n {
		out = append(out, Rating{first + i, target, 1, b.World.Now})
		if n > 1 {
			out = append(out, Rating{first + i, first + (i+1)%n, 1, b.World.Now})
		}
	}
	return out
}

// outcome attacks and asks about a party. The engine is built anew, because the attack's praise may move trust.
func (b *Bench) outcome(attack string, size, target int, more ...Rating) Outcome {
	w := b.World.With(more...)
	r := NewEngine(w, b.Params).Score(target)
	o := Outcome{Attack: attack, Size: size, World: w.Name, Mean: points(r.Mean),
		Score: points(r.Score), Paths: r.PathsFor, Tier: r.Tier, Baselines: map[string]float64{}}
	opinions := w.opinions(target)
	for _, base := range baselines() {
		o.Baselines[base.name] = base.score(opinions)
	}
	o.Baselines["EigenTrust percentile"] = w.eigenTrust(target)
	return o
}

// FreshSybils is T1: a new agent praised by new identities who praise each other.
func (b *Bench) FreshSybils(n int) Outcome {
	target := b.World.Next()
	return b.outcome("T1 sybils praise a new agent", n, target, b.sybils(n, target)...)
}

// Camouflage is T2: the same, and each sybil also praises five popular parties and is
// praised by five sybils.
func (b *Bench) Camouflage(n int) Outcome {
	target := b.World.Next()
	more := b.sybils(n, target)
	popular := b.popular(50)
	rng := b.rng()
	for i := range n {
		for range 5 {
			more = append(more, Rating{target + 1 + i, popular[rng.IntN(len(popular))], 0.8, b.World.Now},
				Rating{target + 1 + rng.IntN(n), target + 1 + i, 1, b.World.Now})
		}
	}
	return b.outcome("T2 the same with camouflage", n, target, more...)
}

// CompromisedRoots is T3: some roots, of which the world MUST have as many, praise the agent and a hundred sybils, who
// praise it too.
func (b *Bench) CompromisedRoots(n int) Outcome {
	return b.compromised("T3 compromised roots and 100 sybils", b.World.Roots[:n])
}

// CompromisedRaters is T3: the same with raters of full weight who are no roots.
func (b *Bench) CompromisedRaters(n int) Outcome {
	return b.compromised("T3 compromised raters and 100 sybils", b.fullRaters(n))
}

// compromised has some parties praise a new agent and a hundred sybils, who praise the agent and each other.
func (b *Bench) compromised(attack string, who []int) Outcome {
	const sybils = 100
	target := b.World.Next()
	more := b.sybils(sybils, target)
	for _, p := range who {
		more = append(more, Rating{p, target, 1, b.World.Now})
		for i := range sybils {
			more = append(more, Rating{p, target + 1 + i, 1, b.World.Now})
		}
	}
	return b.outcome(attack, len(who), target, more...)
}

// LowEdges is T4: twenty honest raters are led to give one sybil a weak positive rating;
// it praises a hundred others.
func (b *Bench) LowEdges() Outcome {
	const edges, sybils = 20, 100
	target := b.World.Next()
	more := b.sybils(sybils, target)
	for _, p := range b.fullRaters(edges) {
		more = append(more, Rating{p, target + 1, 0.1, b.World.Now})
	}
	for i := 1; i < sybils; i++ {
		more = append(more, Rating{target + 1, target + 1 + i, 1, b.World.Now})
	}
	return b.outcome("T4 twenty weak edges to one of 100 sybils", edges, target, more...)
}

// Bribed is T5: raters of full weight praise a new agent.
func (b *Bench) Bribed(n int) Outcome {
	target := b.World.Next()
	var more []Rating
	for _, p := range b.fullRaters(n) {
		more = append(more, Rating{p, target, 1, b.World.Now})
	}
	return b.outcome("T5 bribed raters of full weight", n, target, more...)
}

// WeakInChannels is T5: raters with a fifth of full weight praise a new agent, in one channel
// or in all of them and for a hundred dollars each.
func (b *Bench) WeakInChannels(n int, all bool) Outcome {
	target := b.World.Next()
	engine := NewEngine(b.World, b.Params)
	e := engine.Evidence(target)
	for i, q := range b.weakRaters(engine, n) {
		for j, tag := range []string{"quality", "successRate", "hard_finality"} {
			if j > 0 && !all {
				continue
			}
			r := RowOf(len(b.World.Ratings)+10*i+j, Rating{q, target, 1, b.World.Now})
			r.Tag1, r.Validation = tag, j == 2
			if all && j < 2 { // a payment is of a rating
				r.Paid = fixed.Int(100)
			}
			e.Rows = append(e.Rows, r)
		}
	}
	r := engine.scorer.Score(e)
	name := "T5 raters of a fifth of full weight, in one channel"
	if all {
		name = "T5 the same in three channels, each with a payment of 100 dollars"
	}
	return Outcome{Attack: name, Size: n, World: b.World.Name, Mean: points(r.Mean),
		Score: points(r.Score), Paths: r.PathsFor}
}

// weakRaters are n parties with a seventh to a third of full weight.
func (b *Bench) weakRaters(e *Engine, n int) (out []int) {
	for q := range b.World.Next() {
		if x := e.Weight(q); x > 0.15 && x < 0.3 && len(out) < n {
			out = append(out, q)
		}
	}
	return out
}

// Drop is what a slander cost its victims.
type Drop struct {
	Attack    string             `json:"attack"`
	Size      int                `json:"size"`
	World     string             `json:"world"`
	Victims   int                `json:"victims"`
	Mean      float64            `json:"mean"` // points lost
	Worst     float64            `json:"worst"`
	Rejected  int                `json:"rejected"`            // victims that now pass the reject or the shutdown gate
	Baselines map[string]float64 `json:"baselines,omitempty"` // worst drop
}

// SlanderBySybils is T6: new identities say the worst of victims with evidence of five units.
func (b *Bench) SlanderBySybils(n int) Drop {
	engine := NewEngine(b.World, b.Params)
	victims := b.victims(engine, func(r trust.Result) bool { return r.Evidence >= fixed.Int(5) })
	next := b.World.Next()
	slander := func(victim int) (out []Rating) {
		for i := range n {
			out = append(out, Rating{next + i, victim, -1, b.World.Now})
		}
		return out
	}
	return b.slander("T6 slander by sybils", n, engine, victims, slander)
}

// SlanderByRaters is T7: raters of full weight say the worst of victims with ten ratings.
func (b *Bench) SlanderByRaters(n int) Drop {
	engine := NewEngine(b.World, b.Params)
	victims := b.victims(engine, func(r trust.Result) bool { return r.Rows >= 10 && r.Status == trust.Rated })
	slander := func(victim int) (out []Rating) {
		for _, p := range b.fullRaters(n + 20) {
			if p != victim && len(out) < n && !b.rated(p, victim) {
				out = append(out, Rating{p, victim, -1, b.World.Now})
			}
		}
		return out
	}
	return b.slander("T7 slander by raters of full weight", n, engine, victims, slander)
}

// rated reports whether a party has rated another: a second rating of it would replace the first.
func (b *Bench) rated(from, to int) bool {
	return slices.ContainsFunc(b.World.Ratings, func(r Rating) bool { return r.From == from && r.To == to })
}

// slander tries each victim by itself. Slander makes no edges: the weights stay. Without victims every figure is 0,
// which callers can tell by Victims.
func (b *Bench) slander(attack string, n int, engine *Engine, victims []int, slander func(int) []Rating) Drop {
	d := Drop{Attack: attack, Size: n, World: b.World.Name, Victims: len(victims), Baselines: map[string]float64{}}
	for _, v := range victims {
		before, opinions := engine.Score(v), b.World.opinions(v)
		ev := engine.Evidence(v)
		all := opinions
		for i, r := range slander(v) {
			row := rating.Row{Block: uint64(len(b.World.Ratings) + i), Time: r.Time, Rater: Address(r.From), Index: 1,
				Tag1: "quality"}
			row.Amount.Value = new(big.Int)
			ev.Rows = append(ev.Rows, row)
			all = append(all, r.Value)
		}
		after := engine.scorer.Score(ev)
		lost := points(before.Mean - after.Mean)
		d.Mean += lost / float64(len(victims))
		d.Worst = max(d.Worst, lost)
		for _, g := range after.Gates {
			if g.Passed && (g.ID == "reject" || g.ID == "shutdown") {
				d.Rejected++
			}
		}
		for _, base := range baselines() {
			d.Baselines[base.name] = max(d.Baselines[base.name], base.score(opinions)-base.score(all))
		}
	}
	return d
}

// victims are up to twenty good parties that fit and have something to lose, chosen by the seed. Roots are no victims:
// their weight does not follow from what others say.
func (b *Bench) victims(e *Engine, fits func(trust.Result) bool) []int {
	good := slices.Sorted(maps.Keys(b.World.Good))
	b.rng().Shuffle(len(good), func(i, j int) { good[i], good[j] = good[j], good[i] })
	var out []int
	for _, p := range good {
		if r := e.Score(p); r.Mean > 0 && fits(r) && !slices.Contains(b.World.Roots, p) {
			out = append(out, p)
		}
		if len(out) == 20 {
			break
		}
	}
	return out
}

// fullRaters are n raters with more than half of full weight who are no roots, drawn by
// the seed.
func (b *Bench) fullRaters(n int) []int {
	e := NewEngine(b.World, b.Params)
	weights := map[int]float64{}
	for _, r := range b.World.Ratings {
		if _, known := weights[r.From]; !known && !slices.Contains(b.World.Roots, r.From) {
			weights[r.From] = e.Weight(r.From)
		}
	}
	var out []int
	for p, weight := range weights {
		if weight > 0.5 {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	b.rng().Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:min(n, len(out))]
}

// popular are the n parties praised most often; of equals the lower number comes first.
func (b *Bench) popular(n int) []int {
	praised := map[int]int{}
	for _, r := range b.World.Ratings {
		if r.Value > 0 {
			praised[r.To]++
		}
	}
	out := slices.SortedFunc(maps.Keys(praised), func(x, y int) int {
		return cmp.Or(cmp.Compare(praised[y], praised[x]), cmp.Compare(x, y))
	})
	return out[:min(n, len(out))]
}

// Rated is the share of good parties with at least eight raters of full weight that
// have a score.
func (b *Bench) Rated() (rated, all int) {
	e := NewEngine(b.World, b.Params)
	for _, p := range slices.Sorted(maps.Keys(b.World.Good)) {
		full := 0
		for _, i := range e.about[p] {
			if r := b.World.Ratings[i]; r.Value > 0 && e.Weight(r.From) >= 0.5 {
				full++
			}
		}
		if full < 8 {
			continue
		}
		all++
		if e.Score(p).Status == trust.Rated {
			rated++
		}
	}
	return rated, all
}
