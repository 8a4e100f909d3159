package api

import (
	"context"
	"errors"
	"strings"

	"repute"
	"repute/api/answers"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/store/query"
)

// decision serves GET /agents/{id}/decision: whether the agent meets the caller's thresholds, and
// what it lacks.
func (a *API) decision(ctx context.Context, ref repute.AgentRef, q *decisionInput) (*output[wire.DecisionAnswer],
	error) {
	at, err := answers.ParseAt(q.At)
	if err != nil {
		return nil, err
	}
	d, err := q.ReadDemand()
	if err != nil {
		return nil, err
	}
	id, score, asOf, err := a.scoreAt(ctx, ref, at)
	if err != nil {
		return nil, err
	}
	w, err := a.Decide(score, d)
	return ok(wire.DecisionAnswer{Agent: wire.ID(id.String()), Decision: w, AsOf: wire.EncodeAsOf(asOf)}), err
}

// scoreAt returns the score of an agent in a view, the zero value where the agent has none, or where the one of that
// view is not kept any more: what follows from that is for the caller to say. The error is the answer 404 where there
// is no such agent or no such view.
func (a *API) scoreAt(ctx context.Context, ref repute.AgentRef, at repute.At) (id repute.AgentID, score repute.Score,
	asOf repute.AsOf, err error) {
	if id, err = a.Resolve(ctx, ref); err != nil {
		return id, score, asOf, err
	}
	score, asOf, err = query.ScoreOf(ctx, a.DB, id, at)
	if _, isMissing := errors.AsType[*repute.MissingError](err); errors.Is(err, repute.ErrGone) ||
		errors.Is(err, repute.ErrNotFound) && !isMissing {
		return id, score, asOf, nil
	}
	return id, score, asOf, answers.UnknownAgent(err)
}

// decisionTool is the input of the tool repute_decide.
type decisionTool struct {
	AgentTool
	DemandTool
	MinScore    *float64 `json:"minScore,omitempty" minimum:"-100" maximum:"100" doc:"that the lower bound of the score must reach"`
	Tier        *int     `json:"tier,omitempty" minimum:"0" maximum:"4" doc:"at least"`
	Verified    bool     `json:"verified,omitempty" doc:"the score must be final and from verified blocks alone; set at to finalized"`
	Gates       []string `json:"gates,omitempty" maxItems:"8" doc:"that admit, e.g. service: all must be passed"`
	ValueAtRisk string   `json:"valueAtRisk,omitempty" pattern:"^[0-9]{1,78}$" doc:"in wei: adds what the steps by value demand"`
}

// decisionTool is the tool repute_decide, which answers as GET /agents/{id}/decision does.
func (a *API) decisionTool(ctx context.Context, in decisionTool) (w wire.DecisionAnswer, err error) {
	ref, err := in.ref()
	if err != nil {
		return w, err
	}
	var verified httpapi.Flag
	if in.Verified {
		verified = "1"
	}
	return bodyOf(a.decision(ctx, ref, &decisionInput{DecisionQuery: answers.DecisionQuery{Verified: verified,
		AtQuery: answers.AtQuery{At: string(in.At)}, MinScore: httpapi.Real(answers.TextOf(in.MinScore)),
		Tier: httpapi.Number(answers.TextOf(in.Tier)), Gates: strings.Join(in.Gates, ","),
		ValueAtRisk: in.ValueAtRisk}}))
}
