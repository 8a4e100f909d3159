package orchestrator

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"repute/store"
)

// A run whose phase fails in the end by the database leaves the other runs of its task alone:
// what their agents made of the same failure is no outcome.
func TestGivingUpIsOfOneRun(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	root := &work{log: log}
	one, other, below := &work{parent: root, log: log}, &work{parent: root, log: log}, &work{log: log}
	below.parent = other
	failed := fmt.Errorf("begin call: %w", store.ErrDatabase)
	for _, w := range []*work{one, below} {
		if err := w.lost(failed); !errors.Is(err, ErrAway) {
			t.Fatalf("an agent is told %v", err)
		}
	}
	one.giveUp()
	said := errors.New("the agent reports failure")
	for name, c := range map[string]struct {
		w    *work
		lost bool
	}{"the run itself": {one, false}, "the one beside it": {other, true}, "the one below that": {below, true},
		"the one above": {root, true}} {
		if err := c.w.failure(said); (err != nil) != c.lost {
			t.Errorf("%s: %v", name, err)
		}
	}
}
