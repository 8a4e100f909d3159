package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
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
