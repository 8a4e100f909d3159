// Package guard calls code that may panic, or go on after it was told to end: the methods of agents, and steps of
// plans.
//
// Call runs the code in a goroutine of its own and waits for it until its context ends and a grace of two seconds is
// over. After that the caller continues without it, with an error: the goroutine is left behind, because Go cannot
// stop it. What it does then reaches nothing, as its Context is closed. A panic becomes a PanicError, whose stack is
// for the log alone, because errors are shown to the authors of tasks.
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
