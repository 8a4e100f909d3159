package trustbench

import (
	"context"
	"fmt"

	"repute/internal/bench/harness"
)

// epoch measures epochs of the product over a chain of b.o.Epoch ratings, none for 0. The median of the later
// ones counts, because the first one after a start stores every score. Limits are in proportion for fewer ratings than
// costEdges, not below a tenth.
func (b *trustBench) epoch(ctx context.Context) (err error) {
	if b.o.Epoch == 0 {
		return nil
	}
	b.Say("epochs of %d ratings", b.o.Epoch)
	if b.m.Epoch, err = measureEpochs(ctx, b.o.Program, b.o.Epoch); err != nil {
		return err
	}
	m := b.m.Epoch
	later, event, large := harness.Median(m.Later), harness.Median(m.Events), harness.Median(m.LargeEvents)
	b.Say("first epoch %.1f s, later ones %.1f s, %.0f MB at most; an event after it %.0f ms, with %d ratings %.0f ms",
		m.First, later, m.PeakMB, event, m.Large, large)
	name := fmt.Sprintf(" of %d ratings, by the product", m.Ratings)
	part := float64(min(m.Ratings, costEdges)) / costEdges // as in cost
	b.judge(harness.AtMost("T16 epoch"+name, later, costSeconds*max(part, 0.1), "s"),
		harness.AtMost("T16 memory of an epoch, with loading,"+name, m.PeakMB, costMB, "MB"),
		harness.AtMost("T16 event of a usual agent, from its commit to its score,"+name, event, costEventMS, "ms"),
		harness.AtMost(fmt.Sprintf("T16 the same of an agent of %d ratings, the first event after an epoch", m.Large),
			large,
			costLargeMS, "ms"))
	return nil
}
