package api

import (
	"context"

	"repute"
	"repute/api/answers"
	"repute/api/wire/stats"
)

// Inputs of the operations on the history of an agent.
type (
	historyInput struct {
		answers.AgentPath
		answers.HistoryQuery
	}
	seriesInput struct {
		answers.AgentPath
		answers.SeriesQuery
	}
)

// mountHistory adds the operations on how an agent changed over time.
func (a *API) mountHistory() {
	onAgent[historyInput](a, "/history", "list-history",
		"Lists how an agent's owner, wallet, URI, metadata and operators changed, with the log of each change", a.history)
	onAgent[seriesInput](a, "/series", "get-series",
		"Returns an agent's score, ratings or reviewers by hour, day or week, without gaps", a.series)
}

// history serves GET /agents/{id}/history.
func (a *API) history(ctx context.Context, ref repute.AgentRef, q *answers.HistoryQuery) (*output[stats.HistoryList],
	error) {
	f, err := q.Filter()
	if err != nil {
		return nil, err
	}
	id, err := a.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	list, err := a.History(ctx, id, f)
	if err != nil {
		return nil, answers.UnknownAgent(err)
	}
	return ok(list), nil
}

// series serves GET /agents/{id}/series.
func (a *API) series(ctx context.Context, ref repute.AgentRef, q *answers.SeriesQuery) (*output[stats.SeriesAnswer],
	error) {
	f, err := q.Filter()
	if err != nil {
		return nil, err
	}
	id, err := a.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	series, err := a.Series(ctx, id, f)
	if err != nil {
		return nil, answers.UnknownAgent(err)
	}
	return ok(series), nil
}
