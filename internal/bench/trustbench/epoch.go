package trustbench

import (
	"context"
	"fmt"
	"repute/internal/bench/harness"
	"slices"

	"repute/internal/bench"
)

// epoch measures epochs of the product over a chain of b.o.Epoch ratings, none for 0. The median of the later
// ones counts, because the first one after a start stores every score.
func (b *trustBench) epoch(ctx context.Context) (err error) {
	if b.o.Epoch == 0 {
		return nil
	}
	b.Say("epochs of %d ratings", b.o.Epoch)
	if b.m.Epoch, err = bench.Epochs(ctx, b.o.Program, b.o.Epoch); err != nil {
		return err
	}
	m := b.m.Epoch
	later := slices.Sorted(slices.Values(m.Later))[len(m.Later)/2]
	b.Say("first epoch %.1f s, later ones %.1f s, %.0f MB at most", m.First, later, m.PeakMB)
	name := fmt.Sprintf(" of %d ratings, by the product", m.Ratings)
	part := float64(min(m.Ratings, costEdges)) / costEdges // as in cost
	b.judge(harness.AtMost("T16 epoch"+name, later, costSeconds*max(part, 0.1), "s"),
		harness.AtMost("T16 memory of an epoch, with loading,"+name, m.PeakMB, costMB, "MB"))
	return nil
}
