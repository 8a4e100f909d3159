package graph

import (
	"cmp"
	"iter"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
)

// tally has a short form of each record that was added to a Reader. Coverage and Credited read it.
type tally struct {
	single []singleRecord            // until sort, those that are not of packed agents
	raters map[common.Address]uint32 // number of each rater
	agents map[repute.TokenID]uint32 // number of each agent; of packed ones, only of those that had other owners
	// Ratings are in parts. Those of packed agents have raters that are numbered as in their Packing, which has packed
	// of them.
	parts  []tallyPart
	packed int
	owners []uint32                // numbers in the builder, by number of the agent
	codes  map[rating.Reason]uint8 // 1 more than the index in Reasons
	// lastAgent is the number of last, the agent of the newest record.
	last      repute.TokenID
	lastAgent uint32
}

// tallyPart has the records of some agents, ordered by agent and rater. The agents are numbered from first on, and the
// records of each end at ends.
type tallyPart struct {
	first   uint32
	records []tallied
	ends    []uint32
}

// tallied is one record in 8 bytes, so that ten million fit into memory.
type tallied struct {
	rater uint32 // number in tally.raters
	// ageAndReason is the age in minutes in the upper 24 bits, and in the lower eight the code of the reason for which
	// the record does not count, 0 when it can be read.
	ageAndReason uint32
}

// compare orders the records of an agent by rater.
func (r tallied) compare(other tallied) int { return cmp.Compare(r.rater, other.rater) }

// singleRecord is a record with the number of its agent.
type singleRecord struct {
	tallied
	agent uint32
}

// maxMinutes is the largest age that is stored, 31 years.
const maxMinutes = 1<<24 - 1

// reason returns the code in tally.codes of the reason for which the record does not count, 0 when it can be read.
func (r tallied) reason() uint8 { return uint8(r.ageAndReason) }

// minutes returns the age of the record in minutes.
func (r tallied) minutes() int { return int(r.ageAndReason >> 8) }

// ageMinutes converts an age in seconds to minutes, 0 to maxMinutes.
func ageMinutes(seconds int64) int { return int(max(0, min(seconds/60, maxMinutes))) }

// number returns the number of a key. A new key gets the next number.
func number[K comparable](of map[K]uint32, key K) (n uint32, isNew bool) {
	n, known := of[key]
	if !known {
		n = uint32(len(of))
		of[key] = n
	}
	return n, !known
}

// add adds a record with an age in seconds and returns its index, which is valid until sort. owner is a number in the
// builder. known is 1 more than the rater's number, or 0: then add sets it.
func (t *tally) add(token repute.TokenID, owner uint32, rater common.Address, known *uint32, age int64) int {
	t.nameReasons()
	if len(t.owners) == 0 || t.last != token {
		agent, isNew := number(t.agents, token)
		if isNew {
			t.owners = append(t.owners, owner)
		}
		t.last, t.lastAgent = token, agent
	}
	if *known == 0 {
		by, _ := number(t.raters, rater)
		*known = uint32(t.packed) + by + 1
	}
	t.single = append(t.single, singleRecord{tallied{*known - 1, uint32(ageMinutes(age)) << 8}, t.lastAgent})
	return len(t.single) - 1
}

// nameReasons makes the maps of a new tally.
func (t *tally) nameReasons() {
	if t.raters != nil {
		return
	}
	t.raters, t.agents = map[common.Address]uint32{}, map[repute.TokenID]uint32{}
	t.codes = map[rating.Reason]uint8{}
	for i, reason := range rating.Reasons() {
		t.codes[reason] = uint8(i + 1)
	}
}

// leave sets the reason for which a record does not count.
func (t *tally) leave(record int, reason rating.Reason) {
	r := &t.single[record]
	r.ageAndReason = r.ageAndReason&^0xff | uint32(t.codes[reason])
}

// sort makes a part of the single records. Build calls it once, after the last add: indices of records are invalid
// afterwards.
func (t *tally) sort() {
	if len(t.single) > 0 {
		t.parts, t.single = t.all(), nil
	}
}

// all returns the parts, with one of the single records.
func (t *tally) all() []tallyPart {
	if len(t.single) == 0 {
		return t.parts
	}
	single := slices.Clone(t.single)
	slices.SortFunc(single,
		func(a, b singleRecord) int { return cmp.Or(cmp.Compare(a.agent, b.agent), a.compare(b.tallied)) })
	var part tallyPart
	for i, r := range single {
		part.records = append(part.records, r.tallied)
		if i+1 == len(single) || single[i+1].agent != r.agent {
			part.ends = append(part.ends, uint32(i+1))
		}
	}
	return append(slices.Clip(t.parts), part)
}

