package rows

import (
	"context"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/flow"
	"repute/trust/graph"
	"repute/trust/rating"
)

// GraphOf holds the inputs of a graph besides events and parameters.
type GraphOf struct {
	Block       repute.Block // the view; ages run to its time
	Roots       []flow.Root
	Links       []graph.Link
	Validations []common.Address // contracts whose answers count
	Scales      []rating.FileScale
	Anew        bool // everything is read again
	Owners      bool // the reader is asked for OwnerOf
}

// Graph makes the store that of a block and builds the graph of the chain through which trust flows. The reader has the
// scales of its raters, and returns Coverage.
func (s *Store) Graph(ctx context.Context, of GraphOf, p *rating.Params) (*flow.Graph, *graph.Reader, error) {
	s.mu.Lock() // until the graph is built, or a pass could move the store to the block of another run
	defer s.mu.Unlock()
	if err := s.moveTo(ctx, of.Block, of.Validations, of.Anew); err != nil {
		return nil, nil, err
	}
	r := graph.NewReader(of.Block, of.Roots, of.Links, p)
	r.StateScales(of.Scales)
	owners := make([]uint32, len(s.agents))
	for i := range s.agents {
		owners[i] = s.addAgent(r, &s.agents[i], of.Owners)
	}
	s.read = newReadings(&s.numbers, p)
	r.Pack(s.read.packing)
	s.scale(r)
	s.addRatings(r, owners)
	g := r.Build()
	s.read.find(g)
	return g, r, ctx.Err()
}

// addAgent adds the owners of an agent to a graph, and returns the number of the present one.
func (s *Store) addAgent(r *graph.Reader, a *agent, all bool) uint32 {
	wallet := common.Address{}
	if a.isOwn {
		wallet = a.owner
	}
	if a.subject == nil {
		if all {
			r.Agent(a.token, a.from, a.owner, wallet)
		}
		return r.Owner(a.owner)
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
	return r.Owner(last.Owner)
}

// addRatings adds all ratings and answers, owner by owner. owners are the numbers of the agents' owners.
func (s *Store) addRatings(r *graph.Reader, owners []uint32) {
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
			a, packed := &s.agents[i], graph.PackedAgent{Owner: owners[i]}
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

// byOwner returns the indices of the agents in order of their present owners, and where those of each owner begin.
func (s *Store) byOwner() (order, first []uint32) {
	keys := make([]flow.AddressKey, len(s.agents))
	for i := range s.agents {
		keys[i] = flow.KeyOf(s.agents[i].present(), uint32(i))
	}
	slices.SortFunc(keys, flow.AddressKey.Compare)
	order = make([]uint32, len(keys))
	for i, k := range keys {
		order[i] = k.Index
		if i == 0 || !k.Same(keys[i-1]) {
			first = append(first, uint32(i))
		}
	}
	return order, append(first, uint32(len(keys)))
}

// scale lets a reader find the scales of all raters.
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

// eachRow calls use with the ratings for which want returns true, and with all answers.
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

// present returns the agent's present owner.
func (a *agent) present() common.Address {
	if a.subject != nil {
		return a.subject.Owner
	}
	return a.owner
}
