// Package accountable says which identities answer for an agent, and for which of its ratings: who registered it, had
// it, signed to be its wallet, or was paid for its work; since when, and until when nobody else used the agent. It
// decides nothing about scores: package trust scores an agent by these ratings and derives penalties.
//
// The rules keep two attacks apart. An owner MUST NOT be able to leave bad ratings behind by moving the agent to
// another address: so an identity answers for ratings some days beyond its tenure, until another identity begins to use
// the agent. And nobody may be charged with a bad agent by being given it: so receiving an agent alone makes nobody
// accountable. An identity begins by registering the agent, by a transaction for it (ReadActions), by signing to be its
// wallet, or by payments of several raters with weight. A registrar that hands an agent over at once registered it for
// a customer and does not answer for it.
//
// History has what is known of an agent's owners. Identities returns who is accountable, each with its tenures, and
// Identity.Rows the ratings that one of them answers for. Addresses are compared by the identities of a flow.Graph, so
// a transfer between addresses of one party changes nothing. The package is pure.
package accountable

import (
	"cmp"
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
)

// leastPayers is how many raters with weight must have paid the owner of an agent before the owner counts as using
// it. One payer is not enough, because anybody can send money to any address. More would let an owner with few
// customers escape.
const leastPayers = 2

// History is who had an agent, and who acted for it. What is unknown is zero.
type History struct {
	// Owner and Wallet are the present ones, Registrar is the address that registered the agent.
	Owner, Wallet, Registrar common.Address
	// Tenures are the owners and wallets over time, Actions the first action of each ownership.
	Tenures []rating.Tenure
	Actions []Action
}

// Action is the first transaction by which an owner acted for an agent: see ReadActions. An identity that acted began
// to use the agent at that block at the latest.
type Action struct {
	Block uint64
	By    common.Address
}

// OwnerEvent is an event of the Identity Registry about one agent. Block and Kind are always set, To of transfers and
// registrations, From of transfers.
type OwnerEvent struct {
	Block    uint64
	Kind     repute.EventKind
	From, To common.Address
}

// ReadActions returns who registered an agent, zero when unknown, and the first action of each ownership. Events MUST
// be in chain order. A change of the URI or of metadata is an action of the owner at that time; changes of the wallet
// are left to the caller, because the registry makes one at each transfer. A transfer is no action of the receiver,
// and an approval none of the owner: a listing on a market needs one, and does not show that the owner uses the agent.
func ReadActions(events []OwnerEvent) (registrar common.Address, actions []Action) {
	var zero, owner common.Address
	acted := false
	for _, e := range events {
		switch e.Kind {
		case repute.KindTransfer:
			owner, acted = e.To, false
		case repute.KindRegistered:
			if owner == zero {
				owner = e.To
			}
		case repute.KindURIUpdated, repute.KindMetadataSet:
			if owner != zero && !acted {
				actions, acted = append(actions, Action{e.Block, owner}), true
			}
		}
		isMint := e.Kind == repute.KindTransfer && e.From == zero || e.Kind == repute.KindRegistered
		if registrar == zero && isMint {
			registrar = owner
		}
	}
	return registrar, actions
}

// beginning is when an identity began to use an agent.
type beginning struct {
	identity common.Address
	from     uint64 // the first block whose ratings it is accountable for
	isPaid   bool   // known from payments alone
}

// beginnings returns when identities began to use the agent, the earliest first: an owner by its first transaction
// for the agent or by the first rating of a customer who paid it, a wallet and its owner by the wallet's signature.
// What a registrar does before it transfers the agent at once is left out.
func (h *History) beginnings(p payments) (out []beginning) {
	g := p.w.Graph()
	registrar := g.Identity(h.Registrar)
	handed, atOnce := h.FirstTransfer(g)
	for _, a := range h.Actions {
		if by := g.Identity(a.By); !atOnce || a.Block > handed || by != registrar {
			out = append(out, beginning{by, a.Block + 1, false})
		}
	}
	for i, t := range h.Tenures {
		if t.Wallet == (common.Address{}) || i == 0 && g.Identity(t.Wallet) == registrar {
			continue
		}
		out = append(out, beginning{g.Identity(t.Wallet), t.From, false}, beginning{g.Identity(t.Owner), t.From, false})
	}
	out = append(out, h.paidOwners(p)...)
	slices.SortStableFunc(out, func(a, b beginning) int { return cmp.Compare(a.from, b.from) })
	return out
}

