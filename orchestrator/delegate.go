package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"repute"
	"repute/orchestrator/journal"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/store/rundb"
)

// Delegate gives work to an agent that the plan names in OnDemand, as a step and a run of its own with all
// phases, including a trust decision about that agent. It counts as a step. The result of a step that was
// completed before a crash is returned without running it again. The n-th call of a step is the same step
// again when it is repeated.
func (c *Context) Delegate(ctx context.Context, agent, goal string, input json.RawMessage) (json.RawMessage, error) {
	switch {
	case c.phase != repute.PhaseExecute || c.step == "":
		return nil, transaction.Refuse("phase", "work is delegated in a step of Execute alone")
	case !slices.Contains(c.w.plan.OnDemand, agent):
		return nil, transaction.Refuse("plan", "the plan names no agent %.80q on demand", agent)
	case len(goal) > standard.MaxStepText || len(input) > standard.MaxInput:
		return nil, repute.Invalid("goal", "or input is too long", fmt.Sprintf("%d and %d bytes", standard.MaxStepText,
			standard.MaxInput))
	}
	if err := readable("input", input); err != nil {
		return nil, err
	}
	if _, err := c.next(repute.CallSubRun, ""); err != nil {
		return nil, err
	}
	c.mu.Lock()
	s := standard.Step{ID: fmt.Sprintf("%s.%d", c.step, c.calls[string(repute.CallSubRun)]), Description: goal,
		Agent:     agent,
		DependsOn: []string{}, Input: input}
	c.mu.Unlock()
	begun, err := rundb.BeginStep(ctx, c.w.e.db, c.w.lease, c.w.Run.ID, s.ID)
	if err != nil {
		return nil, c.w.lost(err)
	}
	if begun.Status != rundb.StepRunning {
		return begun.Result, journal.Replayed(begun.Error)
	}
	result, err := c.w.delegate(ctx, s, nil)
	done := c.endStep(ctx, s, result, err)
	if err != nil {
		return nil, err
	}
	return done.Result, journal.Replayed(done.Error)
}
