package trust

import (
	"context"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common/lru"
	"golang.org/x/sync/singleflight"
)

// hold keeps what is dear to make, up to so many bytes: the least used goes first. One
// value is made at a time, whoever asks.
type hold[K comparable, V any] struct {
	most int64
	size func(V) int64
	name func(K) string
	turn chan struct{} // has a place for the one that is being made

	making singleflight.Group
	mu     sync.Mutex
	kept   lru.BasicLRU[K, V]
	bytes  int64
}

// makeTimeout bounds the making of one value, which goes on when its asker has left.
const makeTimeout = 2 * time.Minute

func newHold[K comparable, V any](most int64, turn chan struct{}, size func(V) int64, name func(K) string) *hold[K, V] {
	return &hold[K, V]{most: most, size: size, name: name, turn: turn, kept: lru.NewBasicLRU[K, V](1 << 20)}
}

func (h *hold[K, V]) peek(key K) (V, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.kept.Get(key)
}

// get gives what is kept, or makes it. It waits no longer than ctx allows.
func (h *hold[K, V]) get(ctx context.Context, key K, produce func(context.Context) (V, error)) (v V, err error) {
	if v, ok := h.peek(key); ok {
		return v, nil
	}
	done := h.making.DoChan(h.name(key), func() (any, error) {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), makeTimeout)
		defer cancel()
		select {
		case h.turn <- struct{}{}:
			defer func() { <-h.turn }()
		case <-bounded.Done():
			return nil, bounded.Err()
		}
		v, err := produce(bounded)
		if err == nil {
			h.keep(key, v)
		}
		return v, err
	})
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

// keep adds a value; one that is larger than all that may be kept stays alone.
func (h *hold[K, V]) keep(key K, v V) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes += h.size(v)
	h.kept.Add(key, v)
	for h.bytes > h.most && h.kept.Len() > 1 {
		_, old, _ := h.kept.RemoveOldest()
		h.bytes -= h.size(old)
	}
}
