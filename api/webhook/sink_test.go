package webhook_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// message is what a sink received.
type message struct {
	id     string
	header http.Header
	body   []byte
}

// sink is a receiver that answers as told.
type sink struct {
	server   *httptest.Server
	inFlight atomic.Int32
	most     atomic.Int32

	mu       sync.Mutex
	answer   func(w http.ResponseWriter, n int) // n counts requests from 1
	requests int
	accepted []message // whose answer was a success
}

func newSink(t *testing.T) *sink {
	s := &sink{answer: func(http.ResponseWriter, int) {}}
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.server.Close)
	return s
}

func (s *sink) serve(w http.ResponseWriter, r *http.Request) {
	if now := s.inFlight.Add(1); now > s.most.Load() {
		s.most.Store(now)
	}
	defer s.inFlight.Add(-1)
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.requests++
	n, answer := s.requests, s.answer
	s.mu.Unlock()
	rec := &recorder{ResponseWriter: w, status: http.StatusOK}
	answer(rec, n)
	if rec.status < 300 {
		s.mu.Lock()
		s.accepted = append(s.accepted, message{r.Header.Get("webhook-id"), r.Header.Clone(), body})
		s.mu.Unlock()
	}
}

// recorder remembers the status.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) { r.status = status; r.ResponseWriter.WriteHeader(status) }

// answers sets how the sink answers.
func (s *sink) answers(f func(w http.ResponseWriter, n int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// all returns the accepted messages.
func (s *sink) all() []message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.accepted)
}

// count returns how many requests came.
func (s *sink) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// ids returns the accepted messages, each at its first time.
func (s *sink) ids() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.accepted {
		if !slices.Contains(ids, m.id) {
			ids = append(ids, m.id)
		}
	}
	return ids
}
