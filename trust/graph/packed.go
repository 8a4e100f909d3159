package graph

import (
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/flow"
	"repute/trust/rating"
)

// PackedAgent is an agent with packed ratings.
type PackedAgent struct {
	Owner uint32 // number of the owner in the addresses of NewReaderOf
	Since uint64 // first block whose ratings are about the owner's identity
	Moved []common.Address
	Rows  []rating.PackedRow
	// Answers are answers of validation contracts, whose Writer MUST be set.
	Answers []rating.Row
	// Former is the token id of an agent that had other owners or wallets, nil for others.
	Former *repute.TokenID
}

// Pack tells the reader what packed rows consist of. All ratings are then added by PackedOwners; those of Survey and
// Measure have a Writer. The packing need not be judged or have nodes yet. The reader MUST be made by NewReaderOf with
// addresses that begin with the raters of the packing.
func (r *Reader) Pack(p *rating.Packing) {
	r.packing, r.tally.packed = p, len(p.Raters)
	r.writers = make([]graphWriter, len(p.Raters))
}

// Owner adds the owner of an agent that had no other one, by its number in the addresses of NewReaderOf. It is Agent
// for agents whose ratings are packed.
func (r *Reader) Owner(number uint32) { r.b.Use(number) }

// Packed returns an agent that was added by Agent, and perhaps by Former. It is called when all agents were added.
func (r *Reader) Packed(token *repute.TokenID) PackedAgent {
	of, _ := r.agent(*token)
	out := PackedAgent{Owner: of.id, Since: of.since, Moved: of.moved}
	if len(r.former[*token]) > 0 {
		out.Former = token
	}
	return out
}

// PackedOwners adds the packed ratings of the agents of so many owners, on all processors. of calls use for each agent
// of the i-th owner; it is called concurrently. It MUST be called after Settle, with all agents of each owner; the
// owners SHOULD be in order of their addresses.
func (r *Reader) PackedOwners(owners int, of func(i int, use func(*PackedAgent))) {
	r.packing.Judge(r.p, r.scales)
	parts := make([]*packedPart, 4*runtime.GOMAXPROCS(0)) // more than processors, as owners have ratings in all numbers
	next := make(chan int, len(parts))
	for i := range parts {
		next <- i
	}
	close(next)
	r.tally.nameReasons()
	sizes := sizesOf(len(parts), owners, of)
	rooms := make([]int, len(parts))
	for i, size := range sizes {
		rooms[i] = size.rows
	}
	edges := flow.NewEdgeLists(rooms)
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			slots := pairSlots{of: make([]pairSlot, len(r.packing.Raters))}
			for i := range next {
				parts[i] = r.newPart(&slots, sizes[i], &edges[i])
				parts[i].read(owners*i/len(parts), owners*(i+1)/len(parts), of)
			}
		})
	}
	group.Wait()
	for i, part := range parts {
		r.takePart(part)
		parts[i] = nil
	}
	r.b.VouchAll(edges)
}

// packedPart is what a goroutine reads for some owners. The numbers of edges' givers are those of raters.
type packedPart struct {
	r       *Reader
	slots   *pairSlots
	means   []rating.Mean // of the owner that is being read
	raters  []uint32      // of means
	edges   *flow.EdgeList
	tally   tallyPart
	owners  []uint32 // of agents with records, in their order
	former  map[repute.TokenID]uint32
	counted []uint64 // by rater, a bit each: a rating of it counts
	unread  unreadTags
}

// pairSlots finds the mean of a rater among those of one owner. Unlike a map it is emptied in no time.
type pairSlots struct {
	of   []pairSlot // by rater
	turn uint32
}

type pairSlot struct{ turn, index uint32 }

// partSize is how many ratings and answers a part has, and how many of them its owner with most has.
type partSize struct{ rows, most int }

// sizesOf returns the sizes of so many parts of the owners.
func sizesOf(parts, owners int, of func(i int, use func(*PackedAgent))) []partSize {
	out := make([]partSize, parts)
	flow.Parallel(parts, func(low, high int) {
		for p := low; p < high; p++ {
			size := &out[p]
			for i := owners * p / parts; i < owners*(p+1)/parts; i++ {
				before := size.rows
				of(i, func(a *PackedAgent) { size.rows += len(a.Rows) + len(a.Answers) })
				size.most = max(size.most, size.rows-before)
			}
		}
	})
	return out
}

// newPart returns a part of a size that has read nothing.
func (r *Reader) newPart(slots *pairSlots, size partSize, edges *flow.EdgeList) *packedPart {
	return &packedPart{r: r, slots: slots, edges: edges, counted: make([]uint64, len(r.packing.Raters)/64+1),
		unread: unreadTags{}, former: map[repute.TokenID]uint32{},
		tally: tallyPart{records: make([]tallied, 0, size.rows)},
		means: make([]rating.Mean, 0, size.most), raters: make([]uint32, 0, size.most)}
}

