package limit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"

	"repute"
	"repute/indexer/node/jsonrpc"
)

// Limiter decides when each request to one endpoint may be sent. Enter MUST be called before
// a request, and the function that it returns after it. It is safe for concurrent use.
type Limiter struct {
	openMin, openMax time.Duration // shortest and longest time that the breaker stays open
	// Changed is called at every change of state. It MUST NOT call the Limiter.
	Changed func(from, to repute.EndpointState, why string)
	// Others reports whether another endpoint can be used now. It MUST NOT be called under the lock,
	// because it calls the limiters of the other endpoints.
	Others func() bool

	mu          sync.Mutex
	concurrency concurrency
	pace        pace
	paused      time.Time // end of the pause that the endpoint requested, at most maxPause long
	pausedAlone time.Time // the same, at most maxPauseAlone long: it applies while no other endpoint is usable

	breaker  *gobreaker.TwoStepCircuitBreaker[any]
	openFor  time.Duration // how long the breaker opened last, 0 after a success
	reopens  time.Time     // when an open breaker admits a probe
	excluded bool          // the endpoint is out of use, whatever the breaker's state is
	reason   string        // why it is excluded
	health   health
}

// health summarizes the requests to an endpoint. Latency and errorRate are smoothed over about ten
// requests.
type health struct {
	requests  int64
	failures  int64
	latency   time.Duration // of light requests that were answered or timed out
	errorRate float64
	lastError string
	lastOK    time.Time
}

// Bounds of a Limiter.
const (
	tripAfter     = 5                // failures in a row open the breaker
	maxWait       = 5 * time.Second  // longer pauses are errors, so that another endpoint is used
	maxPause      = 3 * time.Minute  // longest pause that is granted to an endpoint
	maxPauseAlone = 30 * time.Second // the same while no other endpoint can answer
	smoothing     = 0.1
)

// New returns the limiter of an endpoint that accepts at most concurrency requests at a time. No
// request is sent for openMin after repeated failures. That time doubles with each failed probe up
// to openMax.
func New(concurrency int, openMin, openMax time.Duration) *Limiter {
	l := &Limiter{concurrency: newConcurrency(concurrency), openMin: openMin, openMax: openMax,
		pace:    pace{bucket: rate.NewLimiter(rate.Inf, 1)},
		Changed: func(repute.EndpointState, repute.EndpointState, string) {}, Others: func() bool { return false }}
	l.breaker = l.newBreaker()
	return l
}

// errIgnored is reported to the breaker for a request that is neither a success nor a failure.
var errIgnored = errors.New("ignored")

// newBreaker returns a closed breaker. Its callback runs under the lock.
func (l *Limiter) newBreaker() *gobreaker.TwoStepCircuitBreaker[any] {
	return gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		Timeout:     l.openMin, // Limiter.reopens extends it
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
		IsExcluded:  func(err error) bool { return errors.Is(err, errIgnored) },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			why := ""
			if to == gobreaker.StateOpen {
				why = l.health.lastError
				l.openFor = min(max(2*l.openFor, l.openMin), l.openMax)
				l.reopens = time.Now().Add(l.openFor)
			}
			if !l.excluded {
				l.Changed(stateOf(from), stateOf(to), why)
			}
		},
	})
}

// stateOf returns the state of an endpoint whose breaker has a state.
func stateOf(s gobreaker.State) repute.EndpointState {
	return [...]repute.EndpointState{gobreaker.StateClosed: repute.EndpointClosed,
		gobreaker.StateHalfOpen: repute.EndpointHalfOpen, gobreaker.StateOpen: repute.EndpointOpen}[s]
}

// state returns the state of the endpoint.
func (l *Limiter) state(now time.Time) repute.EndpointState {
	switch {
	case l.excluded:
		return repute.EndpointExcluded
	case now.Before(l.reopens):
		return repute.EndpointOpen
	}
	return stateOf(l.breaker.State())
}

// Excluded returns the error of a request to an endpoint that is excluded.
func Excluded(why string) error { return &ClosedError{why, jsonrpc.FaultAuth, 0} }

