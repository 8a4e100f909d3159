package indexer

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"repute"
	"repute/internal/rpctest"
	"repute/store"
)

func TestRunSurvivesDarkness(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	w := newWorld(c, 13)
	w.grow(20)
	c.GoDark(true)
	db := openStore(t)
	f := follow(t, db, c, Options{})
	if f.Ready() == nil {
		t.Error("ready before the start")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	eventually(t, "the status shows the dead node", func() bool {
		return status(t, db).LastError != "" &&
			f.Ready() != nil
	})
	c.GoDark(false)
	eventually(t, "indexed", func() bool { return cursorOf(t, db).Hash == c.Head().Hash() })
	eventually(t, "the status is clean", func() bool { return status(t, db).LastError == "" && f.Ready() == nil })
	c.GoDark(true)
	w.grow(5)
	eventually(t, "the status shows the dead node again", func() bool { return status(t, db).LastError != "" })
	c.GoDark(false)
	eventually(t, "indexed again", func() bool { return cursorOf(t, db).Hash == c.Head().Hash() })
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestTwoProcessesShareAChain(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	w := newWorld(c, 14)
	w.grow(50)
	db := openStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	first, stopFirst := context.WithCancel(ctx)
	done := make(chan error, 2)
	o := Options{TTL: 400 * time.Millisecond}
	a, b := follow(t, db, c, o), follow(t, db, c, o)
	go func() { done <- a.Run(first) }()
	eventually(t, "the first leads", func() bool { return cursorOf(t, db).Number == 50 })
	go func() { done <- b.Run(ctx) }()
	eventually(t, "the second is ready to take over", func() bool { return b.Ready() == nil })
	w.grow(10)
	eventually(t, "the first continues", func() bool { return cursorOf(t, db).Number == 60 })
	stopFirst()
	if err := <-done; err != nil {
		t.Error(err)
	}
	w.fork(55, 20)
	eventually(t, "the second takes over", func() bool { return cursorOf(t, db).Hash == c.Head().Hash() })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	wantFresh(t, db, c)
}

// A leader whose lease was taken while it was busy must commit nothing.
func TestFencedStep(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	newWorld(c, 15).grow(30)
	db := openStore(t)
	f := follow(t, db, c, Options{})
	old, err := db.Acquire(t.Context(), "chain:31337", "frozen", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Release(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Acquire(t.Context(), "chain:31337", "other", time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := f.Step(t.Context(), old); !errors.Is(err, repute.ErrFenced) {
		t.Errorf("step: %v, want ErrFenced", err)
	}
	if got := cursorOf(t, db); got.Number != 0 {
		t.Errorf("cursor moved to %d", got.Number)
	}
}

func TestKilledInMidStep(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	w := newWorld(c, 16)
	w.grow(150)
	c.Finalize(20, 10)
	db := openStore(t)
	rnd := rand.New(rand.NewPCG(16, 16))
	follow(t, db, c, Options{}) // adds the chain
	for i := 0; cursorOf(t, db).Hash != c.Head().Hash(); i++ {
		if i%20 == 19 && i < 200 {
			w.fork(c.Head().Number()-3, 5)
		}
		f := follow(t, db, c, Options{StartRange: 7, MaxRange: 7})
		// Longer and longer lives, so that a slow machine gets to the end as well.
		life := time.Duration(rnd.Int64N(int64(5*time.Millisecond) * int64(i+2)))
		ctx, cancel := context.WithTimeout(t.Context(), life)
		for ctx.Err() == nil {
			_ = f.Step(ctx, store.Lease{})
		}
		cancel()
	}
	wantFresh(t, db, c)
}