// payments are the ratings of an agent that may claim payments, and what decides whether their raters count: a weight
// above least.
type payments struct {
	rows  []rating.Row
	w     *flow.Weights
	least fixed.Fixed
}

// paidOwners returns the identities that customers paid for the agent's work. A payment counts if it reached an address
// of the identity that owned the agent then, and comes from a rater with weight. At least leastPayers raters MUST have
// paid.
func (h *History) paidOwners(from payments) (out []beginning) {
	g := from.w.Graph()
	type payers struct {
		first uint64
		nodes []flow.Node
	}
	paid := map[common.Address]*payers{}
	for i := range from.rows {
		p := &from.rows[i]
		if p.PaidAt == 0 || !from.w.Counts(g.Node(p.Rater), from.least) {
			continue
		}
		rater, owner, n := g.Node(p.Rater), g.Identity(p.Payee), tenureAt(h.Tenures, p.PaidAt)
		if n < 0 || owner == g.Identity(p.Rater) ||
			owner != g.Identity(h.Tenures[n].Owner) && owner != g.Identity(h.Tenures[n].Wallet) {
			continue
		}
		if paid[owner] == nil {
			paid[owner] = &payers{first: math.MaxUint64}
		}
		by := paid[owner]
		by.first = min(by.first, p.Block)
		if !slices.Contains(by.nodes, rater) && len(by.nodes) < leastPayers {
			by.nodes = append(by.nodes, rater)
		}
	}
	for identity, by := range paid {
		if len(by.nodes) >= leastPayers {
			out = append(out, beginning{identity, by.first, true})
		}
	}
	slices.SortFunc(out, func(a, b beginning) int { return a.identity.Cmp(b.identity) })
	return out
}

// tenureAt returns the index of the tenure at a time in Unix seconds, -1 when unknown.
func tenureAt(tenures []rating.Tenure, at int64) int {
	n, found := slices.BinarySearchFunc(tenures, at,
		func(t rating.Tenure, at int64) int { return cmp.Compare(t.Began, at) })
	if found {
		return n
	}
	if n == 0 || tenures[n-1].Began == 0 {
		return -1
	}
	return n - 1
}

// accountable is since when an identity is accountable for an agent.
type accountable struct {
	from  uint64 // the first block whose ratings it is accountable for
	acted bool   // it registered the agent, or made or signed a transaction for it
}

// accountableFrom returns since when each identity is accountable for an agent: the registrar from the start, unless
// it transferred the agent at once, and others from their beginning.
func (h *History) accountableFrom(g *flow.Graph, beginnings []beginning) map[common.Address]accountable {
	out := map[common.Address]accountable{}
	registrar := g.Identity(h.Registrar)
	switch _, atOnce := h.FirstTransfer(g); {
	case h.Registrar == (common.Address{}):
	case !atOnce:
		out[registrar] = accountable{0, true}
	case registrar == g.Identity(h.Owner): // got the agent back: accountable for the score by all ratings only
		out[registrar] = accountable{math.MaxUint64, true}
	}
	for _, b := range beginnings {
		was, known := out[b.identity]
		if !known {
			was.from = math.MaxUint64
		}
		out[b.identity] = accountable{min(was.from, b.from), was.acted || !b.isPaid}
	}
	return out
}

// FirstTransfer returns the block in which the registrar's identity first transferred the
// agent to another one, zero for never, and whether that was within rating.HandoverSeconds.
func (h *History) FirstTransfer(g *flow.Graph) (block uint64, atOnce bool) {
	if h.Registrar == (common.Address{}) {
		return 0, false
	}
	registrar := g.Identity(h.Registrar)
	for i, t := range h.Tenures {
		if g.Identity(t.Owner) == registrar {
			continue
		}
		if i == 0 {
			return t.From, true
		}
		return t.From - 1, rating.IsHandover(h.Tenures[0].Began, t.Began)
	}
	return 0, false
}
