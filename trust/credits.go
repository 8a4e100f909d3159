package trust

import (
	"cmp"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute/trust/fixed"
	"repute/trust/flow"
)

// Credits are what sources give raters as of a block: weight because of facts that are costly to forge, beside the word
// of roots. See package trust/source.
type Credits struct {
	Rules flow.SourceRules
	// A rater's credits weigh fully at so many agents in so many days, and in proportion less at each where it rates
	// more.
	Agents, Days int
	Raters       []RaterCredit
}

// RaterCredit is what one source gives one address.
type RaterCredit struct {
	Rater  common.Address
	Source int // of Rules.Sources
	// Subject is the same for all addresses that the source knows as one person, zero where it does not tell.
	Subject common.Hash
	Weight  fixed.Fixed
	// Unlimited says that the weight is not divided among many agents.
	Unlimited bool
}

// Credited returns the weights with what sources give the raters of the graph beside them. An identity has of each
// source the best credit of its addresses.
func (r *GraphReader) Credited(w *flow.Weights, c *Credits) *flow.Weights {
	t := crediting{c: c, agents: r.recentAgents(w.Graph(), c.Days), held: c.byIdentity(w.Graph()),
		persons: map[person]*shared{}}
	return w.WithCredits(c.Rules, t.credits())
}

// crediting turns credits of addresses into those of identities.
type crediting struct {
	c       *Credits
	agents  map[flow.Node]int // that an identity rated lately
	held    []identityCredit
	persons map[person]*shared
}

// person is a subject of a source, and shared what its identities have in common.
type (
	person struct {
		source  int
		subject common.Hash
	}
	shared struct {
		identities, agents int
		number             uint32 // from 1
	}
)

// identityCredit is a credit by the identity that has it.
type identityCredit struct {
	node flow.Node
	*RaterCredit
}

// byIdentity lists the best credit of each source that the identities of a graph have.
func (c *Credits) byIdentity(g *flow.Graph) (list []identityCredit) {
	for i := range c.Raters {
		if n := g.Node(c.Raters[i].Rater); n != flow.NoNode {
			list = append(list, identityCredit{n, &c.Raters[i]})
		}
	}
	slices.SortFunc(list, func(a, b identityCredit) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.Source, b.Source), cmp.Compare(b.Weight, a.Weight),
			a.Rater.Cmp(b.Rater), a.Subject.Cmp(b.Subject))
	})
	return slices.CompactFunc(list, func(a, b identityCredit) bool { return a.node == b.node && a.Source == b.Source })
}

// credits are those of each identity after its budget and the bounds of classes.
func (t *crediting) credits() map[flow.Node][]flow.Credit {
	t.findPersons()
	out := map[flow.Node][]flow.Credit{}
	for _, h := range t.held {
		credit, n := flow.Credit{Source: h.Source, Weight: h.Weight}, t.agents[h.node]
		if who := t.persons[person{h.Source, h.Subject}]; who != nil && who.identities > 1 {
			credit.Person, n = who.number, who.agents
		}
		if n > t.c.Agents && !h.Unlimited {
			credit.Weight = credit.Weight.Scaled(int64(t.c.Agents), int64(n))
		}
		out[h.node] = append(out[h.node], credit)
	}
	for _, credits := range out {
		t.boundClasses(credits)
	}
	return out
}

// findPersons numbers those whom sources tell, and adds up the agents that their identities rated.
func (t *crediting) findPersons() {
	for _, h := range t.held {
		if h.Subject == (common.Hash{}) {
			continue
		}
		who := t.persons[person{h.Source, h.Subject}]
		if who == nil {
			who = &shared{number: uint32(len(t.persons) + 1)}
			t.persons[person{h.Source, h.Subject}] = who
		}
		who.identities++
		who.agents += t.agents[h.node]
	}
}

// boundClasses limits what an identity has by each class.
func (t *crediting) boundClasses(credits []flow.Credit) {
	rules := &t.c.Rules
	sums := make([]limited, len(rules.Classes))
	for _, c := range credits {
		sums[rules.Sources[c.Source].Class].sum += c.Weight
	}
	for i := range sums {
		sums[i].most = rules.Classes[i].Rater
	}
	for i := range credits {
		credits[i].Weight = sums[rules.Sources[credits[i].Source].Class].of(credits[i].Weight)
	}
}

// recentAgents is how many agents each identity rated within so many days. One that two addresses of an identity rated
// counts twice.
func (r *GraphReader) recentAgents(g *flow.Graph, days int) map[flow.Node]int {
	const minutes = 24 * 60
	counts := make([]int, len(r.tally.raters))
	for _, records := range r.tally.byAgent() {
		last := -1
		for _, s := range records {
			if s.minutes() < days*minutes && s.reason() == 0 && int(s.rater) != last {
				last = int(s.rater)
				counts[s.rater]++
			}
		}
	}
	out := map[flow.Node]int{}
	for address, n := range r.tally.raters {
		if node := g.Node(address); node != flow.NoNode && counts[n] > 0 {
			out[node] += counts[n]
		}
	}
	return out
}
