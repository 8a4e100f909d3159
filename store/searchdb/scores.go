package searchdb

import (
	"cmp"
	"fmt"
	"strings"

	"repute"
	"repute/store/query"
)

// ScoreFilter filters agents by their newest scores.
type ScoreFilter struct {
	MinScore *repute.Points // with this score or a better one
	MaxScore *repute.Points // with this score or a worse one
	Tier     *int           // of exactly this tier; 0: rated and to be rejected
	// Status selects agents by it; Unrated: also those without any score. Empty: rated ones where another field is set.
	Status repute.Status
}

// isEmpty reports whether the filter selects all agents.
func (s ScoreFilter) isEmpty() bool { return s == ScoreFilter{} }

// where adds the conditions on agents a. A score is found by primary key, so that in any order each
// agent costs one lookup.
func (s ScoreFilter) where(q *agentQuery) {
	if s.isEmpty() {
		return
	}
	if s.Status == repute.Unrated {
		if s != (ScoreFilter{Status: repute.Unrated}) {
			q.where += " and false"
			return
		}
		q.where += " and not " + hasScore("ts.status <> 'unrated'")
		return
	}
	is := "ts.status = " + q.arg(string(cmp.Or(s.Status, repute.Rated)))
	if s.MinScore != nil {
		is += " and ts.score >= " + q.arg(int64(*s.MinScore))
	}
	if s.MaxScore != nil {
		is += " and ts.score <= " + q.arg(int64(*s.MaxScore))
	}
	if s.Tier != nil {
		is += " and ts.tier = " + q.arg(*s.Tier)
	}
	q.scored = is
	q.where += " and " + hasScore(is)
}

// whereIn returns the conditions for a statement in an order. One that joins the scores needs not look for them again.
func (q *agentQuery) whereIn(o agentOrder) string {
	if o.join == "" || q.scored == "" {
		return q.where
	}
	return strings.Replace(q.where, hasScore(q.scored), q.scored, 1)
}

// scoredAlone reports whether the score is the only filter. Then a statement can begin with the scores: to count them
// without their agents takes half the time.
func (q *agentQuery) scoredAlone() bool {
	return q.match == nil && q.scored != "" && q.where == " and "+hasScore(q.scored)
}

// scores returns a statement that selects columns of the scores ts that match, at most one more than maxCounted of each
// chain. Without columns its rows are empty, to be counted.
func (q *agentQuery) scores(columns string) string {
	return fmt.Sprintf(`select s.* from unnest($1::bigint[]) as k(chain_id) cross join lateral (
		select %s from trust_scores ts join trust_runs tr on (tr.chain_id, tr.run) = (ts.chain_id, ts.run)
		where ts.chain_id = k.chain_id and %s and %s limit %d) s`, columns, query.ValidScore("ts", "tr"), q.scored, maxCounted+1)
}

// hasScore is the SQL of whether agent a has a score for which a condition on it, ts, holds.
func hasScore(condition string) string {
	return "exists (select from trust_scores ts join trust_runs tr on true where " + query.Scored() + " and " +
		condition +
		")"
}
