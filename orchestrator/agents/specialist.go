package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"repute"
	"repute/orchestrator/standard"
)

// order is the task of a specialist.
type order[I any] struct {
	Task standard.Task
	In   I
	// Before are the results of the steps that this one depends on, by id.
	Before map[string]json.RawMessage
}

// craft is what a specialist can do: orders have an input I and a result R.
type craft[I, R any] interface {
	// Accept refuses an impossible order without any call.
	Accept(o order[I]) error
	DryRun(ctx context.Context, w World, o order[I]) (standard.DryRun, error)
	Do(ctx context.Context, w World, o order[I]) (R, error)
	// Verify compares the result of Do with the chain.
	Verify(ctx context.Context, w World, o order[I], done R) ([]standard.Check, error)
	Summary(o order[I], done R) standard.Summary
}

// specialist is a worker with one step.
type specialist[I, R any] struct {
	info standard.Info
	craft[I, R]
}

// onlyStep names the step of a specialist's plan.
const onlyStep = "work"

// Info implements worker.
func (s *specialist[I, R]) Info() standard.Info { return s.info }

// order decodes a task. The input of a step that depends on others includes their results.
func (s *specialist[I, R]) order(t standard.Task) (o order[I], err error) {
	o.Task = t
	own := t.Input
	var wrapped struct {
		Input  json.RawMessage            `json:"input"`
		Inputs map[string]json.RawMessage `json:"inputs"`
	}
	if json.Unmarshal(own, &wrapped) == nil && wrapped.Inputs != nil {
		own, o.Before = wrapped.Input, wrapped.Inputs
	}
	if err := strictly(own, &o.In); err != nil {
		return o, repute.Invalid("input", err.Error(), "docs/reference/agents.md lists the fields")
	}
	return o, s.Accept(o)
}

// strictly decodes JSON and refuses unknown fields, because a misspelled cap would be no cap.
func strictly(text json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// accepts implements worker.
func (s *specialist[I, R]) accepts(t standard.Task) error {
	_, err := s.order(t)
	return err
}

// plan returns the plan with the single step.
func (s *specialist[I, R]) plan(t standard.Task) (standard.Plan, error) {
	return standard.Plan{Steps: []standard.Step{{ID: onlyStep, Description: t.Goal, Agent: s.info.Slug,
		DependsOn: []string{}, Input: t.Input}}}, nil
}

// tryOut simulates the order: its calls, and the objections to them.
func (s *specialist[I, R]) tryOut(ctx context.Context, t standard.Task, w World) (d standard.DryRun,
	err error) {
	o, err := s.order(t)
	if err == nil {
		d, err = s.DryRun(ctx, w, o)
	}
	d.Warnings, d.Calls, d.Violations = listed(d.Warnings), listed(d.Calls), listed(d.Violations)
	return d, err
}

// listed returns an empty list instead of nil, for JSON.
func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// work carries out the order, and returns its result as JSON. The results of steps before are in the task's input.
func (s *specialist[I, R]) work(ctx context.Context, t standard.Task, _ map[string]json.RawMessage,
	w World) (json.RawMessage, error) {
	o, err := s.order(t)
	if err != nil {
		return nil, err
	}
	done, err := s.Do(ctx, w, o)
	if err != nil {
		return nil, err
	}
	return json.Marshal(done)
}

// compare checks the result against the chain, as the phase Verify asks.
func (s *specialist[I, R]) compare(ctx context.Context, t standard.Task, done standard.Execution,
	w World) (v standard.Verification, err error) {
	o, err := s.order(t)
	if err != nil {
		return v, err
	}
	result, err := resultOf[R](done)
	if err != nil {
		return scored([]standard.Check{{Name: "result", Details: err.Error()}}), nil
	}
	checks, err := s.Verify(ctx, w, o, result)
	return scored(checks), err
}

// resultOf returns the result of the single step.
func resultOf[R any](done standard.Execution) (r R, err error) {
	if len(done.Steps) != 1 {
		return r, fmt.Errorf("%d steps instead of one: %w", len(done.Steps), repute.ErrInvalid)
	}
	return r, strictly(done.Steps[0].Result, &r)
}

// scored returns the share of passed checks.
func scored(checks []standard.Check) standard.Verification {
	passed := 0
	for _, c := range checks {
		if c.Passed {
			passed++
		}
	}
	return standard.Verification{Checks: checks, Score: float64(passed) / float64(max(len(checks), 1))}
}

// summarize describes the result and the failed checks.
func (s *specialist[I, R]) summarize(t standard.Task, done standard.Execution,
	v standard.Verification) standard.Summary {
	var out standard.Summary
	o, err := s.order(t)
	result, also := resultOf[R](done)
	if err == nil && also == nil {
		out = s.Summary(o, result)
	} else {
		out.Text = "The work was not done."
	}
	for _, c := range v.Checks {
		if !c.Passed {
			out.Warnings = append(out.Warnings, c.Name+": "+c.Details)
		}
	}
	out.KeyActions, out.Receipts, out.Warnings = listed(out.KeyActions), listed(out.Receipts), listed(out.Warnings)
	return out
}

// check compares two values.
func check[T comparable](name string, got, want T) standard.Check {
	c := standard.Check{Name: name, Passed: got == want}
	if !c.Passed {
		c.Details = fmt.Sprintf("is %v instead of %v", got, want)
	}
	return c
}

// stamp returns a time in the form of files.
func stamp(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }

// delegated is the result of a step that another agent did.
type delegated struct {
	Run     string                `json:"run"`
	Summary string                `json:"summary"`
	Steps   []standard.StepResult `json:"steps"`
}

// before reads the result of the specialist that did a step before. repute.ErrNotFound if there was no such step.
func before[R any](results map[string]json.RawMessage, step string) (r R, err error) {
	raw, ok := results[step]
	if !ok {
		return r, repute.Missing("result of a step %q", step)
	}
	var d delegated
	if err := json.Unmarshal(raw, &d); err != nil || len(d.Steps) != 1 {
		return r, repute.Invalid("inputs."+step, "is no result of a specialist", "a step of the coordinator's")
	}
	return r, strictly(d.Steps[0].Result, &r)
}
