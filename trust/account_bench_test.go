package trust

import (
	"testing"
	"time"

	"repute"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
)

// BenchmarkEventOfALargeAccount is one more rating of an agent with 284,072 ratings, each by another rater in a block
// of its own, when its account is in memory: of raters without weight, and of raters with some.
func BenchmarkEventOfALargeAccount(b *testing.B) {
	for name, weighty := range map[string]bool{"strangers": false, "trusted": true} {
		b.Run(name, func(b *testing.B) { benchmarkLargeAccount(b, weighty) })
	}
}

// benchmarkLargeAccount has raters with weight if weighty: one in a hundred is a root, which vouches for the others.
func benchmarkLargeAccount(b *testing.B, weighty bool) {
	const ratings, each = 284_072, 100
	p, err := rating.DefaultParams()
	if err != nil {
		b.Fatal(err)
	}
	builder := flow.NewGraphBuilder()
	var roots []flow.Root
	for i := range ratings + 1_000 {
		id := builder.Add(address(i))
		if i%each == 0 {
			roots = append(roots, flow.Root{Address: address(i), Weight: fixed.One})
		} else if weighty {
			builder.Vouch(id-id%each, id, fixed.One)
		}
	}
	w := builder.Build().Walk(roots, p.Walk)
	e := Evidence{Block: repute.Block{Number: 1 << 40, Time: time.Unix(1_800_000_000, 0)}, Owner: address(1 << 20),
		Weights: w}
	row := func(i int) rating.Row {
		return rating.Row{Block: uint64(1 + i), Time: e.Block.Time.Unix() - int64(ratings-i), Index: 1,
			Rater: address(i),
			Tag1:  "starred", Amount: repute.Amount{Value: bigInt(int64(11 + i%89))}}
	}
	for i := range ratings {
		if weighty || i%each > 0 || i < 500 {
			e.Rows = append(e.Rows, row(i))
		}
	}
	s := NewScorer(w, p)
	account := s.NewAccount(&e)
	n := 0
	for b.Loop() {
		e.Block.Time = e.Block.Time.Add(time.Second)
		e.Rows = []rating.Row{row(ratings + n)}
		account.Add(&e)
		s.ScoreAccount(account, e)
		n++
	}
}
