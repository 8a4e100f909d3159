package api

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"repute"

	"github.com/labstack/echo/v4"
	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"
)

// limiter decides whether a caller may go on; when not, wait is how long until
// one more request would pass.
type limiter interface {
	allow(ctx context.Context, caller string) (wait time.Duration)
}

// newLimiter counts callers under a name of its own, shared by processes where there is
// a client.
func newLimiter(name string, perSecond float64, burst int, client *redis.Client, log *slog.Logger) limiter {
	local := newBuckets(rate.Limit(perSecond), burst)
	if client == nil {
		return local
	}
	return &sharedBuckets{client: client, take: takeScript(), local: local, log: log, name: name, rate: perSecond, burst: burst}
}

// limit refuses callers that ask too much with 429 and Retry-After.
func (a *API) limit(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if a.limits.Rate < 0 || quiet(routeOf(c)) {
			return next(c)
		}
		wait := a.limiter.allow(c.Request().Context(), callerKey(c.RealIP()))
		if wait <= 0 {
			return next(c)
		}
		a.metrics.limited.Inc()
		b := *problem(fmt.Errorf("more than %g requests per second: %w", a.limits.Rate, repute.ErrLimited))
		b.retryAfter = wait
		b.Hint = "wait as long as Retry-After says; lists and GraphQL answer many questions in one request"
		return &b
	}
}

// callerKey groups an IPv6 network, which one caller owns whole.
func callerKey(ip string) string {
	addr, err := netip.ParseAddr(ip)
	if err != nil || addr.Unmap().Is4() {
		return ip
	}
	prefix, err := addr.WithZone("").Prefix(64)
	if err != nil {
		return ip
	}
	return prefix.String()
}

// callerAddress finds the caller's address: the connection's, or what a trusted
// proxy says.
func callerAddress(proxies []netip.Prefix) echo.IPExtractor {
	if len(proxies) == 0 {
		return echo.ExtractIPDirect()
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, p := range proxies {
		p = p.Masked()
		bits := p.Addr().BitLen()
		options = append(options, echo.TrustIPRange(&net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), bits)}))
	}
	return echo.ExtractIPFromXFFHeader(options...)
}

// generation is how long an idle caller is remembered at least. It must exceed
// burst/rate, or forgetting a caller would refill its bucket.
const (
	generation = time.Minute
	maxCallers = 100_000
)

// buckets is a token bucket per caller in this process. Two generations of
// them bound the memory without a timer.
type buckets struct {
	rate  rate.Limit
	burst int

	mu                sync.Mutex
	current, previous map[string]*rate.Limiter
	since             time.Time
}

func newBuckets(r rate.Limit, burst int) *buckets {
	return &buckets{rate: r, burst: burst, current: map[string]*rate.Limiter{}}
}

func (b *buckets) allow(_ context.Context, caller string) time.Duration {
	now := time.Now()
	r := b.bucket(caller, now).ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

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

func (b *buckets) lifetime() time.Duration {
	refill := time.Duration(float64(b.burst) / float64(b.rate) * float64(time.Second))
	return max(generation, refill)
}

// sharedBuckets keeps the buckets in Redis, so that replicas count together.
// While Redis is away each counts alone.
type sharedBuckets struct {
	client *redis.Client
	take   *redis.Script
	local  *buckets
	log    *slog.Logger
	name   string // of what is counted
	rate   float64
	burst  int
	away   atomic.Int64 // do not ask before this time, in Unix nanoseconds
	health redisHealth
}

const (
	// redisTimeout is the most a request waits for its own counting.
	redisTimeout = 100 * time.Millisecond
	// redisPause is how long Redis is left alone after it failed.
	redisPause = time.Second
)

func (s *sharedBuckets) allow(ctx context.Context, caller string) time.Duration {
	if time.Now().UnixNano() < s.away.Load() {
		return s.local.allow(ctx, caller)
	}
	bounded, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	interval := int64(float64(time.Second/time.Microsecond) / s.rate)
	wait, err := s.take.Run(bounded, s.client, []string{"repute:" + s.name + ":" + caller}, interval, s.burst).Int64()
	if err != nil {
		s.away.Store(time.Now().Add(redisPause).UnixNano())
		s.health.saw(ctx, s.log, err)
		return s.local.allow(ctx, caller)
	}
	s.health.saw(ctx, s.log, nil)
	return time.Duration(wait) * time.Microsecond
}

// takeScript is the generic cell rate algorithm: one number per caller, the
// time at which its bucket is full again, by Redis's clock in microseconds. It
// gives the microseconds to wait, 0 when the request passes.
func takeScript() *redis.Script {
	return redis.NewScript(`
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local full = tonumber(redis.call('GET', KEYS[1]) or now)
if full < now then full = now end
local wait = full + interval - now - interval * burst
if wait > 0 then return math.ceil(wait) end
redis.call('SET', KEYS[1], string.format('%.0f', full + interval), 'PX', math.ceil((full + interval - now) / 1000) + 1000)
return 0`)
}
