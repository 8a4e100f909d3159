package trust

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common/lru"
	"golang.org/x/sync/singleflight"

	"repute"
)

// hold keeps what is dear to make, up to so many bytes: the least used goes first. One
// value is made at a time, whoever asks.
type hold[K comparable, V any] struct {
	size func(V) int64
	name func(K) string
	bounds
	turn   chan struct{} // has a place for the one that is being made
	places chan struct{} // of those that are asked for, nil for any number

	making singleflight.Group
	mu     sync.Mutex
	kept   lru.BasicLRU[K, V]
	bytes  int64
}

// bounds are those of making values.
type bounds struct {
	what   string        // is made, for whoever is refused
	limit  time.Duration // of waiting for the turn and making: it goes on when its asker has left
	asked  int           // values that may be made or wait for it at once, 0 for any number
	memory int64         // bytes that are kept
}

func newHold[K comparable, V any](b bounds, size func(V) int64, name func(K) string) *hold[K, V] {
	h := &hold[K, V]{bounds: b, size: size, name: name, turn: make(chan struct{}, 1), kept: lru.NewBasicLRU[K, V](1 << 20)}
	if b.asked > 0 {
		h.places = make(chan struct{}, b.asked)
	}
	return h
}

func (h *hold[K, V]) peek(key K) (V, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.kept.Get(key)
}

// get gives what is kept, or makes it. It waits no longer than ctx allows.
// repute.ErrUnavailable when too many others are asked for, or it takes too long.
func (h *hold[K, V]) get(ctx context.Context, key K, produce func(context.Context) (V, error)) (v V, err error) {
	if v, ok := h.peek(key); ok {
		return v, nil
	}
	done := h.making.DoChan(h.name(key), func() (any, error) { return h.make(context.WithoutCancel(ctx), key, produce) })
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

// make makes a value, unless somebody did since it was asked for.
func (h *hold[K, V]) make(ctx context.Context, key K, produce func(context.Context) (V, error)) (v V, err error) {
	if v, ok := h.peek(key); ok {
		return v, nil
	}
	if h.places != nil {
		select {
		case h.places <- struct{}{}:
			defer func() { <-h.places }()
		default:
			return v, fmt.Errorf("%w: %d others are waited for before %s: ask again later", repute.ErrUnavailable, h.asked, h.what)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, h.limit)
	defer cancel()
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
		v, err = produce(ctx)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		h.keep(key, v)
	} else if ctx.Err() != nil {
		err = fmt.Errorf("%w: %s was not made within %v", repute.ErrUnavailable, h.what, h.limit)
	}
	return v, err
}

// keep adds a value; one that is larger than all that may be kept stays alone.
func (h *hold[K, V]) keep(key K, v V) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes += h.size(v)
	h.kept.Add(key, v)
	for h.bytes > h.memory && h.kept.Len() > 1 {
		_, old, _ := h.kept.RemoveOldest()
		h.bytes -= h.size(old)
	}
}
