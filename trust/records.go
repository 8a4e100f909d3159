package trust

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
)

// Excluded is a row that does not count.
type Excluded struct {
	Row    int // of Evidence.Rows as sorted by block and log
	Reason rating.Reason
}

// opens are the groups that begin with a record.
type opens = uint8

const (
	opensMember opens = 1 << iota
	opensOpinion
	opensBurst
)

// account holds the records of one agent.
type account struct {
	owner    flow.Node
	records  []rating.Record
	excluded int
	// crowd has more records, of raters without weight, and crowded is how many: see crowd. Only an Account sets them.
	crowd   []crowdGroup
	crowded int
}

// rows returns how many rows count.
func (a *account) rows() int { return len(a.records) + a.crowded }

// rater is an identity of the graph, or an address that the graph does not know.
type rater struct {
	node    flow.Node
	address common.Address // zero when node is known
}

// raterOf returns the identity of an address: its node in the graph, or the address itself when no
// node has it.
func raterOf(g *flow.Graph, a common.Address) rater {
	if n := g.Node(a); n != flow.NoNode {
		return rater{node: n}
	}
	return rater{node: flow.NoNode, address: a}
}

// accountBuilder turns evidence into accounts. It reuses its memory.
type accountBuilder struct {
	p          *rating.Params
	w          *flow.Weights
	rows       []rating.Row // in the order of the chain
	statements []statement
	excluded   []Excluded
	self       map[rater]own
	hearings   hearings
	strangers  map[common.Address]raterBurst // raters that the graph does not know
	heard      uint32                        // raters in both
	bursts     map[burst]uint32
	led        []bool // by burst: a rater with weight is in it; shorter where none follows
	count      uint32 // of bursts

	// For packed rows: see buildPacked.
	related     []relatedRater
	blockBursts []blockBurst
	records     []rating.Record
	nodes       []flow.Node   // of the raters, by row
	weights     []fixed.Fixed // of nodes
}

// own is how a rater belongs to the agent that it rates.
type own uint8

const (
	isNamed own = 1 + iota // named by the owner alone
	isSelf                 // the owner, or signed to be the wallet
)

// statement is a record before sorting.
type statement struct {
	rating.Record
	row     int // of accountBuilder.rows
	channel uint8
	raterBurst
}

// raterBurst numbers a rater in order of its first row, and the burst it belongs to.
type raterBurst struct{ rater, burst uint32 }

// newAccountBuilder makes a builder that is used for one agent after the other.
func newAccountBuilder(w *flow.Weights, p *rating.Params) *accountBuilder {
	return &accountBuilder{p: p, w: w}
}

// build returns the account of an agent. The records are valid until the next call.
//
// A rater has one opinion in a channel however many ratings it gives. Raters without weight of their own whose
// first rows are equal and in the same block form a burst and count as one, with the first rater
// with weight whose first row is equal there, because bots and batches write that way. Raters with
// weight are never merged, because a bundler or a busy block puts the ratings of many into one block.
func (l *accountBuilder) build(e *Evidence) account {
	if e.Packing != nil {
		return l.buildPacked(e)
	}
	l.reset(e)
	for i := range l.rows {
		if reason := l.addRow(e, i); reason != "" {
			l.excluded = append(l.excluded, Excluded{i, reason})
		}
	}
	slices.SortStableFunc(l.statements, (statement).compare)
	out := account{owner: l.w.Graph().Node(e.Owner), excluded: len(l.excluded),
		records: make([]rating.Record, len(l.statements))}
	for i := range l.statements {
		out.records[i] = l.record(i)
	}
	return out
}

// until returns the groups that begin with the statement after s.
func (s *statement) until(next *statement) opens {
	switch {
	case s.burst != next.burst:
		return opensBurst | opensOpinion | opensMember
	case s.channel != next.channel:
		return opensOpinion | opensMember
	case s.rater != next.rater:
		return opensMember
	}
	return 0
}

// manyRows is above what agents usually have. Larger maps are not reused.
const manyRows = 1000

// reset begins the account of another agent. Memory is used again.
func (l *accountBuilder) reset(e *Evidence) {
	if l.self == nil || len(l.strangers) > manyRows || len(l.bursts) > manyRows {
		l.self, l.strangers, l.bursts = map[rater]own{}, map[common.Address]raterBurst{}, map[burst]uint32{}
	}
	clear(l.strangers)
	clear(l.bursts)
	l.hearings.reset(len(e.Rows))
	l.count, l.heard, l.led = 0, 0, l.led[:0]
	l.statements, l.excluded = l.statements[:0], l.excluded[:0]
	l.rows = append(l.rows[:0], e.Rows...)
	if !slices.IsSortedFunc(l.rows, inChain) {
		slices.SortFunc(l.rows, inChain)
	}
	l.setSelf(e)
}

