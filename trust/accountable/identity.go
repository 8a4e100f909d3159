package accountable

import (
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
)

// maxIdentities is how many identities of an agent's history count, the first and the latest ones. The score by the
// ratings of one identity costs as much as a score.
const maxIdentities = 32

// Identity is one identity that is accountable for an agent, with its tenures.
type Identity struct {
	accountable
	// Address is that of the identity, and Holder its first address that had the agent.
	Address, Holder common.Address
	tenures         []int // indices in History.Tenures
	// until has for each tenure the first block whose ratings are not about the identity any more, because another
	// identity began to use the agent; math.MaxUint64 when none did.
	until []uint64
}

// Identities returns the identities that had an agent and are accountable for it, in the order of their first tenures.
// rows are its ratings: those of raters with a weight above least show by their payments who used the agent. alone
// reports whether one identity had the agent all the time and is accountable for all ratings.
func (h *History) Identities(rows []rating.Row, w *flow.Weights, least fixed.Fixed) (out []Identity, alone bool) {
	out = groupTenures(h.Tenures, w.Graph())
	alone = len(out) == 1 && !slices.ContainsFunc(h.Tenures, func(t rating.Tenure) bool { return t.Owner != h.Owner })
	beginnings := h.beginnings(payments{rows, w, least})
	from := h.accountableFrom(w.Graph(), beginnings)
	out = slices.DeleteFunc(out, func(id Identity) bool { _, is := from[id.Address]; return !is })
	if over := len(out) - maxIdentities; over > 0 {
		out = slices.Delete(out, 1, 1+over)
	}
	for i := range out {
		out[i].accountable = from[out[i].Address]
		out[i].end(h, beginnings)
		alone = alone && out[i].from == 0
	}
	return out, alone
}

// Present returns the present owner with its tenures since rating.PresentSince, whatever it is accountable for. No
// rating after one of these tenures counts for it.
func (h *History) Present(g *flow.Graph) Identity {
	id := Identity{Address: g.Identity(h.Owner), Holder: h.Owner}
	since := rating.PresentSince(h.Tenures, g)
	for n, t := range h.Tenures {
		if t.From >= since {
			id.tenures = append(id.tenures, n)
		}
	}
	id.until = make([]uint64, len(id.tenures)) // 0: no rating after a tenure
	return id
}

// HasActed reports whether the identity registered the agent, or made or signed a transaction for it.
func (id *Identity) HasActed() bool { return id.acted }

// Addresses returns the owners and wallets of the identity's tenures, zero where a tenure has no wallet.
func (id *Identity) Addresses(h *History) (out []common.Address) {
	for _, n := range id.tenures {
		out = append(out, h.Tenures[n].Owner, h.Tenures[n].Wallet)
	}
	return out
}

// groupTenures groups tenures by the identities that were owner or wallet, in the order of their first tenures. An
// owner that moves the agent to its own verified wallet still has the agent.
func groupTenures(tenures []rating.Tenure, g *flow.Graph) (out []Identity) {
	at := map[common.Address]int{}
	add := func(a common.Address, n int) {
		identity := g.Identity(a)
		i, known := at[identity]
		if !known {
			i = len(out)
			at[identity] = i
			out = append(out, Identity{Address: identity, Holder: a})
		}
		if list := out[i].tenures; len(list) == 0 || list[len(list)-1] != n {
			out[i].tenures = append(list, n)
		}
	}
	var moved []common.Address // former owners that moved the agent to their wallet
	for n, t := range tenures {
		add(t.Owner, n)
		if t.Wallet != (common.Address{}) {
			add(t.Wallet, n)
		}
		if n > 0 && t.Owner != tenures[n-1].Owner {
			before := tenures[n-1]
			switch {
			case t.Owner == before.Wallet && !slices.Contains(moved, before.Owner):
				moved = append(moved, before.Owner)
			case t.Owner != before.Wallet && g.Identity(t.Owner) != g.Identity(before.Owner):
				moved = nil
			}
		}
		for _, a := range moved {
			add(a, n)
		}
	}
	return out
}

// end sets until. beginnings are the blocks at which identities began to use the agent, in ascending order.
func (id *Identity) end(h *History, beginnings []beginning) {
	id.until = make([]uint64, len(id.tenures))
	next := 0
	for i, n := range id.tenures {
		to := h.Tenures[n].To
		for next < len(beginnings) && (beginnings[next].identity == id.Address || beginnings[next].from <= to) {
			next++
		}
		id.until[i] = math.MaxUint64
		if next < len(beginnings) {
			id.until[i] = beginnings[next].from
		}
	}
}

// Rows returns the rows that the identity is accountable for: those of its tenures, and those of the following tail
// seconds unless another identity has begun to use the agent. Rows MUST be in chain order. Ratings by the agent's
// owner or wallet at that time are left out. A rating with a verified payment is about the tenure of the payment.
func (id *Identity) Rows(h *History, rows []rating.Row, tail int64) (out []rating.Row) {
	now, next := 0, 0 // now: the row's tenure; next: the identity's first tenure that is not over
	for _, row := range rows {
		for now+1 < len(h.Tenures) && h.Tenures[now].To < row.Block {
			now++
		}
		for next < len(id.tenures) && h.Tenures[id.tenures[next]].To < row.Block {
			next++
		}
		t := &h.Tenures[now]
		has := next < len(id.tenures) && id.tenures[next] == now
		isOther := row.Rater != t.Owner && row.Rater != t.Wallet
		isAbout := has || isOther && id.inTail(h, next-1, &row, tail)
		if row.PaidAt > 0 {
			if paid := tenureAt(h.Tenures, row.PaidAt); paid >= 0 && paid != now {
				isAbout = isOther && slices.Contains(id.tenures, paid)
			}
		}
		if isAbout && row.Block >= id.from {
			out = append(out, row)
		}
	}
	return out
}

// inTail reports whether a row is about the identity's n-th tenure although that tenure has ended: the row is at most
// tail seconds later, and no other identity has begun to use the agent. n is an index in id.tenures, -1 for none.
func (id *Identity) inTail(h *History, n int, row *rating.Row, tail int64) bool {
	if n < 0 {
		return false
	}
	t := &h.Tenures[id.tenures[n]]
	return t.Ended > 0 && row.Time <= t.Ended+tail && id.from <= t.To+1 && row.Block < id.until[n]
}
