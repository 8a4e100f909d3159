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

// grace is how long a module's method may go on after the end of its context. Then it is
// left to itself: whatever it asks of its Context is refused.
const grace = 2 * time.Second

// errIgnored: a method went on after its end.
var errIgnored = errors.New("the agent ignored its cancellation and was left behind")

// panicError is what a module's panic becomes.
type panicError struct {
	value any
	stack []byte
}

// Error gives the panic's value; the stack is for the log.
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

// with calls one of the agent's methods with a Context that ends with it. An answer that cannot
// be stored and shown counts as none, also beside an error.
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

// readableAnswer is readable for what an agent in this binary answers.
func readableAnswer(field string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return repute.Invalid(field, fmt.Sprintf("is no JSON: %.200s", err), "any JSON value")
	}
	return repute.CheckJSON(field, raw)
}

// manifestTime is what the agent's manifest leaves this run after its recorded phases.
func (w *work) manifestTime() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := time.Duration(w.info.Manifest.Budget().RuntimeMS) * time.Millisecond
	for _, p := range w.Phases {
		left -= p.Ended.Sub(p.Started)
	}
	return left
}

// spent is the time that this attempt of the root run was worked on, up to the phase in hand.
func (w *work) spent() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Run.Used.Runtime
}
