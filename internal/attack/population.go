package attack

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/graph"
	"repute/trust/rating"
	"repute/trust/source"
)

// Marginals are what is published about the raters of a chain, as far as it is. What is not is assumed, which
// docs/explanation/trust.md lists.
type Marginals struct {
	Chain  uint64 `json:"chain"`
	Name   string `json:"name"`
	Agents int    `json:"agents"` // with feedback
	Raters int    `json:"raters"`
	// Coordinated is the share of raters that look coordinated; Honest the share of agents that have feedback by
	// others.
	Coordinated float64 `json:"coordinated"`
	Honest      float64 `json:"honest"`
	// Two and Three are the shares of agents with at least two and three raters, Tail the exponent from three on.
	Two   float64 `json:"two"`
	Three float64 `json:"three"`
	Tail  float64 `json:"tail"`
	// Monitors are addresses that rate by script: they are the raters of agents without honest feedback as often as the
	// coordinated ones, and in addition rate the share Monitored of the others. Listed of them are on the list of
	// reviewed writers.
	Monitors  int     `json:"monitors"`
	Listed    int     `json:"listed"`
	Monitored float64 `json:"monitored"`
}

// ChainMarginals are those of the three chains that were studied. Coordinated and Honest: arXiv 2606.26028, to
// 2026-05-13. Two: AgentCount, July 2026 (single-author agents 54, 89 and 89 %). Base, also Agents, Three, Monitors
// and Monitored: its run of 2026-07-29 (29,570 agents, 18.1 % with three authors; six addresses are authors of 91.3 %
// and the only ones of 87.7 %); Raters: "Reading the Score", to 2026-08-11 (12,569; the 99th percentile of reviewers
// is 10, which gives Tail). BNB Chain: 104 clients (AgentCount). Assumed: agents of BNB Chain and Ethereum, raters of
// Ethereum, Three and Tail of both as on Base in proportion, three monitors as on Celo, and that half of the monitors
// are reviewed.
func ChainMarginals() []Marginals {
	return []Marginals{
		{Chain: 1, Name: "Ethereum", Agents: 2500, Raters: 800, Coordinated: 0.736, Honest: 0.845, Two: 0.11,
			Three: 0.043,
			Tail:  2.4, Monitors: 3, Listed: 2, Monitored: 0.29},
		{Chain: 56, Name: "BNB Chain", Agents: 8000, Raters: 104, Coordinated: 0.592, Honest: 0.277, Two: 0.11,
			Three: 0.043,
			Tail:  2.4, Monitors: 3, Listed: 2, Monitored: 0.29},
		{Chain: 8453, Name: "Base", Agents: 29_570, Raters: 12_569, Coordinated: 0.906, Honest: 0.106, Two: 0.465,
			Three: 0.181, Tail: 2.4, Monitors: 6, Listed: 3, Monitored: 0.29},
	}
}

// Chain is a generated chain: agents and their ratings.
type Chain struct {
	Marginals
	now      int64
	persons  int // honest raters, numbered from 0
	monitors int // the first of them; coordinated raters follow
	about    [][]Rating
}

// Population generates a chain from a seed. Honest raters, who are not coordinated and no monitors, are drawn for each
// agent with a chance that falls with the root of their number, so that a few do much of it.
func (m Marginals) Population(seed uint64) *Chain {
	rng := rand.New(rand.NewPCG(seed, m.Chain))
	c := &Chain{Marginals: m, now: 1_800_000_000}
	c.persons = max(1, int(float64(m.Raters)*(1-m.Coordinated)))
	c.monitors = c.persons
	c.about = make([][]Rating, m.Agents)
	for agent := range c.about {
		c.rate(rng, agent)
	}
	return c
}

// rate draws the ratings of one agent, of which one in twelve is bad, in half a year.
func (c *Chain) rate(rng *rand.Rand, agent int) {
	const days = 180
	n, good := c.count(rng), rng.IntN(12) > 0
	add := func(from int) {
		if slices.ContainsFunc(c.about[agent], func(r Rating) bool { return r.From == from }) {
			return
		}
		value := 0.6 + 0.4*rng.Float64()
		if !good && from < c.persons {
			value = -0.2 - 0.8*rng.Float64()
		}
		c.about[agent] = append(c.about[agent], Rating{from, agent, value, c.now - rng.Int64N(days*secondsDay) - 1})
	}
	monitors := 0
	switch honest := rng.Float64() < c.Honest; {
	case honest:
		for tries := 0; len(c.about[agent]) < min(n, c.persons) && tries < 20*n; tries++ {
			add(int(float64(c.persons) * math.Pow(rng.Float64(), 2)))
		}
		if rng.Float64() < c.Monitored {
			monitors = 1
		}
	case rng.IntN(2) == 0:
		monitors = min(n, c.Monitors)
	default:
		coordinated := c.monitors + c.Monitors
		for range n {
			add(coordinated + rng.IntN(max(1, c.Raters-coordinated)))
		}
	}
	for _, i := range rng.Perm(c.Monitors)[:monitors] {
		add(c.monitors + i)
	}
}

// count draws how many raters an agent has: one, two, or from three on by a power law with the exponent Tail.
func (c *Chain) count(rng *rand.Rand) int {
	switch x := rng.Float64(); {
	case x >= c.Two:
		return 1
	case x >= c.Three:
		return 2
	default:
		return int(3 * math.Pow(x/c.Three, -1/c.Tail))
	}
}

// owner is the party of an agent. No rater has a number as great, so that nobody rates an agent of its own.
func (c *Chain) owner(agent int) int { return 1<<24 + agent }