// ClosedError is returned for a request that was not sent because its endpoint is paused,
// excluded, or left unused after failures.
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

// Enter waits until a request may be sent. The caller MUST then send it and call leave with its
// outcome, once. The error is a *ClosedError or that of ctx.
func (l *Limiter) Enter(ctx context.Context) (leave func(Outcome), err error) {
	for {
		leave, ready, err := l.try(time.Now())
		if err != nil || leave != nil {
			return leave, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ready:
		}
	}
}

// try admits a request, or returns a channel that is ready when it may be tried again.
func (l *Limiter) try(now time.Time) (leave func(Outcome), ready <-chan time.Time, err error) {
	others := l.Others()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.barred(now); err != nil {
		return nil, nil, err
	}
	until := l.pausedAlone
	if others {
		until = l.paused
	}
	switch wait := until.Sub(now); {
	case wait > maxWait:
		return nil, nil, &ClosedError{fmt.Sprintf("paused for %s after: %s", wait.Round(time.Second),
			l.health.lastError), jsonrpc.FaultRate, wait}
	case wait > 0:
		return nil, time.After(wait), nil
	case l.concurrency.full():
		return nil, l.concurrency.freed, nil
	}
	if wait := l.pace.delay(now); wait > 0 {
		return nil, time.After(wait), nil
	}
	leave, err = l.admit(now)
	return leave, nil, err
}

// admit counts a request that is sent.
func (l *Limiter) admit(now time.Time) (leave func(Outcome), err error) {
	done, err := l.breaker.Allow()
	if err != nil { // never, because barred has checked the same
		return nil, &ClosedError{err.Error(), jsonrpc.FaultTransient, 0}
	}
	probe := l.breaker.State() == gobreaker.StateHalfOpen
	l.concurrency.inFlight++
	l.health.requests++
	l.pace.demand.add(now)
	return func(o Outcome) { l.leave(o, probe, done) }, nil
}

// barred returns the error of a request that the state of the endpoint does not allow; nil if the state
// allows one.
func (l *Limiter) barred(now time.Time) error {
	switch l.state(now) {
	case repute.EndpointExcluded:
		return Excluded("excluded: " + l.reason)
	case repute.EndpointOpen:
		wait := l.reopens.Sub(now)
		return &ClosedError{fmt.Sprintf("paused for %s after %d failures in a row, the last: %s",
			wait.Round(time.Millisecond), tripAfter, l.health.lastError), jsonrpc.FaultTransient, wait}
	case repute.EndpointHalfOpen:
		if c := l.breaker.Counts(); c.Requests > c.TotalExclusions {
			return &ClosedError{"waiting for the result of a probe after failures, the last: " + l.health.lastError,
				jsonrpc.FaultTransient, 0}
		}
	}
	return nil
}

// Outcome is how a request ended.
type Outcome struct {
	Err   error // of the whole request, or a rate limit of one of its calls
	Text  string
	Took  time.Duration
	Dense bool // it requested ranges of logs or similar answers, which may be too large
}

// leave records how a request ended. A probe is a request by which an open breaker tests whether
// the endpoint works again. done is the function of the breaker.
func (l *Limiter) leave(o Outcome, probe bool, done func(error)) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.concurrency.leave()
	if o.Err == nil {
		l.succeed(o, now)
		done(nil)
		return
	}
	done(l.fail(o, probe, now))
}

// succeed records a success.
func (l *Limiter) succeed(o Outcome, now time.Time) {
	l.concurrency.raise()
	l.openFor = 0
	l.health.lastOK = now
	l.health.errorRate *= 1 - smoothing
	l.health.took(o)
}

