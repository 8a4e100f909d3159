package graph

import (
	"cmp"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute/trust/fixed"
	"repute/trust/flow"
)

// Credits are the weights that sources and reviews of writers give to raters at a block, in addition to the trust that
// flows from roots. The trust engine makes them once per run from the credentials of package trust/source.
type Credits struct {
	Rules flow.SourceRules
	// A rater that rated n agents, more than Agents, in the last Days days has Agents/n of its credits at each of them.
	Agents, Days int
	Raters       []RaterCredit
}

// RaterCredit is the weight that one source gives to one address.
type RaterCredit struct {
	Rater  common.Address
	Source int // index in Rules.Sources
	// Subject is equal for all addresses that the source shows to be of one person, zero where it names none.
	Subject common.Hash
	Weight  fixed.Fixed // 0 to 1
	// Unlimited says that the weight is not divided when the rater rates many agents. It is set for reviewed writers.
	Unlimited bool
}

// Credited returns the weights with the credits of the graph's identities. An identity has, of each source, the best
// credit of its addresses.
func (r *Reader) Credited(w *flow.Weights, c *Credits) *flow.Weights {
	t := crediting{c: c, agents: r.recentAgents(w.Graph(), c.Days), held: c.byIdentity(w.Graph()),
		persons: map[person]*shared{}}
	return w.WithCredits(c.Rules, t.credits())
}

// crediting converts credits of addresses into credits of identities. Credited makes one for each call.
type crediting struct {
	c       *Credits
	agents  map[flow.Node]int // how many agents an identity rated in the last c.Days days
	held    []identityCredit
	persons map[person]*shared // set by findPersons
}

// person identifies a subject of a source. shared has the sums over the identities of one person.
type (
	person struct {
		source  int
		subject common.Hash
	}
	shared struct {
		identities, agents int
		number             uint32 // of the person, from 1
	}
)

// identityCredit is a credit and the identity that has it.
type identityCredit struct {
	node flow.Node
	*RaterCredit
}

// byIdentity returns the best credit of each identity of a graph by each source.
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

// credits returns the credits of each identity, divided among the agents that it rated and limited by class.
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

// findPersons numbers the persons of all credits, and adds up the agents that the identities of each person rated.
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

// boundClasses scales the credits of an identity down to the most that each class gives one rater.
func (t *crediting) boundClasses(credits []flow.Credit) {
	rules := &t.c.Rules
	sums := make([]fixed.Limit, len(rules.Classes))
	for _, c := range credits {
		sums[rules.Sources[c.Source].Class].Sum += c.Weight
	}
	for i := range sums {
		sums[i].Most = rules.Classes[i].Rater
	}
	for i := range credits {
		credits[i].Weight = sums[rules.Sources[credits[i].Source].Class].Of(credits[i].Weight)
	}
}

// recentAgents returns how many agents each identity rated in the last days. An agent that two addresses of an identity
// rated counts twice.
func (r *Reader) recentAgents(g *flow.Graph, days int) map[flow.Node]int {
	const minutes = 24 * 60
	t := &r.tally
	counts := make([]int, t.packed+len(t.raters))
	for _, part := range t.all() {
		for _, records := range part.byAgent() {
			last := -1
			for _, s := range records {
				if s.minutes() < days*minutes && s.reason() == 0 && int(s.rater) != last {
					last = int(s.rater)
					counts[s.rater]++
				}
			}
		}
	}
	out := map[flow.Node]int{}
	add := func(node flow.Node, n int) {
		if node != flow.NoNode && n > 0 {
			out[node] += n
		}
	}
	for address, n := range t.raters {
		add(g.Node(address), counts[t.packed+int(n)])
	}
	for i := range t.packed {
		add(r.packing.Nodes[i], counts[i])
	}
	return out
}
