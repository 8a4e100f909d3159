package control

import (
	"encoding/json"
	"fmt"

	"repute/orchestrator/control/rest"
	"repute/orchestrator/standard"
	"repute/policy"
)

// Plan lists the steps of a run.
type Plan struct {
	Steps []PlannedStep `json:"steps"`
}

// PlannedStep is a step of a plan.
type PlannedStep struct {
	ID          string          `json:"stepId"`
	Description string          `json:"description"`
	Agent       string          `json:"agentSlug"`
	DependsOn   []string        `json:"dependsOn" doc:"steps that are done before"`
	Input       json.RawMessage `json:"input,omitempty" doc:"what the step's agent is given"`
}

// planOf decodes a stored plan; nil if none is stored.
func planOf(raw json.RawMessage) (*Plan, error) {
	p, err := stored[*standard.Plan](raw)
	if p == nil || err != nil {
		return nil, err
	}
	out := Plan{[]PlannedStep{}}
	for _, s := range p.Steps {
		out.Steps = append(out.Steps, PlannedStep{s.ID, s.Description, s.Agent, rest.OrEmpty(s.DependsOn), s.Input})
	}
	return &out, nil
}

// stored reads JSON that this program stored: an error is a fault of the database, not of the
// caller. Nothing and null are the zero value.
func stored[T any](raw json.RawMessage) (out T, err error) {
	if len(raw) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return out, fmt.Errorf("stored %T: %w", out, err)
	}
	return out, nil
}

// RunSummary is the agent's own summary of a run.
type RunSummary standard.Summary

// summaryOf decodes a stored summary; nil if none is stored.
func summaryOf(raw json.RawMessage) (*RunSummary, error) {
	s, err := stored[*standard.Summary](raw)
	if s == nil || err != nil {
		return nil, err
	}
	return &RunSummary{s.Text, rest.OrEmpty(s.KeyActions), rest.OrEmpty(s.Receipts), rest.OrEmpty(s.Warnings)}, nil
}

// VerificationOf decodes the stored result of the phase verify; nil if none is stored.
func VerificationOf(raw json.RawMessage) (*standard.Verification, error) {
	return stored[*standard.Verification](raw)
}

// reasonsOf reads stored reasons.
func reasonsOf(raw json.RawMessage) ([]policy.Reason, error) {
	out, err := stored[[]policy.Reason](raw)
	return rest.OrEmpty(out), err
}
