package trust

import (
	"math"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/trust/accountable"
	"repute/trust/rating"
)

// Addresses of a history, by number. 900 registers the agent, 905 is linked to it, 906 its wallet at times. 910 gets
// the agent at times and never acts for it.
var (
	accountables = []int{900, 905, 906}
	holders      = []int{900, 901, 902, 905, 910}
)

// history is a random history of an agent, in which each step is a block and lasts an hour.
type history struct {
	events  []accountable.OwnerEvent
	tenures []rating.Tenure
	rows    []rating.Row
	owner   int
	block   uint64
	acts    []uint64     // blocks in which neither 900 nor its other addresses acted
	gone    uint64       // the block in which these gave the agent away, 0 while they have it
	theirs  []rating.Row // ratings that these are accountable for
}

// time is that of the present block.
func (h *history) time() int64 { return testTime - 6*testDay + int64(h.block)*3600 }

// event is an event by which the owner names another address.
func (h *history) event(kind repute.EventKind, to int) accountable.OwnerEvent {
	return accountable.OwnerEvent{Block: h.block, Kind: kind, From: address(h.owner), To: address(to)}
}

// begin begins a tenure after the present block.
func (h *history) begin(owner, wallet int) {
	t := rating.Tenure{From: h.block + 1, To: math.MaxUint64, Began: h.time(), Owner: address(owner)}
	if wallet > 0 {
		t.Wallet = address(wallet)
	}
	if n := len(h.tenures); n > 0 {
		h.tenures[n-1].To, h.tenures[n-1].Ended = h.block, h.time()
	}
	h.tenures = append(h.tenures, t)
	h.owner = owner
}

// transfer gives the agent to an address.
func (h *history) transfer(to int) {
	had, has := slices.Contains(accountables, h.owner), slices.Contains(accountables, to)
	switch {
	case had && !has:
		h.gone = h.block
	case has:
		h.gone = 0
	}
	h.events = append(h.events, h.event(repute.KindTransfer, to))
	h.begin(to, 0)
}

// act lets the owner change the agent's URI.
func (h *history) act() {
	if h.owner == 910 {
		return
	}
	h.events = append(h.events, accountable.OwnerEvent{Block: h.block, Kind: repute.KindURIUpdated})
	if !slices.Contains(accountables, h.owner) {
		h.acts = append(h.acts, h.block)
	}
}

// rate lets the next root condemn the agent.
func (h *history) rate() {
	r := row(len(h.rows), int64(len(h.rows)), 0)
	r.Block, r.Time = h.block, h.time()
	h.rows = append(h.rows, r)
	used := func(block uint64) bool { return h.gone <= block && block < h.block }
	if h.gone == 0 || !slices.ContainsFunc(h.acts, used) {
		h.theirs = append(h.theirs, r)
	}
}

// step does one thing in a new block.
func (h *history) step(t *rapid.T, othersAct bool) {
	h.block++
	isTheirs := slices.Contains(accountables, h.owner)
	switch what := rapid.SampledFrom([]string{"transfer", "move", "approve", "act", "rate", "rate"}).Draw(t, "step"); {
	case what == "transfer":
		if to := rapid.SampledFrom(holders).Draw(t, "to"); to != h.owner {
			h.transfer(to)
		}
	case what == "move" && isTheirs && h.owner != 906:
		h.begin(h.owner, 906)
		h.block++
		h.transfer(906)
	case what == "approve":
		h.events = append(h.events, h.event(repute.KindApproval, 950), h.event(repute.KindApprovalForAll, 951))
	case what == "act" && (isTheirs || othersAct):
		h.act()
	case what == "rate" && len(h.rows) < 20:
		h.rate()
	}
}

// Giving a bad agent away, spreading it over owners, taking it back and moving it to an own address neither free the
// other agents of who did so, nor limit those of an owner that never acted. When others act for the agent, what was
// said before remains.
func TestPenaltiesOfRandomHistories(t *testing.T) {
	limits := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.builder.Link(w.builder.Add(address(900)), w.builder.Add(address(905)))
		othersAct := rapid.Bool().Draw(t, "others act")
		h := &history{events: []accountable.OwnerEvent{{Kind: repute.KindRegistered, To: address(900)}}, owner: 900}
		h.begin(900, 0)
		h.tenures[0].From = 0
		for range rapid.IntRange(20, 60).Draw(t, "steps") {
			h.step(t, othersAct)
		}
		for h.block++; len(h.rows) < 20; h.block++ {
			h.rate()
		}
		e := w.evidence(h.rows...)
		e.Owner, e.Tenures = address(h.owner), h.tenures
		e.Registrar, e.Actions = accountable.ReadActions(h.events)
		e.Since = rating.PresentSince(e.Tenures, w.walk().Graph())
		e.Agent.TokenID.SetUint64(7)
		s := NewScorer(w.walk(), w.params)
		own := s.Score(e)
		penalties := Penalties{}
		penalties.Add(s.Penalties(e, &own)...)
		other := func(owner int) (r Result) {
			e := w.evidence(rows(20, 40, 95)...)
			e.Owner = address(owner)
			e.Related = penalties.Related(&e, w.params, func(common.Address) int { return 1 })
			return s.Score(e)
		}
		free := Score(w.evidence(rows(20, 40, 95)...), w.params)
		part := w.evidence(h.theirs...)
		if bad := s.Score(part); bad.High < guardBelow(w.params) {
			limits[othersAct]++
			for _, owner := range []int{900, 905} {
				if r := other(owner); r.Score > bad.Score || r.Tier > 0 {
					t.Fatalf("an agent of %d has %s, tier %d, the bad one %s", owner, r.Score, r.Tier, bad.Score)
				}
			}
			if r := other(900); !othersAct && r.Score > own.Score {
				t.Fatalf("another agent has %s, the bad one %s", r.Score, own.Score)
			}
		}
		if r := other(910); r.Score < free.Score-2000 {
			t.Fatalf("an agent of an owner that never acted has %s of %s", r.Score, free.Score)
		}
	})
	if limits[false] == 0 || limits[true] == 0 {
		t.Errorf("histories in which somebody was limited: %v", limits)
	}
}