// setSelf sets the raters that belong to the agent.
func (l *accountBuilder) setSelf(e *Evidence) {
	clear(l.self)
	for _, a := range e.Named {
		l.self[raterOf(l.w.Graph(), a)] = isNamed
	}
	for _, a := range e.Self {
		l.self[raterOf(l.w.Graph(), a)] = isSelf
	}
	l.self[raterOf(l.w.Graph(), e.Owner)] = isSelf
}

// inChain compares rows by their order in the chain.
func inChain(a, b rating.Row) int {
	if c := cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.LogIndex, b.LogIndex)); c != 0 {
		return c
	}
	return cmp.Or(bytes.Compare(a.Rater[:], b.Rater[:]), cmp.Compare(a.Index, b.Index))
}

// raterOf returns the identity of a row's rater.
func (l *accountBuilder) raterOf(e *Evidence, row *rating.Row) rater {
	if e.Nodes == nil || row.Writer == 0 {
		return raterOf(l.w.Graph(), row.Rater)
	}
	if n := e.Nodes[row.Writer-1]; n != flow.NoNode {
		return rater{node: n}
	}
	return rater{node: flow.NoNode, address: row.Rater}
}

// addRow adds a row, or returns why it does not count.
func (l *accountBuilder) addRow(e *Evidence, i int) rating.Reason {
	rec, who, reason := l.read(e, &l.rows[i])
	if reason != "" {
		return reason
	}
	rec.Node = who.node
	l.statements = append(l.statements, statement{Record: rec, row: i, channel: l.p.ChannelOf(&rec),
		raterBurst: l.burstOf(who, i)})
	return ""
}

// read returns the record of a row and its rater, or why it does not count.
func (l *accountBuilder) read(e *Evidence, row *rating.Row) (rec rating.Record, who rater, reason rating.Reason) {
	if rec, reason = l.p.Read(row, e.Block.Time.Unix(), e.Scales); reason != "" {
		return rec, who, reason
	}
	who = l.raterOf(e, row)
	switch own := l.self[who]; {
	case own == isSelf || own == isNamed && rec.Value >= 0:
		reason = rating.ReasonSelf
	case rec.Value > 0 && row.Block < e.Since:
		reason = rating.ReasonEarlier
	}
	return rec, who, reason
}

// spoke returns the numbers of a rater that rated the agent, nil for another one. Both are 0 for one whose only rating
// was removed.
func (l *accountBuilder) spoke(who rater) *raterBurst {
	if who.node == flow.NoNode {
		if spoke, known := l.strangers[who.address]; known {
			return &spoke
		}
		return nil
	}
	if h := l.hearings.find(uint64(who.node)); h.turn == l.hearings.turn {
		return &h.raterBurst
	}
	return nil
}

// forget makes a rater new again, because its only rating was removed.
func (l *accountBuilder) forget(who rater) {
	if who.node == flow.NoNode {
		delete(l.strangers, who.address)
	} else if spoke := l.spoke(who); spoke != nil {
		*spoke = raterBurst{} // the slot stays: others may have been put behind it
	}
}

// burstOf returns the numbers of a rater and of its burst, which follows from its first row, the i-th for a new rater.
func (l *accountBuilder) burstOf(who rater, i int) raterBurst {
	if who.node == flow.NoNode {
		spoke, known := l.strangers[who.address]
		if !known {
			spoke = raterBurst{l.heard, l.burst(i)}
			l.strangers[who.address] = spoke
			l.heard++
		}
		return spoke
	}
	spoke, known := l.hearings.at(uint64(who.node))
	if !known || spoke.burst == 0 {
		*spoke = raterBurst{l.heard, l.join(l.burst(i), who.node, l.w.Weight(who.node))}
		l.heard++
	}
	return *spoke
}

// join returns the burst of a rater whose first row is that of burst: that burst, or a new one when both the rater and
// another rater in that burst have weight. weight is that of the node by trust flow.
func (l *accountBuilder) join(burst uint32, node flow.Node, weight fixed.Fixed) uint32 {
	if least := l.p.Paths.MinWeight; weight <= least && l.w.Granted(node) <= least {
		return burst
	}
	if more := int(burst) + 1 - len(l.led); more > 0 {
		l.led = append(l.led, make([]bool, more)...)
	}
	if l.led[burst] {
		l.count++
		return l.count
	}
	l.led[burst] = true
	return burst
}

// burst is what the first rows of raters must share for the raters to count as one.
type burst struct {
	block      uint64
	value      string
	tag1, tag2 string
	content    common.Hash
}

// burst returns the number of a row's burst. A validator's answer, and a row without others
// about the agent in its block, have a burst of their own.
func (l *accountBuilder) burst(i int) uint32 {
	r := &l.rows[i]
	alone := (i == 0 || l.rows[i-1].Block != r.Block) && (i == len(l.rows)-1 || l.rows[i+1].Block != r.Block)
	if alone || r.Validation {
		l.count++
		return l.count
	}
	b := burst{block: r.Block, value: r.Amount.Decimal(), tag1: r.Tag1, tag2: r.Tag2, content: r.Content}
	n, known := l.bursts[b]
	if !known {
		l.count++
		n = l.count
		l.bursts[b] = n
	}
	return n
}
