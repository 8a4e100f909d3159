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
		"Lists how an agent's owner, wallet, URI, metadata and operators changed, with the log of each change",
		a.history)
	onAgent[seriesInput](a, "/series", "get-series",
		"Returns an agent's score, ratings or reviewers by hour, day or week, without gaps", a.series)
}

// history serves GET /agents/{id}/history.
func (a *API) history(ctx context.Context, ref repute.AgentRef, q *answers.HistoryQuery) (*output[stats.HistoryList],
	error) {
	return readAgent(ctx, a, ref, q.Filter, a.History)
}

// series serves GET /agents/{id}/series.
func (a *API) series(ctx context.Context, ref repute.AgentRef, q *answers.SeriesQuery) (*output[stats.SeriesAnswer],
	error) {
	return readAgent(ctx, a, ref, q.Filter, a.Series)
}
