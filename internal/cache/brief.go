package cache

import (
	"context"
	"time"
)

// Brief keeps the answer to one question for a short time, so that any number of callers cost one reading in it.
// Callers share the value and MUST NOT change it. Failures are not kept. Make one with NewBrief.
type Brief[V any] struct{ values *Cache[struct{}, V] }

// NewBrief returns a Brief whose values are kept for a time since they were made. what names them in errors. limit
// bounds the making, which continues after the caller has left.
func NewBrief[V any](what string, keep, limit time.Duration) *Brief[V] {
	return &Brief[V]{New(Bounds{What: what, Limit: limit, Age: keep}, func(V) int64 { return 0 },
		func(struct{}) string { return "" })}
}

// Get returns the kept value, or makes one. It returns when ctx ends. repute.ErrUnavailable: it takes too long.
func (b *Brief[V]) Get(ctx context.Context, produce func(context.Context) (V, error)) (V, error) {
	return b.values.Get(ctx, struct{}{}, produce)
}
