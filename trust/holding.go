package trust

import (
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// aMoment is how many seconds after the registration an agent counts as handed on at once: whoever
// registers agents for others is not behind them, nor they behind him.
const aMoment = 10 * 60

// mostHoldings is how many parties that had an agent are looked at: who registered it first,
// then the latest. Each costs as much as a score.
const mostHoldings = 32

// holding is when a party had an agent.
type holding struct {
	party, holder common.Address
	tenures       []int  // of Evidence.Tenures
	from          uint64 // it answers for what is said from this block on
}

// holdings lists who had an agent and answers for it, the first of them first, and tells
// whether nobody else ever had it.
func (s *Scorer) holdings(e *Evidence) (out []holding, alone bool) {
	at := map[common.Address]int{}
	alone = true
	for n, t := range e.Tenures {
		alone = alone && t.Owner == e.Owner
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
	alone = alone && len(out) == 1
	answers := e.answers(s.w.graph)
	out = slices.DeleteFunc(out, func(h holding) bool { _, does := answers[h.party]; return !does })
	for i := range out {
		out[i].from = answers[out[i].party]
		alone = alone && out[i].from == 0
	}
	if over := len(out) - mostHoldings; over > 0 {
		out = slices.Delete(out, 1, 1+over)
	}
	return out, alone
}

// answers tells from which block on parties answer for an agent: whoever registered it from
// the start, others from their first act on. A wallet signed for what it is.
func (e *Evidence) answers(g *Graph) map[common.Address]uint64 {
	out := map[common.Address]uint64{}
	add := func(a common.Address, from uint64) {
		party := g.Party(a)
		if was, known := out[party]; a != (common.Address{}) && (!known || from < was) {
			out[party] = from
		}
	}
	registrar := g.Party(e.Registrar)
	handed, atOnce := e.handedOn(g)
	switch {
	case !atOnce:
		add(e.Registrar, 0)
	case registrar == g.Party(e.Owner):
		add(e.Registrar, math.MaxUint64) // has it again: for all that is said, and no part of it
	}
	for _, a := range e.Acts {
		if !atOnce || a.Block > handed || g.Party(a.By) != registrar {
			add(a.By, a.Block+1)
		}
	}
	for i, t := range e.Tenures {
		if t.Wallet == (common.Address{}) || i == 0 && g.Party(t.Wallet) == registrar {
			continue
		}
		if i == 0 || t.Owner != e.Tenures[i-1].Owner || t.Wallet != e.Tenures[i-1].Wallet {
			add(t.Wallet, t.From)
			add(t.Owner, t.From)
		}
	}
	return out
}

// handedOn is the block in which whoever registered an agent first gave it to another party,
// zero for never, and whether that was at once.
func (e *Evidence) handedOn(g *Graph) (block uint64, atOnce bool) {
	if e.Registrar == (common.Address{}) {
		return 0, false
	}
	registrar := g.Party(e.Registrar)
	for i, t := range e.Tenures {
		if g.Party(t.Owner) == registrar {
			continue
		}
		if i == 0 {
			return t.From, true
		}
		began := e.Tenures[0].Began
		return t.From - 1, began > 0 && t.Began > 0 && t.Began-began <= aMoment
	}
	return 0, false
}

// meanwhile scores an agent by what a party answers for; nil when nothing of it is bad.
func (s *Scorer) meanwhile(e *Evidence, h *holding) *Result {
	part := h.evidence(e, s.w.graph, int64(s.p.Guard.TailDays)*24*60*60)
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

// evidence is what a party answers for, of rows in the order of the chain, with a tail of so
// many seconds. The words of those who had the agent at the same time, or when they said
// them, do not count.
func (h *holding) evidence(e *Evidence, g *Graph, tail int64) Evidence {
	out := *e
	out.Owner, out.Self, out.Named, out.Held, out.Since, out.Kin, out.Rows = h.holder, nil, nil, 0, 0, nil, nil
	if g.Party(e.Owner) == h.party {
		out.Self, out.Named = slices.Clone(e.Self), e.Named
	}
	for _, n := range h.tenures {
		out.Self = append(out.Self, e.Tenures[n].Owner, e.Tenures[n].Wallet)
	}
	now, next := 0, 0 // of all tenures that of the row, of the party's the first that is not over
	for _, row := range e.Rows {
		for now+1 < len(e.Tenures) && e.Tenures[now].To < row.Block {
			now++
		}
		for next < len(h.tenures) && e.Tenures[h.tenures[next]].To < row.Block {
			next++
		}
		t := &e.Tenures[now]
		has := next < len(h.tenures) && h.tenures[next] == now
		if row.Block >= h.from && (has || h.trails(e, next-1, &row, tail) && row.Rater != t.Owner && row.Rater != t.Wallet) {
			out.Rows = append(out.Rows, row)
		}
	}
	return out
}

// trails tells whether a row was said so soon after a tenure of the party that it is of it.
func (h *holding) trails(e *Evidence, n int, row *Row, tail int64) bool {
	if n < 0 {
		return false
	}
	t := &e.Tenures[h.tenures[n]]
	return t.Ended > 0 && row.Time <= t.Ended+tail && h.from <= t.To+1
}
