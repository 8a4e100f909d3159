package api

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// redisChecked is how long what was found out about Redis holds.
	redisChecked = time.Second
	// redisCheck bounds a question that no request waits for.
	redisCheck = time.Second
)

// redisHealth remembers whether Redis answered when it was last asked. The zero value
// takes it to, and it is safe for concurrent use.
type redisHealth struct {
	mu   sync.Mutex
	at   time.Time // of the last answer or failure
	away bool
}

// saw takes what became of a question. A change is logged, once, however many requests
// notice it.
func (h *redisHealth) saw(ctx context.Context, log *slog.Logger, err error) {
	if ctx.Err() != nil {
		return // who asked has gone
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

func (h *redisHealth) last() (away bool, age time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.away, time.Since(h.at)
}

// up asks Redis, at most once a second.
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

// CheckRedis asks Redis, where there is one to be asked, and logs when it does not
// answer: a service should say so when it starts, not when the first request comes.
func (a *API) CheckRedis(ctx context.Context) { a.redisState(ctx) }

// redisState is what /status says of Redis: ok, away, or "" where none is configured.
func (a *API) redisState(ctx context.Context) string {
	shared, ok := a.limiter.(*sharedBuckets)
	switch {
	case !ok:
		return ""
	case shared.up(ctx):
		return "ok"
	}
	return "away"
}

// watchRedis publishes whether Redis answers, where there is one.
func (a *API) watchRedis() error {
	if _, ok := a.limiter.(*sharedBuckets); !ok {
		return nil
	}
	up := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "repute_redis_up", Help: "1 while Redis answers; while it does not, every process counts its callers alone."},
		func() float64 {
			if a.redisState(context.Background()) == "ok" {
				return 1
			}
			return 0
		})
	if err := a.registry.Register(up); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}
