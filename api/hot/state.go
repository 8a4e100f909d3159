package hot

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"repute/store"
)

const (
	// stateTimeout bounds the statement that asks for the state, so that a database that hangs delays answers no
	// longer.
	stateTimeout = time.Second
	// stateAge is how long ago a state may have been asked for, where this process knows of no write since. It hides a
	// write of another process for that long: a hundredth of the time between two blocks of most chains, and a fiftieth
	// of the second within which a change MUST show. A longer age would answer hardly more requests, because 50
	// statements per second cost next to nothing.
	stateAge = 20 * time.Millisecond
)

// states asks the database for its state, for many callers with one statement.
type states struct {
	ask    func(context.Context) (string, error)
	writes func() uint64 // rises with each write that this process knows of
	age    time.Duration // stateAge

	newest atomic.Pointer[look] // that was answered

	mu      sync.Mutex
	next    *look // not begun yet: callers may still join it
	running bool
}

// look is one question to the database.
type look struct {
	began  time.Time // before the question was sent
	writes uint64    // known then
	done   chan struct{}
	state  string
	err    error
}

// newStates returns states of a database. Equal states mean that no transaction that wrote anything became visible in
// between.
func newStates(db *store.DB) *states {
	return &states{age: stateAge, writes: db.Writes, ask: func(ctx context.Context) (state string, err error) {
		ctx, cancel := context.WithTimeout(ctx, stateTimeout)
		defer cancel()
		err = db.Readers().QueryRow(ctx, "select pg_current_snapshot()::text").Scan(&state)
		return state, store.Failed("read the state of the database", err)
	}}
}

// recent returns the state as of a time that is at most the age ago, and no earlier than any write that this process
// knows of. It asks the database where no such state is known.
func (s *states) recent(ctx context.Context) (string, error) {
	if l := s.newest.Load(); l != nil && l.err == nil && l.writes == s.writes() && time.Since(l.began) < s.age {
		return l.state, nil
	}
	return s.current(ctx)
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
		l.began, l.writes = time.Now(), s.writes()
		l.state, l.err = s.ask(context.Background())
		s.newest.Store(l)
		close(l.done)
	}
}
