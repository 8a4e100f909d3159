package trust

import (
	"cmp"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/accountable"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
)

// Role is how an identity is related to an agent.
type Role string

// Roles, the closest relation first.
const (
	RoleOwner     Role = "owner"
	RoleWallet    Role = "wallet"
	RoleRegistrar Role = "registrar"
)

// Penalties returns the penalties of the identities that are accountable for an agent. For each identity the agent is
// scored by the ratings that the identity is accountable for: those of its tenures and of Guard.TailDays after them,
// from the time at which it began to use the agent until another identity does. A penalty follows when this score is
// surely bad. When the score by all ratings is surely bad, the present owner is penalized as well, provided it
// registered the agent or acted for it. own is the score by all ratings, without related agents. Receiving a bad agent
// brings no penalty, and giving it away removes none. The trust engine calls Penalties after each score.
//
// An owner that is not accountable otherwise is penalized with regard to e.Domains only: the penalty limits those of
// its agents that the same domains prove.
func (s *Scorer) Penalties(e Evidence, own *Result) (out []repute.Penalty) {
	if s.p.Guard.FullShare == 0 {
		return nil
	}
	owner := s.w.Graph().Identity(e.Owner)
	if e.isFirstOwners() {
		return s.penalize(nil, &e, &accountable.Identity{Address: owner, Holder: e.Owner}, own, nil)
	}
	held, alone := s.accountable(&e)
	isBounded := len(e.Domains) > 0 && len(e.Tenures) > 0 && !e.isOwnerAmong(held, s.w.Graph())
	if !alone && len(held) > 0 || isBounded {
		e.Rows = slices.Clone(e.Rows)
		slices.SortFunc(e.Rows, inChain)
	}
	for i := range held {
		h, r := &held[i], own
		if !alone {
			r = s.scoreDuring(&e, h)
			if h.Address == owner && h.HasActed() && (r == nil || own.Score < r.Score) {
				r = own
			}
		}
		out = s.penalize(out, &e, h, r, nil)
	}
	if isBounded {
		h := e.history().Present(s.w.Graph())
		out = s.penalize(out, &e, &h, s.scoreDuring(&e, &h), e.Domains)
	}
	return out
}

// isFirstOwners reports whether the agent has had one owner, who registered it and has no other wallet, and nobody
// acted for it or paid for a rating: as most agents. The owner is then accountable for all ratings.
func (e *Evidence) isFirstOwners() bool {
	return len(e.Tenures) == 1 && len(e.Actions) == 0 && e.Packing != nil && e.Owner != (common.Address{}) &&
		e.Registrar == e.Owner && e.Tenures[0].Owner == e.Owner &&
		(e.Tenures[0].Wallet == e.Owner || e.Tenures[0].Wallet == (common.Address{})) && e.Wallet == e.Tenures[0].Wallet
}

// history returns who had the agent.
func (e *Evidence) history() *accountable.History {
	return &accountable.History{Owner: e.Owner, Wallet: e.Wallet, Registrar: e.Registrar, Tenures: e.Tenures,
		Actions: e.Actions}
}

// accountable returns the identities that are accountable for an agent. alone reports whether one had it all the time
// and is accountable for all ratings.
func (s *Scorer) accountable(e *Evidence) (held []accountable.Identity, alone bool) {
	return e.history().Identities(e.Rows, s.w, s.p.Paths.MinWeight)
}

// isOwnerAmong reports whether the present owner is among the identities that are accountable for the agent.
func (e *Evidence) isOwnerAmong(held []accountable.Identity, g *flow.Graph) bool {
	owner := g.Identity(e.Owner)
	return slices.ContainsFunc(held, func(h accountable.Identity) bool { return h.Address == owner })
}

// penalize appends the penalty of an identity if r, the score by the ratings that it is accountable for, is surely bad.
// r may be nil. A penalty with domains is limited to the agents that these domains prove.
func (s *Scorer) penalize(list []repute.Penalty, e *Evidence, h *accountable.Identity, r *Result,
	domains []string) []repute.Penalty {
	if r == nil || r.High >= guardBelow(s.p) {
		return list
	}
	return append(list, repute.Penalty{TokenID: e.Agent.TokenID, Identity: h.Address, Holder: h.Holder, Score: r.Score,
		High: r.High, Tier: r.Tier, Domains: domains})
}

// scoreDuring returns the score of an agent by the ratings that an identity is accountable for, nil when none of them
// is negative.
func (s *Scorer) scoreDuring(e *Evidence, id *accountable.Identity) *Result {
	part := s.evidenceOf(e, id)
	if !slices.ContainsFunc(part.Rows, func(r rating.Row) bool { return blames(s.p, &r, e) }) {
		return nil
	}
	r := s.Score(part)
	return &r
}

// blames reports whether a row of the evidence counts against an agent.
func blames(p *rating.Params, row *rating.Row, e *Evidence) bool {
	rec, reason := p.Read(row, e.Block.Time.Unix(), e.Scales)
	return reason == "" && rec.Value < 0
}