// Coverage counts the added records by whether they count with these weights of the graph of Build. It leaves the
// fields Rated, Thin and ToFifty to the caller. known is how many known agents each identity has or handed over: agents
// whose raters have a vouched weight of GuardParams.Known together.
func (r *Reader) Coverage(w *flow.Weights) (out repute.Coverage, known *KnownAgents) {
	t := &r.tally
	by := covering{reader: r, w: w, least: r.p.Paths.MinWeight, raters: make([]flow.Node, t.packed+len(t.raters)),
		former: r.formerOwners(w.Graph()), known: &KnownAgents{graph: w.Graph(),
			byNode: make([]atomic.Uint32, w.Graph().Len()), others: map[common.Address]int{}}}
	for a, n := range t.raters {
		by.raters[t.packed+int(n)] = w.Graph().Node(a)
	}
	if r.packing != nil {
		copy(by.raters, r.packing.Nodes)
	}
	for _, reason := range rating.Reasons() {
		by.reasons = append(by.reasons, string(reason))
	}
	counts := make([]covering, len(t.parts))
	flow.Parallel(len(t.parts), func(low, high int) {
		for i := low; i < high; i++ {
			counts[i] = by
			counts[i].part(t.parts[i])
		}
	})
	all := by
	all.begin()
	all.out.Agents.All = int64(len(t.owners))
	for i := range counts {
		all.merge(&counts[i])
	}
	for _, n := range all.spoke {
		all.out.Raters.All += int64(bits.OnesCount64(n))
	}
	for _, n := range all.counted {
		all.out.Raters.Counted += int64(bits.OnesCount64(n))
	}
	all.out.Tags = r.unread.most()
	return all.out, all.known
}

// formerOwner is an identity that handed an agent over. spans are the times whose ratings decide whether the agent is a
// known one of this identity.
type formerOwner struct {
	identity common.Address
	node     flow.Node
	spans    [][2]int // youngest and oldest age of records in minutes
}

// formerOwners returns, by the number of each agent, the identities that had it before the present owner. All ratings
// of an agent count for its registrar, because the registrar is accountable until the next owner acts for the agent.
// For other former owners the ratings of their tenures count. A registrar that handed the agent over at once is left
// out.
func (r *Reader) formerOwners(g *flow.Graph) map[uint32][]formerOwner {
	out := map[uint32][]formerOwner{}
	for token, tenures := range r.former {
		agent, isRated := r.tally.agents[token]
		if !isRated {
			continue
		}
		present := g.Identity(r.agents[token].owner)
		registrar := g.Identity(tenures[0].Owner)
		var atOnce bool
		if i := slices.IndexFunc(tenures,
			func(t rating.Tenure) bool { return g.Identity(t.Owner) != registrar }); i > 0 {
			atOnce = rating.IsHandover(tenures[0].Began, tenures[i].Began)
		} else {
			atOnce = rating.IsHandover(tenures[0].Began, tenures[len(tenures)-1].Ended)
		}
		var list []formerOwner
		for _, t := range tenures {
			identity := g.Identity(t.Owner)
			if identity == present || identity == registrar && atOnce {
				continue
			}
			span := [2]int{ageMinutes(r.at - t.Ended), ageMinutes(r.at - t.Began)}
			if identity == registrar {
				span = [2]int{0, maxMinutes}
			}
			i := slices.IndexFunc(list, func(f formerOwner) bool { return f.identity == identity })
			if i < 0 {
				i = len(list)
				list = append(list, formerOwner{identity: identity, node: g.Node(t.Owner)})
			}
			list[i].spans = append(list[i].spans, span)
		}
		out[agent] = list
	}
	return out
}

// during returns the sum of the vouched weights of raters during a former owner's tenures. earlier is the code of
// ReasonEarlier: praise from that time does not count for the present owner, but counts here.
func (c *covering) during(f *formerOwner, records []tallied, earlier uint8) (weight fixed.Fixed) {
	counted := -1
	for i := range records {
		s := &records[i]
		node := c.raters[s.rater]
		if int(s.rater) != counted && f.spanned(s, earlier) && node != f.node && c.w.Counts(node, c.least) {
			counted = int(s.rater)
			weight += c.w.Weight(node)
		}
	}
	return weight
}

// spanned reports whether a record can be read and is from a span of the former owner.
func (f *formerOwner) spanned(s *tallied, earlier uint8) bool {
	return (s.reason() == 0 || s.reason() == earlier) && slices.ContainsFunc(f.spans, func(span [2]int) bool {
		return span[0] <= s.minutes() && s.minutes() <= span[1]
	})
}

// covering computes a Coverage, agent by agent. Several of them count parts of the agents concurrently.
type covering struct {
	reader  *Reader
	w       *flow.Weights
	least   fixed.Fixed // a rater with this weight or less does not count
	reasons []string    // names of Reasons, by code - 1
	raters  []flow.Node // by number
	former  map[uint32][]formerOwner
	spoke   []uint64 // by rater, a bit each: it has a record
	counted []uint64 // by rater, a bit each: one of its records counts
	left    []int64  // records that do not count, by the code of the reason; 0 for LeftNoWeight
	known   *KnownAgents
	others  map[common.Address]int // of known
	out     repute.Coverage
}

