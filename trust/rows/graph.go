package rows

import (
	"context"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/flow"
	"repute/trust/graph"
	"repute/trust/rating"
)

// GraphOf holds the inputs of a graph besides events and parameters. They come from the configuration, from sources and
// from earlier epochs.
type GraphOf struct {
	Block       repute.Block // the view; ages run to its time
	Roots       []flow.Root
	Links       []graph.Link
	Validations []common.Address // contracts whose answers count
	Scales      []rating.FileScale
	Anew        bool             // everything is read again
	Owners      []repute.TokenID // agents that Reader.OwnerOf is asked for; others are known to it only by their history
}

// Graph makes the store that of a block and builds the graph of the chain through which trust flows. The reader has the
// scales of its raters, and returns Coverage.
//
// The order of the steps is fixed. Addresses are ordered before the reader is made, because the reader takes their
// order over. Agents and owners come before ratings, because a rating counts from the block on since when its owner had
// the agent. The scales of raters are settled before the ratings are added, because the value of a rating depends on
// its rater's scale. Nodes are known only after Build. After an error of the database the store is empty, and the
// readings of the graph before are dropped in any case.
func (s *Store) Graph(ctx context.Context, of GraphOf, p *rating.Params) (*flow.Graph, *graph.Reader, error) {
	s.mu.Lock() // until the graph is built, or a pass could move the store to the block of another run
	defer s.mu.Unlock()
	if err := s.moveTo(ctx, of.Block, of.Validations, of.Anew); err != nil {
		return nil, nil, err
	}
	s.collect()
	known := &s.numbers.addresses
	known.Order() // once for this graph and the next ones
	r := graph.NewReaderOf(known, of.Block, of.Roots, of.Links, p)
	r.StateScales(of.Scales)
	for i := range s.agents {
		s.addAgent(r, &s.agents[i])
	}
	s.addOwners(r, of.Owners)
	s.read = newReadings(&s.numbers, p)
	r.Pack(s.read.packing)
	s.scale(r)
	s.addRatings(r)
	g := r.Build()
	s.read.find(g)
	s.collect()
	return g, r, ctx.Err()
}

// many is how many ratings make the memory of one step of an epoch matter: it is some hundred megabytes then. Below it
// the collector's own pace is good enough, and forced collections would only cost time in tests and on small chains.
const many = 500_000

// The value for debug.SetGCPercent once a store with many ratings is loaded: the heap grows by mostGarbage percent of
// the live memory at most, and by about garbageBytes, but not by less than leastGarbage percent. The default of 100
// would double the peak. A lower value costs little: most of the memory has no pointers to follow.
const (
	mostGarbage  = 25
	leastGarbage = 8
	garbageBytes = 80 << 20
	ratingBytes  = 75 // that an epoch has in memory for each rating, with its part of the agent and of two graphs
)

// garbageOf returns the percentage for so many ratings.
func garbageOf(ratings int) int {
	return max(leastGarbage, min(mostGarbage, 100*garbageBytes/(ratingBytes*max(1, ratings))))
}

// boundGarbage sets the percentage for the whole process unless a lower limit is set. It is never raised again. It
// follows from the largest chain alone: with several large ones the garbage is as many percent of all of them. The
// percentage belongs to the process and not to a Store, so that it is set when the first large chain is loaded, before
// most of its memory is taken.
func boundGarbage(ratings int) {
	if ratings < many {
		return
	}
	percent := garbageOf(ratings)
	if was := debug.SetGCPercent(percent); was < percent { // negative: there is no limit but that of memory
		debug.SetGCPercent(was)
	}
}

// Collect frees memory that is not used any more when the store has very many ratings: that of an earlier step, before
// the next one takes as much. It does nothing while the store is being changed.
func (s *Store) Collect() {
	if s.mu.TryRLock() {
		defer s.mu.RUnlock()
		s.collect()
	}
}

// collect is Collect under the lock. runtime.GC blocks until the collection ends, and the caller holds the lock
// meanwhile.
func (s *Store) collect() {
	if s.ratings >= many {
		runtime.GC()
	}
}

// addAgent adds the owners of an agent to a graph. An agent without a subject never changed its owner, so that its
// number is all that the graph needs. For others, since is the block after the last change of the owner: changes of the
// wallet alone begin no new ownership, and ratings in the block of a transfer belong to the owner before.
func (s *Store) addAgent(r *graph.Reader, a *agent) {
	if a.subject == nil {
		r.Owner(a.owner)
		return
	}
	holders := a.subject.Holders
	since := holders[0].From
	for i := 1; i < len(holders); i++ {
		if holders[i].Owner != holders[i-1].Owner {
			since = holders[i].From + 1
		}
	}
	last := holders[len(holders)-1]
	r.Agent(a.token, since, last.Owner, last.Wallet)
	for tenures := tenuresOf(holders); len(tenures) > 1; tenures = tenures[1:] {
		r.Former(a.token, tenures[0])
	}
}

