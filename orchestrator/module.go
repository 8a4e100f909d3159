package orchestrator

import (
	"context"
	"encoding/json"

	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
)

// Module is an agent that the orchestrator can run (OpenFi agent standard, the agent
// interface). Its methods may be called again after a crash: what it did through the
// Context is not done twice. A method that panics, hangs or ignores the end of ctx fails
// its phase and nothing else. A module that can simulate implements DryRunner too.
type Module interface {
	Info() standard.Info
	// CanHandle tells whether the agent takes the task, before anything is planned. An error
	// beside false is why not: whoever gave the task reads it.
	CanHandle(ctx context.Context, task standard.Task) (bool, error)
	Plan(ctx context.Context, task standard.Task, c *Context) (standard.Plan, error)
	Execute(ctx context.Context, task standard.Task, plan standard.Plan, c *Context) (standard.Execution, error)
	Verify(ctx context.Context, task standard.Task, done standard.Execution, c *Context) (standard.Verification, error)
	Summarize(ctx context.Context, task standard.Task, done standard.Execution, checked standard.Verification,
		c *Context) (standard.Summary, error)
}

// DryRunner is a Module that can say what Execute would do.
type DryRunner interface {
	DryRun(ctx context.Context, task standard.Task, plan standard.Plan, c *Context) (standard.DryRun, error)
}

// Tool is something that agents may use by name.
type Tool interface {
	// Call is given the run that calls, as the runtime knows it, and a key that is the same
	// when a call is made again after a crash.
	Call(ctx context.Context, by transaction.Origin, key string, input json.RawMessage) (json.RawMessage, error)
}
