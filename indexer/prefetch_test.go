package indexer

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/internal/rpctest"
	"repute/store"
)

// traffic watches the eth_getLogs calls of a chain.
type traffic struct {
	mu       sync.Mutex
	now, top int
	wanted   int            // answers but the first are held back until so many are asked for at once
	answered map[uint64]int // how often each block's logs were given
}

// rule delays every answer, so that calls overlap if they can.
func (w *traffic) rule(c *rpctest.Chain, delay time.Duration, refuse func(from, to uint64) bool) rpctest.Rule {
	w.answered = map[uint64]int{}
	return rpctest.On("eth_getLogs", func(call rpctest.Call) *rpctest.Answer {
		from, to, _ := rpctest.Range(call)
		w.enter(1)
		defer w.enter(-1)
		time.Sleep(delay)
		for end := time.Now().Add(5 * time.Second); call.N > 0 && !w.reached() && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if refuse != nil && refuse(from, to) {
			return &rpctest.Answer{Error: &rpctest.Error{Code: -32000, Message: "too much of it"}}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for n := from; n <= min(to, c.Head().Number()); n++ {
			w.answered[n]++
		}
		return nil
	})
}

func (w *traffic) reached() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.top >= w.wanted
}

func (w *traffic) enter(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now += n
	w.top = max(w.top, w.now)
}

// final is a chain of which all but the newest blocks are final.
func final(t *testing.T, seed uint64, blocks int) (*rpctest.Chain, *world) {
	t.Helper()
	c := rpctest.New(t, rpctest.Options{})
	w := newWorld(c, seed)
	w.grow(blocks)
	c.Finalize(uint64(blocks)-5, uint64(blocks)-10)
	return c, w
}

func TestFetchesAhead(t *testing.T) {
	t.Parallel()
	c, _ := final(t, 21, 1_000)
	w := traffic{wanted: 3}
	c.Inject(w.rule(c, 100*time.Millisecond, nil)) // that the first is waited for makes room for a third
	db := openStore(t)
	catchUp(t, follow(t, db, c, Options{StartRange: 50, MaxRange: 50, Ahead: 3}))
	if w.top != 3 {
		t.Errorf("%d questions at once, want 3", w.top)
	}
	for n := uint64(1); n <= 990; n++ { // above they are asked for by hash
		if w.answered[n] != 1 {
			t.Errorf("block %d was fetched %d times", n, w.answered[n])
		}
	}
	wantFresh(t, db, c)
}

// Ranges that were answered are kept while an earlier one is refused and split.
func TestRefusedRangeKeepsTheNext(t *testing.T) {
	t.Parallel()
	c, _ := final(t, 22, 800)
	var w traffic
	undo := c.Inject(w.rule(c, 0, func(from, to uint64) bool { return from <= 120 && to >= 120 && to-from > 10 }))
	db := openStore(t)
	stepUntilDone(t, follow(t, db, c, Options{StartRange: 100, MaxRange: 100}))
	wantCursor(t, db, c.Head())
	undo()
	for n := uint64(1); n <= 790; n++ {
		if w.answered[n] != 1 {
			t.Errorf("block %d was fetched %d times", n, w.answered[n])
		}
	}
	wantFresh(t, db, c)
}

func TestMemoryBoundsFetching(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1), ""))
	for i := range 600 {
		c.Mine(c.Feedback(0, rpctest.Account(2), uint64(i+1), 1, "t"),
			c.Feedback(0, rpctest.Account(3), uint64(i+1), 1, "t"))
	}
	c.Finalize(600, 600)
	const bound = 100_000
	f := follow(t, openStore(t), c, Options{StartRange: 5, Ahead: 8, MaxBytes: bound})
	steps := 0
	for err := error(nil); !errors.Is(err, ErrNothingNew); steps++ {
		if err = f.Step(t.Context(), store.Lease{}); err != nil && !errors.Is(err, ErrNothingNew) {
			t.Fatal(err)
		}
		held := 0
		for _, pr := range f.prefetch.ranges {
			if <-pr.done; pr.piece != nil {
				held += pr.piece.bytes
			}
		}
		if held > bound+bound/2 {
			t.Fatalf("step %d: %d bytes are held, the bound is %d", steps, held, bound)
		}
	}
	if steps < 10 {
		t.Errorf("%d steps: the bound did not count", steps)
	}
}

