package trust

import (
	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/flow"
)

// tally is what a GraphReader was told, as far as Coverage asks.
type tally struct {
	records []toldRecord
	raters  map[common.Address]uint32
	agents  map[repute.TokenID]uint32
	owners  []common.Address // by agent
}

// toldRecord is one record: by numbers of its rater and agent, and why it does not count, 0 where it can be read.
type toldRecord struct {
	rater, agent uint32
	reason       uint8 // 1 more than the index in Reasons
}

// number is the number of a key, the next one where it is new.
func number[K comparable](of map[K]uint32, key K) (n uint32, isNew bool) {
	n, known := of[key]
	if !known {
		n = uint32(len(of))
		of[key] = n
	}
	return n, !known
}

// add takes in a record and returns its index.
func (t *tally) add(token repute.TokenID, owner, rater common.Address) int {
	if t.raters == nil {
		t.raters, t.agents = map[common.Address]uint32{}, map[repute.TokenID]uint32{}
	}
	agent, isNew := number(t.agents, token)
	if isNew {
		t.owners = append(t.owners, owner)
	}
	by, _ := number(t.raters, rater)
	t.records = append(t.records, toldRecord{rater: by, agent: agent})
	return len(t.records) - 1
}

// leave says why a record does not count.
func (t *tally) leave(record int, reason Reason) {
	for i, r := range Reasons() {
		if r == reason {
			t.records[record].reason = uint8(i + 1)
		}
	}
}

// Coverage tells how much of all that was added counts by these weights, which follow from the graph of Build. Rated
// and Thin are left to the caller.
func (r *GraphReader) Coverage(w *flow.Weights) repute.Coverage {
	t, least := &r.told, r.p.Paths.MinWeight
	out := repute.Coverage{Left: map[string]int64{}, Records: repute.Counted{All: int64(len(t.records))},
		Raters: repute.Counted{All: int64(len(t.raters))}, Agents: repute.Counted{All: int64(len(t.agents))}}
	nodes, reasons := make([]flow.Node, len(t.raters)), Reasons()
	for a, n := range t.raters {
		nodes[n] = w.Graph().Node(a)
	}
	heard, spoke := make([]bool, len(t.agents)), make([]bool, len(t.raters))
	for _, s := range t.records {
		node := nodes[s.rater]
		switch {
		case s.reason > 0:
			out.Left[string(reasons[s.reason-1])]++
		case node == w.Graph().Node(t.owners[s.agent]):
			out.Left[string(ReasonSelf)]++
		case w.Weight(node) <= least:
			out.Left[repute.LeftNoWeight]++
		default:
			out.Records.Counted++
			heard[s.agent], spoke[s.rater] = true, true
			if w.IsRoot(node) {
				out.ByRoots++
			}
		}
	}
	out.Agents.Counted, out.Raters.Counted, out.Several = count(heard), count(spoke), t.several()
	return out
}

// count is how many are true.
func count(list []bool) (n int64) {
	for _, is := range list {
		if is {
			n++
		}
	}
	return n
}

// several counts agents of which three raters or more spoke.
func (t *tally) several() (n int64) {
	type first struct {
		raters [2]uint32
		known  int
	}
	agents := make([]first, len(t.agents))
	for _, s := range t.records {
		a := &agents[s.agent]
		switch {
		case a.known > 2, a.known > 0 && a.raters[0] == s.rater, a.known > 1 && a.raters[1] == s.rater:
		case a.known == 2:
			a.known++
			n++
		default:
			a.raters[a.known] = s.rater
			a.known++
		}
	}
	return n
}
