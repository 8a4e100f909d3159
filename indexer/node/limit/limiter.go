package limit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"repute"
	"repute/indexer/node/jsonrpc"
)

// Limiter decides when each request to one endpoint may be sent. Enter MUST be called before
// a request and Leave after it. It is safe for concurrent use.
type Limiter struct {
	most             float64       // upper bound of limit
	openMin, openMax time.Duration // shortest and longest time that the breaker stays open
	// Changed is called after every change of state, outside the lock.
	Changed func(from, to repute.EndpointState, why string)
	// Others reports whether another endpoint can be asked now. It is called outside the lock.
	Others func() bool

	mu     sync.Mutex
	freed  chan struct{} // closed when a request ends
	limit  float64       // requests in flight that are allowed now
	flying int           // requests in flight
	eased  time.Time     // when limit was last halved
	slowed time.Time     // when rate was last halved

	pace    demand
	rate    float64   // requests per second, 0: any
	ceiling float64   // the rate at which the endpoint refused
	tokens  float64   // of the token bucket for rate
	filled  time.Time // when tokens were last added
	paused  time.Time // end of the pause that the endpoint asked for
	alone   time.Time // end of that pause while no other endpoint can answer

	state    repute.EndpointState
	reason   string        // why the endpoint is excluded
	failed   int           // failures in a row that count for the breaker
	openFor  time.Duration // how long the breaker opened last
	reopens  time.Time     // when an open breaker lets a probe through
	probing  bool          // a probe is in flight
	health   health
	requests int64
	failures int64
}

// health is what a Limiter has seen of its endpoint, smoothed over about ten requests.
type health struct {
	latency   time.Duration // of light requests
	errorRate float64
	lastError string
	lastOK    time.Time
}

// Bounds of a Limiter.
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

// New makes the limiter of an endpoint that takes so many requests at a time at most, and that
// is left alone for openMin to openMax while it fails.
func New(concurrency int, openMin, openMax time.Duration) *Limiter {
	return &Limiter{most: float64(concurrency), openMin: openMin, openMax: openMax, freed: make(chan struct{}),
		limit: min(startConcurrency, float64(concurrency)), state: repute.EndpointClosed,
		Changed: func(repute.EndpointState, repute.EndpointState, string) {}, Others: func() bool { return false }}
}

// Excluded returns the error of a request to an endpoint that is out of use.
func Excluded(why string) error { return &ClosedError{why, jsonrpc.FaultAuth, 0} }

// ClosedError is returned for a request that was not sent because its endpoint is paused,
// excluded, or left alone after failures.
type ClosedError struct {
	why   string
	fault jsonrpc.Fault
	retry time.Duration
}

// Error returns the reason.
func (e *ClosedError) Error() string { return e.why }

// Diagnosis implements jsonrpc.Diagnosed.
func (e *ClosedError) Diagnosis() jsonrpc.Diagnosis {
	return jsonrpc.Diagnosis{Fault: e.fault, RetryAfter: e.retry}
}

