package trustdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
)

// Unjudged is what an agent has that nobody judged, by the parameters of a run: how sure
// one can be of somebody unknown. Result is canonical JSON, empty for none.
type Unjudged struct {
	Low, High repute.Points
	Result    string
}

// Unknown is the score where no engine has run: it could be anything, so that a rule that
// asks for a lower bound refuses, and one for an upper bound does not condemn.
func Unknown() repute.Score { return repute.Score{Low: -100_000, High: 100_000} }

// ReadUnjudged is the final score of an agent without one: unrated, of no run, but with what the
// last run that was closed by the subject's block says of all such agents.
func ReadUnjudged(ctx context.Context, s chaindb.Subject) (repute.Score, error) {
	out := Unknown()
	var params, tags, roots, links, hash []byte
	var at *time.Time
	err := s.Tx.QueryRow(ctx, `
		select epoch, scorer, params, tags, roots, links, unjudged_low, unjudged_high, unjudged, block, block_hash, block_time, true
		from trust_runs where chain_id = $1 and unjudged is not null and closed_at is not null and boundary <= $2
		order by run desc limit 1`, s.ID.ChainID, s.Block).Scan(
		&out.Epoch, &out.Scorer, &params, &tags, &roots, &links, &out.Low, &out.High, &out.Result, &out.Block.Number, &hash, &at, &out.Final)
	out.Agent = s.ID
	if errors.Is(err, pgx.ErrNoRows) {
		return out, nil
	}
	out.Params, out.Tags, out.Roots, out.Links = common.BytesToHash(params), common.BytesToHash(tags), common.BytesToHash(roots), common.BytesToHash(links)
	out.Block.Hash, out.Block.Time = common.BytesToHash(hash), store.TimeOf(at)
	if err != nil {
		err = fmt.Errorf("score of agents that nobody judged: %w", err)
	}
	return out, err
}
