// Package guard calls code that may panic, or go on after it was told to end.
package guard

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// grace is how long a call may continue after the end of its context. Then its caller continues without it.
const grace = 2 * time.Second

// errIgnored is returned when a call continued after its context and the grace had ended.
var errIgnored = errors.New("the agent ignored its cancellation and was left behind")

// PanicError is the error of a call that panicked.
type PanicError struct {
	Value any
	Stack []byte // for the log: it names files of the program
}

// Error returns the panic's value; the stack is only logged.
func (e *PanicError) Error() string { return fmt.Sprintf("the agent panicked: %.500v", e.Value) }

// Call calls f. A panic of f is a *PanicError. When ctx ends f has a moment to return; after that it is left behind in
// its goroutine, and its answer is lost. An answer after the end of ctx is an error.
func Call[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if v := recover(); v != nil {
				a.err = &PanicError{v, debug.Stack()}
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