// A fork below ranges that are being fetched or wait to be stored: none of them
// may be stored behind blocks of the other branch.
func TestForkWithRangesInFlight(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		c := rpctest.New(t, rpctest.Options{})
		w := newWorld(c, 100+seed)
		w.grow(400)
		c.Finalize(20, 10)
		db := openStore(t)
		asked := 0
		var mu sync.Mutex
		undo := c.Inject(rpctest.On("eth_getLogs", func(rpctest.Call) *rpctest.Answer {
			mu.Lock()
			defer mu.Unlock()
			if asked++; asked == 4+2*int(seed) {
				w.fork(60+50*seed, 350)
			}
			return nil
		}))
		f := follow(t, db, c, Options{StartRange: 30})
		f.prefetch.width = 4
		for range 3 { // answers of two forks at once may be refused
			stepUntilDone(t, f)
		}
		undo()
		if c.Head().Number() == 400 {
			t.Fatal("there was no fork")
		}
		wantCursor(t, db, c.Head())
		wantFresh(t, db, c)
	}
}

// What was fetched ahead for a cursor that another process moved is worth nothing.
func TestCursorMovedByAnother(t *testing.T) {
	t.Parallel()
	c, _ := final(t, 23, 500)
	db := openStore(t)
	a, b := follow(t, db, c, Options{StartRange: 40, MaxRange: 40}),
		follow(t, db, c, Options{StartRange: 25, MaxRange: 25})
	for i := range 1_000 {
		f := a
		if i%3 == 0 {
			f = b
		}
		if err := f.Step(t.Context(), store.Lease{}); errors.Is(err, ErrNothingNew) {
			break
		} else if err != nil && !errors.Is(err,
			repute.ErrUnavailable) { // without a lease it waits in vain for the range that the other one prefetched
			t.Fatal(err)
		}
	}
	wantCursor(t, db, c.Head())
	wantFresh(t, db, c)
}

// Leading ends at once although answers are outstanding.
func TestEndsWithRangesInFlight(t *testing.T) {
	t.Parallel()
	c, _ := final(t, 24, 100)
	c.Inject(rpctest.On("eth_getLogs", rpctest.Always(rpctest.Answer{Hang: true})))
	f := follow(t, openStore(t), c, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	eventually(t, "logs are asked for", func() bool { return c.Calls("eth_getLogs") > 0 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestRunUntil(t *testing.T) {
	t.Parallel()
	c, w := final(t, 25, 300)
	db := openStore(t)
	if err := follow(t, db, c, Options{StartRange: 50, Until: 123}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCursor(t, db, c.Blocks()[123])
	if err := follow(t, db, c, Options{Until: 100}).Run(t.Context()); err != nil {
		t.Errorf("a block stored long ago: %v", err)
	}
	if err := follow(t, db, c, Options{Once: true}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCursor(t, db, c.Blocks()[300])
	w.grow(50)
	lease, err := db.Acquire(t.Context(), "chain:31337", "other", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- follow(t, db, c, Options{Once: true, TTL: 100 * time.Millisecond}).Run(t.Context()) }()
	leader := follow(t, db, c, Options{})
	for err = nil; err == nil; {
		err = leader.Step(t.Context(), lease)
	}
	if !errors.Is(err, ErrNothingNew) {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("the leader did it: %v", err)
	}
	wantFresh(t, db, c)
}

func TestDensityLimitsTheRange(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1), ""))
	for i := range 500 {
		c.Mine(c.Feedback(0, rpctest.Account(2), uint64(2*i+1), 1, ""),
			c.Feedback(0, rpctest.Account(2), uint64(2*i+2), 1,
				""))
	}
	c.Finalize(500, 500)
	top := 0
	c.MapLogs(func(logs []types.Log) []types.Log {
		top = max(top, len(logs))
		return logs
	})
	db := openStore(t)
	catchUp(t, follow(t, db, c, Options{StartRange: 20, RangeLogs: 100, Ahead: 1}))
	if top > 110 || top < 80 {
		t.Errorf("up to %d logs at once, want about 100", top)
	}
	if s := status(t, db); !unbroken(s) {
		t.Errorf("%+v", s.Completeness)
	}
}
