package trust

import (
	"cmp"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
	"repute/trust/flow"
)

// Tenure is a span of blocks in which an agent had one owner and one wallet. Ratings from
// that span are about what they did. The tenures of an agent follow each other.
type Tenure struct {
	From, To uint64 // inclusive
	// Began and Ended are when owner or wallet changed, in Unix seconds: zero when unknown.
	// Ended is also zero while the tenure lasts.
	Began, Ended  int64
	Owner, Wallet common.Address
}

// Action is the first transaction of an owner on behalf of an agent.
type Action struct {
	Block uint64
	By    common.Address
}

// Role is how an identity is related to an agent.
type Role string

// Roles, the closest relation first.
const (
	RoleOwner     Role = "owner"
	RoleWallet    Role = "wallet"
	RoleRegistrar Role = "registrar"
)

// PresentSince returns the first block whose ratings are about the present owner, zero
// without tenures. A transfer between two addresses of one identity changes nothing.
func PresentSince(tenures []Tenure, g *flow.Graph) (block uint64) {
	one := func(a, b common.Address) bool { return g.Identity(a) == g.Identity(b) }
	return presentSince(tenures, one)
}

// presentSince is PresentSince where one reports whether two addresses are one identity. An owner and its verified
// wallet are one, so that a transfer to the wallet is none to somebody else.
func presentSince(tenures []Tenure, one func(a, b common.Address) bool) (block uint64) {
	for i, t := range tenures {
		if i == 0 || t.Owner != tenures[i-1].Wallet && !one(t.Owner, tenures[i-1].Owner) {
			block = t.From
		}
	}
	return block
}

// MovedFrom returns the addresses that had an agent since a block of PresentSince, without the present owner: their
// identity still has it.
func MovedFrom(tenures []Tenure, since uint64) (out []common.Address) {
	for _, t := range tenures {
		if t.From >= since && t.Owner != tenures[len(tenures)-1].Owner && !slices.Contains(out, t.Owner) {
			out = append(out, t.Owner)
		}
	}
	return out
}

// Penalties returns the identities that are accountable for an agent whose score is surely bad. Each is judged by the
// ratings from its own tenures and Guard.TailDays after them, from its beginning on and until another identity uses
// the agent. When the score by all ratings is surely bad, the present owner is penalized as well, provided it
// registered the agent or acted for it. own is that score, without related agents. Receiving a bad agent brings no
// penalty, and giving it away removes none.
//
// An owner that is accountable for nothing is penalized with regard to e.Domains alone: the penalty reaches those of
// its agents that the same domains prove.
func (s *Scorer) Penalties(e Evidence, own *Result) (out []repute.Penalty) {
	if s.p.Guard.FullShare == 0 {
		return nil
	}
	held, alone := s.tenuresByIdentity(&e)
	owner := s.w.Graph().Identity(e.Owner)
	isBounded := len(e.Domains) > 0 && len(e.Tenures) > 0 && !e.isOwnerAmong(held, s.w.Graph())
	if !alone && len(held) > 0 || isBounded {
		e.Rows = slices.Clone(e.Rows)
		slices.SortFunc(e.Rows, inChain)
	}
	for i := range held {
		h, r := &held[i], own
		if !alone {
			r = s.scoreDuring(&e, h)
			if h.identity == owner && h.acted && (r == nil || own.Score < r.Score) {
				r = own
			}
		}
		out = s.penalize(out, &e, h, r, nil)
	}
	if isBounded {
		h := e.latest(s.w.Graph())
		out = s.penalize(out, &e, &h, s.scoreDuring(&e, &h), e.Domains)
	}
	return out
}

// isOwnerAmong reports whether the present owner is among the identities that are accountable for the agent.
func (e *Evidence) isOwnerAmong(held []identityTenures, g *flow.Graph) bool {
	owner := g.Identity(e.Owner)
	return slices.ContainsFunc(held, func(h identityTenures) bool { return h.identity == owner })
}

// penalize adds the penalty of an identity if the score that it is accountable for is surely bad.
func (s *Scorer) penalize(list []repute.Penalty, e *Evidence, h *identityTenures, r *Result,
	domains []string) []repute.Penalty {
	if r == nil || r.High >= s.p.guardBelow() {
		return list
	}
	return append(list, repute.Penalty{TokenID: e.Agent.TokenID, Identity: h.identity, Holder: h.holder, Score: r.Score,
		High: r.High, Tier: r.Tier, Domains: domains})
}

// latest returns the tenures since the present owner has the agent.
func (e *Evidence) latest(g *flow.Graph) identityTenures {
	h := identityTenures{identity: g.Identity(e.Owner), holder: e.Owner}
	since := PresentSince(e.Tenures, g)
	for n, t := range e.Tenures {
		if t.From >= since {
			h.tenures = append(h.tenures, n)
		}
	}
	h.until = make([]uint64, len(h.tenures))
	return h
}

