package cache

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"repute"
)

// Callers share one value, also while it is made, until its time is over; failures are made anew.
func TestBrief(t *testing.T) {
	t.Parallel()
	b := NewBrief[int64]("a number", time.Hour, time.Minute)
	failed := errors.New("failed")
	if _, err := b.Get(t.Context(), func(context.Context) (int64, error) { return 7, failed }); !errors.Is(err,
		failed) {
		t.Fatalf("got %v", err)
	}
	var made atomic.Int64
	produce := func(context.Context) (int64, error) { return made.Add(1), nil }
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if v, err := b.Get(t.Context(), produce); v != 1 || err != nil {
				t.Errorf("got %d, %v", v, err)
			}
		})
	}
	all.Wait()
	b.values.Age = 1 // it is older
	if v, err := b.Get(t.Context(), produce); v != 2 || err != nil {
		t.Errorf("afterwards: %d, %v", v, err)
	}
}

// A caller that leaves does not wait, the others get the value that it asked for, and what takes too long is given up.
func TestBriefWhileItIsMade(t *testing.T) {
	t.Parallel()
	b := NewBrief[int]("a number", time.Hour, time.Minute)
	begun, end := make(chan struct{}), make(chan struct{})
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-begun; leave() }()
	_, err := b.Get(ctx, func(ctx context.Context) (int, error) { close(begun); <-end; return 3, ctx.Err() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the caller left: %v", err)
	}
	close(end)
	if v, err := b.Get(t.Context(),
		func(context.Context) (int, error) { return 4, errors.New("made twice") }); v != 3 || err != nil {
		t.Errorf("who stayed: %d, %v", v, err)
	}
	b = NewBrief[int]("a number", time.Hour, time.Millisecond)
	_, err = b.Get(t.Context(), func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
	if !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("too slow: %v", err)
	}
}

// TestPanicIsAFailure: a panic while a value is made fails those who asked for it. It neither ends the process, since a
// value is made in a goroutine of its own, nor keeps the next value from being made.
func TestPanicIsAFailure(t *testing.T) {
	t.Parallel()
	b := NewBrief[int]("a number", time.Hour, time.Minute)
	if _, err := b.Get(t.Context(), func(context.Context) (int, error) { panic("no number") }); err == nil ||
		!strings.Contains(err.Error(), "no number") {
		t.Errorf("a panic is told as %v", err)
	}
	if v, err := b.Get(t.Context(), func(context.Context) (int, error) { return 5, nil }); v != 5 || err != nil {
		t.Errorf("afterwards: %d, %v", v, err)
	}
}
