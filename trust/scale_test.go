package trust

import (
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/trust/flow"
	"repute/trust/graph"
	"repute/trust/rating"
)

// amountRow is a rating by address n of so many thousandths.
func amountRow(n int, tag string, thousandths int64) rating.Row {
	r := row(n, 0, 0)
	r.Tag1, r.Amount = tag, repute.Amount{Value: big.NewInt(thousandths), Decimals: 3}
	return r
}

// scalesOf are the scales of those who wrote these rows, each about an agent of its own.
func scalesOf(p *rating.Params, rows ...rating.Row) *rating.Scales {
	r := graph.NewReader(repute.Block{Time: newWorld().evidence().Block.Time}, nil, nil, p)
	for i, row := range rows {
		token := repute.TokenID{uint64(i)}
		r.Agent(token, 0, address(5000+i), common.Address{})
		r.Rating(token, row)
	}
	r.Build()
	return r.Scales()
}

func TestScaleOfAWriter(t *testing.T) {
	w := newWorld()
	for _, c := range []struct {
		tag     string
		wrote   []int64 // thousandths
		value   int64   // of the rating of this agent
		opinion string
	}{
		{"starred", []int64{5000, 4000, 5000, 3000}, 5000, "1.000000"},              // five stars, five times
		{"starred", []int64{5000, 4000, 5000, 3000}, 0, "-1.000000"},                // the least of any scale
		{"starred", []int64{5000, 4000, 5000}, 5000, "scale"},                       // too few to tell
		{"starred", nil, 5000, "scale"},                                             // nobody knows
		{"starred", []int64{5000, 4000, 5000, 100_000}, 5000, "-0.900000"},          // five of a hundred
		{"starred", []int64{7000, 4000, 5000, 3000}, 5000, "scale"},                 // of ten? of a hundred?
		{"starred", []int64{10_000, 4000, 9000, 8000}, 10_000, "1.000000"},          // of ten
		{"starred", []int64{1000, 1000, 1000, 1000, 1000}, 1000, "scale"},           // the worst of five, or a vouch
		{"starred", []int64{1000, 980, 1000, 700}, 1000, "1.000000"},                // parts of one
		{"starred", []int64{5000, 4500, 5000, 3000, 11_000}, 4500, "-0.910000"},     // above all others
		{"successRate", []int64{1000, 1000, 1000, 1000}, 1000, "1.000000"},          // success each time
		{"successRate", []int64{980, 970, 1000, 1000}, 980, "0.955556"},             // parts of one
		{"successRate", nil, 980, "scale"},                                          // 98 % or 0.98 %
		{"successRate", nil, 5000, "-1.000000"},                                     // no scale ends at 5
		{"successRate", []int64{1000, 1000, 1000, 1000, 99_000}, 1000, "-1.000000"}, // percent
	} {
		var rows []rating.Row
		for _, v := range append(slices.Clone(c.wrote), c.value) {
			rows = append(rows, amountRow(0, c.tag, v))
		}
		e := w.evidence(rows[len(rows)-1])
		e.Scales = scalesOf(w.params, rows...)
		got := NewScorer(e.Weights, w.params).Explain(e)
		var opinion string
		if len(got.Excluded) == 1 {
			opinion = string(got.Excluded[0].Reason)
			if len(got.Excluded[0].Readings) < 2 {
				t.Errorf("%s %d: readings %q", c.tag, c.value, got.Excluded[0].Readings)
			}
		} else {
			raw, _ := got.Contributions[0].Opinion.MarshalJSON()
			opinion = string(raw)
		}
		if opinion != c.opinion {
			t.Errorf("%s %d of who wrote %v: %s, want %s", c.tag, c.value, c.wrote, opinion, c.opinion)
		}
	}
	e := w.evidence(amountRow(0, "starred", 5000))
	e.Scales = new(rating.Scales)
	if got := NewScorer(e.Weights,
		w.params).Explain(e).Excluded[0].Readings; fmt.Sprint(got) != "[5 of 5 5 of 10 5 of 100]" {
		t.Errorf("readings %q", got)
	}
}

// Who writes on another scale is read as who writes the same on the tag's own, whatever the order.
func TestScaleChangesNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld()
		top := rapid.SampledFrom([]int64{5, 10}).Draw(r, "top")
		var own, other []rating.Row
		for i := range rapid.IntRange(5, 20).Draw(r, "ratings") {
			v := rapid.Int64Range(0, top*10).Draw(r, "value") * 100
			if i < 5 {
				v = top * 1000
			}
			own, other = append(own, amountRow(0, "starred", v*100/top)), append(other, amountRow(0, "starred", v))
		}
		at := rapid.IntRange(0, len(own)-1).Draw(r, "which")
		a, b := w.evidence(own[at]), w.evidence(other[at])
		a.Scales, b.Scales = scalesOf(w.params, append(own, amountRow(0, "starred", 100_000))...), scalesOf(w.params,
			other...)
		x, y := Score(a, w.params), Score(b, w.params)
		if d := x.Mean - y.Mean; d < -1 || d > 1 {
			r.Errorf("%s on the own scale, %s of %d", x.Mean, y.Mean, top)
		}
	})
}

// A rating whose scale cannot be told makes nobody trusted, one whose scale is known does.
func TestScaleOfVouches(t *testing.T) {
	p := must(rating.DefaultParams())
	for n, want := range map[int]bool{rating.LeastSmall - 1: false, rating.LeastSmall: true} {
		r := graph.NewReader(newWorld().evidence().Block, []flow.Root{{Address: address(0), Weight: 1 << 32}}, nil, p)
		for i := range n {
			r.Agent(repute.TokenID{uint64(i)}, 0, address(100+i), common.Address{})
			r.Rating(repute.TokenID{uint64(i)}, amountRow(0, "starred", 5000))
		}
		weights := r.Build().Walk([]flow.Root{{Address: address(0), Weight: 1 << 32}}, p.Walk)
		if _, weight := weights.Rater(address(100)); (weight > 0) != want {
			t.Errorf("%d ratings of five stars: weight %v", n, weight)
		}
	}
}
