package cache

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common/lru"
	"golang.org/x/sync/singleflight"

	"repute"
)

// Cache caches values by keys, within its Bounds. See the package comment.
type Cache[K comparable, V any] struct {
	size func(V) int64
	name func(K) string
	Bounds
	turn   chan struct{} // holds one item while a value is computed
	places chan struct{} // one item per value that is computed or waits for it; nil: unbounded

	making singleflight.Group
	mu     sync.Mutex
	kept   lru.BasicLRU[K, entry[V]]
	bytes  int64
}

// entry is a value that is cached.
type entry[V any] struct {
	value V
	made  time.Time
}

// Bounds limit the computing of values.
type Bounds struct {
	What   string        // names the value in errors
	Limit  time.Duration // of waiting and computing, which continue after the caller has left
	Asked  int           // most values computed or waiting at once; 0: unbounded
	Memory int64         // most bytes kept
	Age    time.Duration // for which a value is used since it was made; 0: until it is evicted
	// Instead names what a caller may ask for that needs no such value; empty: nothing.
	Instead string
}

// busyRetry is how long callers are told to wait where too many values are computed: about as
// long as a full queue of them takes on a large chain.
const busyRetry = 5 * time.Second

// New returns an empty cache. size returns the bytes of a value. name returns a text for a key: callers whose keys have
// the same text share one computation.
func New[K comparable, V any](b Bounds, size func(V) int64, name func(K) string) *Cache[K, V] {
	h := &Cache[K, V]{Bounds: b, size: size, name: name, turn: make(chan struct{}, 1),
		kept: lru.NewBasicLRU[K, entry[V]](1 << 20)}
	if b.Asked > 0 {
		h.places = make(chan struct{}, b.Asked)
	}
	return h
}

// Peek returns a value that is cached, without computing it.
func (h *Cache[K, V]) Peek(key K) (v V, found bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e, found := h.kept.Get(key)
	if !found || h.Age > 0 && time.Since(e.made) >= h.Age {
		return v, false
	}
	return e.value, true
}

// Get returns the cached value, or computes it. It returns when ctx ends.
// repute.ErrUnavailable: too many other values are waited for, or this one takes too long.
func (h *Cache[K, V]) Get(ctx context.Context, key K, produce func(context.Context) (V, error)) (v V, err error) {
	if v, ok := h.Peek(key); ok {
		return v, nil
	}
	done := h.making.DoChan(h.name(key),
		func() (any, error) { return h.make(context.WithoutCancel(ctx), key, produce) })
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

// make computes a value, unless it was cached since it was asked for. It runs in a goroutine of its own, where nobody
// else would catch a panic of produce.
func (h *Cache[K, V]) make(ctx context.Context, key K, produce func(context.Context) (V, error)) (v V, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: panic: %v\n%s", h.What, r, debug.Stack())
		}
	}()
	if v, ok := h.Peek(key); ok {
		return v, nil
	}
	if h.places != nil {
		select {
		case h.places <- struct{}{}:
			defer func() { <-h.places }()
		default:
			return v, &repute.BusyError{What: fmt.Sprintf("%s: %d others are made or wait", h.What, h.Asked),
				Hint:  h.Instead,
				Retry: busyRetry}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, h.Limit)
	defer cancel()
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
		v, err = produce(ctx)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		h.Keep(key, v)
	} else if ctx.Err() != nil {
		err = fmt.Errorf("%w: %s was not made within %v", repute.ErrUnavailable, h.What, h.Limit)
	}
	return v, err
}

// Keep adds a value and evicts the least recently used ones. A value larger than the
// bound is kept alone.
func (h *Cache[K, V]) Keep(key K, v V) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if old, known := h.kept.Peek(key); known {
		h.bytes -= h.size(old.value)
	}
	h.bytes += h.size(v)
	h.kept.Add(key, entry[V]{v, time.Now()})
	for h.bytes > h.Memory && h.kept.Len() > 1 {
		_, old, _ := h.kept.RemoveOldest()
		h.bytes -= h.size(old.value)
	}
}

// Len returns how many values are cached.
func (h *Cache[K, V]) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.kept.Len()
}

// Drop evicts a value.
func (h *Cache[K, V]) Drop(key K) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if old, known := h.kept.Peek(key); known {
		h.bytes -= h.size(old.value)
		h.kept.Remove(key)
	}
}
