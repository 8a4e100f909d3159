package trust

import (
	"cmp"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// voice is a party's opinion of one agent in one channel.
type voice struct {
	channel string
	member  []Node
	weight  Fixed // R of its strongest member, 0 to 1
	rows    []int // of Evidence.Rows, oldest first
	newest  int64 // Unix seconds
	// Opinions, -1 to 1, and what they weigh: of the members as far as they are
	// vouched for, and as far as they are not.
	value, vouched    Fixed
	poolValue, pooled Fixed
}

// Excluded is a row that does not count.
type Excluded struct {
	Row    int // of Evidence.Rows as sorted by block and log
	Reason Reason
}

// reading is one row put into the table's terms.
type reading struct {
	row            int
	channel        string
	value, weight  Fixed
	party          party
	decay, payment Fixed
}

// party is a rater: an identity of the graph, or an address that it does not know.
type party struct {
	node    Node
	address common.Address // zero when node is known
}

// sortRows puts rows into the order of the chain.
func sortRows(rows []Row) []Row {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.LogIndex, b.LogIndex))
	})
	return rows
}

// read puts every row into the terms of the tag table, or says why it does not count.
func (s *scoring) read() []reading {
	readings := make([]reading, 0, len(s.e.Rows))
	for i := range s.e.Rows {
		r, reason := s.readRow(i)
		if reason != "" {
			s.excluded = append(s.excluded, Excluded{i, reason})
			continue
		}
		readings = append(readings, r)
	}
	return readings
}

func (s *scoring) readRow(i int) (reading, Reason) {
	row := &s.e.Rows[i]
	r, reason := s.p.read(row, s.e.Block.Time.Unix())
	if reason != "" {
		return r, reason
	}
	r.row = i
	if r.party = s.party(row.Rater); s.self[r.party] {
		return r, ReasonSelf
	}
	if r.value > 0 && row.Time < s.e.Held {
		return r, ReasonEarlier
	}
	return r, ""
}

// read puts a row into the terms of the tables, as of a time.
func (p *Params) read(row *Row, at int64) (reading, Reason) {
	r := reading{payment: One}
	if row.Time <= 0 {
		return r, ReasonUndated
	}
	if row.Time > at {
		return r, ReasonFuture
	}
	curve, reason := p.rule(row, &r)
	if reason != "" {
		return r, reason
	}
	v, ok := opinion(curve, row.Amount)
	if !ok {
		return r, ReasonRange
	}
	r.value = v
	r.decay = p.decay(at - row.Time)
	if row.Paid > 0 {
		full := Int(p.Evidence.FullPayment + 1).log2()
		r.payment = min(p.Evidence.MaxPayment, One+(One+row.Paid).log2().mul(p.Evidence.MaxPayment-One).div(full))
	}
	return r, ""
}

// rule finds a row's channel, weight and curve.
func (p *Params) rule(row *Row, r *reading) ([]Corner, Reason) {
	if row.Validation {
		rule := &p.Tags.Validation
		finality, ok := rule.Finality[row.Tag1]
		if !ok {
			finality = rule.Finality[""]
		}
		r.channel, r.weight = rule.Channel, rule.Weight.mul(finality)
		return rule.Curve, ""
	}
	rule := p.Tags.Rule(row.Tag1)
	if rule == nil {
		return nil, ReasonUnknownTag
	}
	if p.Tags.use[rule.Channel] != UseScore || rule.Weight == 0 {
		return nil, ReasonChannel
	}
	r.channel, r.weight = rule.Channel, rule.Weight
	return rule.Curve, ""
}

// decay is what an opinion weighs after so many seconds.
func (p *Params) decay(age int64) Fixed {
	const day = 24 * 60 * 60
	return exp2Neg(ratio(age, int64(p.Evidence.HalfLifeDays)*day))
}

func (s *scoring) party(a common.Address) party {
	if n := s.e.Weights.graph.Node(a); n != NoNode {
		return party{node: n}
	}
	return party{node: NoNode, address: a}
}

