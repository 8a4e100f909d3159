package httpapi

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"
)

// Quota is what one caller may use: requests per second, and how many at once.
type Quota struct {
	Rate  float64
	Burst int
}

// Taken is the outcome of counting one request.
type Taken struct {
	// Wait is the time until the next request may pass; 0: this one passes.
	Wait time.Duration
	// Left is how many requests may follow at once.
	Left int
}

// Limiter limits the requests of each caller. Make one with NewLimiter.
type Limiter struct {
	local  *buckets
	shared *sharedBuckets // nil: this process counts alone
	quota  Quota
}

// NewLimiter returns a limiter of perSecond requests per caller with bursts of burst. With a
// client, processes count together under the name.
func NewLimiter(name string, perSecond float64, burst int, client *redis.Client, log *slog.Logger) *Limiter {
	l := &Limiter{local: newBuckets(), quota: Quota{perSecond, burst}}
	if client != nil {
		l.shared = &sharedBuckets{client: client, script: takeScript(), local: l.local, log: log, name: name,
			breaker: newBreaker[Taken]()}
	}
	return l
}

// Allow counts a request. If it must not pass, wait is the time until the next one may.
func (l *Limiter) Allow(ctx context.Context, caller string) (wait time.Duration) {
	return l.Take(ctx, caller, l.quota).Wait
}

// Take counts a request of a caller with a quota of its own.
func (l *Limiter) Take(ctx context.Context, caller string, q Quota) Taken {
	if l.shared != nil {
		return l.shared.take(ctx, caller, q)
	}
	return l.local.take(caller, q)
}

// generation is the shortest time that an idle caller's bucket is kept. It MUST exceed burst/rate,
// because removing a bucket refills it.
const (
	generation = time.Minute
	maxCallers = 100_000
)

// buckets has a token bucket per caller in this process. Two generations of them bound the memory
// without a timer. A bucket moves to the current generation when it is used; those that were not used in a whole
// lifetime are dropped together. mu guards the maps and not the buckets, which have locks of their own.
type buckets struct {
	mu                sync.Mutex
	current, previous map[string]*rate.Limiter
	since             time.Time
	lifetime          time.Duration // how long a bucket is kept: longer than the slowest takes to refill
}

// newBuckets returns no buckets yet.
func newBuckets() *buckets {
	return &buckets{current: map[string]*rate.Limiter{}, lifetime: generation}
}

// take takes a token from the caller's bucket, or returns the time until the next one. A request that must wait takes
// no token: asking again sooner does not make the wait longer.
func (b *buckets) take(caller string, q Quota) Taken {
	now := time.Now()
	bucket := b.bucket(caller, now, q)
	r := bucket.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
		return Taken{Wait: wait}
	}
	return Taken{Left: max(0, int(bucket.TokensAt(now)))}
}

// bucket returns the bucket of a caller, a full one for a new caller or another quota. A quota that changes gives a
// full bucket, as after a change of the configuration.
func (b *buckets) bucket(caller string, now time.Time, q Quota) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lifetime = max(b.lifetime, time.Duration(float64(q.Burst)/q.Rate*float64(time.Second)))
	if now.Sub(b.since) > b.lifetime || len(b.current) >= maxCallers {
		b.previous, b.current, b.since = b.current, map[string]*rate.Limiter{}, now
	}
	l, found := b.current[caller]
	if !found {
		l, found = b.previous[caller]
	}
	if !found || l.Limit() != rate.Limit(q.Rate) || l.Burst() != q.Burst {
		l = rate.NewLimiter(rate.Limit(q.Rate), q.Burst)
	}
	b.current[caller] = l
	return l
}
