package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/flow"
)

func newTestHold(b bounds) *cache[int, int] {
	b.what, b.memory = "a number", 1000
	return newCache(b, func(int) int64 { return 1 }, func(k int) string { return fmt.Sprint(k) })
}

// Whoever asks for more values than may wait is refused at once, and served again when one
// of the others is made.
func TestHoldRefusesTooMany(t *testing.T) {
	t.Parallel()
	h := newTestHold(bounds{limit: time.Minute, asked: 2})
	begun, end := make(chan struct{}), make(chan struct{})
	made := make(chan error, 2)
	for i := range 2 {
		go func() {
			_, err := h.get(t.Context(), i, func(context.Context) (int, error) { begun <- struct{}{}; <-end; return i, nil })
			made <- err
		}()
	}
	<-begun
	for len(h.places) < 2 {
		time.Sleep(time.Millisecond)
	}
	now := func(context.Context) (int, error) { return 7, nil }
	if _, err := h.get(t.Context(), 7, now); !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("the third: %v", err)
	}
	close(end)
	<-begun
	for range 2 {
		if err := <-made; err != nil {
			t.Error(err)
		}
	}
	for len(h.places) > 0 {
		time.Sleep(time.Millisecond)
	}
	if v, err := h.get(t.Context(), 7, now); v != 7 || err != nil {
		t.Errorf("afterwards: %d, %v", v, err)
	}
}

// What takes too long is given up, whoever waits for it is told so, and what waits behind it
// has its turn.
func TestHoldGivesUp(t *testing.T) {
	t.Parallel()
	h := newTestHold(bounds{limit: 50 * time.Millisecond, asked: 2})
	_, err := h.get(t.Context(), 1, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
	if !errors.Is(err, repute.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if v, err := h.get(t.Context(), 2, func(context.Context) (int, error) { return 2, nil }); v != 2 || err != nil {
		t.Errorf("got %d, %v", v, err)
	}
}

// A value is made once, though one who asked saw it missing just before it was kept.
func TestHoldMakesOnce(t *testing.T) {
	t.Parallel()
	h := newTestHold(bounds{limit: time.Minute})
	var made atomic.Int32
	produce := func(context.Context) (int, error) { made.Add(1); return 1, nil }
	for range 2 { // the second is the one who was late
		if _, err := h.make(t.Context(), 1, produce); err != nil {
			t.Fatal(err)
		}
	}
	if n := made.Load(); n != 1 {
		t.Errorf("made %d times", n)
	}
}

// Graphs of earlier epochs that nobody can finish leave the newest one alone.
func TestOldGraphsHaveTheirOwnTurn(t *testing.T) {
	t.Parallel()
	r, err := NewReader(nil, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	end, begun := make(chan struct{}), make(chan struct{})
	defer close(end)
	go func() {
		_, _ = r.older.get(t.Context(), worldKey{run: 1},
			func(context.Context) (*basis, error) { close(begun); <-end; return nil, errors.New("ended") })
	}()
	<-begun
	none := flow.NewGraphBuilder().Build().Walk(nil, r.params.Walk)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := r.worlds.get(ctx, worldKey{run: 9},
		func(context.Context) (*basis, error) { return &basis{weights: none}, nil }); err != nil {
		t.Errorf("the newest graph: %v", err)
	}
	if _, err := r.walks.get(ctx, walkKey{},
		func(context.Context) (*personalWalk, error) { return &personalWalk{weights: none}, nil }); err != nil {
		t.Errorf("a walk: %v", err)
	}
}

// Walks by callers' roots wait in a bounded queue: each of them costs a walk of the whole
// graph, whoever asks from however many addresses.
func TestWalksWaitInABoundedQueue(t *testing.T) {
	t.Parallel()
	r, err := NewReader(nil, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	walk := func(n byte) error {
		_, err := r.walks.get(ctx, walkKey{walkOf: walkOf{roots: common.Hash{n}}},
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
