package source

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"repute/trust/fixed"
)

// The price of 50 on Base by published prices: 27 AgentBook entries at $9 give the 2.7 units that one source may give,
// and five Coinbase wallets at $50 the other 2.3.
func TestLiftPriceOnBase(t *testing.T) {
	p, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	sources := p.On(8453)
	got := p.LiftPrice(sources, 5*fixed.One)
	if got.OutOfReach || got.Dollars != 493*fixed.One ||
		!slices.Equal(got.Priced, []string{"agentbook", "coinbase-account", "x402-spend", "farcaster-pro"}) ||
		!slices.Contains(got.Unpriced, "human-passport") {
		t.Errorf("%+v", got)
	}
	if got := p.LiftPrice(sources, 8*fixed.One); !got.OutOfReach || got.Dollars != 0 || got.Units != 7*fixed.One {
		t.Errorf("more than the bound of all sources: %+v", got)
	}
	if got := p.LiftPrice(p.On(56), 5*fixed.One); !got.OutOfReach {
		t.Errorf("one source alone: %+v", got)
	}
	if got := p.LiftPrice(nil, fixed.One); !got.OutOfReach || got.Units != 0 {
		t.Errorf("without sources: %+v", got)
	}
}

// More evidence never costs less, another priced source never makes it dearer beyond one credential, and no purchase
// within the bounds is cheaper by the unit.
func TestLiftPriceIsLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := Default()
		if err != nil {
			t.Fatal(err)
		}
		sources := make([]*Source, rapid.IntRange(0, 5).Draw(t, "sources"))
		dearest := fixed.Fixed(0)
		for i := range sources {
			class := rapid.SampledFrom([]Class{ClassA, ClassB, ClassC}).Draw(t, "class")
			usd := fixed.Fixed(rapid.IntRange(1, 200).Draw(t, "usd")) * fixed.One
			dearest = max(dearest, usd)
			sources[i] = &Source{ID: string(rune('a' + i)), Class: class, Price: &Price{USD: usd},
				Weight: fixed.Ratio(int64(rapid.IntRange(1, 10).Draw(t, "weight")), 20),
				Bounds: Bounds{Praise: min(3*fixed.One, p.Classes[class].Praise)}}
		}
		units := fixed.Ratio(int64(rapid.IntRange(1, 70).Draw(t, "units")), 10)
		got, more := p.LiftPrice(sources, units), p.LiftPrice(sources, units+fixed.One/2)
		if !more.OutOfReach && (got.OutOfReach || more.Dollars < got.Dollars) {
			t.Fatalf("%+v, but half a unit more %+v", got, more)
		}
		if got.OutOfReach {
			if got.Units >= units {
				t.Fatalf("out of reach with %v of %v units", got.Units, units)
			}
			return
		}
		for i := range sources {
			other := p.LiftPrice(slices.Delete(slices.Clone(sources), i, i+1), units)
			if !other.OutOfReach && other.Dollars+dearest*fixed.Fixed(len(sources)) < got.Dollars {
				t.Fatalf("%+v, but without one of the sources %+v", got, other)
			}
		}
	})
}
