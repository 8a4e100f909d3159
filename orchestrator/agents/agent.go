package agents

import (
	"context"
	"encoding/json"

	"repute/orchestrator"
	"repute/orchestrator/remote"
	"repute/orchestrator/standard"
)

// Agent is an agent of this package as a module of the orchestrator; Handler serves the same agent to orchestrators in
// other processes. Make one with New.
type Agent struct{ worker }

var _ interface {
	orchestrator.Module
	orchestrator.DryRunner
} = Agent{}

// worker does the work of an agent. What it reaches it reaches through the World that it is given: the Context of a
// run, or the runtime on the other side of the protocol. Every method may be called again after a crash, and MUST make
// the same calls then.
type worker interface {
	Info() standard.Info
	// accepts refuses a task that the agent cannot do, without any call.
	accepts(t standard.Task) error
	plan(t standard.Task) (standard.Plan, error)
	tryOut(ctx context.Context, t standard.Task, w World) (standard.DryRun, error)
	// work does the agent's own step. inputs are the results of the steps that it depends on.
	work(ctx context.Context, t standard.Task, inputs map[string]json.RawMessage, w World) (json.RawMessage, error)
	compare(ctx context.Context, t standard.Task, done standard.Execution, w World) (standard.Verification, error)
	summarize(t standard.Task, done standard.Execution, v standard.Verification) standard.Summary
}

// CanHandle implements orchestrator.Module.
func (a Agent) CanHandle(_ context.Context, t standard.Task) (bool, error) {
	err := a.accepts(t)
	return err == nil, err
}

// Plan implements orchestrator.Module.
func (a Agent) Plan(_ context.Context, t standard.Task, _ *orchestrator.Context) (standard.Plan, error) {
	return a.plan(t)
}

// DryRun implements orchestrator.DryRunner.
func (a Agent) DryRun(ctx context.Context, t standard.Task, _ standard.Plan,
	c *orchestrator.Context) (standard.DryRun, error) {
	return a.tryOut(ctx, t, c)
}

// Execute implements orchestrator.Module.
func (a Agent) Execute(ctx context.Context, t standard.Task, p standard.Plan,
	c *orchestrator.Context) (standard.Execution, error) {
	return c.RunPlan(ctx, p, func(ctx context.Context, _ standard.Step, inputs map[string]json.RawMessage,
		c *orchestrator.Context) (json.RawMessage, error) {
		return a.work(ctx, t, inputs, c)
	})
}

// Verify implements orchestrator.Module.
func (a Agent) Verify(ctx context.Context, t standard.Task, done standard.Execution,
	c *orchestrator.Context) (standard.Verification, error) {
	return a.compare(ctx, t, done, c)
}

// Summarize implements orchestrator.Module.
func (a Agent) Summarize(_ context.Context, t standard.Task, done standard.Execution, v standard.Verification,
	_ *orchestrator.Context) (standard.Summary, error) {
	return a.summarize(t, done, v), nil
}

// answer calls a method of the protocol with a World that asks the runtime; nil for a method that there is not.
func (a Agent) answer(ctx context.Context, method string, q remote.Question, w World) (any, error) {
	var done standard.Execution
	if q.Execution != nil {
		done = *q.Execution
	}
	switch method {
	case "can-handle":
		err := a.accepts(q.Task)
		return err == nil, err
	case "plan":
		return result(a.plan(q.Task))
	case "dry-run":
		return result(a.tryOut(ctx, q.Task, w))
	case "execute":
		return result(a.work(ctx, q.Task, q.Inputs, w))
	case "verify":
		return result(a.compare(ctx, q.Task, done, w))
	case "summarize":
		var v standard.Verification
		if q.Verification != nil {
			v = *q.Verification
		}
		return a.summarize(q.Task, done, v), nil
	}
	return nil, nil
}

// result returns a value or an error, never both.
func result[T any](v T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}
