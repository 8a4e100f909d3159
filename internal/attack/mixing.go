package attack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/graph"
	"repute/trust/rating"
)

// Mixing attacks put together what each by itself is worth nothing: strangers, raters of next to no weight, and
// one compromised party.
const (
	mixWallets = 50    // of the compromised party
	mixDust    = 0.003 // most weight of a rater that a tiny job buys
)

// Dust is T17: a compromised root, or a rater of full weight, praises an agent and fifty wallets that praise it
// too, and so do n raters of next to no weight.
func (b *Bench) Dust(n int, root bool) Outcome {
	target := b.World.Next()
	name, who := "T17 a compromised rater, 50 wallets and dust", b.fullRaters(1)
	if root {
		name, who = "T17 a compromised root, 50 wallets and dust", b.World.Roots[:1]
	}
	more := b.wallets(who[0], target)
	for i := range mixWallets {
		more = append(more, Rating{target + 1 + i, target, 1, b.World.Now})
	}
	for _, p := range append(b.dust(n), who...) {
		more = append(more, Rating{p, target, 1, b.World.Now})
	}
	return b.outcome(name, n, target, more...)
}

// wallets are the praise of a party for fifty new identities after first.
func (b *Bench) wallets(of, first int) (out []Rating) {
	for i := range mixWallets {
		out = append(out, Rating{of, first + 1 + i, 1, b.World.Now})
	}
	return out
}

// dust are up to n parties with some weight, but next to none, in the order of their numbers. There are fewer where the
// world has fewer.
func (b *Bench) dust(n int) (out []int) {
	e := NewEngine(b.World, b.Params)
	for q := range b.World.Next() {
		if x := e.Weight(q); x > 0 && x <= mixDust && len(out) < n {
			out = append(out, q)
		}
	}
	return out
}

// SlanderByDust is T17 turned around: the same parties say the worst of the twenty best agents.
func (b *Bench) SlanderByDust(n int) Drop {
	clean := NewEngine(b.World, b.Params)
	root, first := b.World.Roots[0], b.World.Next()
	who := append(b.dust(n), root)
	for i := range mixWallets {
		who = append(who, first+1+i)
	}
	var victims []int
	scores := map[int]trust.Points{}
	for _, p := range slices.Sorted(maps.Keys(b.World.Good)) {
		if r := clean.Score(p); r.Status == trust.Rated && !slices.Contains(b.World.Roots, p) {
			victims, scores[p] = append(victims, p), r.Mean
		}
	}
	slices.SortStableFunc(victims, func(x, y int) int { return cmp.Compare(scores[y], scores[x]) })
	slander := func(victim int) (out []Rating) {
		for _, p := range who {
			if !b.rated(p, victim) {
				out = append(out, Rating{p, victim, -1, b.World.Now})
			}
		}
		return out
	}
	engine := NewEngine(b.World.With(b.wallets(root, first)...), b.Params)
	return b.slander("T17 slander by a compromised root, 50 wallets and dust", n, engine,
		victims[:min(20, len(victims))],
		slander)
}

// Shape is how shells praise each other.
type Shape string

// Shapes of shells. In all of them each shell praises the agent, which praises it back.
const (
	Star   Shape = "star"     // and nobody else
	Clique Shape = "clique"   // and all other shells
	Layers Shape = "2 layers" // and as many more, which praise the agent too
)

// Shells is T18: nobody is compromised. n honest raters of full weight each praise one new identity once, for
// honest work, and these praise so many agents. The outcome is that of the first.
func (b *Bench) Shells(n, agents int, shape Shape) Outcome {
	target := b.World.Next()
	first := target + agents
	var more []Rating
	say := func(from, to int) { more = append(more, Rating{from, to, 1, b.World.Now}) }
	for i, p := range b.fullRaters(n) {
		shell := first + i
		say(p, shell)
		for a := range agents {
			say(shell, target+a)
		}
		say(target, shell)
		for j := range n {
			switch {
			case shape == Clique && j != i:
				say(shell, first+j)
			case shape == Layers:
				say(shell, first+n+j)
			}
		}
	}
	for j := range n {
		for a := range agents {
			if shape == Layers {
				say(first+n+j, target+a)
			}
		}
	}
	return b.outcome(fmt.Sprintf("T18 shells of honest praise lift %d agents, %s", agents, shape), n, target, more...)
}

// VouchAge is the weight of a rater that a root praised once, so many half-lives ago, for each of 0 to most.
func VouchAge(p *rating.Params, most int) (weights []float64) {
	at := blockAt(1_800_000_000)
	root, rater := common.Address{1}, common.Address{2}
	for age := range most + 1 {
		r := graph.NewReader(at, []flow.Root{{Address: root, Weight: fixed.One}}, nil, p)
		token := repute.TokenID{1}
		r.Agent(token, 0, rater, common.Address{})
		row := RowOf(1, Rating{Value: 1, Time: at.Time.Unix() - int64(age*p.Evidence.HalfLifeDays*secondsDay)})
		row.Rater = root
		r.Rating(token, row)
		_, weight := r.Build().Walk([]flow.Root{{Address: root, Weight: fixed.One}}, p.Walk).Rater(rater)
		weights = append(weights, float64(weight)/float64(fixed.One))
	}
	return weights
}
