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

// Credentials, however many and with whomever they are mixed, give tier 2 at most and open no gate of value.
func TestBoughtCredentials(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long")
	}
	for w, p := range worlds(t) {
		b, s := NewBench(w, p, 1), NewSources(policy(t))
		var outcomes []Outcome
		for _, class := range []string{"A", "B", "C", ""} {
			outcomes = append(outcomes, b.BoughtPraise(s, class, 3), b.BoughtPraise(s, class, 100))
			checkDrop(t, b.BoughtSlander(s, class, 0), 26)
		}
		for n := 1; n <= 2; n++ {
			outcomes = append(outcomes, b.BoughtWithRoots(s, n), b.BoughtWithRaters(s, n))
		}
		for _, o := range outcomes {
			if o.Tier > 2 || o.Opens || o.Units == 0 {
				t.Errorf("%+v", o)
			}
		}
		if o := outcomes[7]; o.Mean < 55 || o.Units < 6.99 {
			t.Errorf("every source gives %+v, so the test shows little", o)
		}
	}
}

// A person is one, a rater's weight is divided among all it rates, and a revoked credential is none.
func TestCredentialsAreCounted(t *testing.T) {
	b, s := NewBench(Population(600, 30, 1), params(t), 1), NewSources(policy(t))
	one, three := b.ThreeWallets(s, "agentbook", true), b.ThreeWallets(s, "agentbook", false)
	if one.Units*2.9 > three.Units {
		t.Errorf("three wallets of one person give %.2f units, of three persons %.2f", one.Units, three.Units)
	}
	for _, agents := range []int{20, 200, 2000} {
		if o := b.Budget(s, "coinbase-account", agents); o.Units == 0 || o.Units*float64(agents) > 60.001 {
			t.Errorf("six holders give each of %d agents %.3f units", agents, o.Units)
		}
	}
	if lag := b.Lag(s, "coinbase-account"); lag.Epochs != 1 || lag.After != lag.Never || lag.Before < lag.Never+20 {
		t.Errorf("%+v", lag)
	}
	first, err := b.SourcedDigest(t.Context(), s, 1)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := b.SourcedDigest(t.Context(), s, 2); err != nil || first != second {
		t.Errorf("in another order: %s, want %s: %v", second, first, err)
	}
}

// No issuer moves an agent by more than is promised, and no trial breaks a rule.
func TestSourceBounds(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long")
	}
	for w, p := range worlds(t) {
		b, s := NewBench(w, p, 1), NewSources(policy(t))
		if x := b.SourceBounds(s, 150); x.Opened+x.Kept+x.Raised > 0 || x.Drop > 26 || x.Drop < 10 || x.Moved < 30 {
			t.Errorf("%s: %+v", w.Name, x)
		}
	}
	b, s := NewBench(Population(600, 30, 1), params(t), 1), NewSources(policy(t))
	if x := b.Sway(s); x.Up > 37.5 || x.Up < 30 || x.Down > 26 || x.Gone > 37.5 {
		t.Errorf("%+v", x)
	}
}

// A mean of 50 costs what is promised where it can be had at all, and no source opens a gate of value.
func TestSourcePrice(t *testing.T) {
	b, s := NewBench(Population(600, 30, 1), params(t), 1), NewSources(policy(t))
	base := b.SourcePrice(s, 8453)
	if base.To50 < 300 || base.Best < 50 || base.Opens {
		t.Errorf("Base: %+v", base)
	}
	if one := b.SourcePrice(s, 56); one.To50 != 0 || one.Best > 54 || one.Opens {
		t.Errorf("a chain with one priced source: %+v", one)
	}
}

// Twelve who say the same in one block are twelve, and copies by wallets change nothing.
func TestBatches(t *testing.T) {
	for w, p := range worlds(t) {
		if x := NewBench(w, p, 1).Batch(); x.Paths != 12 || x.Trusted != 12 || x.Mean != x.Apart || x.Copied != x.Mean {
			t.Errorf("%s: %+v", w.Name, x)
		}
	}
}

// The generated chains have the published marginals, and more holders make more agents rated.
func TestCoverage(t *testing.T) {
	for _, m := range ChainMarginals()[:2] {
		c := m.Population(1)
		var two, three, honest float64
		for _, ratings := range c.about {
			persons := 0
			for _, r := range ratings {
				if r.From < c.persons {
					persons++
				}
			}
			two, three, honest = two+one(len(ratings) > 1), three+one(len(ratings) > 2), honest+one(persons > 0)
		}
		n := float64(m.Agents)
		if near := func(x, want, by float64) bool { return x > want-by && x < want+by }; !near(honest/n, m.Honest,
			0.02) ||
			two/n < m.Two || !near(three/n, m.Three, 0.06) {
			t.Errorf("%s: %.3f honest, %.3f with two, %.3f with three, want %+v", m.Name, honest/n, two/n, three/n, m)
		}
		few, many := c.Cover(params(t), policy(t), 0.1, false, 2), c.Cover(params(t), policy(t), 0.5, false, 2)
		listed := c.Cover(params(t), policy(t), 0.1, true, 2)
		if few.Thin >= many.Thin || few.Rated >= many.Rated || listed.Thin <= few.Thin || many.Thin > many.Heard ||
			many.Rated > many.Several {
			t.Errorf("%s: %+v, %+v and with writers %+v", m.Name, few, many, listed)
		}
	}
}