// read reads the ratings of the owners from first to below end.
func (t *packedPart) read(first, end int, of func(i int, use func(*PackedAgent))) {
	for i := first; i < end; i++ {
		if t.slots.turn++; t.slots.turn == 0 {
			clear(t.slots.of)
			t.slots.turn = 1
		}
		var owner uint32
		of(i, func(a *PackedAgent) {
			owner = a.Owner
			t.agent(a)
		})
		t.vouch(owner)
	}
	t.means, t.raters = nil, nil
}

// agent reads the ratings and answers about an agent.
func (t *packedPart) agent(a *PackedAgent) {
	if len(a.Rows)+len(a.Answers) == 0 {
		return
	}
	r, first := t.r, len(t.tally.records)
	if a.Former != nil {
		t.former[*a.Former] = uint32(len(t.owners))
	}
	t.owners = append(t.owners, a.Owner)
	for i := range a.Rows {
		row := &a.Rows[i]
		e, reason := r.packing.Read(r.p, row, r.at)
		if reason == rating.ReasonUnknownTag || reason == rating.ReasonChannel {
			t.leave(row, reason)
		}
		if len(a.Moved) > 0 && slices.Contains(a.Moved, r.packing.Raters[row.Writer]) && r.begins(row, reason) {
			reason = rating.ReasonSelf
		}
		t.record(row.Writer, &e, int64(row.Time), uint64(row.Block) < a.Since, reason)
	}
	for i := range a.Answers {
		row := &a.Answers[i]
		e, w, value, reason := r.p.Begin(row, r.at)
		if reason == "" && slices.Contains(a.Moved, row.Rater) {
			reason = rating.ReasonSelf
		}
		if reason == "" {
			reason = r.p.Judge(&e, w, value, r.scales)
		}
		t.record(row.Writer-1, &e, row.Time, row.Block < a.Since, reason)
	}
	slices.SortFunc(t.tally.records[first:], tallied.compare)
	t.tally.ends = append(t.tally.ends, uint32(len(t.tally.records)))
}

// begins reports whether Params.begin gives no reason for which a row does not count, when read gives reason.
func (r *Reader) begins(row *rating.PackedRow, reason rating.Reason) bool {
	if reason != rating.ReasonScale && reason != rating.ReasonRange {
		return reason == ""
	}
	var single rating.Row
	r.packing.Expand(row, &single)
	_, _, _, reason = r.p.Begin(&single, r.at)
	return reason == ""
}

// leave counts a rating that is not read for its tag.
func (t *packedPart) leave(row *rating.PackedRow, reason rating.Reason) {
	var single rating.Row
	t.r.packing.Expand(row, &single)
	t.unread.add(single.Tag1, reason)
}

// record adds one rating of an agent. late says that it concerns an earlier owner.
func (t *packedPart) record(rater uint32, e *rating.Record, at int64, late bool, reason rating.Reason) {
	if reason == "" && late && e.Value > 0 {
		reason = rating.ReasonEarlier
	}
	code := uint32(0)
	if reason != "" {
		code = uint32(t.r.tally.codes[reason])
	}
	t.tally.records = append(t.tally.records, tallied{rater, uint32(ageMinutes(t.r.at-at))<<8 | code})
	if reason == "" && !late {
		t.add(rater, e)
	}
}

// add adds a rating to the mean of its rater.
func (t *packedPart) add(rater uint32, e *rating.Record) {
	t.counted[rater/64] |= 1 << (rater % 64)
	s := &t.slots.of[rater]
	if s.turn != t.slots.turn {
		*s = pairSlot{t.slots.turn, uint32(len(t.means))}
		t.means, t.raters = append(t.means, rating.Mean{}), append(t.raters, rater)
	}
	t.means[s.index].Add(t.r.p, e, t.r.at)
}

// vouch adds an edge for each positive mean about an owner.
func (t *packedPart) vouch(owner uint32) {
	for i := range t.means {
		if value, strength := t.means[i].Value(); value > 0 {
			if w := flow.EdgeWeight(t.r.p.Walk.Edge(value, strength)); w > 0 {
				t.edges.Add(t.raters[i], w)
			}
		}
	}
	t.edges.End(owner)
	t.means, t.raters = t.means[:0], t.raters[:0]
}

// takePart adds what a goroutine read.
func (r *Reader) takePart(t *packedPart) {
	for word, set := range t.counted {
		for ; set != 0; set &= set - 1 {
			r.b.Rates(uint32(word*64 + bits.TrailingZeros64(set)))
		}
	}
	for key, n := range t.unread {
		r.unread[key] += n
	}
	t.tally.first = uint32(len(r.tally.owners))
	for token, n := range t.former {
		r.tally.agents[token] = t.tally.first + n
	}
	r.tally.owners = append(r.tally.owners, t.owners...)
	r.tally.parts = append(r.tally.parts, t.tally)
}
