package trust

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// Excluded is a row that does not count.
type Excluded struct {
	Row    int // of Evidence.Rows as sorted by block and log
	Reason Reason
}

// record is one row put into the table's terms, as it is kept of millions: what the party
// of node said in the channel of a rule. Entries of an agent are ordered by burst,
// channel and party, and within them by the order of the chain.
type record struct {
	node    Node   // NoNode for a rater the graph does not know
	value   int32  // -1 to 1 in units of 2^-30
	time    uint32 // Unix seconds
	payment uint16 // factor in units of 2^-12
	rule    uint8  // of Params.rules
	opens   opens
}

// opens says what begins with an record.
type opens uint8

const (
	opensMember opens = 1 << iota
	opensVoice
	opensBurst
)

func (e *record) opinion() Fixed { return Fixed(e.value) << 2 }

func (e *record) paid() Fixed { return Fixed(e.payment) << 20 }

// account is all that is said of one agent.
type account struct {
	owner    Node
	held     int64 // since when the present owner has it
	records  []record
	excluded int
}

// party is a rater: an identity of the graph, or an address that it does not know.
type party struct {
	node    Node
	address common.Address // zero when node is known
}

func (g *Graph) party(a common.Address) party {
	if n := g.Node(a); n != NoNode {
		return party{node: n}
	}
	return party{node: NoNode, address: a}
}

// listener turns evidence into accounts, reusing memory.
type listener struct {
	p        *Params
	g        *Graph
	rows     []Row // in the order of the chain
	said     []statement
	excluded []Excluded
	self     map[party]own
	parties  map[party]speaker
	bursts   map[burst]uint32
	count    uint32 // of bursts
}

// own is how far a party is the agent's own.
type own uint8

const (
	isNamed own = 1 + iota // by the owner alone
	isSelf                 // by its own signature too
)

// statement is a record before it has its place.
type statement struct {
	record
	row     int // of listener.rows
	channel uint8
	speaker
}

// speaker numbers a party by its first words, and the burst it belongs to.
type speaker struct{ party, burst uint32 }

func newListener(g *Graph, p *Params) *listener { return &listener{p: p, g: g} }

// listen puts what is said of an agent into the order in which it is weighed. The
// account's records are the listener's until the next call.
//
// A party has one opinion in a channel however often it says so. Parties whose first
// words came in the same block and are the same count as one: that is how bots and
// batches write.
func (l *listener) listen(e *Evidence) account {
	l.reset(e)
	for i := range l.rows {
		if reason := l.hear(e, i); reason != "" {
			l.excluded = append(l.excluded, Excluded{i, reason})
		}
	}
	slices.SortStableFunc(l.said, func(a, b statement) int {
		return cmp.Or(cmp.Compare(a.burst, b.burst), cmp.Compare(a.channel, b.channel), cmp.Compare(a.party, b.party))
	})
	out := account{owner: l.g.Node(e.Owner), held: e.Held, excluded: len(l.excluded), records: make([]record, len(l.said))}
	for i := range l.said {
		s := &l.said[i]
		if i == 0 {
			s.opens = opensBurst | opensVoice | opensMember
		} else {
			s.opens = l.said[i-1].until(s)
		}
		out.records[i] = s.record
	}
	return out
}

// until says what begins with the statement after s.
func (s *statement) until(next *statement) opens {
	switch {
	case s.burst != next.burst:
		return opensBurst | opensVoice | opensMember
	case s.channel != next.channel:
		return opensVoice | opensMember
	case s.party != next.party:
		return opensMember
	}
	return 0
}

// manyRows is above what agents usually have: maps that grew to it are not kept.
const manyRows = 1000

