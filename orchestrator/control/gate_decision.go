package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"repute"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/orchestrator/control/rest"
	"repute/orchestrator/standard"
	"repute/orchestrator/trustgate"
	"repute/policy"
	"repute/store/rundb"
	"repute/store/scoredb"
)

// GateDecision is the decision of the trust gate about an agent, with its evidence.
type GateDecision struct {
	AgentID string        `json:"agentId,omitempty" doc:"eip155:chain:registry:id; absent without onchain identity"`
	Effect  policy.Effect `json:"effect" enum:"allow,deny,require_approval"`
	// Reasons are all reasons against the agent, each with what is missing.
	Reasons    []policy.Reason  `json:"reasons"`
	Status     string           `json:"status" enum:"rated,thin,unrated"`
	Score      float64          `json:"score" doc:"-100 to 100, 0 when unrated"`
	Low        float64          `json:"low"`
	High       float64          `json:"high"`
	Confidence float64          `json:"confidence" doc:"0 to 1"`
	Tier       int64            `json:"tier" doc:"0 to 4"`
	Trust01    float64          `json:"trustScore01" doc:"OpenFi's score of identity checks, 0 to 1"`
	OpenFi     rest.Object      `json:"openfi,omitempty" doc:"OpenFi's trust snapshot"`
	Gates      []wire.Gate      `json:"gates" doc:"each with what is missing to pass"`
	Threshold  policy.Threshold `json:"threshold" doc:"what was demanded: of the task and by the policy"`
	Value      string           `json:"valueAtRisk" doc:"in wei, decimal"`
	Policy     string           `json:"policy" doc:"sha256 of the policy's bytes"`
	Pin        trustgate.Pin    `json:"pin" doc:"the evidence of the score"`
	// Proof is absent if the program needs no proof.
	Proof *trustgate.Proof `json:"proof,omitempty" doc:"what shows that the program speaks for the identity, with what was indexed of it"`
	// Manifest is empty outside runs.
	Manifest string    `json:"manifestSha256,omitempty" doc:"sha256 of the agent's manifest when its run began"`
	At       time.Time `json:"at"`
}

// gateDecisionOnWire converts a decision of the trust gate into the form of the API.
func gateDecisionOnWire(v trustgate.Decision) *GateDecision {
	w := &GateDecision{AgentID: v.Agent.ID, Effect: v.Decision.Effect, Reasons: rest.OrEmpty(v.Decision.Reasons),
		Status: v.Agent.Status,
		Score:  v.Agent.Score, Low: v.Agent.Low,
		High: v.Agent.High, Confidence: v.Agent.Confidence, Tier: v.Agent.Tier, Trust01: v.Agent.Trust01,
		OpenFi: rest.ObjectOf(v.OpenFi), Gates: wire.EncodeGates(v.Gates),
		Threshold: v.Threshold, Value: v.Task.Value, Policy: v.Policy.Hex(), Pin: v.Pin, Proof: v.Proof,
		Manifest: v.Manifest, At: v.At}
	if v.Demanded != nil {
		w.Threshold = *v.Demanded
	}
	return w
}

// TrustQuestion describes the task for which an agent is judged. Without members only the demands
// that the policy makes of every task apply.
type TrustQuestion struct {
	Threshold   policy.Threshold `json:"threshold,omitzero" doc:"that the agent must reach, beside the policy's"`
	ValueAtRisk string           `json:"valueAtRisk,omitempty" pattern:"^[0-9]{1,78}$" doc:"in wei"`
	Tags        []string         `json:"tags,omitempty" maxItems:"16" doc:"words for the rules of the policy"`
}

// TrustAnswer is the current decision of the trust gate, and whether its score could be replayed.
type TrustAnswer struct {
	Agent    string        `json:"slug"`
	Decision *GateDecision `json:"decision"`
	// Verified is absent if nothing was replayed.
	Verified *bool  `json:"verified,omitempty"`
	Differs  string `json:"differs,omitempty" doc:"what is other than what is stored"`
}

// trustInput asks for the decision about an agent, for a task of a value.
type trustInput struct {
	Slug  string `path:"slug" pattern:"^[a-z0-9]+(-[a-z0-9]+)*$" maxLength:"64"`
	Value string `query:"valueAtRisk" pattern:"^[0-9]{1,78}$" doc:"of the task it is judged for, in wei, decimal"`
}

