package trust

import (
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute/trust/flow"
	"repute/trust/rating"
)

// maxTenureIdentities is how many identities an agent's penalties are computed for, the first and the latest ones. The
// computation for one identity costs as much as a score.
const maxTenureIdentities = 32

// identityTenures are the tenures of one identity that is accountable for an agent.
type identityTenures struct {
	accountable
	identity, holder common.Address // holder is the identity's first address that had the agent
	tenures          []int          // indices in Evidence.Tenures
	// until has for each tenure the first block whose ratings are not about the identity any more, because another
	// identity began to use the agent; math.MaxUint64 when none did.
	until []uint64
}

// tenuresByIdentity groups tenures by identity, in the order of their first tenures, and leaves out identities that are
// not accountable for the agent. alone reports whether one identity had the agent all the time and is accountable for
// all ratings.
func (s *Scorer) tenuresByIdentity(e *Evidence) (out []identityTenures, alone bool) {
	out = groupTenures(e.Tenures, s.w.Graph())
	alone = len(out) == 1 && !slices.ContainsFunc(e.Tenures, func(t rating.Tenure) bool { return t.Owner != e.Owner })
	beginnings := s.beginnings(e)
	from := e.accountableFrom(s.w.Graph(), beginnings)
	out = slices.DeleteFunc(out, func(h identityTenures) bool { _, is := from[h.identity]; return !is })
	if over := len(out) - maxTenureIdentities; over > 0 {
		out = slices.Delete(out, 1, 1+over)
	}
	for i := range out {
		out[i].accountable = from[out[i].identity]
		out[i].end(e, beginnings)
		alone = alone && out[i].from == 0
	}
	return out, alone
}

// groupTenures groups tenures by the identities that were owner or wallet, in the order of their first tenures. An
// owner that moves the agent to its own verified wallet still has the agent.
func groupTenures(tenures []rating.Tenure, g *flow.Graph) (out []identityTenures) {
	at := map[common.Address]int{}
	add := func(a common.Address, n int) {
		identity := g.Identity(a)
		i, known := at[identity]
		if !known {
			i = len(out)
			at[identity] = i
			out = append(out, identityTenures{identity: identity, holder: a})
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
func (h *identityTenures) end(e *Evidence, beginnings []beginning) {
	h.until = make([]uint64, len(h.tenures))
	next := 0
	for i, n := range h.tenures {
		to := e.Tenures[n].To
		for next < len(beginnings) && (beginnings[next].identity == h.identity || beginnings[next].from <= to) {
			next++
		}
		h.until[i] = math.MaxUint64
		if next < len(beginnings) {
			h.until[i] = beginnings[next].from
		}
	}
}

// scoreDuring returns the score of an agent by the ratings that an identity is accountable for, nil when none of them
// is negative.
func (s *Scorer) scoreDuring(e *Evidence, h *identityTenures) *Result {
	part := h.evidence(e, s.w.Graph(), int64(s.p.Guard.TailDays)*24*60*60)
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

// evidence returns e with only the rows that the identity is accountable for: those of its tenures, and those of the
// following tail seconds unless another identity has begun to use the agent. Rows MUST be in chain order. Ratings by
// the agent's owner or wallet at that time are left out. A rating with a verified payment is about the tenure of the
// payment.
func (h *identityTenures) evidence(e *Evidence, g *flow.Graph, tail int64) Evidence {
	out := *e
	out.Owner, out.Self, out.Named, out.Since, out.Related, out.Rows = h.holder, nil, nil, 0, nil, nil
	if g.Identity(e.Owner) == h.identity {
		out.Self, out.Named = slices.Clone(e.Self), e.Named
	}
	for _, n := range h.tenures {
		out.Self = append(out.Self, e.Tenures[n].Owner, e.Tenures[n].Wallet)
	}
	now, next := 0, 0 // now: the row's tenure; next: the identity's first tenure that is not over
	for _, row := range e.Rows {
		for now+1 < len(e.Tenures) && e.Tenures[now].To < row.Block {
			now++
		}
		for next < len(h.tenures) && e.Tenures[h.tenures[next]].To < row.Block {
			next++
		}
		t := &e.Tenures[now]
		has := next < len(h.tenures) && h.tenures[next] == now
		isOther := row.Rater != t.Owner && row.Rater != t.Wallet
		isAbout := has || isOther && h.inTail(e, next-1, &row, tail)
		if row.PaidAt > 0 {
			if paid := tenureAt(e.Tenures, row.PaidAt); paid >= 0 && paid != now {
				isAbout = isOther && slices.Contains(h.tenures, paid)
			}
		}
		if isAbout && row.Block >= h.from {
			out.Rows = append(out.Rows, row)
		}
	}
	return out
}

// inTail reports whether a row is about the identity's n-th tenure although that tenure has ended: the row is at most
// tail seconds later, and no other identity has begun to use the agent. n is an index in h.tenures, -1 for none.
func (h *identityTenures) inTail(e *Evidence, n int, row *rating.Row, tail int64) bool {
	if n < 0 {
		return false
	}
	t := &e.Tenures[h.tenures[n]]
	return t.Ended > 0 && row.Time <= t.Ended+tail && h.from <= t.To+1 && row.Block < h.until[n]
}
