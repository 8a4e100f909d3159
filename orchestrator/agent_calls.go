package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"repute"
)

// grace is how long a module's method may continue after the end of its context. Then the run
// continues without it, and every later call of its Context is refused.
const grace = 2 * time.Second

// errIgnored: a method went on after its end.
var errIgnored = errors.New("the agent ignored its cancellation and was left behind")

// panicError is the error of a module that panicked.
type panicError struct {
	value any
	stack []byte
}

// Error returns the panic's value; the stack is only logged.
func (e *panicError) Error() string { return fmt.Sprintf("the agent panicked: %.500v", e.value) }

// guard calls a module's method. Its panic is an error; when ctx ends it has a moment.
func guard[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if v := recover(); v != nil {
				a.err = &panicError{v, debug.Stack()}
			}
			done <- a
		}()
		a.value, a.err = f(ctx)
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case a := <-done:
		if a.err == nil { // too late to count
			a.err = context.Cause(ctx)
		}
		return a.value, a.err
	case <-timer.C:
		var none T
		return none, fmt.Errorf("%w: %w", errIgnored, context.Cause(ctx))
	}
}

// with calls one of the agent's methods with a Context that ends with the call. An answer that
// cannot be stored and shown is an error, even if the method also returned an error.
func with[T any](ctx context.Context, w *work, p repute.Phase, f func(context.Context, *Context) (T, error)) (T,
	error) {
	c := w.context(p, "")
	defer c.close(errOver)
	answer, err := guard(ctx, func(ctx context.Context) (T, error) { return f(ctx, c) })
	if wrong := readableAnswer(p.String(), answer); wrong != nil {
		var none T
		return none, cmp.Or(err, wrong)
	}
	return answer, err
}

// readableAnswer checks an answer of an agent in this binary like readable.
func readableAnswer(field string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return repute.Invalid(field, fmt.Sprintf("is no JSON: %.200s", err), "any JSON value")
	}
	return repute.CheckJSON(field, raw)
}

// manifestTime returns the rest of the run time that the agent's manifest allows, after the
// recorded phases.
func (w *work) manifestTime() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := time.Duration(w.info.Manifest.Budget().RuntimeMS) * time.Millisecond
	for _, p := range w.Phases {
		left -= p.Ended.Sub(p.Started)
	}
	return left
}

// spent returns the working time of this attempt of the root run, including the current phase.
func (w *work) spent() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Run.Used.Runtime
}