// fail records a failure, lowers the rate after a refusal, and returns the outcome for the breaker.
// A canceled request is no fault of the endpoint.
func (l *Limiter) fail(o Outcome, probe bool, now time.Time) error {
	diagnosis := jsonrpc.Diagnose(o.Err)
	switch {
	case errors.Is(o.Err, context.Canceled):
		l.health.requests--
		return errIgnored
	case diagnosis.Fault == jsonrpc.FaultRate:
		l.concurrency.halve(now)
		l.slow(now, diagnosis.RetryAfter)
	case diagnosis.Fault == jsonrpc.FaultRange && isTimeout(o.Err):
		l.concurrency.halve(now)
	}
	l.health.fail(o.Text + cutPause(diagnosis))
	if isTimeout(o.Err) { // or an endpoint that never answers would rank as the fastest
		l.health.took(o)
	}
	switch {
	case trips(diagnosis.Fault, o.Dense), probe && isTimeout(o.Err):
		return o.Err
	case probe: // the endpoint answers
		return nil
	}
	return errIgnored
}

// took records the time of an answer. Answers to dense requests take longer, and count only while
// no other is known.
func (h *health) took(o Outcome) {
	if h.latency == 0 {
		h.latency = o.Took
	}
	if !o.Dense {
		h.latency += time.Duration(smoothing * float64(o.Took-h.latency))
	}
}

// fail counts a failed request.
func (h *health) fail(text string) {
	h.failures++
	h.errorRate += smoothing * (1 - h.errorRate)
	h.lastError = text
}

// cutPause returns a note for the log if an endpoint requests a longer pause than maxPauseAlone, which
// is therefore shortened; otherwise it returns an empty text.
func cutPause(v jsonrpc.Diagnosis) string {
	if v.Fault != jsonrpc.FaultRate || v.RetryAfter <= maxPauseAlone {
		return ""
	}
	return fmt.Sprintf(" (asks for a pause of %s; retried after %s, or %s while no other endpoint can answer)",
		v.RetryAfter.Round(time.Second), min(v.RetryAfter, maxPause).Round(time.Second), maxPauseAlone)
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

// slow pauses requests for the time that the endpoint requests, within the bounds, and lowers their
// rate.
func (l *Limiter) slow(now time.Time, retryAfter time.Duration) {
	if retryAfter > maxPauseAlone {
		l.concurrency.limit = 1 // then a single request shows whether the endpoint works
	}
	l.paused = later(l.paused, now.Add(min(retryAfter, maxPause)))
	l.pausedAlone = later(l.pausedAlone, now.Add(min(retryAfter, maxPauseAlone)))
	l.pace.slow(now)
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
	defer l.mu.Unlock()
	from := l.state(time.Now())
	if l.excluded = reason != ""; l.excluded {
		l.reason, l.health.lastError = reason, reason
	}
	if to := l.state(time.Now()); from != to {
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
	state := l.state(time.Now())
	return state == repute.EndpointOpen || state == repute.EndpointHalfOpen
}

// Failed reports whether the last request that counts for the breaker failed. It is true before the
// breaker opens, for callers that have enough other endpoints.
func (l *Limiter) Failed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.breaker.State() != gobreaker.StateClosed || l.breaker.Counts().ConsecutiveFailures > 0
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
	return l.reason, l.excluded
}

// Blame counts an answer as a fault that was found invalid only after it was read.
func (l *Limiter) Blame(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.health.fail(why)
}

// Score ranks endpoints; lower is better. It is about the time of an answer, including failures and
// waiting; 0 for an endpoint without requests.
func (l *Limiter) Score() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.health.requests == 0 {
		return 0
	}
	latency := max(l.health.latency, time.Millisecond)
	return latency.Seconds() * (1 + 8*l.health.errorRate) * (1 + float64(l.concurrency.inFlight)/l.concurrency.limit)
}

// Report fills in the state, latency, error rate and limits of the endpoint.
func (l *Limiter) Report(e *repute.Endpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.State, e.Latency, e.ErrorRate = l.state(time.Now()), l.health.latency, l.health.errorRate
	e.Requests, e.Failures = l.health.requests, l.health.failures
	e.RateLimit, e.Concurrency = l.pace.rate(), l.concurrency.whole()
	e.LastError, e.LastOKAt = l.health.lastError, l.health.lastOK
}
