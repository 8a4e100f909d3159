package trust

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
	"repute/trust/flow"
)

// GraphReader builds the graph of who vouches for whom: an edge goes from each address
// that rated an agent well to the agent's owner. Its weight is that of flow.Params.Edge: newer
// opinions weigh more. An agent's owner and its verified wallet, who both signed for that,
// are one identity. Ratings from before the owner got the agent do not count. Roots are part
// of the graph even when nothing else is known of them.
type GraphReader struct {
	b      *flow.GraphBuilder
	p      *Params
	at     int64 // the time that ratings age to, in Unix seconds
	agents map[repute.TokenID]agentOwner
	means  map[[2]uint32]*decayedMean // by rater and owner
	habits habits
	files  map[writing]int // scales that files of feedback state
	small  []smallRating
	scales *Scales // nil before Build
	told   tally
	unread unreadTags
}

// smallRating is a rating whose scale is known when everything was read.
type smallRating struct {
	record
	writing
	value fixed.Fixed
	owner uint32
	told  int  // of GraphReader.told
	late  bool // the agent has another owner since
}

type agentOwner struct {
	id    uint32
	since uint64
	owner common.Address
}

// NewGraphReader returns a reader of the state at a block.
func NewGraphReader(at repute.Block, roots []flow.Root, links []Link, p *Params) *GraphReader {
	r := &GraphReader{b: flow.NewGraphBuilder(), p: p, at: at.Time.Unix(), agents: map[repute.TokenID]agentOwner{},
		means: map[[2]uint32]*decayedMean{}, habits: habits{}}
	for _, root := range roots {
		r.b.Add(root.Address)
	}
	for _, l := range links {
		r.b.Link(r.b.Add(l.A), r.b.Add(l.B))
	}
	return r
}

// StateScales adds the scales that files of feedback state. It MUST be called before the first rating is added.
func (r *GraphReader) StateScales(list []FileScale) { r.files = r.p.Tags.fileScales(list) }

// Agent adds an agent, which its owner has had since a block. Each agent MUST be added
// before its ratings.
func (r *GraphReader) Agent(token repute.TokenID, since uint64, owner, wallet common.Address) {
	id := r.b.Add(owner)
	r.agents[token] = agentOwner{id, since, owner}
	if wallet != (common.Address{}) {
		r.b.Link(id, r.b.Add(wallet))
	}
}

// Rating adds a rating of an agent, or the answer of a validation contract.
func (r *GraphReader) Rating(token repute.TokenID, row Row) {
	of, known := r.agents[token]
	if !known {
		return
	}
	told := r.told.add(token, of.owner, row.Rater, row.Time)
	e, w, value, reason := r.p.begin(&row, r.at)
	if reason != "" {
		r.told.leave(told, reason)
		r.unread.add(row.Tag1, reason)
		return
	}
	one := smallRating{e, w, value, of.id, told, row.Block < of.since}
	if int(e.rule) < len(r.p.Tags.rules) {
		rule := r.p.Tags.rules[e.rule]
		r.habits.add(w, rule, value)
		if _, stated := r.files[w]; stated || rule.hasOtherScale(value) {
			r.small = append(r.small, one)
			return
		}
	}
	r.add(&one)
}

// add adds a rating to the mean of its rater.
func (r *GraphReader) add(one *smallRating) {
	if reason := r.p.judge(&one.record, one.writing, one.value, r.scales); reason != "" {
		r.told.leave(one.told, reason)
		return
	}
	if one.late { // it concerns an earlier owner
		if one.record.value > 0 {
			r.told.leave(one.told, ReasonEarlier)
		}
		return
	}
	pair := [2]uint32{r.b.Add(one.rater), one.owner}
	r.b.Rates(pair[0])
	if r.means[pair] == nil {
		r.means[pair] = &decayedMean{}
	}
	r.means[pair].add(r.p, &one.record, r.at)
}

// Raters are the addresses of which some rating can be read, in order.
func (r *GraphReader) Raters() (list []common.Address) {
	read := make([]bool, len(r.told.raters))
	for _, s := range r.told.records {
		read[s.rater] = read[s.rater] || s.reason == 0
	}
	for a, n := range r.told.raters {
		if read[n] {
			list = append(list, a)
		}
	}
	slices.SortFunc(list, common.Address.Cmp)
	return list
}

// Scales are those of the raters of all that was added. It is nil before Build.
func (r *GraphReader) Scales() *Scales { return r.scales }

// Build returns the graph of all that was added. It is called once.
func (r *GraphReader) Build() *flow.Graph {
	r.scales = r.habits.scales(&r.p.Tags, r.files)
	for i := range r.small {
		r.add(&r.small[i])
	}
	r.small, r.habits = nil, nil
	for pair, s := range r.means {
		if value, strength := s.mean(); value > 0 {
			r.b.Vouch(pair[0], pair[1], r.p.Walk.Edge(value, strength))
		}
	}
	return r.b.Build()
}
