package trust

import (
	"cmp"
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute/store"
)

// Tenure is a span of blocks, and who had an agent then: what was said in it was said of
// what they did. Those of an agent follow each other.
type Tenure struct {
	From, To uint64 // both are part of it
	// Began and Ended are when the agent changed hands, in Unix seconds: zero where that is
	// unknown, and Ended while it lasts.
	Began, Ended  int64
	Owner, Wallet common.Address
}

// Act is the first thing that an owner did with an agent.
type Act struct {
	Block uint64
	By    common.Address
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
		t := Tenure{From: h.From + 1, To: math.MaxUint64, Began: unix(h.Time), Owner: h.Owner, Wallet: h.Wallet}
		if i == 0 {
			t.From = h.From
		}
		if i+1 < len(holders) {
			t.To, t.Ended = holders[i+1].From, unix(holders[i+1].Time)
		}
		out = append(out, t)
	}
	return out
}

// since is the first block of what is said of the present owner, zero without tenures.
func since(tenures []Tenure) (block uint64) {
	for i, t := range tenures {
		if i == 0 || t.Owner != tenures[i-1].Owner {
			block = t.From
		}
	}
	return block
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

// Guilt tells which parties answer for an agent that is surely bad, each by what was said
// while it had the agent or within the tail of days after, from its own first act on. An
// agent that is surely bad by all that was said makes its present owner guilty as well, if he
// registered it or did anything with it. own is that score, without other agents. Whoever
// merely gets a bad agent is not guilty of it, and whoever gives it away stays so.
func (s *Scorer) Guilt(e Evidence, own *Result) (out []store.Guilt) {
	if s.p.Guard.Days == 0 {
		return nil
	}
	held, alone := s.holdings(&e)
	if !alone && len(held) > 0 {
		e.Rows = slices.Clone(e.Rows)
		slices.SortFunc(e.Rows, inChain)
	}
	for i := range held {
		h, r := &held[i], own
		if !alone {
			r = s.meanwhile(&e, h)
			if h.party == s.w.graph.Party(e.Owner) && (r == nil || own.Score < r.Score) {
				r = own
			}
		}
		if r != nil && r.High < s.p.guardBelow() {
			out = append(out, store.Guilt{TokenID: e.Agent.TokenID, Party: h.party, Holder: h.holder, Score: r.Score, High: r.High, Tier: r.Tier})
		}
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

// behind lists who is behind an agent: not who registered it and handed it on at once.
func (e *Evidence) behind() (out []affiliate) {
	_, atOnce := e.handedOn(e.Weights.graph)
	for _, a := range []affiliate{{RoleOwner, e.Owner}, {RoleWallet, e.Wallet}, {RoleRegistrar, e.Registrar}} {
		if a.address != (common.Address{}) && !(atOnce && a.role == RoleRegistrar) {
			out = append(out, a)
		}
	}
	return out
}
