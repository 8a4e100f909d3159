package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"repute"
	"repute/orchestrator/guard"
)

// with calls one of the agent's methods with a Context that ends with the call. An answer that
// cannot be stored and shown is an error, even if the method also returned an error.
func with[T any](ctx context.Context, w *work, p repute.Phase, f func(context.Context, *Context) (T, error)) (T,
	error) {
	c := w.context(p, "")
	defer c.close(errOver)
	answer, err := guard.Call(ctx, func(ctx context.Context) (T, error) { return f(ctx, c) })
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
