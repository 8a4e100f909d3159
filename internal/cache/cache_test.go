package cache

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"repute"
)

func newTestCache(b Bounds) *Cache[int, int] {
	b.What, b.Memory = "a number", 1000
	return New(b, func(int) int64 { return 1 }, func(k int) string { return fmt.Sprint(k) })
}

// A caller that asks for more values than may wait is refused at once, and served again when one of the others is made.
func TestCacheRefusesTooMany(t *testing.T) {
	t.Parallel()
	h := newTestCache(Bounds{Limit: time.Minute, Asked: 2})
	begun, end := make(chan struct{}), make(chan struct{})
	made := make(chan error, 2)
	for i := range 2 {
		go func() {
			_, err := h.Get(t.Context(), i,
				func(context.Context) (int, error) { begun <- struct{}{}; <-end; return i, nil })
			made <- err
		}()
	}
	<-begun
	for len(h.places) < 2 {
		time.Sleep(time.Millisecond)
	}
	now := func(context.Context) (int, error) { return 7, nil }
	if _, err := h.Get(t.Context(), 7, now); !errors.Is(err, repute.ErrUnavailable) {
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
	if v, err := h.Get(t.Context(), 7, now); v != 7 || err != nil {
		t.Errorf("afterwards: %d, %v", v, err)
	}
}

// What takes too long is given up, each caller that waits for it is told so, and what waits behind it has its turn.
func TestCacheGivesUp(t *testing.T) {
	t.Parallel()
	h := newTestCache(Bounds{Limit: 50 * time.Millisecond, Asked: 2})
	_, err := h.Get(t.Context(), 1, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
	if !errors.Is(err, repute.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if v, err := h.Get(t.Context(), 2, func(context.Context) (int, error) { return 2, nil }); v != 2 || err != nil {
		t.Errorf("got %d, %v", v, err)
	}
}

// A value is made once, though one who asked saw it missing just before it was kept.
func TestCacheMakesOnce(t *testing.T) {
	t.Parallel()
	h := newTestCache(Bounds{Limit: time.Minute})
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

// A value that is kept again replaces the one before, also in the count of bytes, and one that is too old is made anew.
func TestCacheReplaces(t *testing.T) {
	t.Parallel()
	h := newTestCache(Bounds{Limit: time.Minute, Age: time.Hour})
	for i := range 3 {
		h.Keep(1, i)
	}
	if v, found := h.Peek(1); v != 2 || !found || h.bytes != 1 {
		t.Errorf("%d, %t, %d bytes", v, found, h.bytes)
	}
	h.Age = 1
	if _, found := h.Peek(1); found {
		t.Error("a value is too old and kept")
	}
	if h.Drop(1); h.bytes != 0 || h.Len() != 0 {
		t.Errorf("%d bytes of %d values", h.bytes, h.Len())
	}
}
