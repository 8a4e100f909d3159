package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/danielgtaylor/huma/v2"

	"repute/orchestrator"
	"repute/policy"
	"repute/trust"
)

// Object is a JSON object as it was stored.
type Object json.RawMessage

// Schema says that it is an object.
func (Object) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeObject} }

// MarshalJSON writes it as it is.
func (o Object) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }

// UnmarshalJSON keeps it as it is.
func (o *Object) UnmarshalJSON(raw []byte) error { return (*json.RawMessage)(o).UnmarshalJSON(raw) }

// objectOf is empty for JSON that is no object.
func objectOf(raw json.RawMessage) Object {
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return nil
	}
	return Object(raw)
}

// Plan is how a run's agent does its task.
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

// planOf reads a stored plan; nil where none is stored.
func planOf(raw json.RawMessage) (*Plan, error) {
	p, err := stored[*orchestrator.Plan](raw)
	if p == nil || err != nil {
		return nil, err
	}
	out := Plan{[]PlannedStep{}}
	for _, s := range p.Steps {
		out.Steps = append(out.Steps, PlannedStep{s.ID, s.Description, s.Agent, orEmpty(s.DependsOn), s.Input})
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

// Summary is what happened, in the agent's words.
type Summary orchestrator.Summary

// summaryOf reads a stored summary; nil where none is stored.
func summaryOf(raw json.RawMessage) (*Summary, error) {
	s, err := stored[*orchestrator.Summary](raw)
	if s == nil || err != nil {
		return nil, err
	}
	return &Summary{s.Text, orEmpty(s.KeyActions), orEmpty(s.Receipts), orEmpty(s.Warnings)}, nil
}

// reasonsOf reads stored reasons.
func reasonsOf(raw json.RawMessage) ([]policy.Reason, error) {
	out, err := stored[[]policy.Reason](raw)
	return orEmpty(out), err
}

// Gate is a named bar, and whether the agent passes it.
type Gate struct {
	ID        string    `json:"id"`
	Direction string    `json:"direction" enum:"admits,keepsOut" doc:"keepsOut: an agent that passes it is that bad"`
	Passed    bool      `json:"passed"`
	Lacks     []Lacking `json:"lacks" doc:"what is missing to pass; empty when passed"`
}

// Lacking is one number that is not reached.
type Lacking struct {
	What string  `json:"what"`
	Have float64 `json:"have"`
	Need float64 `json:"need"`
}

// gatesOnWire converts the gates of a score into the form of the API.
func gatesOnWire(list []trust.GateView) []Gate {
	out := []Gate{}
	number := func(f trust.Fixed) float64 { return math.Round(float64(f)/float64(trust.One)*1e6) / 1e6 }
	for _, g := range list {
		w := Gate{ID: g.ID, Direction: string(g.Direction), Passed: g.Passed, Lacks: []Lacking{}}
		for _, l := range g.Lacks {
			w.Lacks = append(w.Lacks, Lacking{l.What, number(l.Have), number(l.Need)})
		}
		out = append(out, w)
	}
	return out
}
