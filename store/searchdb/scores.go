package searchdb

import (
	"repute"
	"repute/store/query"
)

// ScoreFilter filters agents by their newest scores.
type ScoreFilter struct {
	MinScore *repute.Points // rated, with this score or a better one
	MaxScore *repute.Points // rated, with this score or a worse one
	Tier     *int           // rated, of exactly this tier; 0: rated and to be rejected
	Rated    *bool          // false: also those without any score
}

// isEmpty reports whether the filter selects all agents.
func (s ScoreFilter) isEmpty() bool { return s == ScoreFilter{} }

// where adds the conditions on agents a. A score is found by primary key, so that in any order each
// agent costs one lookup.
func (s ScoreFilter) where(q *agentQuery) {
	if s.isEmpty() {
		return
	}
	rated := "ts.rated"
	if s.MinScore != nil {
		rated += " and ts.score >= " + q.arg(int64(*s.MinScore))
	}
	if s.MaxScore != nil {
		rated += " and ts.score <= " + q.arg(int64(*s.MaxScore))
	}
	if s.Tier != nil {
		rated += " and ts.tier = " + q.arg(*s.Tier)
	}
	exists := "exists (select from trust_scores ts join trust_runs tr on true where " + query.Scored() + " and " +
		rated + ")"
	switch {
	case s.Rated != nil && !*s.Rated && (s.MinScore != nil || s.MaxScore != nil || s.Tier != nil):
		q.where += " and false and " + exists
	case s.Rated != nil && !*s.Rated:
		q.where += " and not " + exists
	default:
		q.where += " and " + exists
	}
}
