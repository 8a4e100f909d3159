package attack

import (
	"testing"

	"repute/trust/source"
)

func policy(t testing.TB) *source.Policy {
	t.Helper()
	p, err := source.Default()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTry(t *testing.T) {
	pol := policy(t)
	p := params(t)
	for _, m := range ChainMarginals() {
		c := m.Population(1)
		for _, share := range []float64{0.1, 0.3, 0.5} {
			for _, w := range []bool{false, true} {
				t.Logf("%s %+v", m.Name, c.Cover(p, pol, share, w, 3))
			}
		}
	}
	b := NewBench(Population(1500, 60, 1), p, 1)
	s := NewSources(pol)
	for _, class := range []string{"A", "B", "C", ""} {
		for _, n := range []int{1, 3, 10, 100, 1000} {
			t.Logf("%+v", b.BoughtPraise(s, class, n))
		}
		t.Logf("%+v", b.BoughtSlander(s, class, 0))
	}
	t.Logf("%+v", b.BoughtSlander(s, "", 1))
	for n := range 3 {
		t.Logf("%+v", b.BoughtWithRoots(s, n))
		t.Logf("%+v", b.BoughtWithRaters(s, n))
	}
	for _, n := range []int{20, 200, 2000} {
		t.Logf("%+v", b.Budget(s, "coinbase-account", n))
	}
	t.Logf("%+v %+v", b.ThreeWallets(s, "coinbase-account", false), b.ThreeWallets(s, "agentbook", true))
	t.Logf("%+v", b.Batch())
	t.Logf("%+v", b.SourceBounds(s, 200))
	t.Logf("%+v", b.Lag(s, "coinbase-account"))
	t.Logf("%+v", b.Sway(s))
	for _, c := range []uint64{1, 56, 8453, 137} {
		t.Logf("%+v", b.SourcePrice(s, c))
	}
	for i := range uint64(2) {
		t.Log(b.SourcedDigest(t.Context(), s, i))
	}
}
