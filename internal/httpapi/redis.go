package httpapi

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"repute"
)

// redisBudget is the most a request waits for its own counting. Redis answers within a
// millisecond where it is well; what takes longer is not worth a caller's time.
const redisBudget = 50 * time.Millisecond

// OpenRedis makes a client whose every step, also of connecting, ends within redisBudget
// or with its context. Its own defaults wait for seconds, and try again.
// repute.ErrInvalid: url is no Redis URL.
func OpenRedis(url string) (*redis.Client, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, repute.Invalid("redis", "not a Redis URL", "e.g. redis://host:6379/0")
	}
	options.ContextTimeoutEnabled = true
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = redisBudget, redisBudget, redisBudget
	options.PoolTimeout = redisBudget
	options.MaxRetries, options.DialerRetries = -1, 1 // the limiter counts alone meanwhile, and asks again
	return redis.NewClient(options), nil
}

// sharedBuckets keeps the buckets in Redis, so that replicas count together. While Redis does not
// answer each counts alone. The local buckets do not know what was counted in Redis: a caller may so use its burst once
// more when Redis goes away.
type sharedBuckets struct {
	client  *redis.Client
	script  *redis.Script
	local   *buckets
	log     *slog.Logger
	name    string // name of the limit
	breaker *gobreaker.CircuitBreaker[Taken]
	health  redisHealth
}

// newBreaker returns a breaker that opens at the first failure, because there is a local
// substitute. After a second a single request tries Redis again.
func newBreaker[T any]() *gobreaker.CircuitBreaker[T] {
	return gobreaker.NewCircuitBreaker[T](gobreaker.Settings{
		Timeout:     time.Second,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures > 0 },
	})
}

// take takes a token in Redis, or from the local bucket while Redis does not answer.
func (s *sharedBuckets) take(ctx context.Context, caller string, q Quota) Taken {
	taken, err := s.breaker.Execute(func() (Taken, error) {
		// A caller who goes away says nothing about Redis.
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.client.Options().ReadTimeout)
		defer cancel()
		interval := int64(float64(time.Second/time.Microsecond) / q.Rate)
		n, err := s.script.Run(bounded, s.client, []string{"repute:" + s.name + ":" + caller}, interval,
			q.Burst).Int64Slice()
		s.health.saw(ctx, s.log, err)
		if err != nil || len(n) != 2 {
			return Taken{}, cmp.Or(err, errNoCount)
		}
		return Taken{Wait: time.Duration(n[0]) * time.Microsecond, Left: int(n[1])}, nil
	})
	if err != nil {
		return s.local.take(caller, q)
	}
	return taken
}

// errNoCount is returned for an answer of Redis that is none of the script.
var errNoCount = errors.New("Redis does not answer with a count")

// takeScript is the generic cell rate algorithm: one number per caller, the time at which its
// bucket is full again, in microseconds of Redis' clock. It returns the microseconds to wait, 0
// when the request passes, and how many requests may follow. Redis runs a script as one step, so that processes cannot
// count past each other, and its clock is the only one. The key expires a second after the bucket is full again.
func takeScript() *redis.Script {
	return redis.NewScript(`
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local full = tonumber(redis.call('GET', KEYS[1]) or now)
if full < now then full = now end
local wait = full + interval - now - interval * burst
if wait > 0 then return {math.ceil(wait), 0} end
redis.call('SET', KEYS[1], string.format('%.0f', full + interval), 'PX', math.ceil((full + interval - now) / 1000) + 1000)
return {0, math.floor(-wait / interval)}`)
}

const (
	// redisChecked is how long the last observation of Redis is valid.
	redisChecked = time.Second
	// redisCheck bounds a question that no request waits for.
	redisCheck = time.Second
)

// redisHealth is the last observation of Redis. The zero value means that Redis answers. It is safe
// for concurrent use. The first failure after an answer is logged, and the first answer after a failure.
type redisHealth struct {
	mu   sync.Mutex
	at   time.Time // of the last answer or failure
	away bool
}

// saw records the outcome of a request to Redis. A change is logged once, however many requests
// notice it.
func (h *redisHealth) saw(ctx context.Context, log *slog.Logger, err error) {
	if ctx.Err() != nil {
		return // the caller has disconnected
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.away
	h.at, h.away = time.Now(), err != nil
	switch {
	case err != nil && !was:
		log.WarnContext(ctx, "Redis does not answer: this process counts its callers alone", "error", err)
	case err == nil && was:
		log.InfoContext(ctx, "Redis answers again: callers are counted together")
	}
}

// last returns whether Redis failed at the last request, and the time since then.
func (h *redisHealth) last() (away bool, age time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.away, time.Since(h.at)
}

// up reports whether Redis answers; it asks at most once a second.
func (s *sharedBuckets) up(ctx context.Context) bool {
	away, age := s.health.last()
	if age < redisChecked {
		return !away
	}
	bounded, cancel := context.WithTimeout(ctx, redisCheck)
	defer cancel()
	s.health.saw(ctx, s.log, s.client.Ping(bounded).Err())
	away, _ = s.health.last()
	return !away
}