// hear gathers what each party says in each channel. A party has one opinion however
// often it says so: the mean of what it said, the older the less, as fresh as the
// newest. Parties whose first words came in the same block and are the same count as
// one: that is how bots and batches write.
func (s *scoring) hear(readings []reading) []*voice {
	first := map[party]burst{}
	for _, r := range readings {
		if _, ok := first[r.party]; !ok {
			first[r.party] = s.burst(r.row)
		}
	}
	type key struct {
		burst   burst
		channel string
	}
	byKey := map[key]*voice{}
	var voices []*voice
	spoken := map[key][]reading{}
	for _, r := range readings {
		k := key{first[r.party], r.channel}
		if byKey[k] == nil {
			byKey[k] = &voice{channel: r.channel}
			voices = append(voices, byKey[k])
		}
		spoken[k] = append(spoken[k], r)
	}
	for k, v := range byKey {
		s.merge(v, spoken[k])
	}
	return voices
}

// burst is what parties must share in their first row to count as one.
type burst struct {
	block      uint64
	validation bool
	value      string
	tag1, tag2 string
	content    common.Hash
}

func (s *scoring) burst(row int) burst {
	r := &s.e.Rows[row]
	b := burst{block: r.Block, validation: r.Validation, value: r.Amount.Decimal(), tag1: r.Tag1, tag2: r.Tag2, content: r.Content}
	if r.Validation { // validators answer one by one, whatever the block
		b.tag2, b.content = r.Rater.Hex(), r.Tx
	}
	return b
}

// saying is what one member of a voice says.
type saying struct{ value, weight, decay, payment, newest Fixed }

func (m *saying) add(r reading) {
	m.value += r.value.mul(r.decay)
	m.weight += r.weight.mul(r.decay)
	m.decay += r.decay
	m.payment = max(m.payment, r.payment)
	m.newest = max(m.newest, r.decay)
}

// mean is the opinion and what it weighs when the member has full weight.
func (m *saying) mean() (value, strength Fixed) {
	if m.decay == 0 {
		return 0, 0 // too old to weigh anything
	}
	return bounded(m.value.div(m.decay), -One), m.weight.div(m.decay).mul(m.payment).mul(m.newest)
}

// merge makes one voice of readings, oldest first: its weight is that of its strongest
// member, its opinion the mean by weight. What is vouched for and what is not are kept
// apart, so that a member without weight cannot change what the others say.
func (s *scoring) merge(v *voice, readings []reading) {
	members := map[party]*saying{}
	var order []party
	for _, r := range readings {
		if members[r.party] == nil {
			members[r.party] = &saying{}
			order = append(order, r.party)
		}
		members[r.party].add(r)
		v.rows = append(v.rows, r.row)
		v.newest = max(v.newest, s.e.Rows[r.row].Time)
	}
	var sum, pool struct{ value, weight Fixed }
	for _, p := range order {
		value, strength := members[p].mean()
		weight := s.e.Weights.weight(p.node)
		heard, unheard := weight.mul(strength), (One - weight).mul(strength)
		v.vouched, v.pooled = max(v.vouched, heard), max(v.pooled, unheard)
		sum.value, sum.weight = sum.value+heard.mul(value), sum.weight+heard
		pool.value, pool.weight = pool.value+unheard.mul(value), pool.weight+unheard
		v.weight = max(v.weight, weight)
		if p.node != NoNode {
			v.member = append(v.member, p.node)
		}
	}
	v.value, v.poolValue = meanOf(sum.value, sum.weight), meanOf(pool.value, pool.weight)
}

func meanOf(sum, weight Fixed) Fixed {
	if weight == 0 {
		return 0
	}
	return bounded(sum.div(weight), -One)
}

// nodes groups the members of voices that speak with weight on one side: each set is
// one rater to the count of paths. A party that speaks in several channels is one.
func (s *scoring) nodes(side func(Fixed) bool) [][]Node {
	var groups [][]Node
	seen := map[Node]bool{}
	for _, v := range s.voices {
		if !side(v.value) || v.weight <= s.p.Paths.MinWeight {
			continue
		}
		var group []Node
		for _, n := range v.member {
			if !seen[n] && s.e.Weights.weight(n) > s.p.Paths.MinWeight {
				seen[n] = true
				group = append(group, n)
			}
		}
		if len(group) > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}
