package agent

import (
	"context"
	"net/http"
	"slices"
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

// gate admits requests by mode and number. Those that are too many wait for their turn, for a while: a burst
// costs them time, and no error.
type gate struct {
	mu       sync.Mutex
	mode     Mode
	most     int // at once, in mode normal
	degraded int // at once, in mode degraded
	inside   int
	owed     int // inside although the gate admits nobody else: payers who are owed answers
	waiting  []chan *Problem
	patience time.Duration
	closed   bool
	idle     chan struct{} // closed when nothing is inside after the gate was closed
}

// room is how many requests may wait for each that is answered at once.
const room = 10

// newGate returns a gate in mode normal. Without patience no request waits.
func newGate(most, degraded int, patience time.Duration) *gate {
	return &gate{mode: Normal, most: most, degraded: degraded, patience: patience, idle: make(chan struct{})}
}

// refusal is why no request may enter now, nil where one may. Only where full is true it helps to wait.
func (g *gate) refusal() (p *Problem, full bool) {
	refuse := func(status int, code, message string, retry time.Duration) *Problem {
		return &Problem{Status: status, Code: code, Message: message, Retry: retry}
	}
	switch {
	case g.closed || g.mode == Shutdown:
		return refuse(http.StatusServiceUnavailable, "shutdown", "the agent accepts no requests", 30*time.Second), false
	case g.mode == Maintenance:
		return refuse(http.StatusServiceUnavailable, "maintenance", "the agent is in maintenance", time.Minute), false
	case g.mode == Degraded && g.inside >= g.degraded:
		return refuse(http.StatusServiceUnavailable, "degraded",
			"the agent is degraded, and answers as many requests as it can", 5*time.Second), true
	case g.inside >= g.most:
		return refuse(http.StatusTooManyRequests, "limited", "the agent answers as many requests as it can",
			time.Second), true
	}
	return nil, false
}

// enter admits a request, which MUST leave, in the order in which they come, or says why it does not. A request that
// waits gives up when ctx ends.
func (g *gate) enter(ctx context.Context) *Problem {
	g.mu.Lock()
	turn := make(chan *Problem, 1)
	p, full := g.refusal()
	waits := full && g.patience > 0 && len(g.waiting) < room*g.most
	switch {
	case p == nil:
		g.inside++
	case waits:
		g.waiting = append(g.waiting, turn)
	}
	g.mu.Unlock()
	if !waits {
		return p
	}
	timer := time.NewTimer(g.patience)
	defer timer.Stop()
	select {
	case p = <-turn:
		return p
	case <-timer.C:
	case <-ctx.Done():
	}
	return g.giveUp(turn, p)
}

// giveUp ends the wait for a turn. It returns why the request is refused, or the turn where it has just come.
func (g *gate) giveUp(turn chan *Problem, why *Problem) *Problem {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at := slices.Index(g.waiting, turn); at >= 0 {
		g.waiting = slices.Delete(g.waiting, at, at+1)
		return why
	}
	return <-turn
}

// admit gives turns to those that wait, in order, or refuses them where waiting does not help any more.
func (g *gate) admit() {
	for len(g.waiting) > 0 {
		p, full := g.refusal()
		if full {
			return
		}
		if p == nil {
			g.inside++
		}
		g.waiting[0] <- p
		g.waiting = g.waiting[1:]
	}
}

// leave ends the stay of a request that entered, and lets the next one in.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.admit()
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

// leaveOwed ends the stay of a request that enterOwed admitted.
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
	g.admit()
	return before
}

// state is the mode, and whether new requests are accepted in it.
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
		g.admit()
		g.left()
	}
	return g.idle
}
