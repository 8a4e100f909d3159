package trust

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
)

// without is the world's weights with one root less.
func (w *world) without(root int) *flow.Weights {
	var roots []flow.Root
	for i := range 20 {
		if i != root {
			roots = append(roots, flow.Root{Address: address(i), Weight: fixed.One})
		}
	}
	return w.walk().Graph().Walk(roots, w.params.Walk)
}

// copied is what r says, said by another one in the same block.
func copied(r rating.Row, by int) rating.Row {
	r.Rater, r.LogIndex = address(by), r.LogIndex+uint32(by)
	return r
}

// A stranger that copies a trusted rater in its block is the same party and adds nothing,
// in whatever channel it goes on.
func TestCopiesOfARootAddNothing(t *testing.T) {
	w := newWorld()
	alone := row(0, 100, 0)
	other := row(1000, 100, 0)
	other.Tag1 = "successRate"
	other.LogIndex = 5000
	want := w.score(alone)
	for what, in := range map[string][]rating.Row{
		"a copy":                     {alone, copied(alone, 1000)},
		"three copies":               {alone, copied(alone, 1000), copied(alone, 1001), copied(alone, 1002)},
		"a copy in another channel":  {alone, copied(alone, 1000), other},
		"the copy is the first said": {copied(alone, 1000), alone},
	} {
		if got := w.score(in...); got.Evidence > want.Evidence+fixed.One/1000 || got.Mean > want.Mean {
			t.Errorf("%s: %s of evidence and %s, alone %s and %s", what, got.Evidence.Decimal(3), got.Mean,
				want.Evidence.Decimal(3), want.Mean)
		}
	}
	if r := w.score(row(1000, 100, 0)); r.Pool == 0 {
		t.Error("a stranger on its own has no part of the pool")
	}
}

// Trusted raters who say the same in one block are as many voices, and copies of them by others change
// nothing, however many there are.
func TestTrustedRatersInABlock(t *testing.T) {
	w := newWorld()
	var apart, together []rating.Row
	for root := range 12 {
		apart = append(apart, row(root, 90, 0))
		together = append(together, copied(row(0, 90, 0), 0))
		together[root].Rater, together[root].LogIndex = address(root), uint32(root)
	}
	want, got := w.score(apart...), w.score(together...)
	if got.Mean != want.Mean || got.PathsFor != 12 || got.Evidence != want.Evidence {
		t.Errorf("in a block: %s by %d paths, apart %s", got.Mean, got.PathsFor, want.Mean)
	}
	for i := range 600 {
		together = append(together, copied(together[0], 1000+i))
	}
	if with := w.score(together...); with.Mean != got.Mean || with.Evidence != got.Evidence {
		t.Errorf("with 600 copies: %s of %s, without %s of %s", with.Mean, with.Evidence.Decimal(3), got.Mean,
			got.Evidence.Decimal(3))
	}
}

// Without one of the roots that praise it, copied by others or not, no agent is
// better off.
func TestLosingARootNeverRaises(t *testing.T) {
	w := newWorld()
	less := map[int]*flow.Weights{}
	rapid.Check(t, func(t *rapid.T) {
		var in []rating.Row
		for range rapid.IntRange(1, 8).Draw(t, "praise") {
			r := row(rapid.IntRange(0, 19).Draw(t, "root"), 100, rapid.Int64Range(0, 300*testDay).Draw(t, "age"))
			r.LogIndex = uint32(len(in))
			in = append(in, r)
			for c := range rapid.IntRange(0, 2).Draw(t, "copies") {
				in = append(in, copied(r, rapid.OneOf(rapid.IntRange(0, 19), rapid.IntRange(1000, 1005)).Draw(t, "by")+
					20*c))
			}
		}
		root := int(in[0].Rater.Big().Int64() - 1)
		if less[root] == nil {
			less[root] = w.without(root)
		}
		e := w.evidence(in...)
		before := Score(e, w.params)
		e.Weights = less[root]
		if after := Score(e, w.params); after.Mean > before.Mean || after.Low > before.Low {
			t.Fatalf("without root %d: from %s (%s) to %s (%s)", root, before.Mean, before.Low, after.Mean, after.Low)
		}
	})
}

// address is the n-th of the addresses that the tests use.
func address(n int) common.Address { return common.BigToAddress(big.NewInt(int64(n) + 1)) }
