package hot

import (
	"context"
	"sync"
	"time"

	"repute/store"
)

// stateTimeout bounds the statement that asks for the state, so that a database that hangs delays answers no longer.
const stateTimeout = time.Second

// While at least crowd callers share a question, the next one is sent no sooner than pace after it, so that more callers
// share that: each question costs the database and this process as much as answering several callers from memory. Fewer
// callers do not wait.
const (
	crowd = 4
	pace  = time.Millisecond
)

// states asks the database for its state, for many callers with one statement.
type states struct {
	ask func(context.Context) (string, error)

	mu      sync.Mutex
	next    *look // not begun yet: callers may still join it
	running bool
}

// look is one question to the database.
type look struct {
	done    chan struct{}
	callers int // that wait for it
	state   string
	err     error
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
	joined.callers++
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
	var last look
	var began time.Time
	for {
		if last.callers >= crowd {
			time.Sleep(pace - time.Since(began))
		}
		s.mu.Lock()
		l := s.next
		if s.next = nil; l == nil {
			s.running = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		began = time.Now()
		l.state, l.err = s.ask(context.Background())
		last = *l
		close(l.done)
	}
}