// weigh passes everything to an engine's reader and returns it with the weights by some roots.
func (c *Chain) weigh(p *rating.Params, roots []int) (*graph.Reader, *flow.Weights) {
	var list []flow.Root
	for _, r := range roots {
		list = append(list, flow.Root{Address: Address(r), Weight: fixed.One})
	}
	reader := graph.NewReader(blockAt(c.now), list, nil, p)
	for agent, ratings := range c.about {
		token := repute.TokenID{uint64(agent)}
		reader.Agent(token, 0, Address(c.owner(agent)), common.Address{})
		for _, r := range ratings {
			reader.Rating(token, RowOf(agent, r))
		}
	}
	return reader, reader.Build().Walk(list, p.Walk)
}

// Coverage is what share of a chain's agents is rated where so many honest raters hold something: G1 to G3.
type Coverage struct {
	Share   float64 `json:"holders"` // of honest raters
	Writers bool    `json:"writers"` // reviewed writers are roots
	// Raters with weight, of all; and of their records.
	Raters  float64 `json:"raters"`
	Records float64 `json:"records"`
	// Of agents with three or more honest reviewers: rated. Of agents with any: at least thin. Listed writers are such
	// reviewers where they are roots.
	Rated float64 `json:"rated"`
	Thin  float64 `json:"thin"`
	// The same of persons alone, whatever writers are listed.
	PersonsRated float64 `json:"persons_rated"`
	PersonsThin  float64 `json:"persons_thin"`
	// Heard of agents with any honest reviewer have one who holds something or is a root: no rule makes more of them
	// thin.
	Heard   float64 `json:"heard"`
	Several float64 `json:"several"` // of those with three or more, two
	Agents  int     `json:"agents"`  // with any honest reviewer
	Three   int     `json:"three"`   // and with three or more
}

// Cover draws holders among the honest raters of a chain, each with one credential of the sources of class A that count
// there, and averages so many draws.
func (c *Chain) Cover(p *rating.Params, policy *source.Policy, share float64, writers bool, draws int) (out Coverage) {
	var roots []int
	for i := range c.Listed {
		if writers {
			roots = append(roots, c.monitors+i)
		}
	}
	reader, weights := c.weigh(p, roots)
	s := NewSources(policy)
	var ids []string
	for _, x := range policy.On(c.Chain) {
		if x.Class == source.ClassA {
			ids = append(ids, x.ID)
		}
	}
	for draw := range draws {
		rng := rand.New(rand.NewPCG(uint64(draw), uint64(share*1000)))
		var held []holding
		for _, person := range rng.Perm(c.persons)[:int(math.Round(share*float64(c.persons)))] {
			held = append(held, holding{party: person, source: ids[rng.IntN(len(ids))]})
		}
		one := c.cover(p, reader.Credited(weights, s.credits(held)), roots)
		out.add(one, 1/float64(draws))
	}
	out.Share, out.Writers = share, writers
	return out
}

// add adds a part of a coverage. The numbers of agents are the same in every draw.
func (c *Coverage) add(x Coverage, part float64) {
	for _, f := range [][2]*float64{{&c.Raters, &x.Raters}, {&c.Records, &x.Records}, {&c.Rated, &x.Rated},
		{&c.Thin, &x.Thin}, {&c.PersonsRated, &x.PersonsRated}, {&c.PersonsThin, &x.PersonsThin}, {&c.Heard, &x.Heard},
		{&c.Several, &x.Several}} {
		*f[0] += part * *f[1]
	}
	c.Agents, c.Three = x.Agents, x.Three
}

// cover scores all agents once.
func (c *Chain) cover(p *rating.Params, w *flow.Weights, roots []int) (out Coverage) {
	scorer := trust.NewScorer(w, p)
	spoke, counted := map[int]bool{}, map[int]bool{}
	var records, persons, personsThree int
	for agent, ratings := range c.about {
		e := trust.Evidence{Agent: repute.AgentID{ChainID: c.Chain}, Owner: Address(c.owner(agent)), Weights: w,
			Block: blockAt(c.now)}
		var own, honest, heard float64
		for _, r := range ratings {
			e.Rows = append(e.Rows, RowOf(agent, r))
			node := w.Graph().Node(Address(r.From))
			counts := w.Counts(node, p.Paths.MinWeight)
			if records++; counts {
				counted[r.From] = true
				out.Records++
			}
			spoke[r.From] = true
			if r.From < c.persons {
				own++
			}
			if r.From < c.persons || slices.Contains(roots, r.From) {
				honest++
				if counts {
					heard++
				}
			}
		}
		r := scorer.Score(e)
		out.count(&r, honest, heard)
		if own > 0 {
			persons++
			out.PersonsThin += one(r.Status != trust.Unrated)
		}
		if own > 2 {
			personsThree++
			out.PersonsRated += one(r.Status == trust.Rated)
		}
	}
	share := func(x *float64, of int) { *x /= float64(max(1, of)) }
	share(&out.Thin, out.Agents)
	share(&out.Heard, out.Agents)
	share(&out.Rated, out.Three)
	share(&out.Several, out.Three)
	share(&out.PersonsThin, persons)
	share(&out.PersonsRated, personsThree)
	share(&out.Records, records)
	out.Raters = float64(len(counted)) / float64(len(spoke))
	return out
}

// count adds an agent with so many honest reviewers, of which so many have weight.
func (c *Coverage) count(r *trust.Result, honest, heard float64) {
	if honest > 0 {
		c.Agents++
		c.Heard += one(heard > 0)
		c.Thin += one(r.Status != trust.Unrated)
	}
	if honest > 2 {
		c.Three++
		c.Several += one(heard > 1)
		c.Rated += one(r.Status == trust.Rated)
	}
}

// one is 1 for true.
func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