// module reads an agent by the slug that a caller gave.
func (c *Control) module(ctx context.Context, slug string) (repute.Module, error) {
	if err := rest.Known("agent", slug); err != nil {
		return repute.Module{}, err
	}
	return rundb.Module(ctx, c.db, slug)
}

// getTrust serves GET /v1/agents/{slug}/trust.
func (c *Control) getTrust(ctx context.Context, in *trustInput) (*rest.Answer[TrustAnswer], error) {
	v, err := c.decideGate(ctx, in.Slug, TrustQuestion{ValueAtRisk: in.Value})
	if err != nil {
		return nil, err
	}
	return rest.Say(&TrustAnswer{Agent: in.Slug, Decision: gateDecisionOnWire(v)}), nil
}

// decideGate returns the decision of the trust gate about an agent, for a task with these terms.
func (c *Control) decideGate(ctx context.Context, slug string, q TrustQuestion) (v trustgate.Decision, err error) {
	m, err := c.module(ctx, slug)
	if err != nil {
		return v, err
	}
	// Terms that would be refused in a task are refused here too.
	r := standard.Request{Goal: "judge", Coordinator: slug,
		Terms: standard.Terms{Threshold: q.Threshold, ValueAtRisk: q.ValueAtRisk, Tags: q.Tags}}
	if err := c.check(&r); err != nil {
		return v, err
	}
	task := policy.Task{Coordinator: slug, Value: cmp.Or(q.ValueAtRisk, "0"), Tags: q.Tags,
		Budget: policy.DefaultBudget()}
	return trustgate.Decide(ctx, c.db, c.o.Policy(), c.o.Lenient, m, task, q.Threshold)
}

// recomputeTrust serves POST /v1/agents/{slug}/trust: the score is replayed from the stored evidence and compared.
// The text of the policy is stored first, because the replay reads it as a run's replay would, by its hash.
func (c *Control) recomputeTrust(ctx context.Context, _ string, in *rest.SlugInput,
	q TrustQuestion) (*rest.Answer[TrustAnswer],
	error) {
	v, err := c.decideGate(ctx, in.Slug, q)
	if err != nil {
		return nil, err
	}
	out := TrustAnswer{Agent: in.Slug, Decision: gateDecisionOnWire(v)}
	if c.o.Replay == nil {
		return rest.Say(&out), nil
	}
	if _, err := scoredb.KeepInput(ctx, c.db, c.o.Policy().Text()); err != nil {
		return nil, err
	}
	good, differs, err := c.verify(ctx, v)
	if err != nil {
		return nil, err
	}
	out.Verified, out.Differs = &good, differs
	return rest.Say(&out), nil
}

// verify computes a decision again. A different result, or missing evidence, is an answer and no error. It waits
// while two others are computed.
func (c *Control) verify(ctx context.Context, v trustgate.Decision) (good bool, differs string, err error) {
	select {
	case c.replays <- struct{}{}:
		defer func() { <-c.replays }()
	case <-ctx.Done():
		return false, "", ctx.Err()
	}
	err = trustgate.Verify(ctx, c.db, c.o.Replay, v)
	if errors.Is(err, repute.ErrConflict) || errors.Is(err, repute.ErrNotFound) || errors.Is(err, repute.ErrGone) ||
		errors.Is(err, repute.ErrInvalid) {
		return false, httpapi.Clean(err.Error()), nil
	}
	return err == nil, "", err
}

// gateDecisionOf returns the decision that a phase stored; found is false if it stored none. The phase execute
// stores one where the task moved more than it declared and the gate was asked again: that one counts then.
func gateDecisionOf(p repute.RunPhase) (v trustgate.Decision, found bool, err error) {
	switch p.Phase {
	case repute.PhaseTrust:
		if p.Status == repute.PhaseFailed {
			return v, false, nil
		}
		err = json.Unmarshal(p.Result, &v)
		return v, err == nil, err
	case repute.PhaseExecute:
		var r struct {
			Regate *trustgate.Decision `json:"regate"`
		}
		if err := json.Unmarshal(p.Result, &r); err != nil || r.Regate == nil {
			return v, false, err
		}
		return *r.Regate, true, nil
	}
	return v, false, nil
}
