package repute_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"repute"
)

func amount(t testing.TB, value string, decimals uint8) repute.Amount {
	t.Helper()
	v, ok := new(big.Int).SetString(value, 10)
	if !ok {
		t.Fatalf("not a number: %q", value)
	}
	return repute.Amount{Value: v, Decimals: decimals}
}

// tallies keeps one tally per item, so that equal decimals appear repeatedly.
func tallies(items []repute.Amount) []repute.Tally {
	out := make([]repute.Tally, len(items))
	for i, a := range items {
		out[i] = repute.Tally{Decimals: a.Decimals, Count: 1, Sum: a.Value}
	}
	return out
}

const e38 = "100000000000000000000000000000000000000"

func TestSummarizeEqualsTheContract(t *testing.T) {
	type item struct {
		value    string
		decimals uint8
	}
	cases := []struct {
		name     string
		items    []item
		value    string
		decimals uint8
	}{
		{"integers", []item{{"80", 0}, {"90", 0}, {"100", 0}}, "90", 0},
		{"negative truncates toward zero", []item{{"-1", 0}, {"-2", 0}}, "-1", 0},
		{"positive truncates toward zero", []item{{"1", 0}, {"2", 0}}, "1", 0},
		{"tie takes the smaller decimals", []item{{"9977", 2}, {"87", 0}}, "93", 0},
		{"mode 2", []item{{"9977", 2}, {"9950", 2}, {"87", 0}}, "9542", 2},
		{"mode 0 loses the fraction", []item{{"9977", 2}, {"87", 0}, {"88", 0}}, "91", 0},
		{"mixed signs", []item{{"-32", 1}, {"15", 1}}, "-8", 1},
		{"smallest units", []item{{"1", 18}, {"2", 18}}, "1", 18},
		{"wraps to positive", []item{{e38, 0}, {"1", 18}, {"1", 18}, {"1", 18}},
			"84405691410724684722613637093456347136",
			18},
		{"wraps to negative", []item{{"-" + e38, 0}, {"1", 18}, {"1", 18}, {"1", 18}},
			"-84405691410724684722613637093456347135", 18},
		{"positive input, negative result", []item{{e38, 0}, {"5", 1}, {"5", 1}},
			"-6949033587605130130041274098434878120",
			1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var items []repute.Amount
			for _, i := range c.items {
				items = append(items, amount(t, i.value, i.decimals))
			}
			got := repute.Summarize(tallies(items))
			if got.Value.String() != c.value || got.Decimals != c.decimals || got.Count != uint64(len(items)) {
				t.Errorf("got %d × %s@%d, want %d × %s@%d", got.Count, got.Value, got.Decimals, len(items), c.value,
					c.decimals)
			}
			twice := repute.Summarize(tallies(append(items, items...)))
			if twice.Count != 2*got.Count || twice.Value.Cmp(got.Value) != 0 || twice.Decimals != got.Decimals {
				t.Errorf("every client listed twice must only double the count, got %d × %s@%d", twice.Count,
					twice.Value,
					twice.Decimals)
			}
		})
	}
}

func TestSummarizeNothing(t *testing.T) {
	got := repute.Summarize(nil)
	if got.Count != 0 || got.Value.Sign() != 0 || got.Decimals != 0 {
		t.Errorf("got %+v, want zeros", got)
	}
}

func TestDecimal(t *testing.T) {
	cases := []struct {
		value    string
		decimals uint8
		want     string
	}{{"0", 0, "0"}, {"0", 18, "0"}, {"9977", 2, "99.77"}, {"-32", 1, "-3.2"}, {"5", 3, "0.005"},
		{"1000", 3, "1"}, {"-1", 18, "-0.000000000000000001"}, {"15", 1, "1.5"}, {e38, 0, e38}}
	for _, c := range cases {
		if got := amount(t, c.value, c.decimals).Decimal(); got != c.want {
			t.Errorf("%s@%d: got %s, want %s", c.value, c.decimals, got, c.want)
		}
	}
}

// The median must equal the middle of the sorted exact rationals, whatever the
// decimals and the order.
func TestMedianIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "n")
		votes := make([]repute.Amount, n)
		rats := make([]*big.Rat, n)
		for i := range votes {
			v, d := rapid.Int64().Draw(t, "value"), rapid.Uint8Range(0, 18).Draw(t, "decimals")
			votes[i] = repute.Amount{Value: big.NewInt(v), Decimals: d}
			rats[i] = rat(votes[i])
		}
		less := 0
		var s repute.TagSummary
		s.SummarizeTallies(votesOf(votes))
		m := rat(s.Median)
		more := 0
		for _, r := range rats {
			less += b2i(r.Cmp(m) < 0)
			more += b2i(r.Cmp(m) > 0)
		}
		if less > n/2 || more > n/2 || s.Reviewers != int64(n) {
			t.Fatalf("median %s has %d below and %d above of %d", s.Median.Decimal(), less, more, n)
		}
		if rat(s.Min).Cmp(m) > 0 || rat(s.Max).Cmp(m) < 0 {
			t.Fatalf("median %s outside [%s, %s]", s.Median.Decimal(), s.Min.Decimal(), s.Max.Decimal())
		}
	})
}

func TestMedianOfTwoIsTheirMean(t *testing.T) {
	var s repute.TagSummary
	s.SummarizeTallies(votesOf([]repute.Amount{amount(t, "2", 18), amount(t, "1", 18)}))
	if got := s.Median.Decimal(); got != "0.0000000000000000015" {
		t.Errorf("got %s", got)
	}
}

func rat(a repute.Amount) *big.Rat {
	den := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(a.Decimals)), nil)
	return new(big.Rat).SetFrac(a.Value, den)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestDerivedAmountsAreShort(t *testing.T) {
	var s repute.TagSummary
	s.SummarizeTallies(votesOf([]repute.Amount{amount(t, "10", 0), amount(t, "205", 1)}))
	if s.Mean.Value.String() != "1525" || s.Mean.Decimals != 2 || s.Median.Value.String() != "1525" ||
		s.Median.Decimals != 2 {
		t.Errorf("got mean %s@%d, median %s@%d, want 1525@2", s.Mean.Value, s.Mean.Decimals, s.Median.Value,
			s.Median.Decimals)
	}
	s.SummarizeTallies(votesOf([]repute.Amount{amount(t, "0", 18)}))
	if s.Mean.Decimals != 0 || s.Mean.Value.Sign() != 0 {
		t.Errorf("got mean %s@%d of nothing but zero", s.Mean.Value, s.Mean.Decimals)
	}
}

// votesOf counts each vote on its own.
func votesOf(votes []repute.Amount) (out []repute.VoteTally) {
	for _, v := range votes {
		out = append(out, repute.VoteTally{Amount: v, Count: 1})
	}
	return out
}
