package trustbench

import (
	"context"
	"math/rand/v2"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"repute"
	"repute/internal/attack"
	"repute/internal/bench/harness"
	"repute/trust"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
)

// Cost is what a full recomputation takes.
type Cost struct {
	Edges  int     `json:"edges"`
	Agents int     `json:"agents"`
	Rated  int     `json:"rated"`          // agents with a score: scoring an unrated one is cheaper
	Build  float64 `json:"build_seconds"`  // of graph and ledger, which is loading
	Walk   float64 `json:"walk_seconds"`   // of trust from the roots
	Scores float64 `json:"scores_seconds"` // of all agents
	CPU    float64 `json:"cpu_seconds"`    // of all processors for both, 0 where it is not known
	Memory float64 `json:"peak_mb"`        // of the process while it recomputes
	// One more rating: the agent's score from all its rows anew, for the agents of random
	// ratings at the median, and for the most rated agent.
	Event   float64 `json:"event_ms"`
	Busiest float64 `json:"event_of_most_rated_ms"`
	// Large is one more rating of an agent with largeRatings, by its account: see trust.Account.
	Large float64 `json:"event_of_large_ms"`
}

// largeRatings is how many ratings the most rated agent has on a real chain.
const largeRatings = 284_072

// Total is the seconds of a recomputation as T16 limits them, loading left out.
func (c Cost) Total() float64 { return c.Walk + c.Scores }

// crowd is a random world too large for a World: ten ratings for each party, whose
// popularity follows a power law. It is made twice the same: for the graph, then by
// whom it is about.
type crowd struct {
	parties  int
	from, to []uint32 // parties of each rating
	now      int64    // after all ratings, in Unix seconds
}

// newCrowd draws the same world for the same number of edges. Parties with low numbers are rated most: the chance falls
// with the root of the number.
func newCrowd(edges int) *crowd {
	rng := rand.New(rand.NewPCG(1, uint64(edges)))
	c := &crowd{parties: max(edges/10, 100), from: make([]uint32, edges), to: make([]uint32, edges), now: 1_800_000_000}
	for i := range edges {
		x := rng.Float64()
		c.from[i], c.to[i] = uint32(rng.IntN(c.parties)), uint32(float64(c.parties)*x*x)
	}
	return c
}

// rating is number i: one in ten is bad.
func (c *crowd) rating(i int) attack.Rating {
	value := 0.9
	if i%10 == 0 {
		value = -0.5
	}
	return attack.Rating{From: int(c.from[i]), To: int(c.to[i]), Value: value, Time: c.now - int64(i*7919%10_000_000)}
}

// roots are one party in a hundred, so that most agents are rated: one that nobody of weight speaks of is no work.
func (c *crowd) roots() (roots []flow.Root) {
	for i := 0; i < c.parties; i += 100 {
		roots = append(roots, flow.Root{Address: attack.Address(i), Weight: fixed.One})
	}
	return roots
}

// graph adds parties in order of their numbers, so that edges need not look them up.
func (c *crowd) graph(p *rating.Params) *flow.Graph {
	b := flow.NewGraphBuilder()
	for party := range c.parties {
		b.Add(attack.Address(party))
	}
	for i := range c.from {
		r := c.rating(i)
		if r.Value > 0 {
			b.Vouch(c.from[i], c.to[i], p.Walk.Edge(attack.FixedOf(r.Value), fixed.One)) // numbers are given in order
		}
	}
	return b.Build()
}

// byAgent lists the numbers of ratings by whom they are about, and where each begins.
func (c *crowd) byAgent() (list, start []uint32) {
	start = make([]uint32, c.parties+1)
	for _, to := range c.to {
		start[to+1]++
	}
	for p := range c.parties {
		start[p+1] += start[p]
	}
	next := append([]uint32(nil), start...)
	list = make([]uint32, len(c.to))
	for i, to := range c.to {
		list[next[to]] = uint32(i)
		next[to]++
	}
	return list, start
}

// block is the block as of which everything is scored: after all ratings.
func (c *crowd) block() repute.Block { return repute.Block{Number: 1 << 40, Time: time.Unix(c.now, 0)} }

// sample is evidence kept for the measurement of single events. It refers to the rows of the ledger, which stay in
// memory with it.
type sample struct {
	usual   []trust.Evidence // of the agents of random ratings
	busiest trust.Evidence   // of the most rated agent
}

// ledger takes down everything: the rows of each agent in the order of the ratings, as the product reads them. Agents
// of the sample are drawn by ratings, so that an agent with many is drawn more often, as its events come more often.
func (c *crowd) ledger(w *flow.Weights, p *rating.Params) (l *trust.Ledger, some sample) {
	l = trust.NewLedger(w, c.block(), p)
	list, start := c.byAgent()
	const samples = 101
	chosen := map[uint32]bool{}
	for i := range samples {
		chosen[c.to[i*len(c.to)/samples]] = true
	}
	for agent := range c.parties {
		e := trust.Evidence{Block: c.block(), Owner: attack.Address(agent)}
		e.Agent.TokenID.SetUint64(uint64(agent))
		for _, i := range list[start[agent]:start[agent+1]] {
			e.Rows = append(e.Rows, attack.RowOf(int(i), c.rating(int(i))))
		}
		l.Add(e)
		if chosen[uint32(agent)] {
			some.usual = append(some.usual, e)
		}
		if len(e.Rows) > len(some.busiest.Rows) {
			some.busiest = e
		}
	}
	return l, some
}