// Enter waits until a request may be sent. The caller MUST then send it and call Leave with its
// outcome. probe reports whether the request is the probe of an open breaker, by which the endpoint
// shows that it works again. The error is a *ClosedError or that of ctx.
func (l *Limiter) Enter(ctx context.Context) (probe bool, err error) {
	for {
		probe, wait, freed, err := l.try(time.Now())
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

// try admits a request, or returns how long or for which signal to wait.
func (l *Limiter) try(now time.Time) (probe bool, wait time.Duration, freed <-chan struct{}, err error) {
	others := l.Others()
	l.mu.Lock()
	from := l.state
	wait, freed, err = l.hold(now, others)
	if err == nil && wait == 0 && freed == nil {
		probe = l.admit(now)
	}
	to := l.state
	l.mu.Unlock()
	if from != to {
		l.Changed(from, to, "")
	}
	return probe, wait, freed, err
}

// hold returns what delays a request, given whether another endpoint can answer it.
func (l *Limiter) hold(now time.Time, others bool) (time.Duration, <-chan struct{}, error) {
	if err := l.barred(now); err != nil {
		return 0, nil, err
	}
	until := l.alone
	if others {
		until = l.paused
	}
	switch wait := until.Sub(now); {
	case wait > maxGateWait:
		return 0, nil, &ClosedError{fmt.Sprintf("left alone for %s after: %s", wait.Round(time.Second), l.health.lastError),
			jsonrpc.FaultRate, wait}
	case wait > 0:
		return wait, nil, nil
	case l.flying >= max(1, int(l.limit)):
		return 0, l.freed, nil
	}
	return l.draw(now), nil, nil
}

// admit counts a request that is sent, and reports whether it is a probe.
func (l *Limiter) admit(now time.Time) (probe bool) {
	if l.state == repute.EndpointOpen {
		l.state = repute.EndpointHalfOpen
	}
	probe = l.state == repute.EndpointHalfOpen
	l.probing = l.probing || probe
	l.flying++
	l.requests++
	l.pace.add(now)
	return probe
}

// barred returns the reason for which no request is possible at all; nil when requests are
// possible.
func (l *Limiter) barred(now time.Time) error {
	switch {
	case l.state == repute.EndpointExcluded:
		return Excluded("excluded: " + l.reason)
	case l.state == repute.EndpointOpen && now.Before(l.reopens):
		wait := l.reopens.Sub(now)
		return &ClosedError{fmt.Sprintf("left alone for %s after %d failures, the last: %s",
			wait.Round(time.Millisecond), l.failed, l.health.lastError), jsonrpc.FaultTransient, wait}
	case l.state == repute.EndpointHalfOpen && l.probing:
		return &ClosedError{"being tried again after failures, the last: " + l.health.lastError, jsonrpc.FaultTransient, 0}
	}
	return nil
}

// draw takes a token of the request rate, or returns when the next one is available. The rate
// recovers quickly to nine tenths of the refused rate, slowly near it, and quickly again after a
// time without refusals: the refusal may have been a temporary problem and not a limit.
func (l *Limiter) draw(now time.Time) time.Duration {
	if l.rate == 0 {
		return 0
	}
	elapsed := now.Sub(l.filled).Seconds()
	l.filled = now
	l.tokens = min(max(1, l.rate/2), l.tokens+elapsed*l.rate)
	grown := l.rate * math.Pow(1.2, elapsed)
	if grown >= 0.9*l.ceiling && now.Sub(l.slowed) < carefulFor {
		grown = max(l.rate, 0.9*l.ceiling) * math.Pow(1.01, elapsed)
	}
	l.rate = grown
	if l.rate > mostRate {
		l.rate = 0
		return 0
	}
	if l.tokens < 1 {
		// The result is never 0, which would let the request pass without a token.
		return 1 + time.Duration((1-l.tokens)/l.rate*float64(time.Second))
	}
	l.tokens--
	return 0
}

// Outcome is how a request ended.
type Outcome struct {
	Err   error // of the whole request, or a rate limit of one of its calls
	Text  string
	Took  time.Duration
	Dense bool // it requested ranges of logs or similar answers, which may be too large
	Probe bool // the result of Enter
}

// Leave records how a request ended.
func (l *Limiter) Leave(o Outcome) {
	now := time.Now()
	l.mu.Lock()
	from := l.state
	l.flying--
	l.probing = l.probing && !o.Probe
	close(l.freed)
	l.freed = make(chan struct{})
	if o.Err == nil {
		l.succeed(o, now)
	} else {
		l.fail(o, now)
	}
	to := l.state
	l.mu.Unlock()
	if from != to {
		l.Changed(from, to, o.Text)
	}
}

// succeed raises the number of simultaneous requests by about one per round of answers, and closes
// the breaker. An excluded endpoint stays excluded.
func (l *Limiter) succeed(o Outcome, now time.Time) {
	l.limit = min(l.most, l.limit+1/l.limit)
	l.failed, l.openFor = 0, 0
	l.health.lastOK = now
	l.health.errorRate *= 1 - smoothing
	if !o.Dense || l.health.latency == 0 {
		if l.health.latency == 0 {
			l.health.latency = o.Took
		}
		l.health.latency += time.Duration(smoothing * float64(o.Took-l.health.latency))
	}
	if l.state != repute.EndpointExcluded {
		l.state = repute.EndpointClosed
	}
}

// fail lowers the rate after a refusal, and counts faults that open the breaker. A canceled request
// is no fault of the endpoint.
func (l *Limiter) fail(o Outcome, now time.Time) {
	diagnosis := jsonrpc.Diagnose(o.Err)
	switch {
	case errors.Is(o.Err, context.Canceled): // canceled by this process: no fault of the endpoint
		l.requests--
		return
	case diagnosis.Fault == jsonrpc.FaultRate:
		l.ease(now)
		l.slow(now, diagnosis.RetryAfter)
	case diagnosis.Fault == jsonrpc.FaultRange && isTimeout(o.Err):
		l.ease(now)
	}
	l.failures++
	l.health.errorRate += smoothing * (1 - l.health.errorRate)
	l.health.lastError = o.Text + cutPause(diagnosis)
	counts := trips(diagnosis.Fault, o.Dense)
	if counts {
		l.failed++
	}
	switch {
	case o.Probe && !counts && !isTimeout(o.Err): // it answers
		l.state, l.failed = repute.EndpointClosed, 0
	case o.Probe, counts && l.failed >= tripAfter && l.state == repute.EndpointClosed:
		l.open(now)
	}
}

// cutPause returns a note for the log when an endpoint asks for a longer pause than this package
// grants.
func cutPause(v jsonrpc.Diagnosis) string {
	if v.Fault != jsonrpc.FaultRate || v.RetryAfter <= alonePause {
		return ""
	}
	return fmt.Sprintf(" (wants to be left alone for %s; asked again after %s, or %s while no other endpoint can answer)",
		v.RetryAfter.Round(time.Second), min(v.RetryAfter, mostPause).Round(time.Second), alonePause)
}

// isTimeout reports whether a request was not answered in time.
func isTimeout(err error) bool {
	var conn *jsonrpc.ConnError
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &conn) && conn.Timeout
}

// trips reports whether a fault counts for the breaker. Faults that the size of the request may
// cause do not, and rate limits have their own remedy.
func trips(f jsonrpc.Fault, dense bool) bool {
	switch f {
	case jsonrpc.FaultTransient, jsonrpc.FaultAuth:
		return true
	case jsonrpc.FaultRange, jsonrpc.FaultMalformed:
		return !dense
	}
	return false
}

// open leaves the endpoint alone, each time for about twice as long.
func (l *Limiter) open(now time.Time) {
	if l.state == repute.EndpointExcluded {
		return
	}
	l.openFor = min(max(2*l.openFor, l.openMin), l.openMax)
	jitter := 0.75 + rand.Float64()/2
	l.reopens = now.Add(time.Duration(jitter * float64(l.openFor)))
	l.state = repute.EndpointOpen
}

// ease halves the concurrency.
func (l *Limiter) ease(now time.Time) {
	if now.Sub(l.eased) < easeAgain {
		return
	}
	l.eased = now
	l.limit = max(1, l.limit/2)
}

// slow halves the request rate: the current limit or, at the first refusal, the measured rate of
// requests. The measured rate may be close to zero, which is no endpoint's limit; therefore a
// minimum applies.
func (l *Limiter) slow(now time.Time, retryAfter time.Duration) {
	if retryAfter > alonePause {
		l.limit = 1 // then a single request shows whether the endpoint works
	}
	l.paused = later(l.paused, now.Add(min(retryAfter, mostPause)))
	l.alone = later(l.alone, now.Add(min(retryAfter, alonePause)))
	if now.Sub(l.slowed) < easeAgain {
		return // sent before the endpoint refused
	}
	l.slowed = now
	rate := max(l.pace.perSecond(now), firstRate)
	if l.rate > 0 {
		rate = min(rate, l.rate)
	}
	l.ceiling = max(rate, leastRate)
	l.rate = max(rate/2, leastRate)
	l.tokens, l.filled = 0, now
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Exclude stops requests to the endpoint for a reason; the empty reason allows them again.
func (l *Limiter) Exclude(reason string) {
	l.mu.Lock()
	from := l.state
	switch {
	case reason != "":
		l.state, l.reason = repute.EndpointExcluded, reason
		l.health.lastError = reason
	case l.state == repute.EndpointExcluded:
		l.state, l.failed = repute.EndpointClosed, 0
	}
	to := l.state
	l.mu.Unlock()
	if from != to {
		l.Changed(from, to, reason)
	}
}

// Usable reports whether a request would be admitted soon.
func (l *Limiter) Usable(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.barred(now) == nil && l.paused.Sub(now) <= 0
}

// Failing reports whether the breaker is not closed.
func (l *Limiter) Failing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == repute.EndpointOpen || l.state == repute.EndpointHalfOpen
}

// Excluded reports whether Exclude has taken the endpoint out of use.
func (l *Limiter) Excluded() bool {
	_, excluded := l.Exclusion()
	return excluded
}

// Exclusion returns the reason for which the endpoint is excluded.
func (l *Limiter) Exclusion() (reason string, excluded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason, l.state == repute.EndpointExcluded
}

// Blame counts an answer as a fault that was found invalid only after it was read.
func (l *Limiter) Blame(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures++
	l.health.errorRate += smoothing * (1 - l.health.errorRate)
	l.health.lastError = why
}

// Score ranks endpoints; lower is better. It is about the time of an answer, including failures and
// waiting; 0 for an endpoint without requests.
func (l *Limiter) Score() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests == 0 {
		return 0
	}
	latency := max(l.health.latency, time.Millisecond)
	return latency.Seconds() * (1 + 8*l.health.errorRate) * (1 + float64(l.flying)/l.limit)
}

