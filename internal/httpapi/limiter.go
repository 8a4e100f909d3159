package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"repute"
)

// Limiter limits the requests of each caller. Make one with NewLimiter.
type Limiter struct {
	local  *buckets
	shared *sharedBuckets // nil: this process counts alone
	rate   float64
}

// NewLimiter returns a limiter of perSecond requests per caller with bursts of burst. With a
// client, processes count together under the name.
func NewLimiter(name string, perSecond float64, burst int, client *redis.Client, log *slog.Logger) *Limiter {
	l := &Limiter{local: newBuckets(rate.Limit(perSecond), burst), rate: perSecond}
	if client != nil {
		l.shared = &sharedBuckets{client: client, take: takeScript(), local: l.local, log: log, name: name, rate: perSecond,
			burst:   burst,
			breaker: newBreaker()}
	}
	return l
}

// Allow counts a request. If it must not pass, wait is the time until the next one may.
func (l *Limiter) Allow(ctx context.Context, caller string) (wait time.Duration) {
	if l.shared != nil {
		return l.shared.allow(ctx, caller)
	}
	return l.local.allow(ctx, caller)
}

// Shared reports whether processes count together.
func (l *Limiter) Shared() bool { return l.shared != nil }

// Redis returns whether callers are counted together now: "ok", "away", or "" without a configured
// Redis. It asks Redis at most once a second.
func (l *Limiter) Redis(ctx context.Context) string {
	switch {
	case l.shared == nil:
		return ""
	case l.shared.up(ctx):
		return "ok"
	}
	return "away"
}

// limit refuses callers above the limit with 429 and Retry-After, except requests that skip
// selects. refused is called for each refusal, unless it is nil. hint is added to the answer.
func (l *Limiter) limit(skip func(echo.Context) bool, refused func(), hint string) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if skip(c) {
				return next(c)
			}
			wait := l.Allow(c.Request().Context(), CallerKey(c.RealIP()))
			if wait <= 0 {
				return next(c)
			}
			if refused != nil {
				refused()
			}
			b := *ErrorOf(fmt.Errorf("more than %g requests per second: %w", l.rate, repute.ErrLimited))
			b.Retry = wait
			b.Hint = "wait as long as Retry-After says; " + hint
			return &b
		}
	}
}

// generation is the shortest time that an idle caller's bucket is kept. It MUST exceed burst/rate,
// because removing a bucket refills it.
const (
	generation = time.Minute
	maxCallers = 100_000
)

// buckets has a token bucket per caller in this process. Two generations of them bound the memory
// without a timer.
type buckets struct {
	rate  rate.Limit
	burst int

	mu                sync.Mutex
	current, previous map[string]*rate.Limiter
	since             time.Time
}

// newBuckets returns buckets that refill at a rate.
func newBuckets(r rate.Limit, burst int) *buckets {
	return &buckets{rate: r, burst: burst, current: map[string]*rate.Limiter{}}
}

// allow takes a token from the caller's bucket, or returns the time until the next one.
func (b *buckets) allow(_ context.Context, caller string) time.Duration {
	now := time.Now()
	r := b.bucket(caller, now).ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// bucket returns the bucket of a caller, a full one for a new caller.
func (b *buckets) bucket(caller string, now time.Time) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.since) > b.lifetime() || len(b.current) >= maxCallers {
		b.previous, b.current, b.since = b.current, map[string]*rate.Limiter{}, now
	}
	l, found := b.current[caller]
	if !found {
		if l, found = b.previous[caller]; !found {
			l = rate.NewLimiter(b.rate, b.burst)
		}
		b.current[caller] = l
	}
	return l
}

// lifetime returns how long a bucket is kept: longer than it takes to refill.
func (b *buckets) lifetime() time.Duration {
	refill := time.Duration(float64(b.burst) / float64(b.rate) * float64(time.Second))
	return max(generation, refill)
}
