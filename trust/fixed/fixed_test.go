package fixed

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// Products and quotients are those of exact arithmetic, rounded toward zero.
func TestFixedArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Int64Range(-1<<52, 1<<52).Draw(t, "a")
		b := rapid.Int64Range(-1<<42, 1<<42).Draw(t, "b")
		exact := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		want := new(big.Int).Quo(exact, big.NewInt(int64(One)))
		if want.IsInt64() && int64(Fixed(a).Mul(Fixed(b))) != want.Int64() {
			t.Fatalf("%d*%d: %d, want %s", a, b, Fixed(a).Mul(Fixed(b)), want)
		}
		if b == 0 {
			return
		}
		want.Quo(want.Lsh(big.NewInt(a), 32), big.NewInt(b))
		if want.IsInt64() && int64(Fixed(a).Div(Fixed(b))) != want.Int64() {
			t.Fatalf("%d/%d: %d, want %s", a, b, Fixed(a).Div(Fixed(b)), want)
		}
	})
}

func TestFixedFunctions(t *testing.T) {
	powers := NewPowers()
	rapid.Check(t, func(t *rapid.T) {
		a := Fixed(rapid.Int64Range(1, math.MaxInt64).Draw(t, "a"))
		x := float64(a) / float64(One)
		near(t, "sqrt", a.Sqrt(), math.Sqrt(x), 1e-9*math.Sqrt(x)+1e-9)
		near(t, "log2", a.Log2(), math.Log2(x), 1e-8)
		small := a >> 27
		near(t, "exp2Neg", powers.Exp2Neg(small), math.Exp2(-float64(small)/float64(One)), 1e-9)
	})
}

func near(t *rapid.T, what string, got Fixed, want, tolerance float64) {
	if diff := math.Abs(float64(got)/float64(One) - want); diff > tolerance {
		t.Fatalf("%s: %s, want %g", what, got.Decimal(9), want)
	}
}

func TestFixedText(t *testing.T) {
	for text, want := range map[string]string{"0.05": "0.050000", "-12.5": "-12.500000", "0": "0.000000",
		"99.9": "99.900000", "0.000001": "0.000001"} {
		f, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Decimal(6); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, bad := range []string{"", "-", "1e3", "0x1", "4294967296", "1.0000000001", "1.-1", "NaN", "--1"} {
		if f, err := Parse(bad); err == nil {
			t.Errorf("%q was read as %s", bad, f.Decimal(9))
		}
	}
}