// addOwners makes agents known to Reader.OwnerOf. addAgent names only agents with a history: a million would take some
// hundred megabytes. Agents with a subject are known already. Tokens that the store does not have are left out, as
// nobody can own them.
func (s *Store) addOwners(r *graph.Reader, tokens []repute.TokenID) {
	for _, token := range tokens {
		if a := s.find(token); a != nil && a.subject == nil {
			r.Agent(token, a.from, s.numbers.addresses.At(a.owner), common.Address{})
		}
	}
}

// addRatings adds all ratings and answers, owner by owner. The reader adds up what an owner is rated by in one place,
// so that it needs all agents of an owner at once. The callback runs on several goroutines. They only read the store,
// whose write lock the caller holds, and r.Packed is called before they start because it changes the reader.
func (s *Store) addRatings(r *graph.Reader) {
	odd := map[uint32]*graph.PackedAgent{}
	for i := range s.agents {
		if a := &s.agents[i]; a.subject != nil {
			packed := r.Packed(&a.token)
			odd[uint32(i)] = &packed
		}
	}
	order, first := s.byOwner()
	r.PackedOwners(len(first)-1, func(owner int, use func(*graph.PackedAgent)) {
		for _, i := range order[first[owner]:first[owner+1]] {
			a, packed := &s.agents[i], graph.PackedAgent{Owner: s.agents[i].owner}
			if known := odd[i]; known != nil {
				packed = *known
			} else {
				packed.Since = a.from
			}
			packed.Rows, packed.Answers = a.ratings, s.answers[a.token]
			use(&packed)
		}
	})
}

// byOwner returns the indices of the agents in order of their present owners, and where those of each owner begin. It
// is a counting sort in two arrays instead of a map of slices, which would take several times the memory of the agents.
// first has one entry more than there are owners; owners are in the order of their addresses, so that the graph does
// not depend on the order in which the store learned of them.
func (s *Store) byOwner() (order, first []uint32) {
	addresses := &s.numbers.addresses
	next := make([]uint32, addresses.Len()+1) // by owner
	owners := make([]uint32, len(s.agents))
	for i := range s.agents {
		owners[i] = s.agents[i].present(addresses)
		next[owners[i]]++
	}
	sum := uint32(0)
	for _, owner := range addresses.Order() {
		if n := next[owner]; n > 0 {
			first = append(first, sum)
			next[owner], sum = sum, sum+n
		}
	}
	order = make([]uint32, len(s.agents))
	for i, owner := range owners {
		order[next[owner]] = uint32(i)
		next[owner]++
	}
	return order, append(first, sum)
}

// scale lets a reader find the scales of all raters. It takes two passes over the ratings, because Measure needs what
// Survey found about all raters. On most chains no kind of rating may have a scale, and both passes are left out.
func (s *Store) scale(r *graph.Reader) {
	defer r.Settle()
	may := make([]bool, len(s.numbers.kinds))
	for i := range may {
		may[i] = r.MayScale(s.read.said(uint32(i)))
	}
	if !slices.Contains(may, true) {
		return
	}
	s.eachRow(func(one *rating.PackedRow) bool { return may[one.Kind] }, r.Survey)
	s.eachRow(func(one *rating.PackedRow) bool { return r.IsScaled(one.Writer + 1) }, r.Measure)
}

// eachRow calls use with the ratings for which want returns true, and with all answers. The row is used again for the
// next rating: use MUST NOT keep it.
func (s *Store) eachRow(want func(*rating.PackedRow) bool, use func(repute.TokenID, rating.Row)) {
	var row rating.Row
	for i := range s.agents {
		a := &s.agents[i]
		for j := range a.ratings {
			if want(&a.ratings[j]) {
				s.numbers.row(&a.ratings[j], &row)
				row.Said = s.read.said(a.ratings[j].Kind)
				use(a.token, row)
			}
		}
		if len(s.answers) > 0 {
			for _, answer := range s.answers[a.token] {
				use(a.token, answer)
			}
		}
	}
}

// present returns the number of the agent's present owner, who is among the addresses. readSubjects adds that owner, so
// that Find cannot fail.
func (a *agent) present(addresses *flow.Addresses) uint32 {
	if a.subject != nil {
		owner, _ := addresses.Find(a.subject.Owner)
		return owner
	}
	return a.owner
}
