package attack

import (
	"testing"

	"repute/trust"
)

// BenchmarkPersonal is a score of the most rated agent by a hundred roots of a caller,
// most of which the graph knows, with 600,000 ratings in memory.
func BenchmarkPersonal(b *testing.B) {
	p := params(b)
	c := newCrowd(600_000)
	g := c.graph()
	_, some := c.ledger(g, p)
	for n := 0; b.Loop(); n++ {
		var roots []trust.Root
		for i := range 100 {
			roots = append(roots, trust.Root{Address: Address((n*7919 + i*613) % (c.parties + c.parties/10)), Weight: trust.One})
		}
		e := some.busiest
		e.Weights = g.Personal(roots, p)
		if r := trust.Score(e, p); r.Status != trust.Rated {
			b.Fatalf("%+v", r)
		}
	}
}
