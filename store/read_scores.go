package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"repute"
)

// ScoreFilter filters agents by their newest scores.
type ScoreFilter struct {
	MinScore *repute.Points // rated, with this score or a better one
	Tier     *int           // rated, of exactly this tier; 0: rated and to be rejected
	Rated    *bool          // false: also those without any score
}

func (s ScoreFilter) isEmpty() bool { return s == ScoreFilter{} }

// validScore holds for rows s of trust_scores whose run is r: their newest block is
// still part of the chain.
const validScore = `(s.block = r.block or exists (
	select from blocks b where (b.chain_id, b.number, b.hash) = (s.chain_id, s.block, s.block_hash)))`

// where filters relation a, agents; parameters are numbered from n on. A score is a
// row by primary key, so that whatever a list is ordered by costs one probe an agent.
func (s ScoreFilter) where(n int) (sql string, args []any) {
	if s.isEmpty() {
		return "", nil
	}
	rated := "s.rated"
	if s.MinScore != nil {
		rated += fmt.Sprintf(" and s.score >= $%d", n)
		args, n = append(args, int64(*s.MinScore)), n+1
	}
	if s.Tier != nil {
		rated += fmt.Sprintf(" and s.tier = $%d", n)
		args = append(args, *s.Tier)
	}
	exists := `exists (select from trust_scores s join trust_runs r using (chain_id, run)
		where (s.chain_id, s.token_id) = (a.chain_id, a.token_id) and ` + validScore + ` and ` + rated + `)`
	switch {
	case s.Rated != nil && !*s.Rated && (s.MinScore != nil || s.Tier != nil):
		return " and false", nil
	case s.Rated != nil && !*s.Rated:
		return " and not " + exists, args
	}
	return " and " + exists, args
}

// readScores gives agents their newest scores, or what unjudged gives, without the results.
func readScores(ctx context.Context, tx pgx.Tx, agents map[agentKey]*repute.Agent, chains []uint64, tokens []tokenNum) error {
	if err := addUnjudged(ctx, tx, agents, chains); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `
		select s.chain_id, s.token_id, s.rated, s.score, s.low, s.high, s.confidence, s.tier
		from unnest($1::bigint[], $2::numeric[]) as k(chain_id, token_id)
		join trust_scores s on (s.chain_id, s.token_id) = (k.chain_id, k.token_id)
		join trust_runs r on (r.chain_id, r.run) = (s.chain_id, s.run)
		where `+validScore, chains, tokens)
	if err != nil {
		return err
	}
	var k agentKey
	var s repute.Score
	_, err = pgx.ForEachRow(rows, []any{&k.chain, (*tokenNum)(&k.token), &s.Rated, &s.Score, &s.Low, &s.High, &s.Confidence, &s.Tier}, func() error {
		if a := agents[k]; a != nil {
			a.Score = s
		}
		return nil
	})
	return err
}

// score is the subject's stored score, or what unjudged gives when there is none. One that
// may have been pruned is unknown: whatever else is asked of that block is still answered.
func (s subject) score(ctx context.Context) (out repute.Score, err error) {
	err = repute.ErrNotFound
	if s.block == everything {
		out, err = s.currentScore(ctx)
	}
	if errors.Is(err, repute.ErrNotFound) {
		out, err = s.finalScore(ctx)
	}
	switch {
	case errors.Is(err, repute.ErrNotFound):
		return s.unjudged(ctx)
	case errors.Is(err, repute.ErrGone):
		out = unknown()
		out.Agent, out.Pruned = s.id, true
		return out, nil
	}
	return out, err
}
