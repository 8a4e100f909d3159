package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/sony/gobreaker"

	"repute"
)

// RedisBudget is the longest that a request waits for its own counting. A healthy Redis answers
// within a millisecond.
const RedisBudget = 50 * time.Millisecond

// maxRedisConnections bounds the connections of one process. A request that finds all of them
// busy waits within its budget.
const maxRedisConnections = 32

// Redis is a pool of connections to one Redis server. Make one with OpenRedis.
type Redis struct {
	pool   *redis.Pool
	budget time.Duration
}

// OpenRedis returns a client whose every step, including connecting, ends within budget or with
// its context. It does not connect yet. An address that is not a Redis URL is
// repute.ErrInvalid; the error never quotes it, because it may contain a password.
func OpenRedis(address string, budget time.Duration) (*Redis, error) {
	if !isRedisURL(address) {
		return nil, repute.Invalid("redis", "not a Redis URL", "e.g. redis://host:6379/0")
	}
	dial := func(ctx context.Context) (redis.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, budget)
		defer cancel()
		return redis.DialURLContext(ctx, address, redis.DialConnectTimeout(budget), redis.DialReadTimeout(budget),
			redis.DialWriteTimeout(budget))
	}
	return &Redis{budget: budget, pool: &redis.Pool{DialContext: dial, MaxIdle: maxRedisConnections,
		MaxActive: maxRedisConnections, Wait: true, IdleTimeout: time.Minute, TestOnBorrowContext: alive}}, nil
}

// isRedisURL reports whether address has a scheme of Redis, a host, and a database number or no
// path.
func isRedisURL(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Hostname() == "" {
		return false
	}
	number := strings.Trim(u.Path, "/")
	_, err = strconv.ParseUint(number, 10, 16)
	return number == "" || err == nil
}

// alive checks a connection that was idle for a second, so that a restart of Redis does not fail
// one request for every idle connection.
func alive(ctx context.Context, c redis.Conn, used time.Time) error {
	if time.Since(used) < time.Second {
		return nil
	}
	_, err := redis.DoContext(c, ctx, "PING")
	return err
}

// Close closes all connections.
func (r *Redis) Close() error { return r.pool.Close() }

// ping returns nil if Redis answers before ctx ends.
func (r *Redis) ping(ctx context.Context) error {
	conn, err := r.pool.GetContext(ctx)
	if err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	defer conn.Close()
	if _, err := redis.DoContext(conn, ctx, "PING"); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	return nil
}

// run evaluates a script that returns an integer.
func (r *Redis) run(ctx context.Context, script *redis.Script, args ...any) (int64, error) {
	conn, err := r.pool.GetContext(ctx)
	if err != nil {
		return 0, fmt.Errorf("redis: %w", err)
	}
	defer conn.Close()
	n, err := redis.Int64(script.DoContext(ctx, conn, args...))
	if err != nil {
		return 0, fmt.Errorf("redis: %w", err)
	}
	return n, nil
}

// sharedBuckets keeps the buckets in Redis, so that replicas count together. While Redis does not
// answer each counts alone.
type sharedBuckets struct {
	client  *Redis
	take    *redis.Script
	local   *buckets
	log     *slog.Logger
	name    string // name of the limit
	rate    float64
	burst   int
	breaker *gobreaker.CircuitBreaker
	health  redisHealth
}

// newBreaker returns a breaker that opens at the first failure, because there is a local
// substitute. After a second a single request tries Redis again.
func newBreaker() *gobreaker.CircuitBreaker {
	return gobreaker.NewCircuitBreaker(gobreaker.Settings{
		Timeout:     time.Second,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures > 0 },
	})
}

// allow takes a token in Redis, or from the local bucket while Redis does not answer.
func (s *sharedBuckets) allow(ctx context.Context, caller string) time.Duration {
	wait, err := s.breaker.Execute(func() (any, error) {
		// A caller that disconnects is no failure of Redis.
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.client.budget)
		defer cancel()
		interval := int64(float64(time.Second/time.Microsecond) / s.rate)
		wait, err := s.client.run(bounded, s.take, "repute:"+s.name+":"+caller, interval, s.burst)
		s.health.saw(ctx, s.log, err)
		return time.Duration(wait) * time.Microsecond, err
	})
	if err != nil {
		return s.local.allow(ctx, caller)
	}
	return wait.(time.Duration)
}

// takeScript is the generic cell rate algorithm: one number per caller, the time at which its
// bucket is full again, in microseconds of Redis' clock. It returns the microseconds to wait, 0
// when the request passes.
func takeScript() *redis.Script {
	return redis.NewScript(1, `
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

const (
	// redisChecked is how long the last observation of Redis is valid.
	redisChecked = time.Second
	// redisCheck bounds a question that no request waits for.
	redisCheck = time.Second
)

// redisHealth is the last observation of Redis. The zero value means that Redis answers. It is safe
// for concurrent use.
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
	s.health.saw(ctx, s.log, s.client.ping(bounded))
	away, _ = s.health.last()
	return !away
}
