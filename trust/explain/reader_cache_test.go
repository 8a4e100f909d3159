package explain

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/scoredb"
	"repute/trust/engine"
	"repute/trust/flow"
	"repute/trust/rating"
)

// Graphs of earlier epochs that nobody can finish leave the newest one alone.
func TestOldGraphsHaveTheirOwnTurn(t *testing.T) {
	t.Parallel()
	r, err := NewReader(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	end, begun := make(chan struct{}), make(chan struct{})
	defer close(end)
	go func() {
		_, _ = r.older.Get(t.Context(), worldKey{run: 1},
			func(context.Context) (*engine.Basis, error) { close(begun); <-end; return nil, errors.New("ended") })
	}()
	<-begun
	none := flow.NewGraphBuilder().Build().Walk(nil, r.params.Walk)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := r.worlds.Get(ctx, worldKey{run: 9},
		func(context.Context) (*engine.Basis, error) { return &engine.Basis{Weights: none}, nil }); err != nil {
		t.Errorf("the newest graph: %v", err)
	}
	if _, err := r.walks.Get(ctx, walkKey{},
		func(context.Context) (*personalWalk, error) { return &personalWalk{weights: none}, nil }); err != nil {
		t.Errorf("a walk: %v", err)
	}
}

// Walks by callers' roots wait in a bounded queue: each of them costs a walk of the whole
// graph, no matter from how many addresses callers ask.
func TestWalksWaitInABoundedQueue(t *testing.T) {
	t.Parallel()
	r, err := NewReader(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	walk := func(n byte) error {
		_, err := r.walks.Get(ctx, walkKey{walkOf: walkOf{roots: common.Hash{n}}},
			func(context.Context) (*personalWalk, error) { <-end; return nil, errors.New("ended") })
		return err
	}
	waiting := make(chan error, 100)
	for n := range byte(100) {
		go func() { waiting <- walk(n) }()
	}
	for range 100 - maxWalks {
		var busy *repute.BusyError
		if err := <-waiting; !errors.As(err, &busy) || busy.Retry < time.Second ||
			!strings.Contains(busy.Hint, "without roots") {
			t.Fatalf("a walk too many: %v", err)
		}
	}
	close(end)
	for range maxWalks {
		if err := <-waiting; err == nil || errors.Is(err, repute.ErrUnavailable) {
			t.Errorf("a walk in the queue: %v", err)
		}
	}
}

// A reader with the graphs of an engine reads none of the same run.
func TestGraphsOfEnginesAreNotReadAgain(t *testing.T) {
	t.Parallel()
	var graphs engine.Graphs
	run := scoredb.Run{ChainID: 9, Run: 3}
	scales := new(rating.Scales)
	graphs.Set(&engine.Basis{Run: run, Scales: scales})
	r, err := NewReader(nil, Options{Graphs: &graphs}) // without a database, it would fail
	if err != nil {
		t.Fatal(err)
	}
	w, err := r.worldFor(t.Context(), run)
	if err != nil || w.Scales != scales || r.worlds.Len() != 0 {
		t.Errorf("%+v and %d graphs of its own: %v", w, r.worlds.Len(), err)
	}
}
