package cache

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"repute"
)

// Brief keeps the answer to one question for a short time, so that any number of callers cost one reading in it. Callers
// share the value and MUST NOT change it. Failures are not kept. Make one with NewBrief.
type Brief[V any] struct {
	what   string
	keep   time.Duration
	limit  time.Duration
	making singleflight.Group

	mu    sync.Mutex
	value V
	until time.Time // zero: nothing is kept
}

// NewBrief returns a Brief whose values are kept for a time since they were made. what names them in errors. limit bounds
// the making, which continues after the caller has left.
func NewBrief[V any](what string, keep, limit time.Duration) *Brief[V] {
	return &Brief[V]{what: what, keep: keep, limit: limit}
}

// Get returns the kept value, or makes one. It returns when ctx ends. repute.ErrUnavailable: it takes too long.
func (b *Brief[V]) Get(ctx context.Context, produce func(context.Context) (V, error)) (v V, err error) {
	if v, ok := b.peek(); ok {
		return v, nil
	}
	done := b.making.DoChan("", func() (any, error) { return b.make(context.WithoutCancel(ctx), produce) })
	select {
	case r := <-done:
		if r.Err != nil {
			return v, r.Err
		}
		return r.Val.(V), nil
	case <-ctx.Done():
		return v, ctx.Err()
	}
}

// peek returns the value that is kept, if any.
func (b *Brief[V]) peek() (v V, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !time.Now().Before(b.until) {
		return v, false
	}
	return b.value, true
}

// make makes a value, unless one was kept since it was asked for.
func (b *Brief[V]) make(ctx context.Context, produce func(context.Context) (V, error)) (V, error) {
	if v, ok := b.peek(); ok {
		return v, nil
	}
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	v, err := produce(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %s not made within %v", repute.ErrUnavailable, b.what, b.limit)
		}
		return v, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.value, b.until = v, time.Now().Add(b.keep)
	return v, nil
}
