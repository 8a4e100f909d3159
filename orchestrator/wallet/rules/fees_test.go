package rules

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// TestFees raises fees by an eighth at least and keeps them within a limit.
func TestFees(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64Range(0, 1<<50)
		f := Fees{big.NewInt(amount.Draw(t, "limit")), big.NewInt(amount.Draw(t, "tip"))}
		now := Fees{big.NewInt(amount.Draw(t, "now")), big.NewInt(amount.Draw(t, "now's tip"))}
		up := f.Bumped(now)
		if 8*up.Limit.Int64() < 9*f.Limit.Int64() || up.Limit.Cmp(f.Limit) <= 0 || 8*up.Tip.Int64() < 9*f.Tip.Int64() ||
			up.Limit.Cmp(now.Limit) < 0 {
			t.Fatalf("%v after %v, now %v", up, f, now)
		}
		gas, most := rapid.Uint64Range(1, 1<<24).Draw(t, "gas"), big.NewInt(amount.Draw(t, "most"))
		if in := f.Within(gas, most); Cost(gas, in.Limit).Cmp(most) > 0 || in.Tip.Cmp(in.Limit) > 0 &&
			in.Limit.Cmp(f.Limit) < 0 {
			t.Fatalf("%v for %d gas, at most %s", in, gas, most)
		}
	})
}

// TestCeilings lets no fee exceed a ceiling, whatever endpoints suggest.
func TestCeilings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64Range(1, 1<<40)
		c := Ceilings{big.NewInt(amount.Draw(t, "fee")), big.NewInt(amount.Draw(t, "tip")),
			big.NewInt(amount.Draw(t, "all"))}
		o := Offer{BaseFee: big.NewInt(amount.Draw(t, "base")), Tip: big.NewInt(amount.Draw(t, "suggested")),
			Gas: rapid.Uint64Range(21_000, 1<<24).Draw(t, "gas")}
		most := c.Budget("orchestrator.wallets[0]", nil)
		f, err := c.First("orchestrator.wallets[0]", o, most)
		if err != nil {
			return
		}
		if f.Limit.Cmp(c.MaxFeePerGas) > 0 || f.Tip.Cmp(c.MaxTip) > 0 || f.Tip.Cmp(f.Limit) > 0 ||
			f.Limit.Cmp(o.BaseFee) < 0 || Cost(o.Gas, f.Limit).Cmp(c.MaxTransactionFee) > 0 {
			t.Fatalf("%v for %v within %v", f, o, c)
		}
	})
}
