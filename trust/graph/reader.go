package graph

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
)

// Reader builds the graph through which trust flows: it has an edge from each address
// that rated an agent well to the agent's owner. The weight of an edge is that of flow.Params.Edge: newer
// opinions weigh more. An agent's owner and its verified wallet, who both signed for that,
// are one identity. Ratings from before the owner got the agent do not count. Roots are part
// of the graph even when nothing else is known of them.
type Reader struct {
	b       *flow.GraphBuilder
	p       *rating.Params
	at      int64 // the time that ratings age to, in Unix seconds
	agents  map[repute.TokenID]agentOwner
	former  map[repute.TokenID][]rating.Tenure // of agents that had other owners or wallets, the oldest first
	pairs   map[[2]uint32]int                  // index in means by rater and owner
	means   []rating.Mean
	habits  rating.Habits
	files   map[rating.Writing]int // scales that files of feedback state
	small   []smallRating
	scales  *rating.Scales // nil before Build
	tally   tally
	unread  unreadTags
	writers []graphWriter   // by Row.Writer - 1
	packing *rating.Packing // nil unless Pack was called
	last    agentOwner      // of lastToken, so that ratings of one agent that follow each other find it once
	// lastKnown says that lastToken has an owner.
	lastToken          repute.TokenID
	lastKnown, hasLast bool
}

// smallRating is a rating whose scale is known when everything was read.
type smallRating struct {
	rating.Record
	rating.Writing
	value fixed.Fixed
	owner uint32
	index int    // of the record in Reader.tally, before it is sorted
	late  bool   // the agent has another owner since
	by    uint32 // Row.Writer
}

type agentOwner struct {
	id        uint32
	since     uint64
	owner     common.Address
	isSettled bool             // since is that of the owner's identity
	moved     []common.Address // that the owner's identity moved the agent from
}

// NewReader returns a reader of the state at a block.
func NewReader(at repute.Block, roots []flow.Root, links []Link, p *rating.Params) *Reader {
	return NewReaderOf(&flow.Addresses{}, at, roots, links, p)
}

// NewReaderOf is NewReader with numbers of addresses, by which packed agents name their owners and packed ratings their
// raters.
func NewReaderOf(known *flow.Addresses, at repute.Block, roots []flow.Root, links []Link, p *rating.Params) *Reader {
	r := &Reader{b: flow.NewGraphBuilderOf(known), p: p, at: at.Time.Unix(), agents: map[repute.TokenID]agentOwner{},
		pairs: map[[2]uint32]int{}, habits: rating.Habits{}, former: map[repute.TokenID][]rating.Tenure{},
		unread: unreadTags{}}
	for _, root := range roots {
		r.b.Add(root.Address)
	}
	for _, l := range links {
		r.b.Link(r.b.Add(l.A), r.b.Add(l.B))
	}
	return r
}

// StateScales adds the scales that files of feedback state. It MUST be called before the first rating is added.
func (r *Reader) StateScales(list []rating.FileScale) { r.files = r.p.Tags.FileScales(list) }

// Agent adds an agent, which its owner has had since a block. All agents MUST be added
// before the first rating.
func (r *Reader) Agent(token repute.TokenID, since uint64, owner, wallet common.Address) {
	id := r.b.Add(owner)
	r.agents[token] = agentOwner{id: id, since: since, owner: owner}
	if wallet != (common.Address{}) {
		r.b.Link(id, r.b.Add(wallet))
	}
}

// Former adds an earlier tenure of an agent, the oldest first. Tenures follow each other, and the agent's owner has it
// since the last one. An identity that handed an agent over has it among its known agents: see Coverage.
func (r *Reader) Former(token repute.TokenID, t rating.Tenure) {
	r.former[token] = append(r.former[token], t)
}

// agent returns the owner of an agent, with the first block whose ratings are about the owner's identity.
func (r *Reader) agent(token repute.TokenID) (of agentOwner, known bool) {
	of, known = r.agents[token]
	if !known && r.packing != nil {
		return of, true // it had no other owner
	}
	if former := r.former[token]; known && !of.isSettled && len(former) > 0 {
		tenures := append(slices.Clip(former), rating.Tenure{From: of.since, Owner: of.owner})
		of.since, of.isSettled = rating.PresentSinceFunc(tenures, r.b.Linked), true
		of.moved = rating.MovedFrom(tenures, of.since)
		r.agents[token] = of
	}
	return of, known
}

// OwnerOf returns the owner of an agent. own reports whether ratings of a block are about the owner's identity, not
// about an earlier one's.
func (r *Reader) OwnerOf(token repute.TokenID, block uint64) (owner common.Address, own bool) {
	if _, isListed := r.agents[token]; !isListed {
		return owner, false
	}
	of, _ := r.agent(token)
	return of.owner, block >= of.since
}

// graphWriter has what a Reader knows of a rater with a number.
type graphWriter struct {
	id, number uint32 // 1 more than its numbers in the builder and in the tally, 0 for none
	isScaled   bool   // the scale of one of its tags may be another one than the tag's
}

// writer returns what is known of a row's rater. It is valid until the next call.
func (r *Reader) writer(row *rating.Row) *graphWriter {
	if row.Writer == 0 {
		return &graphWriter{}
	}
	for len(r.writers) < int(row.Writer) {
		r.writers = append(r.writers, graphWriter{})
	}
	return &r.writers[row.Writer-1]
}

