package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"repute"
)

// gate stands before every request to one endpoint: it holds back what the
// endpoint has shown it cannot take. Concurrency grows by successes and halves by
// timeouts and rate limits; a request rate exists only after a rate limit; a
// circuit breaker leaves an endpoint that keeps failing alone.
type gate struct {
	most             float64       // requests at a time
	openMin, openMax time.Duration // the breaker stays open
	// changed is told of every change of state, outside the lock.
	changed func(from, to repute.EndpointState, why string)
	// others reports whether another endpoint can be asked now. It is called outside the lock.
	others func() bool

	mu     sync.Mutex
	freed  chan struct{} // closed when a request ends
	limit  float64       // requests at a time, now
	flying int
	eased  time.Time // when limit was halved last
	slowed time.Time // when rate was

	pace    demand
	rate    float64 // requests per second, 0: any
	ceiling float64 // the rate at which the endpoint refused
	tokens  float64
	filled  time.Time
	paused  time.Time // the endpoint is left alone until then, as it asked for
	alone   time.Time // and until then while no other can answer

	state    repute.EndpointState
	reason   string // of exclusion
	failed   int    // in a row
	openFor  time.Duration
	reopens  time.Time
	probing  bool
	health   health
	requests int64
	failures int64
}

// health is what a gate has seen, smoothed over some ten requests.
type health struct {
	latency   time.Duration // of light requests
	errorRate float64
	lastError string
	lastOK    time.Time
}

// Bounds of the gate.
const (
	startConcurrency = 2
	tripAfter        = 5               // failures in a row open the breaker
	maxGateWait      = 5 * time.Second // longer pauses are errors, so that another endpoint is asked
	easeAgain        = time.Second     // one halving for all requests that fail together
	leastRate        = 0.2             // requests per second
	mostRate         = 500             // above it no limit is needed
	firstRate        = 10              // least taken for the limit at the first refusal
	carefulFor       = 20 * time.Second
	mostPause        = 3 * time.Minute  // however long an endpoint asks to be left alone
	alonePause       = 30 * time.Second // the same while no other endpoint can answer
	smoothing        = 0.1
)

func newGate(o Options) *gate {
	return &gate{most: float64(o.Concurrency), openMin: o.OpenMin, openMax: o.OpenMax, freed: make(chan struct{}),
		limit: min(startConcurrency, float64(o.Concurrency)), state: repute.EndpointClosed,
		changed: func(repute.EndpointState, repute.EndpointState, string) {}, others: func() bool { return false }}
}

// closedError is a request that was not sent.
type closedError struct {
	why   string
	fault Fault
	retry time.Duration
}

// Error says why.
func (e *closedError) Error() string { return e.why }

func (e *closedError) verdict() Verdict { return Verdict{Fault: e.fault, RetryAfter: e.retry} }

// enter waits until a request may be sent, after which leave must be called with
// its outcome. probe tells the one by which an endpoint shows that it works again.
// The error is a *closedError or the context's.
func (g *gate) enter(ctx context.Context) (probe bool, err error) {
	for {
		probe, wait, freed, err := g.try(time.Now())
		if err != nil || wait == 0 && freed == nil {
			return probe, err
		}
		var timer <-chan time.Time
		if wait > 0 {
			timer = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-timer:
		case <-freed:
		}
	}
}

// try admits a request, or says how long or for what to wait.
func (g *gate) try(now time.Time) (probe bool, wait time.Duration, freed <-chan struct{}, err error) {
	others := g.others()
	g.mu.Lock()
	from := g.state
	wait, freed, err = g.hold(now, others)
	if err == nil && wait == 0 && freed == nil {
		probe = g.admit(now)
	}
	to := g.state
	g.mu.Unlock()
	if from != to {
		g.changed(from, to, "")
	}
	return probe, wait, freed, err
}

// hold says what keeps a request back, given whether another endpoint can answer it.
func (g *gate) hold(now time.Time, others bool) (time.Duration, <-chan struct{}, error) {
	if err := g.barred(now); err != nil {
		return 0, nil, err
	}
	until := g.alone
	if others {
		until = g.paused
	}
	switch wait := until.Sub(now); {
	case wait > maxGateWait:
		return 0, nil, &closedError{fmt.Sprintf("left alone for %s after: %s", wait.Round(time.Second), g.health.lastError), FaultRate, wait}
	case wait > 0:
		return wait, nil, nil
	case g.flying >= max(1, int(g.limit)):
		return 0, g.freed, nil
	}
	return g.draw(now), nil, nil
}

// admit counts a request that is sent, and tells whether it is a probe.
func (g *gate) admit(now time.Time) (probe bool) {
	if g.state == repute.EndpointOpen {
		g.state = repute.EndpointHalfOpen
	}
	probe = g.state == repute.EndpointHalfOpen
	g.probing = g.probing || probe
	g.flying++
	g.requests++
	g.pace.add(now)
	return probe
}

