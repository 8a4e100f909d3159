package hot

import (
	"context"
	"sync"
	"time"

	"repute/store"
)

// stateTimeout bounds the statement that asks for the state, so that a database that hangs delays answers no longer.
const stateTimeout = time.Second

// states asks the database for its state, for many callers with one statement.
type states struct {
	ask func(context.Context) (string, error)

	mu      sync.Mutex
	next    *look // not begun yet: callers may still join it
	running bool
}

// look is one question to the database.
type look struct {
	done  chan struct{}
	state string
	err   error
}

// newStates returns states of a database. Equal states mean that no transaction that wrote anything became visible in
// between.
func newStates(db *store.DB) *states {
	return &states{ask: func(ctx context.Context) (state string, err error) {
		ctx, cancel := context.WithTimeout(ctx, stateTimeout)
		defer cancel()
		err = db.Readers().QueryRow(ctx, "select pg_current_snapshot()::text").Scan(&state)
		return state, store.Failed("read the state of the database", err)
	}}
}

// current returns the state as of some time after the call began. A question that was sent before the call MUST NOT
// answer it: the caller may know of a later change.
func (s *states) current(ctx context.Context) (string, error) {
	s.mu.Lock()
	if s.next == nil {
		s.next = &look{done: make(chan struct{})}
	}
	joined := s.next
	if !s.running {
		s.running = true
		go s.run()
	}
	s.mu.Unlock()
	select {
	case <-joined.done:
		return joined.state, joined.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// run answers the callers that wait, all of them with one question, until none waits.
func (s *states) run() {
	for {
		s.mu.Lock()
		l := s.next
		if s.next = nil; l == nil {
			s.running = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		l.state, l.err = s.ask(context.Background())
		close(l.done)
	}
}
