package orchestrator

import (
	"context"
	"encoding/json"

	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
)

// Module is an agent that the orchestrator can run (OpenFi agent standard, the agent interface).
// Its methods may be called again after a crash; calls through the Context are not repeated then. A
// method that panics, hangs or ignores the end of ctx fails its phase and nothing else. A module
// that can simulate also implements DryRunner.
type Module interface {
	Info() standard.Info
	// CanHandle reports whether the agent accepts the task, before it is planned. An error together
	// with false is the reason, which is shown to the task's author.
	CanHandle(ctx context.Context, task standard.Task) (bool, error)
	Plan(ctx context.Context, task standard.Task, c *Context) (standard.Plan, error)
	Execute(ctx context.Context, task standard.Task, plan standard.Plan, c *Context) (standard.Execution, error)
	Verify(ctx context.Context, task standard.Task, done standard.Execution, c *Context) (standard.Verification, error)
	Summarize(ctx context.Context, task standard.Task, done standard.Execution, checked standard.Verification,
		c *Context) (standard.Summary, error)
}

// DryRunner is a Module that can declare the transactions of Execute.
type DryRunner interface {
	DryRun(ctx context.Context, task standard.Task, plan standard.Plan, c *Context) (standard.DryRun, error)
}

// Tool is a named capability of agents.
type Tool interface {
	// Call receives the calling run, as the runtime knows it, and a key that is the same when a
	// call is repeated after a crash.
	Call(ctx context.Context, by transaction.Origin, key string, input json.RawMessage) (json.RawMessage, error)
}
