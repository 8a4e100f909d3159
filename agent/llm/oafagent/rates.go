package oafagent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"repute"
	"repute/manifest/oaf"
)

// Rates are the rate limits of the MCP servers of all agents of a process. Two agents that are made from one directory
// share the limits of its servers. The zero value is ready. It is safe for concurrent use.
type Rates struct {
	mu    sync.Mutex
	known map[string]*rate.Limiter // by agent and server
}

// of returns the limit of a server of an agent; nil where its configuration has none.
func (r *Rates) of(a *oaf.Agent, s *oaf.Server) *rate.Limiter {
	if s.RateLimit.PerMinute <= 0 {
		return nil
	}
	key := a.ID() + "\x00" + s.Dir + "\x00" + s.Name
	limit, burst := rate.Limit(s.RateLimit.PerMinute/60), max(s.RateLimit.Burst, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.known[key]
	if known == nil || known.Limit() != limit || known.Burst() != burst {
		known = rate.NewLimiter(limit, burst)
		if r.known == nil {
			r.known = map[string]*rate.Limiter{}
		}
		r.known[key] = known
	}
	return known
}

// How often a server with a rate limit is asked for its tools: by every conversation once, which its own limit does not
// count.
const (
	listInterval = time.Second
	listBurst    = 10
)

// limit bounds the requests to a server; nil: they have no limit.
func (s *server) limit(calls *rate.Limiter) {
	if s.rate = calls; calls != nil {
		s.lists = rate.NewLimiter(rate.Every(listInterval), listBurst)
	}
}

// wait waits until a limit allows a request; nil allows all.
func wait(ctx context.Context, limit *rate.Limiter) error {
	if limit == nil {
		return nil
	}
	if err := limit.Wait(ctx); err != nil {
		return fmt.Errorf("the rate limit of the server allows no call now: %w", repute.ErrUnavailable)
	}
	return nil
}
