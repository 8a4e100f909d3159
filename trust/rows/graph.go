package rows

import (
	"bytes"
	"context"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust"
	"repute/trust/flow"
)

// GraphOf holds the inputs of a graph besides events and parameters.
type GraphOf struct {
	Block       repute.Block // the view; ages run to its time
	Roots       []flow.Root
	Links       []trust.Link
	Validations []common.Address // contracts whose answers count
	Scales      []trust.FileScale
	Anew        bool // everything is read again
}

// Graph makes the store that of a block and builds the graph of the chain through which trust flows. The reader has the
// scales of its raters, and returns Coverage.
func (s *Store) Graph(ctx context.Context, of GraphOf, p *trust.Params) (*flow.Graph, *trust.GraphReader, error) {
	s.mu.Lock() // until the graph is built, or a pass could move the store to the block of another run
	defer s.mu.Unlock()
	if err := s.moveTo(ctx, of.Block, of.Validations, of.Anew); err != nil {
		return nil, nil, err
	}
	r := trust.NewGraphReader(of.Block, of.Roots, of.Links, p)
	r.StateScales(of.Scales)
	for i := range s.agents {
		s.addAgent(r, &s.agents[i])
	}
	s.read = newReadings(&s.numbers, p)
	s.scale(r)
	r.Grow(s.ratings)
	s.eachOwner(func(agents []uint32) {
		for _, i := range agents {
			s.eachRow(s.agents[i:i+1], nil, r.Rating)
		}
		r.EndOwner()
	})
	g := r.Build()
	s.read.find(&s.numbers, g)
	return g, r, ctx.Err()
}

// addAgent adds the owners of an agent to a graph.
func (s *Store) addAgent(r *trust.GraphReader, a *agent) {
	if a.subject == nil {
		wallet := common.Address{}
		if a.isOwn {
			wallet = a.owner
		}
		r.Agent(a.token, a.from, a.owner, wallet)
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

// scale lets a reader find the scales of all raters.
func (s *Store) scale(r *trust.GraphReader) {
	defer r.Settle()
	may := make([]bool, len(s.numbers.kinds))
	for i := range may {
		var said *trust.Said
		if s.read.said != nil {
			said = s.read.said[i]
		}
		may[i] = r.MayScale(said)
	}
	if !slices.Contains(may, true) {
		return
	}
	s.eachRow(s.agents, func(one *rating) bool { return may[one.kind] }, r.Survey)
	s.eachRow(s.agents, func(one *rating) bool { return r.IsScaled(one.writer + 1) }, r.Measure)
}

// eachRow calls use with all answers of agents, and with their ratings for which want returns true, or all when it is
// nil.
func (s *Store) eachRow(agents []agent, want func(*rating) bool, use func(repute.TokenID, trust.Row)) {
	var row trust.Row
	for i := range agents {
		a := &agents[i]
		for j := range a.ratings {
			if want != nil && !want(&a.ratings[j]) {
				continue
			}
			s.numbers.row(&a.ratings[j], &row, s.read)
			use(a.token, row)
		}
		for _, answer := range s.answers[a.token] {
			use(a.token, answer)
		}
	}
}

// eachOwner calls use with the indices of the agents of each owner.
func (s *Store) eachOwner(use func(agents []uint32)) {
	order := make([]uint32, len(s.agents))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(i, j uint32) int { return bytes.Compare(s.agents[i].present(), s.agents[j].present()) })
	for first := 0; first < len(order); {
		next := first + 1
		for next < len(order) && bytes.Equal(s.agents[order[next]].present(), s.agents[order[first]].present()) {
			next++
		}
		use(order[first:next])
		first = next
	}
}

// present returns the agent's present owner.
func (a *agent) present() []byte {
	if a.subject != nil {
		return a.subject.Owner[:]
	}
	return a.owner[:]
}
