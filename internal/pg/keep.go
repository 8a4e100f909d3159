package pg

import (
	"context"
	"sync"
	"time"
)

// Pauses before a server that ended is started again: they double while it ends soon
// after its start.
const (
	keepLeast = 250 * time.Millisecond
	keepMost  = 15 * time.Second
	keepCalm  = time.Minute // after so long the next pause is the shortest again
)

// keeper starts a server again. The zero value keeps none.
type keeper struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu       sync.Mutex
	restarts int
	last     time.Time // when the server was started again last, zero: never
}

// end returns when the server is not started again any more.
func (k *keeper) end() {
	if k.cancel != nil {
		k.cancel()
		<-k.done
	}
}

// count records that the server was started again.
func (k *keeper) count(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.restarts++
	k.last = now
}

// Restarts returns how often the server was started again after it ended by itself, and when
// last; the zero time: never.
func (s *Server) Restarts() (n int, last time.Time) {
	s.keeper.mu.Lock()
	defer s.keeper.mu.Unlock()
	return s.keeper.restarts, s.keeper.last
}

// Keep starts the server again whenever it ends by itself, under the same URL, until Stop.
// It MUST be called at most once.
func (s *Server) Keep() {
	ctx, cancel := context.WithCancel(context.Background())
	s.keeper.cancel, s.keeper.done = cancel, make(chan struct{})
	go func() {
		defer close(s.keeper.done)
		s.keep(ctx)
	}()
}

// keep starts the server again whenever it ends, until ctx ends. The pause grows with each failure
// and is reset once the server ran for keepCalm.
func (s *Server) keep(ctx context.Context) {
	pause, since := keepLeast, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.proc.done:
		}
		if time.Since(since) > keepCalm {
			pause = keepLeast
		}
		s.cluster.log.Error("private Postgres ended, it is started again", "pause", pause, "result", s.proc.err, "log",
			s.cluster.logTail())
		for err := s.again(ctx, pause); err != nil; err = s.again(ctx, pause) {
			if ctx.Err() != nil {
				return
			}
			pause = min(2*pause, keepMost)
			s.cluster.log.Error("private Postgres does not start, trying again", "pause", pause, "error", err)
		}
		s.keeper.count(time.Now())
		s.cluster.log.Warn("private Postgres runs again")
		pause, since = min(2*pause, keepMost), time.Now()
	}
}

// again starts the server after a pause.
func (s *Server) again(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
	}
	if err := s.cluster.stopOrphan(ctx); err != nil {
		return err
	}
	return s.cluster.run(ctx, s, s.port, s.options)
}
