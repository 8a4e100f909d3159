package query

import (
	"testing"
	"time"

	"repute"
)

// TestTotalsAreKeptByCost keeps what was costly for a multiple of its cost, and
// nothing else.
func TestTotalsAreKeptByCost(t *testing.T) {
	t.Parallel()
	var kept totals
	counted := map[uint64]repute.ChainStatus{1: {Agents: 7}}
	kept.keep(counted, costly)
	if _, fresh := kept.last(); fresh {
		t.Error("a cheap count is kept")
	}
	kept.keep(counted, time.Minute)
	if known, fresh := kept.last(); !fresh || known[1].Agents != 7 {
		t.Errorf("a costly count is not kept: %v", known)
	}
	if left := time.Until(kept.until); left > countingShare*time.Minute || left < (countingShare-1)*time.Minute {
		t.Errorf("it is kept for %s", left)
	}
}