// measureCost recomputes everything for a random world of so many ratings. Loading is what makes the
// graph and the ledger. The memory is measured while trust is walked and scores are made, after the world itself was
// given up: the product holds its rows in the database.
func measureCost(ctx context.Context, edges int, p *rating.Params) (Cost, error) {
	start := time.Now()
	all := newCrowd(edges)
	c := Cost{Edges: edges, Agents: all.parties}
	g, roots := all.graph(p), all.roots()
	c.Build = time.Since(start).Seconds()
	var w *flow.Weights
	c.Walk = c.measure(func() { w = g.Walk(roots, p.Walk) })
	start = time.Now()
	ledger, some := all.ledger(w, p)
	c.Build += time.Since(start).Seconds()
	all = nil //nolint:wastedassign // so that its memory is freed before it is measured
	var rated atomic.Int64
	var err error
	c.Scores = c.measure(func() {
		err = ledger.Score(ctx, func(r *trust.Result) {
			if r.Status == trust.Rated {
				rated.Add(1)
			}
		})
	})
	c.Rated = int(rated.Load())
	c.Event, c.Busiest = some.events(w, p)
	c.Large = largeEvent(w, p)
	return c, err
}

// measure adds the processor time of work to c, keeps the most memory, and returns the seconds it took. Memory that
// nobody uses is returned to the system before, so that what was done earlier is not counted.
func (c *Cost) measure(work func()) float64 {
	debug.FreeOSMemory()
	stop := watchMemory(&c.Memory)
	cpu, start := harness.ProcessorSeconds(), time.Now()
	work()
	took := time.Since(start).Seconds()
	c.CPU += harness.ProcessorSeconds() - cpu
	stop()
	return took
}

// events scores single agents as the engine does after each event: milliseconds at the
// median, and of the most rated agent, of which the fastest of three counts: the first one
// brings its rows into the caches.
func (s *sample) events(w *flow.Weights, p *rating.Params) (usual, busiest float64) {
	scorer := trust.NewScorer(w, p)
	once := func(e trust.Evidence) float64 {
		e.Weights = w
		start := time.Now()
		scorer.Score(e)
		return harness.Millis(time.Since(start))
	}
	var all []float64
	for _, e := range s.usual {
		all = append(all, once(e))
	}
	return harness.Median(all), min(once(s.busiest), once(s.busiest), once(s.busiest))
}

// largeEvent adds single ratings to the account of an agent with very many, each by another rater,
// and returns the milliseconds of the fastest of five.
func largeEvent(w *flow.Weights, p *rating.Params) (fastest float64) {
	at := repute.Block{Number: 1 << 40, Time: time.Unix(1_800_000_000, 0)}
	e := trust.Evidence{Block: at, Owner: attack.Address(1), Weights: w}
	rate := func(i int) rating.Row {
		r := attack.RowOf(i, attack.Rating{From: 2 + i, To: 1, Value: 0.9,
			Time: at.Time.Unix() - int64(largeRatings-i)})
		r.Block = uint64(1 + i)
		return r
	}
	for i := range largeRatings {
		e.Rows = append(e.Rows, rate(i))
	}
	s := trust.NewScorer(w, p)
	account := s.NewAccount(&e)
	for i := range 5 {
		e.Rows = []rating.Row{rate(largeRatings + i)}
		e.Block.Time = e.Block.Time.Add(time.Minute)
		start := time.Now()
		account.Add(&e)
		s.ScoreAccount(account, e)
		took := harness.Millis(time.Since(start))
		if i == 0 || took < fastest {
			fastest = took
		}
	}
	return fastest
}

// measurePersonal scores the most rated agent by a hundred roots of a caller, most of which
// the graph knows: the milliseconds of the slowest of twenty, with the graph of so many ratings in memory.
func measurePersonal(edges int, p *rating.Params) (slowest float64) {
	c := newCrowd(edges)
	g := c.graph(p)
	_, some := c.ledger(g.Walk(c.roots(), p.Walk), p)
	for n := range 20 {
		roots := c.strangeRoots(n)
		e := some.busiest
		start := time.Now()
		e.Weights = g.Personal(roots, p.Walk)
		trust.Score(e, p)
		slowest = max(slowest, harness.Millis(time.Since(start)))
	}
	return slowest
}

// strangeRoots are a hundred addresses, others for each n, of which one in eleven never rated: a caller's roots need
// not be known to the graph.
func (c *crowd) strangeRoots(n int) (roots []flow.Root) {
	for i := range 100 {
		party := (n*7919 + i*613) % (c.parties + c.parties/10)
		roots = append(roots, flow.Root{Address: attack.Address(party), Weight: fixed.One})
	}
	return roots
}

// watchMemory keeps the most megabytes of the process in peak until it is stopped. It looks every 20 ms: a peak that is
// shorter may be missed. What Go has returned to the system is not counted. peak MUST NOT be read before stop.
func watchMemory(peak *float64) (stop func()) {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	look := func() {
		metrics.Read(samples)
		*peak = max(*peak, float64(samples[0].Value.Uint64()-samples[1].Value.Uint64())/1e6)
	}
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				look()
			}
		}
	}()
	return func() {
		close(done)
		<-stopped
		look()
	}
}
