package serve_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"repute/agent"
	"repute/agent/capability"
	"repute/internal/pgtest"
	"repute/store/agentdb"
)

// TestCrowd: ten requests run at once, the next gets 429 where its turn does not come; a degraded agent marks its
// answers and gives 503 where its smaller number is reached; maintenance and shutdown accept nothing.
func TestCrowd(t *testing.T) {
	t.Parallel()
	h := &echo{block: make(chan struct{}), begun: make(chan struct{}, 20)}
	s := open(t, pgtest.New(t), agent.Options{Services: []*agent.Service{service(t, "echo", h, nil, nil)},
		Patience: 20 * time.Millisecond})
	var all sync.WaitGroup
	start := func(n int) {
		for range n {
			all.Go(func() {
				if got := s.send(t, "echo", hello, nil); got.status != http.StatusOK {
					t.Errorf("%+v", got)
				}
			})
		}
		for range n {
			<-h.begun
		}
	}
	refused := func(status int, code string) {
		t.Helper()
		got := s.send(t, "echo", hello, nil)
		if got.status != status || !strings.Contains(got.body, `"error":"`+code+`"`) ||
			got.header.Get("Retry-After") == "" {
			t.Errorf("%+v", got)
		}
	}
	start(10)
	refused(http.StatusTooManyRequests, "limited")
	if got := s.ask(t, http.MethodGet, "/health", "", nil); got.status != http.StatusOK {
		t.Errorf("%+v", got)
	}
	s.router.SetMode(t.Context(), agent.Degraded, "test")
	refused(http.StatusServiceUnavailable, "degraded")
	close(h.block)
	all.Wait()
	if got := s.send(t, "echo", hello, nil); got.status != http.StatusOK ||
		got.header.Get("X-Agent-Mode") != "degraded" {
		t.Errorf("%+v", got)
	}
	for _, m := range []agent.Mode{agent.Maintenance, agent.Shutdown} {
		s.router.SetMode(t.Context(), m, "test")
		refused(http.StatusServiceUnavailable, string(m))
		if got := s.ask(t, http.MethodGet, "/health/ready", "", nil); got.status != http.StatusServiceUnavailable {
			t.Errorf("%+v", got)
		}
		if got := s.ask(t, http.MethodGet, "/health", "", nil); !strings.Contains(got.body,
			`"acceptingRequests":false`) {
			t.Errorf("%+v", got)
		}
	}
	events, err := agentdb.LastEvent(t.Context(), s.db, s.router.ID().String(), "mode ")
	ok(t, err)
	if events != "mode shutdown" {
		t.Errorf("%q", events)
	}
}

// TestTurns: requests that are too many are answered in their turn; as many wait as there is room for; a change of
// the mode refuses those that wait.
func TestTurns(t *testing.T) {
	t.Parallel()
	h := &echo{block: make(chan struct{}), begun: make(chan struct{}, 20)}
	s := open(t, pgtest.New(t), agent.Options{Services: []*agent.Service{service(t, "echo", h, nil, nil)},
		Concurrency: 1,
		Patience:    time.Minute})
	answers := make(chan int, 20)
	send := func(n int) {
		for range n {
			go func() { answers <- s.send(t, "echo", hello, nil).status }()
		}
	}
	send(1)
	<-h.begun
	send(12) // ten wait
	for range 2 {
		if status := <-answers; status != http.StatusTooManyRequests {
			t.Errorf("one that has no place to wait: %d", status)
		}
	}
	for range 3 {
		h.block <- struct{}{}
		<-h.begun
		if status := <-answers; status != http.StatusOK {
			t.Errorf("one that waited: %d", status)
		}
	}
	s.router.SetMode(t.Context(), agent.Shutdown, "test")
	for range 7 {
		if status := <-answers; status != http.StatusServiceUnavailable {
			t.Errorf("one that waits at the end: %d", status)
		}
	}
	close(h.block)
	if status := <-answers; status != http.StatusOK || h.count() != 4 {
		t.Errorf("one that was begun: %d, %d runs", status, h.count())
	}
}

// TestLarge: what is too large is refused unread, and a handler that takes too long is ended.
func TestLarge(t *testing.T) {
	t.Parallel()
	h := &echo{block: make(chan struct{})}
	s := open(t, pgtest.New(t), agent.Options{Services: []*agent.Service{service(t, "echo", h, nil,
		func(d *capability.Definition) {
			d.MaxRequestBytes, d.TimeoutSeconds = 1000, 1
		})}})
	for _, size := range []int{1000, 11 << 20} {
		got := s.send(t, "echo", `{"text":"`+strings.Repeat("x", size)+`"}`, nil)
		if got.status != http.StatusRequestEntityTooLarge {
			t.Errorf("%d bytes: %d", size, got.status)
		}
	}
	if got := s.send(t, "echo", hello,
		http.Header{"Content-Type": {"text/plain"}}); got.status != http.StatusUnsupportedMediaType {
		t.Errorf("%+v", got)
	}
	if h.count() != 0 {
		t.Error("it was run")
	}
	begun := time.Now()
	got := s.send(t, "echo", hello, nil)
	if took := time.Since(begun); got.status != http.StatusGatewayTimeout || took > 10*time.Second {
		t.Errorf("%+v after %s", got, took)
	}
}

// TestDrain: requests in flight are answered, new ones are refused; what takes too long is canceled,
// and its payment goes on in the next process.
func TestDrain(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &echo{block: make(chan struct{}), begun: make(chan struct{}, 2)}
	price := w.price()
	one := service(t, "echo", h, price, nil)
	one.Repeatable = true
	s := w.open(t, agent.Options{Lease: 2 * time.Second}, one)
	head := header(t, w.Pay(t, w.Requirements(10)))
	answer := make(chan reply, 1)
	go func() { answer <- s.send(t, "echo", hello, head) }()
	<-h.begun
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	drained := make(chan struct{})
	go func() { s.router.Drain(ctx); close(drained) }()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, accepting := s.router.Mode(); !accepting {
			break
		}
	}
	if got := s.send(t, "echo", hello, nil); got.status != http.StatusServiceUnavailable {
		t.Errorf("a new request: %+v", got)
	}
	<-drained
	if got := <-answer; got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "same payment") ||
		w.paid(t) != 0 {
		t.Errorf("a canceled request: %+v", got)
	}
	again := &echo{}
	two := service(t, "echo", again, price, nil)
	two.Repeatable = true
	next := w.open(t, agent.Options{}, two)
	got := next.send(t, "echo", hello, head)
	if got.status != http.StatusOK || again.count() != 1 || w.paid(t) != 10 || again.ids[0] != h.ids[0] {
		t.Errorf("%+v: request %v, first %v", got, again.ids, h.ids)
	}
}