// begin makes the memory of a covering.
func (c *covering) begin() {
	c.spoke, c.counted = make([]uint64, len(c.raters)/64+1), make([]uint64, len(c.raters)/64+1)
	c.left, c.others = make([]int64, len(c.reasons)+1), map[common.Address]int{}
	c.out = repute.Coverage{Left: map[string]int64{}}
	if c.w.Credited() > 0 {
		c.out.BySource = map[string]int64{}
	}
}

// part counts the records of some agents.
func (c *covering) part(part tallyPart) {
	c.begin()
	c.out.Records.All = int64(len(part.records))
	t, nodes, enough := &c.reader.tally, c.w.Graph().Nodes(), c.reader.p.Guard.Known
	for of, records := range part.byAgent() {
		agent := part.first + of
		node := nodes[t.owners[agent]]
		if c.agent(node, records) >= enough {
			c.known.byNode[node].Add(1)
		}
		for _, f := range c.former[agent] {
			if c.during(&f, records, t.codes[rating.ReasonEarlier]) >= enough {
				c.add(f.identity, f.node)
			}
		}
	}
	for code, n := range c.left {
		if name := repute.LeftNoWeight; n > 0 {
			if code > 0 {
				name = c.reasons[code-1]
			}
			c.out.Left[name] += n
		}
	}
}

// merge adds what another one counted.
func (c *covering) merge(other *covering) {
	for i := range c.spoke {
		c.spoke[i] |= other.spoke[i]
		c.counted[i] |= other.counted[i]
	}
	for identity, n := range other.others {
		c.known.others[identity] += n
	}
	to, from := &c.out, &other.out
	for reason, n := range from.Left {
		to.Left[reason] += n
	}
	for source, n := range from.BySource {
		to.BySource[source] += n
	}
	to.Records.All, to.Records.Counted = to.Records.All+from.Records.All, to.Records.Counted+from.Records.Counted
	to.Agents.Counted, to.Several, to.ByRoots = to.Agents.Counted+from.Agents.Counted, to.Several+from.Several,
		to.ByRoots+from.ByRoots
}

// agent counts the records of an agent and returns the sum of the vouched weights of its raters. The records of one
// rater MUST follow each other.
func (c *covering) agent(owner flow.Node, records []tallied) (weight fixed.Fixed) {
	raters, counted, last := 0, c.out.Records.Counted, -1
	for i, s := range records {
		if i == 0 || records[i-1].rater != s.rater {
			c.spoke[s.rater/64] |= 1 << (s.rater % 64)
			raters++
		}
		node := c.raters[s.rater]
		switch {
		case s.reason() > 0:
			c.left[s.reason()]++
		case node == owner:
			c.out.Left[string(rating.ReasonSelf)]++
		case !c.w.Counts(node, c.least):
			c.left[0]++
		default:
			if c.count(s.rater, node); int(s.rater) != last { // each rater once
				weight += c.w.Weight(node)
			}
			last = int(s.rater)
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

// count counts a record that counts.
func (c *covering) count(rater uint32, node flow.Node) {
	c.out.Records.Counted++
	if c.w.IsRoot(node) {
		c.out.ByRoots++
	}
	for _, credit := range c.w.Credits(node) {
		c.out.BySource[c.w.SourceRules().Sources[credit.Source].ID]++
	}
	c.counted[rater/64] |= 1 << (rater % 64)
}

// byAgent iterates over the records of each agent with its number, from 0 on in each part.
func (t *tallyPart) byAgent() iter.Seq2[uint32, []tallied] {
	return func(use func(uint32, []tallied) bool) {
		first := uint32(0)
		for agent, end := range t.ends {
			if !use(uint32(agent), t.records[first:end]) {
				return
			}
			first = end
		}
	}
}

// KnownAgents has how many known agents each identity has or handed over: see Reader.Coverage.
type KnownAgents struct {
	graph  *flow.Graph
	byNode []atomic.Uint32
	others map[common.Address]int // identities that the graph does not know
}

// Of returns how many known agents an identity has.
func (k *KnownAgents) Of(identity common.Address) int {
	if k == nil {
		return 0
	}
	if n := k.graph.Node(identity); n != flow.NoNode && int(n) < len(k.byNode) {
		return int(k.byNode[n].Load())
	}
	return k.others[identity]
}

// add counts an agent of an identity, of which node is the node.
func (c *covering) add(identity common.Address, node flow.Node) {
	if node != flow.NoNode {
		c.known.byNode[node].Add(1)
		return
	}
	c.others[identity]++
}

// Size returns about how many bytes of memory the numbers take.
func (k *KnownAgents) Size() int64 {
	if k == nil {
		return 0
	}
	return int64(len(k.byNode))*4 + int64(len(k.others))*48
}
