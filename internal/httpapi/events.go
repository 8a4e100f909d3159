package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"repute"
)

// Heartbeat is the interval in which a stream without events sends a comment, so that proxies keep it open.
const Heartbeat = 15 * time.Second

// writeTimeout is how long a caller may accept no data of a stream before it is disconnected.
const writeTimeout = 30 * time.Second

// StreamLimit bounds the open streams of one caller and of all callers together. It is safe for concurrent use; Caller
// and All MUST be set before.
type StreamLimit struct {
	Caller, All int

	mu      sync.Mutex
	now     int
	callers map[string]int
}

// Enter counts a new stream. repute.ErrLimited: the caller or all callers have too many. Leave MUST be called when a
// stream that entered ends.
func (s *StreamLimit) Enter(caller string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.callers == nil {
		s.callers = map[string]int{}
	}
	switch {
	case s.callers[caller] >= s.Caller:
		return fmt.Errorf("too many streams at once, at most %d per caller: %w", s.Caller, repute.ErrLimited)
	case s.now >= s.All:
		return fmt.Errorf("too many streams at once, at most %d of all callers: %w", s.All, repute.ErrLimited)
	}
	s.now++
	s.callers[caller]++
	return nil
}

// Leave frees the stream of a caller.
func (s *StreamLimit) Leave(caller string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	if s.callers[caller]--; s.callers[caller] == 0 {
		delete(s.callers, caller)
	}
}

// EventStream writes an answer of server-sent events. Each write has its own deadline, because the server's is for
// answers that end. It is used by one goroutine.
type EventStream struct {
	out     http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

// NewEventStream returns a stream that has sent nothing yet.
func NewEventStream(out http.ResponseWriter) *EventStream {
	return &EventStream{out: out, control: http.NewResponseController(out)}
}

// Begun reports whether something was sent. Until then the handler can answer otherwise.
func (s *EventStream) Begun() bool { return s.begun }

// Begin sends the head of the answer, once.
func (s *EventStream) Begin() error {
	if s.begun {
		return nil
	}
	return s.write("retry: 1000\n\n")
}

// Beat sends a comment.
func (s *EventStream) Beat() error { return s.write(": still here\n\n") }

// Send sends an event. id and kind MUST be single lines, and data JSON in one line.
func (s *EventStream) Send(id, kind string, data []byte) error {
	return s.write(fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", id, kind, data))
}

// Place sends an id alone: a caller that connects again continues after it.
func (s *EventStream) Place(id string) error { return s.write("id: " + id + "\n\n") }

// write sends text of the stream, and the headers before the first text. An error means that the caller left or
// accepted nothing for writeTimeout; the stream is then of no more use. A writer without deadlines, as in tests, is
// written to without one.
func (s *EventStream) write(text string) error {
	if !s.begun {
		s.begun = true
		h := s.out.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no") // proxies would buffer events otherwise
		s.out.WriteHeader(http.StatusOK)
	}
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil &&
		!errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.out.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}
