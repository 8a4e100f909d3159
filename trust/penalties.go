package trust

import (
	"cmp"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
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

// Action is the first transaction of an address on behalf of an agent.
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
// without tenures.
func PresentSince(tenures []Tenure) (block uint64) {
	for i, t := range tenures {
		if i == 0 || t.Owner != tenures[i-1].Owner {
			block = t.From
		}
	}
	return block
}

// Penalties returns the identities that answer for an agent whose score is surely bad. Each
// is judged by the ratings from its own tenures and Guard.TailDays after them, from its first
// action on. When the score by all ratings is surely bad, the present owner is penalized as
// well, provided it registered the agent or acted for it. own is that score, without related
// agents. Receiving a bad agent brings no penalty, and giving it away removes none.
func (s *Scorer) Penalties(e Evidence, own *Result) (out []repute.Penalty) {
	if s.p.Guard.FullShare == 0 {
		return nil
	}
	held, alone := s.tenuresByIdentity(&e)
	if !alone && len(held) > 0 {
		e.Rows = slices.Clone(e.Rows)
		slices.SortFunc(e.Rows, inChain)
	}
	for i := range held {
		h, r := &held[i], own
		if !alone {
			r = s.scoreDuring(&e, h)
			if h.identity == s.w.Graph().Identity(e.Owner) && (r == nil || own.Score < r.Score) {
				r = own
			}
		}
		if r != nil && r.High < s.p.guardBelow() {
			out = append(out, repute.Penalty{TokenID: e.Agent.TokenID, Identity: h.identity, Holder: h.holder, Score: r.Score,
				High: r.High, Tier: r.Tier})
		}
	}
	return out
}

// Penalties are surely bad agents by the identities that answer for them.
type Penalties map[common.Address][]repute.Penalty

// Add adds penalties under their identities.
func (g Penalties) Add(list ...repute.Penalty) {
	for _, x := range list {
		g[x.Identity] = append(g[x.Identity], x)
	}
}

// Related returns that penalty of the identities behind an agent, its owner, its wallet and its registrar, which limits
// it most. An agent's own penalties are left out. known tells how many agents of an identity are known: see
// GraphReader.KnownAgents.
func (g Penalties) Related(e *Evidence, p *Params, known func(identity common.Address) int) (out []RelatedAgent) {
	for _, b := range e.affiliates() {
		identity := e.Weights.Graph().Identity(b.address)
		for _, x := range g[identity] {
			if x.TokenID == e.Agent.TokenID {
				continue
			}
			k := RelatedAgent{Agent: e.Agent, Score: x.Score, High: x.High, Tier: x.Tier, Holder: x.Holder, Role: b.role,
				Share: p.Guard.share(max(x.Bad, len(g[identity])), known(identity))}
			k.Agent.TokenID = x.TokenID
			if len(out) == 0 || k.compare(&out[0]) < 0 {
				out = []RelatedAgent{k}
			}
		}
	}
	return out
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

// affiliate is an address that is related to an agent.
type affiliate struct {
	role    Role
	address common.Address
}

// affiliates returns owner, wallet and registrar, as far as they are set. A registrar that
// transferred the agent at once is left out.
func (e *Evidence) affiliates() (out []affiliate) {
	_, atOnce := e.firstTransfer(e.Weights.Graph())
	for _, a := range []affiliate{{RoleOwner, e.Owner}, {RoleWallet, e.Wallet}, {RoleRegistrar, e.Registrar}} {
		if a.address != (common.Address{}) && !(atOnce && a.role == RoleRegistrar) {
			out = append(out, a)
		}
	}
	return out
}

// AffiliatedIdentities returns the identities of owner, wallet and registrar. An identity may
// be listed more than once.
func (e *Evidence) AffiliatedIdentities() (out []common.Address) {
	for _, b := range e.affiliates() {
		out = append(out, e.Weights.Graph().Identity(b.address))
	}
	return out
}
