package trust

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/ethereum/go-ethereum/common"

	"repute/store"
)

// Tenure is a span of blocks, and who had an agent then: what was said in it was said of
// what they did. Those of an agent follow each other.
type Tenure struct {
	From, To      uint64 // both are part of it
	Owner, Wallet common.Address
}

// Role is how a party is behind an agent.
type Role string

// Roles, the closest first.
const (
	RoleOwner     Role = "owner"
	RoleWallet    Role = "wallet"
	RoleRegistrar Role = "registrar"
)

// tenuresOf turns holders into tenures. What is said in the block in which an agent
// changes hands is said of whoever gave it away: nobody can have done anything with it since.
func tenuresOf(holders []store.TrustHolder) (out []Tenure) {
	for i, h := range holders {
		t := Tenure{h.From + 1, math.MaxUint64, h.Owner, h.Wallet}
		if i == 0 {
			t.From = h.From
		}
		if i+1 < len(holders) {
			t.To = holders[i+1].From
		}
		out = append(out, t)
	}
	return out
}

// Party is the name of an address's identity, itself where the graph does not know it.
func (g *Graph) Party(a common.Address) common.Address {
	if n := g.Node(a); n != NoNode {
		return g.names[n]
	}
	return a
}

// Members are the addresses of a party, given by any of them.
func (g *Graph) Members(a common.Address) []common.Address {
	n := g.Node(a)
	if n == NoNode {
		return []common.Address{a}
	}
	return append([]common.Address{g.names[n]}, g.aliases[n]...)
}

// Guilt tells which parties had an agent when it was surely bad, by what was said while
// they had it alone. own is its score without other agents. Whoever merely received a bad
// agent is not guilty of it, and whoever gave it away stays so.
func (s *Scorer) Guilt(e Evidence, own *Result) (out []store.Guilt) {
	if s.p.Guard.Days == 0 {
		return nil
	}
	held := s.holdings(&e)
	throughout := !slices.ContainsFunc(e.Tenures, func(t Tenure) bool { return t.Owner != e.Owner }) && len(held) == 1
	if !throughout {
		e.Rows = slices.Clone(e.Rows)
		slices.SortFunc(e.Rows, inChain)
	}
	for i := range held {
		r := own
		if !throughout {
			if r = s.meanwhile(&e, &held[i]); r == nil {
				continue
			}
		}
		if r.High < s.p.guardBelow() {
			out = append(out, store.Guilt{TokenID: e.Agent.TokenID, Party: held[i].party, Holder: held[i].holder,
				Score: r.Score, High: r.High, Tier: r.Tier})
		}
	}
	return out
}

// meanwhile scores an agent by what was said while a party had it; nil when nobody
// said anything bad.
func (s *Scorer) meanwhile(e *Evidence, h *holding) *Result {
	part := h.evidence(e, s.w.graph)
	if !slices.ContainsFunc(part.Rows, func(r Row) bool { return s.p.blames(&r, e.Block.Time.Unix()) }) {
		return nil
	}
	r := s.Score(part)
	return &r
}

// blames tells whether a row counts against an agent.
func (p *Params) blames(row *Row, at int64) bool {
	said, reason := p.read(row, at)
	return reason == "" && said.value < 0
}

// holding is when a party had an agent.
type holding struct {
	party, holder common.Address
	tenures       []int // of Evidence.Tenures
}

// holdings lists who had an agent, the first of them first.
func (s *Scorer) holdings(e *Evidence) (out []holding) {
	at := map[common.Address]int{}
	for n, t := range e.Tenures {
		for _, a := range []common.Address{t.Owner, t.Wallet} {
			if a == (common.Address{}) {
				continue
			}
			party := s.w.graph.Party(a)
			i, known := at[party]
			if !known {
				i = len(out)
				at[party] = i
				out = append(out, holding{party: party, holder: a})
			}
			if list := out[i].tenures; len(list) == 0 || list[len(list)-1] != n {
				out[i].tenures = append(list, n)
			}
		}
	}
	return out
}

// evidence is what was said while the party had the agent, of rows in the order of the
// chain. The words of those who had it at the same time do not count.
func (h *holding) evidence(e *Evidence, g *Graph) Evidence {
	out := *e
	out.Owner, out.Self, out.Named, out.Held, out.Kin, out.Rows = h.holder, nil, nil, 0, nil, nil
	if g.Party(e.Owner) == h.party {
		out.Self, out.Named = slices.Clone(e.Self), e.Named
	}
	from := func(block uint64) int {
		return sort.Search(len(e.Rows), func(i int) bool { return e.Rows[i].Block >= block })
	}
	for _, n := range h.tenures {
		t := &e.Tenures[n]
		out.Self = append(out.Self, t.Owner, t.Wallet)
		end := len(e.Rows)
		if t.To < math.MaxUint64 {
			end = from(t.To + 1)
		}
		out.Rows = append(out.Rows, e.Rows[from(t.From):end]...)
	}
	return out
}

// Guilty are surely bad agents by the parties that had them then.
type Guilty map[common.Address][]store.Guilt

// Add takes down what parties are guilty of.
func (g Guilty) Add(list ...store.Guilt) {
	for _, x := range list {
		g[x.Party] = append(g[x.Party], x)
	}
}

// Kin is the worst agent by which a party is guilty that is behind an agent: as its
// owner, its wallet or whoever registered it. No agent is its own kin.
func (g Guilty) Kin(e *Evidence) (out []Kin) {
	for _, b := range e.behind() {
		for _, x := range g[e.Weights.graph.Party(b.address)] {
			if x.TokenID == e.Agent.TokenID {
				continue
			}
			k := Kin{Agent: e.Agent, Score: x.Score, High: x.High, Tier: x.Tier, Holder: x.Holder, Role: b.role}
			k.Agent.TokenID = x.TokenID
			if len(out) == 0 || k.compare(&out[0]) < 0 {
				out = []Kin{k}
			}
		}
	}
	return out
}

// compare orders kin by how bad they are.
func (k *Kin) compare(other *Kin) int {
	return cmp.Or(cmp.Compare(k.Score, other.Score), k.Agent.TokenID.Cmp(&other.Agent.TokenID))
}

// affiliate is an address behind an agent.
type affiliate struct {
	role    Role
	address common.Address
}

// behind lists who is answerable for an agent.
func (e *Evidence) behind() (out []affiliate) {
	for _, a := range []affiliate{{RoleOwner, e.Owner}, {RoleWallet, e.Wallet}, {RoleRegistrar, e.Registrar}} {
		if a.address != (common.Address{}) {
			out = append(out, a)
		}
	}
	return out
}
