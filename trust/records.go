package trust

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
	"repute/trust/flow"
)

// Excluded is a row that does not count.
type Excluded struct {
	Row    int // of Evidence.Rows as sorted by block and log
	Reason Reason
}

// record is one row by the rules of the tag table, small enough to keep millions. The records
// of an agent are ordered by burst, channel and rater, then in chain order.
type record struct {
	node    flow.Node // NoNode for a rater the graph does not know
	value   int32     // -1 to 1 in units of 2^-30
	time    uint32    // Unix seconds
	payment uint16    // factor in units of 2^-12
	rule    uint8     // of Params.rules
	opens   opens
}

// opens are the groups that begin with a record.
type opens uint8

const (
	opensMember opens = 1 << iota
	opensOpinion
	opensBurst
)

// fixedValue is the opinion as a Fixed.
func (e *record) fixedValue() fixed.Fixed { return fixed.Fixed(e.value) << 2 }

// paid is the payment behind the rating, in dollars.
func (e *record) paid() fixed.Fixed { return fixed.Fixed(e.payment) << 20 }

// account holds the records of one agent.
type account struct {
	owner    flow.Node
	records  []record
	excluded int
}

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
	p          *Params
	w          *flow.Weights
	rows       []Row // in the order of the chain
	statements []statement
	excluded   []Excluded
	self       map[rater]own
	raters     map[rater]raterBurst
	bursts     map[burst]uint32
	led        map[uint32]bool // bursts that a rater with weight is in
	count      uint32          // of bursts

	// For packed rows: see buildPacked.
	related     []relatedRater
	hearings    hearings
	heard       uint32 // raters in hearings
	blockBursts []blockBurst
	records     []record
}

// own is how a rater belongs to the agent that it rates.
type own uint8

const (
	isNamed own = 1 + iota // named by the owner alone
	isSelf                 // the owner, or signed to be the wallet
)

// statement is a record before sorting.
type statement struct {
	record
	row     int // of listener.rows
	channel uint8
	raterBurst
}

// raterBurst numbers a rater in order of its first row, and the burst it belongs to.
type raterBurst struct{ rater, burst uint32 }

// newAccountBuilder makes a builder that is used for one agent after the other.
func newAccountBuilder(w *flow.Weights, p *Params) *accountBuilder {
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
	slices.SortStableFunc(l.statements, func(a, b statement) int {
		return cmp.Or(cmp.Compare(a.burst, b.burst), cmp.Compare(a.channel, b.channel), cmp.Compare(a.rater, b.rater))
	})
	out := account{owner: l.w.Graph().Node(e.Owner), excluded: len(l.excluded),
		records: make([]record, len(l.statements))}
	for i := range l.statements {
		s := &l.statements[i]
		if i == 0 {
			s.opens = opensBurst | opensOpinion | opensMember
		} else {
			s.opens = l.statements[i-1].until(s)
		}
		out.records[i] = s.record
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
	if l.self == nil || len(l.raters) > manyRows {
		l.self, l.raters, l.bursts = map[rater]own{}, map[rater]raterBurst{}, map[burst]uint32{}
		l.led = map[uint32]bool{}
	}
	clear(l.self)
	clear(l.raters)
	clear(l.bursts)
	clear(l.led)
	l.count, l.statements, l.excluded = 0, l.statements[:0], l.excluded[:0]
	l.rows = append(l.rows[:0], e.Rows...)
	if !slices.IsSortedFunc(l.rows, inChain) {
		slices.SortFunc(l.rows, inChain)
	}
	for _, a := range e.Named {
		l.self[raterOf(l.w.Graph(), a)] = isNamed
	}
	for _, a := range e.Self {
		l.self[raterOf(l.w.Graph(), a)] = isSelf
	}
	l.self[raterOf(l.w.Graph(), e.Owner)] = isSelf
}

// inChain compares rows by their order in the chain.
func inChain(a, b Row) int {
	if c := cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.LogIndex, b.LogIndex)); c != 0 {
		return c
	}
	return cmp.Or(bytes.Compare(a.Rater[:], b.Rater[:]), cmp.Compare(a.Index, b.Index))
}

// raterOf returns the identity of a row's rater.
func (l *accountBuilder) raterOf(e *Evidence, row *Row) rater {
	if e.Nodes == nil || row.Writer == 0 {
		return raterOf(l.w.Graph(), row.Rater)
	}
	if n := e.Nodes[row.Writer-1]; n != flow.NoNode {
		return rater{node: n}
	}
	return rater{node: flow.NoNode, address: row.Rater}
}

// addRow adds a row, or returns why it does not count.
func (l *accountBuilder) addRow(e *Evidence, i int) Reason {
	row := &l.rows[i]
	rec, reason := l.p.read(row, e.Block.Time.Unix(), e.Scales)
	if reason != "" {
		return reason
	}
	who := l.raterOf(e, row)
	if own := l.self[who]; own == isSelf || own == isNamed && rec.value >= 0 {
		return ReasonSelf
	}
	if rec.value > 0 && row.Block < e.Since {
		return ReasonEarlier
	}
	rec.node = who.node
	spoke, known := l.raters[who]
	if !known {
		spoke = raterBurst{uint32(len(l.raters)), l.join(l.burst(i), who.node)}
		l.raters[who] = spoke
	}
	l.statements = append(l.statements, statement{record: rec, row: i, channel: l.p.rules[rec.rule].channel,
		raterBurst: spoke})
	return ""
}

