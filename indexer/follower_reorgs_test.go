package indexer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/internal/rpctest"
	"repute/store"
)

func TestReorgs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		depth, grow int
	}{
		{"sibling at the same height", 1, 1}, {"sibling and more", 1, 4}, {"five deep", 5, 6},
		{"five deep, same height", 5, 5}, {"five deep, shorter", 5, 2}, {"deeper than one range", 70, 80},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := rpctest.New(t, rpctest.Options{})
			w := newWorld(c, 3)
			w.grow(100)
			c.Finalize(20, 10)
			db := openStore(t)
			f := follow(t, db, c, Options{})
			catchUp(t, f)
			w.fork(100-uint64(tt.depth), tt.grow)
			if n := catchUp(t, f); n != 1 {
				t.Errorf("%d reorganizations, want 1", n)
			}
			wantCursor(t, db, c.Head())
			wantFresh(t, db, c)
		})
	}
}

func TestReorgWhileDown(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	w := newWorld(c, 4)
	w.grow(60)
	c.Finalize(50, 40)
	db := openStore(t)
	catchUp(t, follow(t, db, c, Options{}))
	w.fork(55, 400) // and finality has passed the fork since
	c.Finalize(450, 440)
	if n := catchUp(t, follow(t, db, c, Options{})); n != 1 {
		t.Errorf("%d reorganizations, want 1", n)
	}
	wantCursor(t, db, c.Head())
	wantFresh(t, db, c)
}

// The same, but for a process that was frozen or cut off rather than restarted.
func TestReorgWhileCutOff(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	w := newWorld(c, 5)
	w.grow(60)
	c.Finalize(50, 40)
	db := openStore(t)
	f := follow(t, db, c, Options{})
	catchUp(t, f)
	w.fork(55, 400)
	c.Finalize(450, 440)
	catchUp(t, f)
	wantCursor(t, db, c.Head())
	wantFresh(t, db, c)
}

func TestReorgDuringFetch(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	w := newWorld(c, 6)
	w.grow(40)
	c.Finalize(10, 5)
	db := openStore(t)
	f := follow(t, db, c, Options{})
	catchUp(t, f)
	for _, method := range []string{"eth_getLogs", "eth_getBlockByNumber"} {
		w.grow(5)
		at := c.Head().Number() - 8
		c.Inject(rpctest.Times(1, rpctest.On(method, func(call rpctest.Call) *rpctest.Answer {
			if call.Method == "eth_getBlockByNumber" && !strings.HasPrefix(string(call.Params[0]), `"0x`) {
				return nil
			}
			w.fork(at, 10)
			return &rpctest.Answer{Honest: true}
		})))
		stepUntilDone(t, f)
		wantCursor(t, db, c.Head())
		wantFresh(t, db, c)
	}
}

// stepUntilDone is catchUp for chains that fail now and then.
func stepUntilDone(t *testing.T, f *Follower) {
	t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		switch err = f.Step(t.Context(), store.Lease{}); {
		case errors.Is(err, ErrNothingNew):
			return
		case err != nil && !errors.Is(err, repute.ErrReorged):
			time.Sleep(time.Millisecond) // the node may be given a rest
		}
	}
	t.Fatalf("no end after a minute: %v", err)
}

func TestLowerHeadIsNoReorg(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	newWorld(c, 7).grow(50)
	db := openStore(t)
	f := follow(t, db, c, Options{})
	catchUp(t, f)
	before := dump(t, db)
	for _, head := range []uint64{49, 30, 1, 0} {
		c.ServeHead(head)
		if err := f.Step(t.Context(), store.Lease{}); !errors.Is(err, ErrBehind) {
			t.Errorf("head at %d: %v, want ErrBehind", head, err)
		}
	}
	wantCursor(t, db, c.Blocks()[50])
	if dump(t, db) != before {
		t.Error("a lower head changed the index")
	}
	c.ServeAll()
	catchUp(t, f)
}

func TestFinalizedViolationHalts(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	w := newWorld(c, 8)
	w.grow(50)
	c.Finalize(45, 40)
	db := openStore(t)
	f := follow(t, db, c, Options{})
	catchUp(t, f)
	catchUp(t, f) // a second look proves the head and publishes finality
	before := dump(t, db)
	w.fork(30, 40)
	err := f.Run(t.Context())
	if !errors.Is(err, repute.ErrFinalized) {
		t.Fatalf("Run: %v, want ErrFinalized", err)
	}
	if f.Ready() == nil {
		t.Error("a halted chain is ready")
	}
	if dump(t, db) != before {
		t.Error("the index changed")
	}
	if s := status(t, db); !s.Halted || s.LastError == "" {
		t.Errorf("status: halted %t, %q", s.Halted, s.LastError)
	}
}
