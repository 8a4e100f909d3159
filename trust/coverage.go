package trust

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
	"repute/trust/flow"
)

// tally is what a GraphReader was told, as far as Coverage asks.
type tally struct {
	records []toldRecord
	raters  map[common.Address]uint32
	agents  map[repute.TokenID]uint32
	owners  []common.Address // by agent
	codes   map[Reason]uint8 // 1 more than the index in Reasons
}

// toldRecord is one record: by numbers of its rater and agent, and why it does not count, 0 where it can be read.
type toldRecord struct {
	rater, agent uint32
	time         uint32 // Unix seconds
	reason       uint8  // of tally.codes
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
func (t *tally) add(token repute.TokenID, owner, rater common.Address, time int64) int {
	if t.raters == nil {
		t.raters, t.agents = map[common.Address]uint32{}, map[repute.TokenID]uint32{}
		t.codes = map[Reason]uint8{}
		for i, reason := range Reasons() {
			t.codes[reason] = uint8(i + 1)
		}
	}
	agent, isNew := number(t.agents, token)
	if isNew {
		t.owners = append(t.owners, owner)
	}
	by, _ := number(t.raters, rater)
	t.records = append(t.records, toldRecord{rater: by, agent: agent, time: uint32(max(0, min(time, math.MaxUint32)))})
	return len(t.records) - 1
}

// leave says why a record does not count.
func (t *tally) leave(record int, reason Reason) { t.records[record].reason = t.codes[reason] }

// Coverage tells how much of all that was added counts by these weights, which follow from the graph of Build. Rated
// and Thin are left to the caller. known is how many agents each identity has that raters of weight made known: all
// together weigh what an agent needs to be rated.
func (r *GraphReader) Coverage(w *flow.Weights) (out repute.Coverage, known map[flow.Node]int) {
	t, reasons := &r.told, Reasons()
	c := &covering{w: w, least: r.p.Paths.MinWeight, raters: make([]flow.Node, len(t.raters)),
		seen: make([]uint32, len(t.raters)), spoke: make([]bool, len(t.raters)), out: repute.Coverage{
			Left: map[string]int64{}, Records: repute.Counted{All: int64(len(t.records))},
			Raters: repute.Counted{All: int64(len(t.raters))}, Agents: repute.Counted{All: int64(len(t.agents))}}}
	if w.Credited() > 0 {
		c.out.BySource = map[string]int64{}
	}
	for a, n := range t.raters {
		c.raters[n] = w.Graph().Node(a)
	}
	for _, reason := range reasons {
		c.reasons = append(c.reasons, string(reason))
	}
	enough := r.p.Evidence.Base.Mul(r.p.Rated.Confidence).Div(fixed.One - r.p.Rated.Confidence)
	known = map[flow.Node]int{}
	for agent, records := range t.byAgent() {
		owner := w.Graph().Node(t.owners[agent])
		if weight := c.agent(uint32(agent), owner, records); weight >= enough {
			known[owner]++
		}
	}
	c.out.Tags = r.unread.most()
	return c.out, known
}

// covering is the making of a Coverage, agent by agent.
type covering struct {
	w       *flow.Weights
	least   fixed.Fixed
	reasons []string
	raters  []flow.Node // by number
	seen    []uint32    // by rater: 1 more than the last agent it is counted for, by weight
	spoke   []bool      // by rater: a record of it counts
	out     repute.Coverage
}

// agent counts the records of an agent, which follow each other by rater, and returns how much its raters are vouched for together.
func (c *covering) agent(agent uint32, owner flow.Node, records []toldRecord) (weight fixed.Fixed) {
	raters, counted := 0, c.out.Records.Counted
	for i, s := range records {
		if i == 0 || records[i-1].rater != s.rater {
			raters++
		}
		node := c.raters[s.rater]
		switch {
		case s.reason > 0:
			c.out.Left[c.reasons[s.reason-1]]++
		case node == owner:
			c.out.Left[string(ReasonSelf)]++
		case !c.w.Counts(node, c.least):
			c.out.Left[repute.LeftNoWeight]++
		default:
			weight += c.count(agent, s.rater, node)
		}
	}
	if raters > 2 {
		c.out.Several++
	}
	if c.out.Records.Counted > counted {
		c.out.Agents.Counted++
	}
	return weight
}

// count takes in a record that counts, and returns what vouches for its rater the first time it speaks of the agent.
func (c *covering) count(agent, rater uint32, node flow.Node) fixed.Fixed {
	c.out.Records.Counted++
	if c.w.IsRoot(node) {
		c.out.ByRoots++
	}
	for _, credit := range c.w.Credits(node) {
		c.out.BySource[c.w.SourceRules().Sources[credit.Source].ID]++
	}
	if !c.spoke[rater] {
		c.spoke[rater] = true
		c.out.Raters.Counted++
	}
	if c.seen[rater] == agent+1 {
		return 0
	}
	c.seen[rater] = agent + 1
	return c.w.Weight(node)
}

// byAgent returns the records of each agent by its number, each rater's one after the other. The agents that it skips
// have none.
func (t *tally) byAgent() iter.Seq2[int, []toldRecord] {
	slices.SortFunc(t.records, func(a, b toldRecord) int {
		return cmp.Or(cmp.Compare(a.agent, b.agent), cmp.Compare(a.rater, b.rater))
	})
	return func(use func(int, []toldRecord) bool) {
		for first := 0; first < len(t.records); {
			next := first
			for next < len(t.records) && t.records[next].agent == t.records[first].agent {
				next++
			}
			if !use(int(t.records[first].agent), t.records[first:next]) {
				return
			}
			first = next
		}
	}
}