func (l *listener) reset(e *Evidence) {
	if l.self == nil || len(l.parties) > manyRows {
		l.self, l.parties, l.bursts = map[party]own{}, map[party]speaker{}, map[burst]uint32{}
	}
	clear(l.self)
	clear(l.parties)
	clear(l.bursts)
	l.count, l.said, l.excluded = 0, l.said[:0], l.excluded[:0]
	l.rows = append(l.rows[:0], e.Rows...)
	if !slices.IsSortedFunc(l.rows, inChain) {
		slices.SortFunc(l.rows, inChain)
	}
	for _, a := range e.Named {
		l.self[l.g.party(a)] = isNamed
	}
	for _, a := range e.Self {
		l.self[l.g.party(a)] = isSelf
	}
	l.self[l.g.party(e.Owner)] = isSelf
}

// inChain is the order of the chain.
func inChain(a, b Row) int {
	if c := cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.LogIndex, b.LogIndex)); c != 0 {
		return c
	}
	return cmp.Or(bytes.Compare(a.Rater[:], b.Rater[:]), cmp.Compare(a.Index, b.Index))
}

// hear takes down a row, or says why it does not count.
func (l *listener) hear(e *Evidence, i int) Reason {
	row := &l.rows[i]
	said, reason := l.p.read(row, e.Block.Time.Unix())
	if reason != "" {
		return reason
	}
	who := l.g.party(row.Rater)
	if own := l.self[who]; own == isSelf || own == isNamed && said.value >= 0 {
		return ReasonSelf
	}
	if said.value > 0 && row.Block < e.Since {
		return ReasonEarlier
	}
	said.node = who.node
	spoke, known := l.parties[who]
	if !known {
		spoke = speaker{uint32(len(l.parties)), l.burst(i)}
		l.parties[who] = spoke
	}
	l.said = append(l.said, statement{record: said, row: i, channel: l.p.rules[said.rule].channel, speaker: spoke})
	return ""
}

// burst is what parties must share in their first row to count as one.
type burst struct {
	block      uint64
	value      string
	tag1, tag2 string
	content    common.Hash
}

// burst numbers the burst of a row. Validators answer one by one, whatever the block,
// and a row that is alone in its block with regard to the agent is no burst.
func (l *listener) burst(i int) uint32 {
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

// read puts a row into the terms of the tables, as of a time; node and opens stay open.
func (p *Params) read(row *Row, at int64) (e record, reason Reason) {
	if row.Time <= 0 || row.Time > math.MaxUint32 {
		return e, ReasonUndated
	}
	if row.Time > at {
		return e, ReasonFuture
	}
	curve, reason := p.rule(row, &e)
	if reason != "" {
		return e, reason
	}
	v, ok := opinion(curve, row.Amount)
	if !ok {
		return e, ReasonRange
	}
	e.value, e.time, e.payment = int32(v/4), uint32(row.Time), uint16(p.payment(row.Paid)>>20)
	return e, ""
}

// payment is what a payment in US dollars multiplies by.
func (p *Params) payment(paid Fixed) Fixed {
	if paid <= 0 {
		return One
	}
	full := Int(p.Evidence.FullPayment + 1).log2()
	return min(p.Evidence.MaxPayment, One+(One+min(paid, Int(1<<30))).log2().mul(p.Evidence.MaxPayment-One).div(full))
}

// rule finds a row's rule and curve.
func (p *Params) rule(row *Row, e *record) ([]Corner, Reason) {
	if row.Validation {
		e.rule = p.validation(row.Tag1)
		return p.Tags.Validation.Curve, ""
	}
	at, known := p.Tags.byTag[row.Tag1]
	if !known {
		return nil, ReasonUnknownTag
	}
	rule := &p.Tags.Tags[at]
	if p.Tags.use[rule.Channel] != UseScore || rule.Weight == 0 {
		return nil, ReasonChannel
	}
	e.rule = uint8(at)
	return rule.Curve, ""
}

// decay is what an opinion weighs after so many seconds.
func (p *Params) decay(age int64) Fixed {
	const day = 24 * 60 * 60
	return p.powers.exp2Neg(ratio(age, int64(p.Evidence.HalfLifeDays)*day))
}
