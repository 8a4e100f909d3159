package scoredb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store/chaindb"
	"repute/store/column"
)

// Unjudged is the score of an agent without ratings, by the parameters of a run. Result is
// canonical JSON, empty for none.
type Unjudged struct {
	// Low and High are the bounds of the score.
	Low, High repute.Points
	// Result is canonical JSON, empty for none.
	Result string
}

// Unknown returns the score where no engine has run. Its bounds span everything: a rule that asks
// for a lower bound refuses the agent, and one that asks for an upper bound does not condemn it.
func Unknown() repute.Score {
	return repute.Score{Status: repute.Unrated, Low: -100_000, High: 100_000}
}

// ReadUnjudged returns the final score of an agent without one: unrated, of no run, with the bounds
// that the last run closed by the subject's block has for all such agents.
func ReadUnjudged(ctx context.Context, s chaindb.Subject) (repute.Score, error) {
	out := Unknown()
	var boundary uint64
	var at *time.Time
	err := s.Tx.QueryRow(ctx, `
		select epoch, scorer, params, tags, roots, links, sources, credentials, file_scales, verified_to, boundary, readings,
			unjudged_low, unjudged_high, unjudged, block, block_hash, block_time, true
		from trust_runs where chain_id = $1 and unjudged is not null and closed_at is not null and boundary <= $2
		order by run desc limit 1`, s.ID.ChainID, s.Block).Scan(
		&out.Epoch, &out.Scorer, (*hashColumn)(&out.Params), (*hashColumn)(&out.Tags), (*hashColumn)(&out.Roots),
		(*hashColumn)(&out.Links), (*hashColumn)(&out.Sources), (*hashColumn)(&out.Credentials),
		(*hashColumn)(&out.FileScales), &out.VerifiedTo, &boundary, &out.Readings, &out.Low, &out.High, &out.Result,
		&out.Block.Number, (*hashColumn)(&out.Block.Hash), &at, &out.Final)
	out.Agent = s.ID
	if errors.Is(err, pgx.ErrNoRows) {
		return out, nil
	}
	out.Verified = out.VerifiedTo > 0 && boundary <= out.VerifiedTo
	out.Block.Time = column.TimeOf(at)
	if err != nil {
		err = fmt.Errorf("score of agents that nobody judged: %w", err)
	}
	return out, err
}