// join returns the burst of a rater whose first row is that of burst: that burst, or a new one when both the rater and
// another rater in that burst have weight.
func (l *accountBuilder) join(burst uint32, node flow.Node) uint32 {
	if !l.w.Counts(node, l.p.Paths.MinWeight) {
		return burst
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

// read turns a row into a record as of a time, or returns why it does not count. The caller
// sets node and opens.
func (p *Params) read(row *Row, at int64, scales *Scales) (e record, reason Reason) {
	e, w, value, reason := p.begin(row, at)
	if reason == "" {
		reason = p.judge(&e, w, value, scales)
	}
	return e, reason
}

// begin is read without the opinion, which the value makes.
func (p *Params) begin(row *Row, at int64) (e record, w writing, value fixed.Fixed, reason Reason) {
	if row.Time <= 0 || row.Time > math.MaxUint32 {
		return e, w, 0, ReasonUndated
	}
	if row.Time > at {
		return e, w, 0, ReasonFuture
	}
	if row.Via != (common.Address{}) && row.Via == row.Rater {
		return e, w, 0, ReasonGateway // the vote of one address would stand for all who paid
	}
	said := row.Said
	if said == nil {
		now := p.said(row)
		said = &now
	}
	if said.reason != "" {
		return e, w, 0, said.reason
	}
	w.rater, w.tag, e.rule = row.Rater, said.tag, said.rule
	e.time, e.payment = uint32(row.Time), uint16(p.payment(row.Paid)>>20)
	return e, w, said.value, ""
}

// Said is what the tags and the amount of a row mean by a table of tags.
type Said struct {
	rule   uint8
	tag    int32 // number in the table
	value  fixed.Fixed
	reason Reason // why the row does not count, "" when it may count
}

// Said returns what the tags and the amount of a row mean, nil when that depends on who wrote it.
func (p *Params) Said(row *Row) *Said {
	if len(p.Tags.byWriter) > 0 {
		return nil
	}
	said := p.said(row)
	return &said
}

// said returns Said for one row.
func (p *Params) said(row *Row) (s Said) {
	if s.rule, s.tag, s.reason = p.rule(row); s.reason != "" {
		return s
	}
	var ok bool
	if s.value, ok = fixedAmount(row.Amount); !ok {
		s.reason = ReasonRange
	}
	return s
}

// judge sets a record's opinion by what was written.
func (p *Params) judge(e *record, w writing, value fixed.Fixed, scales *Scales) Reason {
	curve := p.Tags.Validation.Curve
	if int(e.rule) < len(p.Tags.rules) {
		rule := p.Tags.rules[e.rule]
		var told bool
		if value, told = scales.onOwnScale(w, rule, value); !told {
			return ReasonScale
		}
		curve = rule.Curve
	}
	v, ok := opinionOf(curve, value)
	if !ok {
		return ReasonRange
	}
	e.value = int32(v / 4)
	return ""
}

// payment returns the factor for a payment in US dollars.
func (p *Params) payment(paid fixed.Fixed) fixed.Fixed {
	if paid <= 0 {
		return fixed.One
	}
	full := fixed.Int(p.Evidence.FullPayment + 1).Log2()
	return min(p.Evidence.MaxPayment,
		fixed.One+(fixed.One+min(paid, fixed.Int(1<<30))).Log2().Mul(p.Evidence.MaxPayment-fixed.One).Div(full))
}

// rule returns the rule of a row and the number of its tag, or why it has none that counts.
func (p *Params) rule(row *Row) (rule uint8, tag int32, reason Reason) {
	if row.Validation {
		return p.validation(row.Tag1), 0, ""
	}
	at, known := p.Tags.place(row.Client(), row.Tag1)
	if !known {
		return 0, 0, ReasonUnknownTag
	}
	if r := p.Tags.rules[at.rule]; p.Tags.use[r.Channel] != UseScore || r.Weight == 0 {
		return 0, 0, ReasonChannel
	}
	return uint8(at.rule), int32(at.number), ""
}

// decay returns the factor for an age in seconds.
func (p *Params) decay(age int64) fixed.Fixed {
	const day = 24 * 60 * 60
	return p.powers.Exp2Neg(fixed.Ratio(age, int64(p.Evidence.HalfLifeDays)*day))
}

// Dollars converts an amount of US dollars.
func Dollars(m repute.Micros) fixed.Fixed { return fixed.Ratio(int64(min(m, repute.MaxPaid)), 1e6) }

// UnreadTag stands for a tag that was too long to be read. It is no UTF-8, hence in no table.
const UnreadTag = "\xff"