// barred says why nothing may be asked at all.
func (g *gate) barred(now time.Time) error {
	switch {
	case g.state == repute.EndpointExcluded:
		return &closedError{"excluded: " + g.reason, FaultAuth, 0}
	case g.state == repute.EndpointOpen && now.Before(g.reopens):
		wait := g.reopens.Sub(now)
		return &closedError{fmt.Sprintf("left alone for %s after %d failures, the last: %s",
			wait.Round(time.Millisecond), g.failed, g.health.lastError), FaultTransient, wait}
	case g.state == repute.EndpointHalfOpen && g.probing:
		return &closedError{"being tried again after failures, the last: " + g.health.lastError, FaultTransient, 0}
	}
	return nil
}

// draw takes a token of the request rate, or says when there will be one. The
// rate grows back: quickly to nine tenths of what was refused, slowly near it, and
// quickly again once nothing was refused for a while: what was refused may have
// been a moment's trouble and no limit.
func (g *gate) draw(now time.Time) time.Duration {
	if g.rate == 0 {
		return 0
	}
	elapsed := now.Sub(g.filled).Seconds()
	g.filled = now
	g.tokens = min(max(1, g.rate/2), g.tokens+elapsed*g.rate)
	grown := g.rate * math.Pow(1.2, elapsed)
	if grown >= 0.9*g.ceiling && now.Sub(g.slowed) < carefulFor {
		grown = max(g.rate, 0.9*g.ceiling) * math.Pow(1.01, elapsed)
	}
	g.rate = grown
	if g.rate > mostRate {
		g.rate = 0
		return 0
	}
	if g.tokens < 1 {
		// Never 0, which would let the request pass without a token.
		return 1 + time.Duration((1-g.tokens)/g.rate*float64(time.Second))
	}
	g.tokens--
	return 0
}

// outcome is how a request ended.
type outcome struct {
	err   error // of the whole request, or a rate limit of one of its calls
	text  string
	took  time.Duration
	dense bool // it asked for ranges of logs or the like, which may simply be too large
	probe bool // as enter said
}

// leave records how a request ended.
func (g *gate) leave(o outcome) {
	now := time.Now()
	g.mu.Lock()
	from := g.state
	g.flying--
	g.probing = g.probing && !o.probe
	close(g.freed)
	g.freed = make(chan struct{})
	if o.err == nil {
		g.succeed(o, now)
	} else {
		g.fail(o, now)
	}
	to := g.state
	g.mu.Unlock()
	if from != to {
		g.changed(from, to, o.text)
	}
}

func (g *gate) succeed(o outcome, now time.Time) {
	g.limit = min(g.most, g.limit+1/g.limit)
	g.failed, g.openFor = 0, 0
	g.health.lastOK = now
	g.health.errorRate *= 1 - smoothing
	if !o.dense || g.health.latency == 0 {
		if g.health.latency == 0 {
			g.health.latency = o.took
		}
		g.health.latency += time.Duration(smoothing * float64(o.took-g.health.latency))
	}
	if g.state != repute.EndpointExcluded {
		g.state = repute.EndpointClosed
	}
}

func (g *gate) fail(o outcome, now time.Time) {
	verdict := Judge(o.err)
	switch {
	case errors.Is(o.err, context.Canceled): // ours: says nothing of the endpoint
		g.requests--
		return
	case verdict.Fault == FaultRate:
		g.ease(now)
		g.slow(now, verdict.RetryAfter)
	case verdict.Fault == FaultRange && isTimeout(o.err):
		g.ease(now)
	}
	g.failures++
	g.health.errorRate += smoothing * (1 - g.health.errorRate)
	g.health.lastError = o.text + cutPause(verdict)
	counts := trips(verdict.Fault, o.dense)
	if counts {
		g.failed++
	}
	switch {
	case o.probe && !counts && !isTimeout(o.err): // it answers
		g.state, g.failed = repute.EndpointClosed, 0
	case o.probe, counts && g.failed >= tripAfter && g.state == repute.EndpointClosed:
		g.open(now)
	}
}

// cutPause says, after the words of an endpoint, that it is asked again sooner than it wants.
func cutPause(v Verdict) string {
	if v.Fault != FaultRate || v.RetryAfter <= alonePause {
		return ""
	}
	return fmt.Sprintf(" (wants to be left alone for %s; asked again after %s, or %s while no other endpoint can answer)",
		v.RetryAfter.Round(time.Second), min(v.RetryAfter, mostPause).Round(time.Second), alonePause)
}

