package attack

import (
	"math/rand/v2"
	"time"

	"repute/trust"
)

// Cost is what a full recomputation takes.
type Cost struct {
	Edges  int           `json:"edges"`
	Nodes  int           `json:"nodes"`
	Build  time.Duration `json:"build_ns"` // of the graph, which is loading
	Walk   time.Duration `json:"walk_ns"`
	Scores time.Duration `json:"scores_ns"` // of all agents
	Rated  int           `json:"rated"`
}

// MeasureCost recomputes everything for a random world of so many ratings, ten for each
// party, whose popularity follows a power law.
func MeasureCost(edges int, p *trust.Params) Cost {
	rng := rand.New(rand.NewPCG(1, uint64(edges)))
	nodes := max(edges/10, 100)
	w := &World{Name: "random", Now: 1_800_000_000}
	for len(w.Ratings) < edges {
		from, x := rng.IntN(nodes), rng.Float64()
		to := int(float64(nodes) * x * x)
		value := 0.9
		if rng.IntN(10) == 0 {
			value = -0.5
		}
		w.Ratings = append(w.Ratings, Rating{from, to, value, w.Now - rng.Int64N(1e7)})
	}
	for i := range 100 {
		w.Roots = append(w.Roots, i*nodes/100)
	}
	c := Cost{Edges: edges, Nodes: nodes}
	start := time.Now()
	e := NewEngine(w, p)
	c.Build = time.Since(start)
	start = time.Now()
	e.weights = e.weights.Graph().Walk(e.roots(), p)
	c.Walk = time.Since(start)
	start = time.Now()
	for party := range nodes {
		if e.Score(party).Status == trust.Rated {
			c.Rated++
		}
	}
	c.Scores = time.Since(start)
	return c
}