// evidenceOf returns e with only the rows that an identity is accountable for.
func (s *Scorer) evidenceOf(e *Evidence, id *accountable.Identity) Evidence {
	out, h := *e, e.history()
	out.Owner, out.Self, out.Named, out.Since, out.Related = id.Holder, nil, nil, 0, nil
	if s.w.Graph().Identity(e.Owner) == id.Address {
		out.Self, out.Named = slices.Clone(e.Self), e.Named
	}
	out.Self = append(out.Self, id.Addresses(h)...)
	out.Rows = id.Rows(h, e.Rows, int64(s.p.Guard.TailDays)*24*60*60)
	return out
}

// Penalties are surely bad agents by the identities that answer for them. Where Penalty.Bad is set they MUST be those
// of one agent: Bad counts what concerns it.
type Penalties map[common.Address][]repute.Penalty

// Add adds penalties under their identities. A second penalty of an identity by the same agent is ignored.
func (g Penalties) Add(list ...repute.Penalty) {
	for _, x := range list {
		if !slices.ContainsFunc(g[x.Identity], func(y repute.Penalty) bool { return x.TokenID == y.TokenID }) {
			g[x.Identity] = append(g[x.Identity], x)
		}
	}
}

// Related returns the related agent whose penalty limits an agent most, as a list of one; nil when there is none. It
// considers the penalties of the agent's owner, wallet and registrar, except those by the agent itself and those for
// domains that do not prove the agent. known returns how many known agents an identity has: see graph.Reader.Coverage.
func (g Penalties) Related(e *Evidence, p *rating.Params,
	known func(identity common.Address) int) (out []RelatedAgent) {
	for _, b := range e.affiliates() {
		identity := e.Weights.Graph().Identity(b.address)
		list := slices.DeleteFunc(slices.Clone(g[identity]),
			func(x repute.Penalty) bool { return !e.isIn(x.Domains) })
		for _, x := range list {
			if x.TokenID == e.Agent.TokenID {
				continue
			}
			k := RelatedAgent{Agent: e.Agent, Score: x.Score, High: x.High, Tier: x.Tier, Holder: x.Holder,
				Role:  b.role,
				Share: shareOfBad(&p.Guard, max(x.Bad, len(list)), known(identity))}
			k.Agent.TokenID = x.TokenID
			if len(out) == 0 || k.compare(&out[0]) < 0 {
				out = []RelatedAgent{k}
			}
		}
	}
	return out
}

// isIn reports whether a penalty for these domains applies to the agent. A penalty without domains applies to all
// agents of its identity.
func (e *Evidence) isIn(domains []string) bool {
	return len(domains) == 0 || slices.ContainsFunc(domains,
		func(d string) bool { return slices.Contains(e.Domains, d) })
}

// shareOfBad returns how far the other agents of an identity are limited, 0 to 1, when bad of its known agents are
// surely bad. Bad agents that the identity gave away count in both numbers.
func shareOfBad(g *rating.GuardParams, bad, known int) fixed.Fixed {
	return min(fixed.One, fixed.Ratio(int64(bad), int64(max(bad, known))).Div(g.FullShare))
}

// compare orders related agents, with the one that lowers the score of an agent of 100 points most first.
func (k *RelatedAgent) compare(other *RelatedAgent) int {
	return cmp.Or(cmp.Compare(other.takes(), k.takes()), cmp.Compare(k.Score, other.Score),
		k.Agent.TokenID.Cmp(&other.Agent.TokenID))
}

// takes returns by how many thousandths of a point the related agent lowers the score of an agent of 100 points, before
// rounding.
func (k *RelatedAgent) takes() fixed.Fixed { return fixed.Fixed(100_000 - k.Score).Mul(k.Share) }

// IsSurelyBad reports whether a result causes penalties for the identities that are accountable for the agent.
func (r *Result) IsSurelyBad(p *rating.Params) bool {
	return p.Guard.FullShare > 0 && r.High < guardBelow(p)
}

// affiliate is an address that is related to an agent.
type affiliate struct {
	role    Role
	address common.Address
}

// affiliates returns owner, wallet and registrar, except those that are not set. The registrar is left out when it
// transferred the agent at once, or when the present owner has acted for the agent: see isCustomers.
func (e *Evidence) affiliates() (out []affiliate) {
	isCustomers := e.isCustomers()
	for _, a := range []affiliate{{RoleOwner, e.Owner}, {RoleWallet, e.Wallet}, {RoleRegistrar, e.Registrar}} {
		if a.address != (common.Address{}) && !(isCustomers && a.role == RoleRegistrar) {
			out = append(out, a)
		}
	}
	return out
}

// isCustomers reports whether the agent belongs to a customer of its registrar, so that the registrar is no longer
// related to it.
func (e *Evidence) isCustomers() bool {
	g := e.Weights.Graph()
	if _, atOnce := e.history().FirstTransfer(g); atOnce {
		return true
	}
	owner := g.Identity(e.Owner)
	return owner != g.Identity(e.Registrar) && (e.Wallet != (common.Address{}) ||
		slices.ContainsFunc(e.Actions, func(a accountable.Action) bool { return g.Identity(a.By) == owner }))
}

// AffiliatedIdentities returns the identities of owner, wallet and registrar. An identity may
// be listed more than once.
func (e *Evidence) AffiliatedIdentities() (out []common.Address) {
	if e.isFirstOwners() {
		return []common.Address{e.Weights.Graph().Identity(e.Owner)}
	}
	for _, b := range e.affiliates() {
		out = append(out, e.Weights.Graph().Identity(b.address))
	}
	return out
}