// isTimeout tells requests that were not answered in time.
func isTimeout(err error) bool {
	var conn *connError
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &conn) && conn.timeout
}

// trips tells failures that count for the breaker: not those that may come from
// the size of the question, nor rate limits, which have their own remedy.
func trips(f Fault, dense bool) bool {
	switch f {
	case FaultTransient, FaultAuth:
		return true
	case FaultRange, FaultMalformed:
		return !dense
	}
	return false
}

// open leaves the endpoint alone, each time for about twice as long.
func (g *gate) open(now time.Time) {
	if g.state == repute.EndpointExcluded {
		return
	}
	g.openFor = min(max(2*g.openFor, g.openMin), g.openMax)
	jitter := 0.75 + rand.Float64()/2
	g.reopens = now.Add(time.Duration(jitter * float64(g.openFor)))
	g.state = repute.EndpointOpen
}

// ease halves the concurrency.
func (g *gate) ease(now time.Time) {
	if now.Sub(g.eased) < easeAgain {
		return
	}
	g.eased = now
	g.limit = max(1, g.limit/2)
}

// slow halves the request rate: the one that was allowed, or at first the one at
// which the endpoint was asked. That may have been next to nothing, which no
// endpoint has as its limit.
func (g *gate) slow(now time.Time, retryAfter time.Duration) {
	if retryAfter > alonePause {
		g.limit = 1 // then one request tells
	}
	g.paused = later(g.paused, now.Add(min(retryAfter, mostPause)))
	g.alone = later(g.alone, now.Add(min(retryAfter, alonePause)))
	if now.Sub(g.slowed) < easeAgain {
		return // sent before the endpoint refused
	}
	g.slowed = now
	rate := max(g.pace.perSecond(now), firstRate)
	if g.rate > 0 {
		rate = min(rate, g.rate)
	}
	g.ceiling = max(rate, leastRate)
	g.rate = max(rate/2, leastRate)
	g.tokens, g.filled = 0, now
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// exclude takes the endpoint out of use, or back into it for the reason "".
func (g *gate) exclude(reason string) {
	g.mu.Lock()
	from := g.state
	switch {
	case reason != "":
		g.state, g.reason = repute.EndpointExcluded, reason
		g.health.lastError = reason
	case g.state == repute.EndpointExcluded:
		g.state, g.failed = repute.EndpointClosed, 0
	}
	to := g.state
	g.mu.Unlock()
	if from != to {
		g.changed(from, to, reason)
	}
}

// usable tells whether a request would be let through soon.
func (g *gate) usable(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.barred(now) == nil && g.paused.Sub(now) <= 0
}

// failing tells whether the breaker is not closed.
func (g *gate) failing() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state == repute.EndpointOpen || g.state == repute.EndpointHalfOpen
}

func (g *gate) excluded() bool {
	_, excluded := g.exclusion()
	return excluded
}

// exclusion is why the endpoint is out of use.
func (g *gate) exclusion() (reason string, excluded bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reason, g.state == repute.EndpointExcluded
}

// blame counts an answer that turned out to be none after it was read.
func (g *gate) blame(why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failures++
	g.health.errorRate += smoothing * (1 - g.health.errorRate)
	g.health.lastError = why
}

// score ranks endpoints: the lower the better. It is about the time an answer
// takes, failures and waiting included; 0 for one that was never asked.
func (g *gate) score() float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.requests == 0 {
		return 0
	}
	latency := max(g.health.latency, time.Millisecond)
	return latency.Seconds() * (1 + 8*g.health.errorRate) * (1 + float64(g.flying)/g.limit)
}

// report fills in what the gate knows of the endpoint.
func (g *gate) report(e *repute.Endpoint) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e.State, e.Latency, e.ErrorRate = g.state, g.health.latency, g.health.errorRate
	e.Requests, e.Failures = g.requests, g.failures
	e.RateLimit, e.Concurrency = g.rate, max(1, int(g.limit))
	e.LastError, e.LastOKAt = g.health.lastError, g.health.lastOK
}

// demand estimates how often something happens per second: a count in which
// older ones weigh less.
type demand struct {
	began, last time.Time
	weight      float64
}

// demandSpan is how far back demand looks.
const demandSpan = 5 * time.Second

func (d *demand) add(now time.Time) {
	if d.weight == 0 {
		d.began = now
	}
	d.weight = d.decayed(now) + 1
	d.last = now
}

func (d *demand) decayed(now time.Time) float64 {
	return d.weight * math.Exp(-now.Sub(d.last).Seconds()/demandSpan.Seconds())
}

func (d *demand) perSecond(now time.Time) float64 {
	seen := max(now.Sub(d.began), time.Second/2).Seconds()
	span := demandSpan.Seconds()
	return d.decayed(now) / (span * (1 - math.Exp(-seen/span)))
}