// Survey tells the reader of a rating before all ratings are added, because the scale of its rater follows from it.
// When Survey is called for one rating, it MUST be called for all, and then Measure for all, and then Settle, before
// the first of them is added.
func (r *Reader) Survey(token repute.TokenID, row rating.Row) {
	w, rule, value, ok := r.scaled(token, &row)
	if !ok || r.habits[w] != nil {
		return
	}
	if _, stated := r.files[w]; stated || rule.HasOtherScale(value) {
		r.habits[w] = &rating.Habit{}
		r.writer(&row).isScaled = true
	}
}

// MayScale reports whether Survey has an effect for ratings with this meaning; nil is an unknown one.
func (r *Reader) MayScale(s *rating.Said) bool {
	if s == nil || len(r.files) > 0 {
		return true
	}
	return r.p.HasOtherScale(s)
}

// IsScaled reports whether Measure has an effect for ratings of the rater with a number, after Survey.
func (r *Reader) IsScaled(writer uint32) bool {
	return writer == 0 || int(writer) <= len(r.writers) && r.writers[writer-1].isScaled
}

// Measure adds a rating to what the scale of its rater follows from: see Survey.
func (r *Reader) Measure(token repute.TokenID, row rating.Row) {
	if !r.IsScaled(row.Writer) {
		return
	}
	if w, rule, value, ok := r.scaled(token, &row); ok && r.habits[w] != nil {
		r.habits.Add(w, rule, value)
	}
}

// scaled returns the value of a rating that may count, if its tag is written on several scales.
func (r *Reader) scaled(token repute.TokenID,
	row *rating.Row) (w rating.Writing, rule *rating.TagRule, value fixed.Fixed, ok bool) {
	of, known := r.owner(token)
	if !known {
		return w, nil, 0, false
	}
	e, w, value, reason := r.p.Begin(row, r.at)
	if reason != "" || slices.Contains(of.moved, row.Rater) {
		return w, nil, 0, false
	}
	rule = r.p.TagRule(&e)
	return w, rule, value, rule != nil && len(rule.Scales) > 0
}

// Settle computes the scales of all raters from what Measure was called with. Without it ratings whose scale depends on
// others are kept until Build, which takes more memory.
func (r *Reader) Settle() {
	r.scales = r.habits.Scales(&r.p.Tags, r.files)
	r.habits = nil
}

// owner is agent with the result of the last call.
func (r *Reader) owner(token repute.TokenID) (of agentOwner, known bool) {
	if !r.hasLast || r.lastToken != token {
		r.last, r.lastKnown = r.agent(token)
		r.lastToken, r.hasLast = token, true
	}
	return r.last, r.lastKnown
}

// Rating adds a rating of an agent, or the answer of a validation contract.
func (r *Reader) Rating(token repute.TokenID, row rating.Row) {
	of, known := r.owner(token)
	if !known {
		return
	}
	by := r.writer(&row)
	index := r.tally.add(token, of.id, row.Rater, &by.number, r.at-row.Time)
	e, w, value, reason := r.p.Begin(&row, r.at)
	if reason == "" && slices.Contains(of.moved, row.Rater) {
		reason = rating.ReasonSelf
	}
	if reason != "" {
		r.tally.leave(index, reason)
		r.unread.add(row.Tag1, reason)
		return
	}
	one := smallRating{e, w, value, of.id, index, row.Block < of.since, row.Writer}
	if rule := r.p.TagRule(&e); r.scales == nil && rule != nil {
		r.habits.Add(w, rule, value)
		if _, stated := r.files[w]; stated || rule.HasOtherScale(value) {
			r.small = append(r.small, one)
			return
		}
	}
	r.add(&one)
}

// add adds a rating to the mean of its rater.
func (r *Reader) add(one *smallRating) {
	if reason := r.p.Judge(&one.Record, one.Writing, one.value, r.scales); reason != "" {
		r.tally.leave(one.index, reason)
		return
	}
	if one.late { // it concerns an earlier owner
		if one.Record.Value > 0 {
			r.tally.leave(one.index, rating.ReasonEarlier)
		}
		return
	}
	pair := [2]uint32{r.idOf(one), one.owner}
	r.b.Rates(pair[0])
	at, known := r.pairs[pair]
	if !known {
		at = len(r.means)
		r.pairs[pair], r.means = at, append(r.means, rating.Mean{})
	}
	r.means[at].Add(r.p, &one.Record, r.at)
}

// idOf returns the builder's number of the rater.
func (r *Reader) idOf(one *smallRating) uint32 {
	if one.by == 0 {
		return r.b.Add(one.Rater)
	}
	w := &r.writers[one.by-1]
	if w.id == 0 {
		w.id = r.b.Add(one.Rater) + 1
	}
	return w.id - 1
}

// Scales are those of the raters of all that was added. It is nil before Build.
func (r *Reader) Scales() *rating.Scales { return r.scales }

// Build returns the graph of all that was added. It is called once, after the last rating.
func (r *Reader) Build() *flow.Graph {
	if r.scales == nil {
		r.Settle()
	}
	for i := range r.small {
		r.add(&r.small[i])
	}
	r.small = nil
	for token := range r.former {
		r.agent(token) // the builder knows who is linked until it builds
	}
	r.tally.sort()
	r.vouch()
	return r.b.Build()
}

// vouch adds an edge for each positive mean.
func (r *Reader) vouch() {
	for pair, at := range r.pairs {
		if value, strength := r.means[at].Value(); value > 0 {
			r.b.Vouch(pair[0], pair[1], r.p.Walk.Edge(value, strength))
		}
	}
}
