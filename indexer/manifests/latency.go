package manifests

import (
	"context"
	"net/http/httptrace"
	"sync"
	"time"
)

// stopwatch measures how long a host takes to answer. Unless an operator lets a domain be probed, only the requests
// that the crawl makes anyway are measured: one of its own could have an effect.
type stopwatch struct {
	mu    sync.Mutex
	wrote time.Time
	took  time.Duration
}

// watch returns a context whose requests are measured.
func (s *stopwatch) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.wrote = time.Now()
		},
		GotFirstResponseByte: func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if !s.wrote.IsZero() {
				s.took = time.Since(s.wrote)
			}
		},
	})
}

// last returns the time from the end of the last request to the first byte of its answer, 0 where none was answered.
// The connection is made before, so that it has one way there and back in it.
func (s *stopwatch) last() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.took
}
