package agent

import (
	"net/http"
	"sync"
	"time"
)

// Mode is how an agent works (section 6.3).
type Mode string

// Modes.
const (
	Normal      Mode = "normal"
	Degraded    Mode = "degraded"    // fewer requests at once
	Maintenance Mode = "maintenance" // no new requests, for a while
	Shutdown    Mode = "shutdown"    // no new requests
)

// gate admits requests by mode and number.
type gate struct {
	mu       sync.Mutex
	mode     Mode
	most     int // at once, in mode normal
	degraded int // at once, in mode degraded
	inside   int
	owed     int // inside although the gate admits nobody else: payers who are owed answers
	closed   bool
	idle     chan struct{} // closed when nothing is inside after the gate was closed
}

func newGate(most, degraded int) *gate {
	return &gate{mode: Normal, most: most, degraded: degraded, idle: make(chan struct{})}
}

// enter admits a request, which MUST leave.
func (g *gate) enter() (Mode, *Problem) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed || g.mode == Shutdown:
		return g.mode, &Problem{Status: http.StatusServiceUnavailable, Code: "shutdown",
			Message: "the agent accepts no requests", Retry: 30 * time.Second}
	case g.mode == Maintenance:
		return g.mode, &Problem{Status: http.StatusServiceUnavailable, Code: "maintenance",
			Message: "the agent is in maintenance", Retry: time.Minute}
	case g.mode == Degraded && g.inside >= g.degraded:
		return g.mode, &Problem{Status: http.StatusServiceUnavailable, Code: "degraded",
			Message: "the agent is degraded, and answers as many requests as it can", Retry: 5 * time.Second}
	case g.inside >= g.most:
		return g.mode, &Problem{Status: http.StatusTooManyRequests, Code: "limited",
			Message: "the agent answers as many requests as it can", Retry: time.Second}
	}
	g.inside++
	return g.mode, nil
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.left()
}

// enterOwed admits a request in any mode, beside those that enter, that MUST do what was paid for before and
// nothing else; ok is false where too many are inside, or the process stops. It MUST leaveOwed.
func (g *gate) enterOwed() (ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ok = !g.closed && g.owed < g.most; ok {
		g.owed++
	}
	return ok
}

func (g *gate) leaveOwed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.owed--
	g.left()
}

// left tells that nothing is inside any more.
func (g *gate) left() {
	if g.inside+g.owed == 0 && g.closed {
		close(g.idle)
	}
}

// set changes the mode, and returns the one before.
func (g *gate) set(m Mode) Mode {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.mode
	g.mode = m
	return before
}

func (g *gate) state() (m Mode, accepting bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mode, !g.closed && (g.mode == Normal || g.mode == Degraded)
}

// close admits nobody any more. The channel is closed when the last request has left.
func (g *gate) close() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.closed = true
		g.left()
	}
	return g.idle
}
