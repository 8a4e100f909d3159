package trust

import (
	"cmp"
	"iter"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
	"repute/trust/flow"
)

// tally has a short form of each record that was added to a GraphReader. Coverage and Credited read it.
type tally struct {
	records []tallied
	raters  map[common.Address]uint32 // number of each rater
	agents  map[repute.TokenID]uint32 // number of each agent
	owners  []common.Address          // by number of the agent
	codes   map[Reason]uint8          // 1 more than the index in Reasons
	// lastAgent is the number of last, the agent of the newest record.
	last      repute.TokenID
	lastAgent uint32
}

// tallied is one record in 12 bytes, so that ten million fit into memory.
type tallied struct {
	rater, agent uint32 // numbers in tally.raters and tally.agents
	// ageAndReason is the age in minutes in the upper 24 bits, and in the lower eight the code of the reason for which
	// the record does not count, 0 when it can be read.
	ageAndReason uint32
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

// add adds a record with an age in seconds and returns its index, which is valid until sort.
// known is 1 more than the rater's number, or 0: then add sets it.
func (t *tally) add(token repute.TokenID, owner, rater common.Address, known *uint32, age int64) int {
	if t.raters == nil {
		t.raters, t.agents = map[common.Address]uint32{}, map[repute.TokenID]uint32{}
		t.codes = map[Reason]uint8{}
		for i, reason := range Reasons() {
			t.codes[reason] = uint8(i + 1)
		}
	}
	if len(t.owners) == 0 || t.last != token {
		agent, isNew := number(t.agents, token)
		if isNew {
			t.owners = append(t.owners, owner)
		}
		t.last, t.lastAgent = token, agent
	}
	if *known == 0 {
		by, _ := number(t.raters, rater)
		*known = by + 1
	}
	t.records = append(t.records, tallied{rater: *known - 1, agent: t.lastAgent, ageAndReason: uint32(ageMinutes(age)) << 8})
	return len(t.records) - 1
}

// leave sets the reason for which a record does not count.
func (t *tally) leave(record int, reason Reason) {
	r := &t.records[record]
	r.ageAndReason = r.ageAndReason&^0xff | uint32(t.codes[reason])
}

// sort orders the records by agent and rater. Build calls it once, after the last add: byAgent relies on the order, and
// indices of records are invalid afterwards.
func (t *tally) sort() {
	byRater := func(a, b tallied) int { return cmp.Compare(a.rater, b.rater) }
	if slices.IsSortedFunc(t.records, func(a, b tallied) int { return cmp.Compare(a.agent, b.agent) }) {
		for _, records := range t.byAgent() {
			slices.SortFunc(records, byRater)
		}
		return
	}
	slices.SortFunc(t.records, func(a, b tallied) int { return cmp.Or(cmp.Compare(a.agent, b.agent), byRater(a, b)) })
}

// Coverage counts the added records by whether they count with these weights of the graph of Build. It leaves the
// fields Rated, Thin and ToFifty to the caller. known is how many known agents each identity has or handed over: agents
// whose raters have a vouched weight of GuardParams.Known together.
func (r *GraphReader) Coverage(w *flow.Weights) (out repute.Coverage, known map[common.Address]int) {
	t := &r.tally
	c := &covering{w: w, least: r.p.Paths.MinWeight, raters: make([]flow.Node, len(t.raters)),
		seen: make([]uint32, len(t.raters)), counted: make([]bool, len(t.raters)), out: repute.Coverage{
			Left: map[string]int64{}, Records: repute.Counted{All: int64(len(t.records))},
			Raters: repute.Counted{All: int64(len(t.raters))}, Agents: repute.Counted{All: int64(len(t.agents))}}}
	if w.Credited() > 0 {
		c.out.BySource = map[string]int64{}
	}
	for a, n := range t.raters {
		c.raters[n] = w.Graph().Node(a)
	}
	for _, reason := range Reasons() {
		c.reasons = append(c.reasons, string(reason))
	}
	enough := r.p.Guard.Known
	former := r.formerOwners(w.Graph())
	known = map[common.Address]int{}
	for agent, records := range t.byAgent() {
		owner := t.owners[agent]
		if weight := c.agent(uint32(agent), w.Graph().Node(owner), records); weight >= enough {
			known[w.Graph().Identity(owner)]++
		}
		for _, f := range former[uint32(agent)] {
			if c.during(&f, records, t.codes[ReasonEarlier]) >= enough {
				known[f.identity]++
			}
		}
	}
	c.out.Tags = r.unread.most()
	return c.out, known
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
func (r *GraphReader) formerOwners(g *flow.Graph) map[uint32][]formerOwner {
	out := map[uint32][]formerOwner{}
	for token, tenures := range r.former {
		agent, isRated := r.tally.agents[token]
		if !isRated {
			continue
		}
		present := g.Identity(r.agents[token].owner)
		registrar := g.Identity(tenures[0].Owner)
		var atOnce bool
		if i := slices.IndexFunc(tenures, func(t Tenure) bool { return g.Identity(t.Owner) != registrar }); i > 0 {
			atOnce = isHandover(tenures[0].Began, tenures[i].Began)
		} else {
			atOnce = isHandover(tenures[0].Began, tenures[len(tenures)-1].Ended)
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

// covering computes a Coverage, agent by agent.
type covering struct {
	w       *flow.Weights
	least   fixed.Fixed // a rater with this weight or less does not count
	reasons []string    // names of Reasons, by code - 1
	raters  []flow.Node // by number
	seen    []uint32    // by rater: 1 more than the number of the last agent with a counted record of the rater
	counted []bool      // by rater: one of its records counts
	out     repute.Coverage
}

// agent counts the records of an agent and returns the sum of the vouched weights of its raters. The records of one
// rater MUST follow each other.
func (c *covering) agent(agent uint32, owner flow.Node, records []tallied) (weight fixed.Fixed) {
	raters, counted := 0, c.out.Records.Counted
	for i, s := range records {
		if i == 0 || records[i-1].rater != s.rater {
			raters++
		}
		node := c.raters[s.rater]
		switch {
		case s.reason() > 0:
			c.out.Left[c.reasons[s.reason()-1]]++
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

// count counts a record that counts. It returns the vouched weight of the rater for the rater's first record of the
// agent, and 0 for its others.
func (c *covering) count(agent, rater uint32, node flow.Node) fixed.Fixed {
	c.out.Records.Counted++
	if c.w.IsRoot(node) {
		c.out.ByRoots++
	}
	for _, credit := range c.w.Credits(node) {
		c.out.BySource[c.w.SourceRules().Sources[credit.Source].ID]++
	}
	if !c.counted[rater] {
		c.counted[rater] = true
		c.out.Raters.Counted++
	}
	if c.seen[rater] == agent+1 {
		return 0
	}
	c.seen[rater] = agent + 1
	return c.w.Weight(node)
}

// byAgent iterates over the numbers of agents with records, and over their records ordered by rater. The records MUST
// be sorted.
func (t *tally) byAgent() iter.Seq2[int, []tallied] {
	return func(use func(int, []tallied) bool) {
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
