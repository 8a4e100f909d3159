package attack

import (
	"cmp"
	"slices"

	"repute/trust/rating"
	"repute/trust/source"
)

// SourcePrice is what the sources of a chain take and give by their published prices: G4 to G6.
type SourcePrice struct {
	Chain   uint64   `json:"chain"`
	Sources []string `json:"sources"`
	// Dollars for credentials whose holders lift a new agent to a mean of 50, 0 where all that has a price does not;
	// and how many credentials that is.
	To50        float64 `json:"dollars_to_50"`
	Credentials int     `json:"credentials"`
	// Best is the mean by all that can be held of every source, Low its lower bound, Opens whether it opens a gate of
	// value.
	Best  float64 `json:"best"`
	Low   float64 `json:"low"`
	Opens bool    `json:"opens"`
}

// SourcePrice buys credentials of the sources of a chain, those first that cost least for what they give, each source
// until one more credential of it lifts the mean no further. Sources without a price are not bought, and count in Best.
func (b *Bench) SourcePrice(s *Sources, chain uint64) (out SourcePrice) {
	out.Chain = chain
	on := s.policy.On(chain)
	for _, x := range on {
		out.Sources = append(out.Sources, x.ID)
	}
	target, bought := b.World.Next(), []holding(nil)
	priced := slices.DeleteFunc(slices.Clone(on), func(x *source.Source) bool { return x.Price == nil })
	perUnit := func(x *source.Source) float64 { return unitsOf(x.Price.USD) / unitsOf(x.Weight) }
	slices.SortFunc(priced, func(x, y *source.Source) int { return cmp.Compare(perUnit(x), perUnit(y)) })
	var best Outcome
	for _, x := range priced {
		for {
			next := append(slices.Clip(bought), holding{party: target + 1 + len(bought), source: x.ID})
			o := b.bought("", 0, target, 1, s, next)
			if o.Mean <= best.Mean { // the source's bound is reached
				break
			}
			if bought, best = next, o; best.Mean >= 50 && out.To50 == 0 {
				out.To50, out.Credentials = dollars(s.policy, bought), len(bought)
			}
		}
	}
	all := hold(target+1, 200, out.Sources...)
	r := NewEngine(b.World.With(b.by(all, target, 1)...), b.Params).credited(s, all, 1).Score(target)
	out.Best, out.Low = points(r.Mean), points(r.Low)
	for _, g := range r.Gates {
		out.Opens = out.Opens || g.Passed && g.Direction == rating.Admits
	}
	return out
}

// dollars are what credentials cost. Every source of them MUST have a price.
func dollars(p *source.Policy, held []holding) (sum float64) {
	for _, h := range held {
		sum += unitsOf(p.Source(h.source).Price.USD)
	}
	return sum
}

// Sway is what one source can move at any agent: a hostile one that gives credentials to any address, up and
// down, and one whose credentials are gone: G6. It is the most over all sources, new agents and known ones.
type Sway struct {
	Up   float64 `json:"up"`
	Down float64 `json:"down"`
	Gone float64 `json:"gone"`
}

// Sway tries every source on a new agent, and on agents with n ratings of full weight of which part is blame.
func (b *Bench) Sway(s *Sources) (most Sway) {
	const holders = 200
	raters := b.fullRaters(24)
	target := b.World.Next()
	for _, id := range s.of("") {
		held := hold(target+1, holders, id)
		e := NewEngine(b.World.With(b.by(held, target, -1)...), b.Params)
		hostile := e.credited(s, held, 1)
		for n := range len(raters) + 1 {
			for blame := 0; blame <= n; blame += max(1, n/6) {
				ev := e.Evidence(b.World.Next() - 1)
				ev.Rows, ev.Owner = nil, Address(target+1+holders)
				for i, p := range raters[:n] {
					ev.Rows = append(ev.Rows, RowOf(1<<30+i, Rating{p, 0, 1 - 2*one(i < blame), b.World.Now}))
				}
				var x Sway
				for value, moved := range map[float64]*float64{1: &x.Up, -1: &x.Down} {
					rated := ev
					rated.Rows = slices.Clone(ev.Rows)
					for i, h := range held {
						rated.Rows = append(rated.Rows, RowOf(1<<31+i, Rating{h.party, 0, value, b.World.Now}))
					}
					*moved = value * points(hostile.ask(rated).Mean-e.ask(ev).Mean)
					if value == 1 {
						x.Gone = points(hostile.ask(rated).Mean - e.ask(rated).Mean)
					}
				}
				most = Sway{max(most.Up, x.Up), max(most.Down, x.Down), max(most.Gone, x.Gone)}
			}
		}
	}
	return most
}
