// Package schedule runs the steps of a plan: each after all steps that it depends on, and independent ones at the
// same time, at most eight of them.
//
// Run returns when every step has a result. A step whose dependency is not completed is skipped, with the reason, and
// so are those behind it: a failed step fails what needs it and nothing else. When the context ends, steps that wait
// for others are skipped, and steps that run are told by their own context. Nothing is stored here: the engine's Do
// finds the results that an earlier process stored, and returns them without doing the step again.
package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"repute/orchestrator/standard"
	"repute/store/rundb"
)

// parallel is how many steps of a plan run at once.
const parallel = 8

// Do does one step. inputs are the results of the steps that it depends on, by their ids.
type Do func(ctx context.Context, s standard.Step, inputs map[string]json.RawMessage) standard.StepResult

// Run does steps, each after all steps that it depends on, independent ones concurrently. Steps that depend on one
// that is not completed are skipped. The results are in the order of the steps, which MUST have no cycle
// (standard.CheckPlan).
func Run(ctx context.Context, steps []standard.Step, do Do) []standard.StepResult {
	p := &plan{do: do, done: map[string]chan struct{}{}, results: map[string]standard.StepResult{},
		places: make(chan struct{}, parallel)}
	for _, s := range steps {
		p.done[s.ID] = make(chan struct{})
	}
	var running sync.WaitGroup
	for _, s := range steps {
		running.Go(func() { p.step(ctx, s) })
	}
	running.Wait()
	out := make([]standard.StepResult, len(steps))
	for i, s := range steps {
		out[i] = p.results[s.ID]
	}
	return out
}

// plan is the state of a plan that is being executed.
type plan struct {
	do      Do
	places  chan struct{}
	done    map[string]chan struct{} // closed when the step has a result
	mu      sync.Mutex
	results map[string]standard.StepResult
}

// step waits for the steps that it depends on and for a place, and runs.
func (p *plan) step(ctx context.Context, s standard.Step) {
	defer close(p.done[s.ID])
	inputs, blocked := p.inputs(ctx, s)
	result := standard.StepResult{StepID: s.ID, Status: "skipped", Error: blocked}
	if blocked == "" {
		p.places <- struct{}{}
		result = p.do(ctx, s, inputs)
		<-p.places
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.results[s.ID] = result
}

// inputs waits for the results that a step depends on; blocked is the reason why it cannot be done.
func (p *plan) inputs(ctx context.Context, s standard.Step) (inputs map[string]json.RawMessage, blocked string) {
	inputs = map[string]json.RawMessage{}
	for _, d := range s.DependsOn {
		select {
		case <-p.done[d]:
		case <-ctx.Done():
			return nil, context.Cause(ctx).Error()
		}
		p.mu.Lock()
		before := p.results[d]
		p.mu.Unlock()
		if before.Status != rundb.StepCompleted {
			return nil, fmt.Sprintf("step %s is %s", d, before.Status)
		}
		inputs[d] = before.Result
	}
	return inputs, ""
}
