package trust

import (
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute/trust/flow"
)

// handoverSeconds is how long after its registration a transferred agent counts as
// registered for somebody else. Its registrar is then not related to it.
const handoverSeconds = 10 * 60

// maxTenureIdentities bounds the former owners that are judged: the first one and the latest
// ones. Judging one costs as much as a score.
const maxTenureIdentities = 32

// identityTenures are the tenures of one identity.
type identityTenures struct {
	identity, holder common.Address
	tenures          []int  // of Evidence.Tenures
	from             uint64 // the first block whose ratings it answers for
}

// tenuresByIdentity groups tenures by identity, in order of the first one, and leaves out
// identities that do not answer for the agent. alone reports whether one identity had the
// agent all the time.
func (s *Scorer) tenuresByIdentity(e *Evidence) (out []identityTenures, alone bool) {
	at := map[common.Address]int{}
	alone = true
	for n, t := range e.Tenures {
		alone = alone && t.Owner == e.Owner
		for _, a := range []common.Address{t.Owner, t.Wallet} {
			if a == (common.Address{}) {
				continue
			}
			identity := s.w.Graph().Identity(a)
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
	}
	alone = alone && len(out) == 1
	answers := e.accountableFrom(s.w.Graph())
	out = slices.DeleteFunc(out, func(h identityTenures) bool { _, does := answers[h.identity]; return !does })
	for i := range out {
		out[i].from = answers[out[i].identity]
		alone = alone && out[i].from == 0
	}
	if over := len(out) - maxTenureIdentities; over > 0 {
		out = slices.Delete(out, 1, 1+over)
	}
	return out, alone
}

// accountableFrom returns the first block from which each identity answers for an agent: the
// registrar from the start, a wallet and its owner from the signature, others from their
// first action.
func (e *Evidence) accountableFrom(g *flow.Graph) map[common.Address]uint64 {
	out := map[common.Address]uint64{}
	add := func(a common.Address, from uint64) {
		identity := g.Identity(a)
		if was, known := out[identity]; a != (common.Address{}) && (!known || from < was) {
			out[identity] = from
		}
	}
	registrar := g.Identity(e.Registrar)
	handed, atOnce := e.firstTransfer(g)
	switch {
	case !atOnce:
		add(e.Registrar, 0)
	case registrar == g.Identity(e.Owner):
		add(e.Registrar, math.MaxUint64) // got the agent back: answers for the score of all ratings only
	}
	for _, a := range e.Actions {
		if !atOnce || a.Block > handed || g.Identity(a.By) != registrar {
			add(a.By, a.Block+1)
		}
	}
	for i, t := range e.Tenures {
		if t.Wallet == (common.Address{}) || i == 0 && g.Identity(t.Wallet) == registrar {
			continue
		}
		if i == 0 || t.Owner != e.Tenures[i-1].Owner || t.Wallet != e.Tenures[i-1].Wallet {
			add(t.Wallet, t.From)
			add(t.Owner, t.From)
		}
	}
	return out
}

// firstTransfer returns the block in which the registrar's identity first transferred the
// agent to another one, zero for never, and whether that was within handoverSeconds.
func (e *Evidence) firstTransfer(g *flow.Graph) (block uint64, atOnce bool) {
	if e.Registrar == (common.Address{}) {
		return 0, false
	}
	registrar := g.Identity(e.Registrar)
	for i, t := range e.Tenures {
		if g.Identity(t.Owner) == registrar {
			continue
		}
		if i == 0 {
			return t.From, true
		}
		began := e.Tenures[0].Began
		return t.From - 1, began > 0 && t.Began > 0 && t.Began-began <= handoverSeconds
	}
	return 0, false
}

// scoreDuring scores an agent by the ratings that an identity answers for. It returns nil
// when none of them is negative.
func (s *Scorer) scoreDuring(e *Evidence, h *identityTenures) *Result {
	part := h.evidence(e, s.w.Graph(), int64(s.p.Guard.TailDays)*24*60*60)
	if !slices.ContainsFunc(part.Rows, func(r Row) bool { return s.p.blames(&r, e) }) {
		return nil
	}
	r := s.Score(part)
	return &r
}

// blames reports whether a row of the evidence counts against an agent.
func (p *Params) blames(row *Row, e *Evidence) bool {
	rec, reason := p.read(row, e.Block.Time.Unix(), e.Scales)
	return reason == "" && rec.value < 0
}

// evidence returns the part of e that the identity answers for: rows from its tenures and
// from tail seconds after each. Rows MUST be in chain order. Ratings by the agent's owner or
// wallet at that time are left out.
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
		if row.Block >= h.from && (has || h.inTail(e, next-1, &row, tail) && row.Rater != t.Owner && row.Rater != t.Wallet) {
			out.Rows = append(out.Rows, row)
		}
	}
	return out
}

// inTail reports whether a row is less than tail seconds younger than tenure n of the identity.
func (h *identityTenures) inTail(e *Evidence, n int, row *Row, tail int64) bool {
	if n < 0 {
		return false
	}
	t := &e.Tenures[h.tenures[n]]
	return t.Ended > 0 && row.Time <= t.Ended+tail && h.from <= t.To+1
}
