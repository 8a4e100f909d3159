package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"repute"
	"repute/orchestrator/guard"
	"repute/orchestrator/journal"
	"repute/orchestrator/schedule"
	"repute/orchestrator/standard"
	"repute/orchestrator/telemetry"
	"repute/orchestrator/transaction"
	"repute/store/column"
	"repute/store/rundb"
)

// maxDepth bounds how deep runs lie below each other.
const maxDepth = 5

// StepFunc does one of the agent's own steps. inputs are the results of the steps that it depends
// on. The result has at most 256 KiB.
type StepFunc func(ctx context.Context, step standard.Step, inputs map[string]json.RawMessage,
	c *Context) (json.RawMessage,
	error)

// RunPlan does a plan: each step after all steps that it depends on, independent steps
// concurrently, and steps of other agents as runs that share the budget. A step that was completed
// before a crash is not repeated. Steps that depend on a failed one are skipped. It is called from
// Execute.
func (c *Context) RunPlan(ctx context.Context, plan standard.Plan, own StepFunc) (standard.Execution, error) {
	if c.phase != repute.PhaseExecute || c.step != "" {
		return standard.Execution{}, transaction.Refuse("phase", "a plan is run in Execute alone")
	}
	if journal.Digest(journal.JSON(plan)) != journal.Digest(journal.JSON(c.w.plan)) {
		return standard.Execution{}, transaction.Refuse("plan", "the plan is another than the one that was checked")
	}
	e := standard.Execution{Started: time.Now().UTC(), Success: true, ReceiptIDs: []string{}}
	e.Steps = schedule.Run(ctx, plan.Steps,
		func(ctx context.Context, s standard.Step, inputs map[string]json.RawMessage) standard.StepResult {
			return c.doStep(ctx, s, inputs, own)
		})
	for _, r := range e.Steps {
		e.Success = e.Success && r.Status == rundb.StepCompleted
	}
	e.Ended = time.Now().UTC()
	if waits := c.w.waits(); waits != nil {
		return e, waits
	}
	return e, nil
}

// doStep runs one step of the plan, by the agent itself or as a run of another agent. A step that
// has a stored result is not run again.
func (c *Context) doStep(ctx context.Context, s standard.Step, inputs map[string]json.RawMessage,
	own StepFunc) standard.StepResult {
	w := c.w
	begun, err := rundb.BeginStep(ctx, w.e.db, w.lease, w.Run.ID, s.ID)
	if err != nil {
		return standard.StepResult{StepID: s.ID, Status: rundb.StepFailed, Error: w.lost(err).Error()}
	}
	if begun.Status != rundb.StepRunning {
		return standard.StepResult{StepID: s.ID, Status: begun.Status, Result: begun.Result, Error: begun.Error}
	}
	var result json.RawMessage
	if s.Agent == w.Run.Agent {
		sub := w.context(repute.PhaseExecute, s.ID)
		result, err = guard.Call(ctx,
			func(ctx context.Context) (json.RawMessage, error) { return own(ctx, s, inputs, sub) })
		sub.close(errOver)
		if bad := readable("result", result); bad != nil {
			result, err = nil, cmp.Or(err, bad)
		}
	} else {
		result, err = w.delegate(ctx, s, inputs)
	}
	return c.endStep(ctx, s, result, err)
}

// endStep stores the result of a step. A step that was canceled or waits is not stored, and is repeated. What is
// stored is stored also if the phase's time is over meanwhile, since the work was done and paid for.
func (c *Context) endStep(ctx context.Context, s standard.Step, result json.RawMessage, err error) standard.StepResult {
	if err == nil && (len(result) > standard.MaxInput || len(result) > 0 && !json.Valid(result)) {
		result, err = nil, fmt.Errorf("the step's result is no JSON of at most %d bytes: %w", standard.MaxInput,
			repute.ErrInvalid)
	}
	out := standard.StepResult{StepID: s.ID, Status: rundb.StepCompleted, Result: result}
	if err != nil {
		out.Status, out.Error = rundb.StepFailed, journal.Shorten(err.Error())
	}
	if err != nil && (c.w.waits() != nil || cutOff(ctx) || errors.Is(err, repute.ErrFenced) ||
		c.w.databaseFailed() != nil) {
		return out
	}
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	if stored := rundb.EndStep(saving, c.w.e.db, c.w.lease, c.w.Run.ID,
		rundb.Step{ID: s.ID, Status: out.Status, Result: result, Error: out.Error}); stored != nil {
		return standard.StepResult{StepID: s.ID, Status: rundb.StepFailed, Error: c.w.lost(stored).Error()}
	}
	return out
}

// delegate does a step as a run of another agent, with all phases, including a new trust decision.
func (w *work) delegate(ctx context.Context, s standard.Step, inputs map[string]json.RawMessage) (json.RawMessage,
	error) {
	if w.depth+1 >= maxDepth {
		return nil, fmt.Errorf("runs lie %d deep: %w", maxDepth, repute.ErrLimited)
	}
	input := s.Input
	if len(inputs) > 0 {
		input = journal.JSON(map[string]any{"input": column.OrNull(s.Input), "inputs": inputs})
	}
	stored, err := rundb.SubRun(ctx, w.e.db, w.lease, repute.Run{ID: journal.NewID("run"), Task: w.Run.Task,
		Parent:     w.Run.ID,
		ParentStep: s.ID, Agent: s.Agent,
		Goal: s.Description, Input: input, Limits: w.root().Run.Limits})
	if err != nil {
		return nil, w.lost(err)
	}
	sub, err := w.e.workOn(ctx, stored, w.lease, w)
	if err != nil {
		return nil, w.lost(err)
	}
	sub.wanted = w.plan.CheckIdentity(s.Agent, sub.module.Agent)
	return sub.below(ctx)
}

// below does all phases of a run that is a step of another.
func (w *work) below(ctx context.Context) (out json.RawMessage, err error) {
	ctx, end := w.e.trace.Start(ctx, "run", telemetry.AboutRun(&w.Run)...)
	defer func() { end(err) }()
	for _, p := range repute.Phases() {
		if err := w.advance(ctx, p); err != nil {
			return nil, err
		}
	}
	return w.answer(w.parent)
}

// answer returns the result of a sub-run for the step that it is.
func (w *work) answer(parent *work) (json.RawMessage, error) {
	if waits := w.waits(); waits != nil {
		parent.wait(waits)
		return nil, waits
	}
	if w.Run.Status != repute.RunCompleted {
		return nil, fmt.Errorf("run %s of agent %s %s: %s", w.Run.ID, w.Run.Agent, w.Run.Status, w.Run.Error)
	}
	return journal.JSON(map[string]any{"run": w.Run.ID, "summary": w.summary.Text, "steps": w.done.Steps}), nil
}