// Report fills in the state, latency, error rate and limits of the endpoint.
func (l *Limiter) Report(e *repute.Endpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.State, e.Latency, e.ErrorRate = l.state, l.health.latency, l.health.errorRate
	e.Requests, e.Failures = l.requests, l.failures
	e.RateLimit, e.Concurrency = l.rate, max(1, int(l.limit))
	e.LastError, e.LastOKAt = l.health.lastError, l.health.lastOK
}

// demand estimates how often something happens per second: a count in which
// older ones weigh less.
type demand struct {
	began, last time.Time
	weight      float64
}

// demandSpan is the period over which the rate of requests is measured.
const demandSpan = 5 * time.Second

// add counts a request. Older ones fade, so that the demand is that of the last demandSpan.
func (d *demand) add(now time.Time) {
	if d.weight == 0 {
		d.began = now
	}
	d.weight = d.decayed(now) + 1
	d.last = now
}

// decayed returns the sum of the requests so far, each weighed by its age.
func (d *demand) decayed(now time.Time) float64 {
	return d.weight * math.Exp(-now.Sub(d.last).Seconds()/demandSpan.Seconds())
}

// perSecond returns the demand as a rate. It allows for how short the demand has been observed, or
// a new limiter would seem idle.
func (d *demand) perSecond(now time.Time) float64 {
	seen := max(now.Sub(d.began), time.Second/2).Seconds()
	span := demandSpan.Seconds()
	return d.decayed(now) / (span * (1 - math.Exp(-seen/span)))
}
