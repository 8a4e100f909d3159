package api

import (
	"context"

	"repute"
	"repute/api/answers"
	"repute/api/wire"
)

// explain serves GET /agents/{id}/reputation/explain.
func (a *API) explain(ctx context.Context, ref repute.AgentRef, q *answers.ExplainQuery) (*output[wire.ExplainAnswer],
	error) {
	p, err := q.Plan()
	if err != nil {
		return nil, err
	}
	id, err := a.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	answer, err := a.Explanation(ctx, id, p)
	if err != nil {
		return nil, answers.UnknownAgent(err)
	}
	return ok(answer), nil
}
