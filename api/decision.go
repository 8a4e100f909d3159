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
func (a *API) decision(ctx context.Context, ref repute.AgentRef,
	q *answers.DecisionQuery) (*output[wire.DecisionAnswer], error) {
	at, err := answers.ParseAt(q.At)
	if err != nil {
		return nil, err
	}
	d, err := q.ReadDemand()
	if err != nil {
		return nil, err
	}
	id, err := a.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	score, asOf, err := query.ScoreOf(ctx, a.DB, id, at)
	var missing *repute.MissingError
	if none := errors.Is(err, repute.ErrNotFound) && !errors.As(err, &missing); err != nil && !none &&
		!errors.Is(err, repute.ErrGone) {
		return nil, answers.UnknownAgent(err)
	} // otherwise the decision says that there is no score
	w, err := a.Decide(score, d)
	return ok(wire.DecisionAnswer{Agent: wire.ID(id.String()), Decision: w, AsOf: wire.EncodeAsOf(asOf)}), err
}

type (
	// decisionTool is the input of the tool repute_decide.
	decisionTool struct {
		AgentTool
		DemandTool
		MinScore    *float64 `json:"minScore,omitempty" minimum:"-100" maximum:"100" doc:"that the lower bound of the score must reach"`
		Tier        *int     `json:"tier,omitempty" minimum:"0" maximum:"4" doc:"at least"`
		Verified    bool     `json:"verified,omitempty" doc:"the score must be final and from verified blocks alone; set at to finalized"`
		Gates       []string `json:"gates,omitempty" maxItems:"8" doc:"that admit, e.g. service: all must be passed"`
		ValueAtRisk string   `json:"valueAtRisk,omitempty" pattern:"^[0-9]{1,78}$" doc:"in wei: adds what the steps by value demand"`
	}
)

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
	return bodyOf(a.decision(ctx, ref,
		&answers.DecisionQuery{Verified: verified, AtQuery: answers.AtQuery{At: string(in.At)},
			MinScore: httpapi.Real(answers.TextOf(in.MinScore)),
			Tier:     httpapi.Number(answers.TextOf(in.Tier)), Gates: strings.Join(in.Gates, ","),
			ValueAtRisk: in.ValueAtRisk}))
}
