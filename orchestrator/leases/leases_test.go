package leases

import (
	"context"
	"errors"
	"testing"

	"repute/store/rundb"
)

// TestKeep ends the work on every lease that is still kept, and only that.
func TestKeep(t *testing.T) {
	t.Parallel()
	s, why := New(), errors.New("the process stops")
	first, drop := s.Keep(context.Background(), rundb.Lease{Root: "run_1", Fence: 1})
	second, dropSecond := s.Keep(context.Background(), rundb.Lease{Root: "run_1", Fence: 2})
	defer dropSecond()
	drop()
	if first.Err() == nil || second.Err() != nil {
		t.Fatal("a dropped lease goes on, or ended another")
	}
	s.EndAll(why)
	if !errors.Is(context.Cause(second), why) || errors.Is(context.Cause(first), why) {
		t.Errorf("causes %v and %v", context.Cause(first), context.Cause(second))
	}
}