// Penalties are surely bad agents by the identities that answer for them. Where Penalty.Bad is set they MUST be those
// of one agent: Bad counts what concerns it.
type Penalties map[common.Address][]repute.Penalty

// Add adds penalties under their identities. Of several by one agent the first counts.
func (g Penalties) Add(list ...repute.Penalty) {
	for _, x := range list {
		if !slices.ContainsFunc(g[x.Identity], func(y repute.Penalty) bool { return x.TokenID == y.TokenID }) {
			g[x.Identity] = append(g[x.Identity], x)
		}
	}
}

// Related returns that penalty of the identities behind an agent, its owner, its wallet and its registrar, which limits
// it most. An agent's own penalties are left out, and those for domains that do not prove the agent. known tells how
// many agents of an identity are known: see GraphReader.Coverage.
func (g Penalties) Related(e *Evidence, p *Params, known func(identity common.Address) int) (out []RelatedAgent) {
	for _, b := range e.affiliates() {
		identity := e.Weights.Graph().Identity(b.address)
		list := slices.DeleteFunc(slices.Clone(g[identity]), func(x repute.Penalty) bool { return !e.isIn(x.Domains) })
		for _, x := range list {
			if x.TokenID == e.Agent.TokenID {
				continue
			}
			k := RelatedAgent{Agent: e.Agent, Score: x.Score, High: x.High, Tier: x.Tier, Holder: x.Holder, Role: b.role,
				Share: p.Guard.share(max(x.Bad, len(list)), known(identity))}
			k.Agent.TokenID = x.TokenID
			if len(out) == 0 || k.compare(&out[0]) < 0 {
				out = []RelatedAgent{k}
			}
		}
	}
	return out
}

// isIn reports whether a penalty that is bounded to these domains concerns the agent. One without domains concerns
// all agents.
func (e *Evidence) isIn(domains []string) bool {
	return len(domains) == 0 || slices.ContainsFunc(domains, func(d string) bool { return slices.Contains(e.Domains, d) })
}

// share is how far an identity of which so many agents are surely bad limits the others, 0 to 1, where so many are
// known. Bad ones that it gave away count among all of them.
func (g *GuardParams) share(bad, known int) fixed.Fixed {
	return min(fixed.One, fixed.Ratio(int64(bad), int64(max(bad, known))).Div(g.FullShare))
}

// compare orders related agents, the one that takes most from an agent of 100 points first.
func (k *RelatedAgent) compare(other *RelatedAgent) int {
	return cmp.Or(cmp.Compare(other.takes(), k.takes()), cmp.Compare(k.Score, other.Score),
		k.Agent.TokenID.Cmp(&other.Agent.TokenID))
}

// takes is what it takes from an agent of 100 points, but for rounding.
func (k *RelatedAgent) takes() fixed.Fixed { return fixed.Fixed(100_000 - k.Score).Mul(k.Share) }

// IsSurelyBad reports whether a result brings penalties to the identities that are accountable for the agent.
func (p *Params) IsSurelyBad(r *Result) bool { return p.Guard.FullShare > 0 && r.High < p.guardBelow() }

// affiliate is an address that is related to an agent.
type affiliate struct {
	role    Role
	address common.Address
}

// affiliates returns owner, wallet and registrar, as far as they are set. A registrar is left out if it transferred the
// agent at once, or if the present owner acted for the agent since: the agent is then a customer's.
func (e *Evidence) affiliates() (out []affiliate) {
	isCustomers := e.isCustomers()
	for _, a := range []affiliate{{RoleOwner, e.Owner}, {RoleWallet, e.Wallet}, {RoleRegistrar, e.Registrar}} {
		if a.address != (common.Address{}) && !(isCustomers && a.role == RoleRegistrar) {
			out = append(out, a)
		}
	}
	return out
}

// isCustomers reports whether the registrar has nothing to do with the agent any more.
func (e *Evidence) isCustomers() bool {
	g := e.Weights.Graph()
	if _, atOnce := e.firstTransfer(g); atOnce {
		return true
	}
	owner := g.Identity(e.Owner)
	return owner != g.Identity(e.Registrar) && (e.Wallet != (common.Address{}) ||
		slices.ContainsFunc(e.Actions, func(a Action) bool { return g.Identity(a.By) == owner }))
}

// AffiliatedIdentities returns the identities of owner, wallet and registrar. An identity may
// be listed more than once.
func (e *Evidence) AffiliatedIdentities() (out []common.Address) {
	for _, b := range e.affiliates() {
		out = append(out, e.Weights.Graph().Identity(b.address))
	}
	return out
}
