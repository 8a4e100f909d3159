package store

import (
	"context"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// ScorePin names one final score among those of all runs that an epoch may have had: roots,
// links, contracts that count and logs that are found late make another one.
type ScorePin struct {
	Agent                                         repute.AgentID
	Block                                         uint64
	Params, Tags, Roots, Links, Evidence, Outcome common.Hash // Outcome is the sha256 of Score.Result
}

// PinnedScore is the final score that a pin names. repute.ErrNotFound: there is none.
func (db *DB) PinnedScore(ctx context.Context, pin ScorePin) (out repute.Score, err error) {
	err = db.viewAgent(ctx, "read pinned score", pin.Agent, repute.At{Finality: repute.Latest}, func(ctx context.Context, s subject) error {
		rows, err := s.tx.Query(ctx, `
			select `+scoreColumns+`, true, r.block, r.block_hash, r.block_time
			from trust_finals s join trust_runs r using (chain_id, run)
			where s.chain_id = $1 and s.token_id = $2 and s.evidence = $3 and sha256(s.result) = $4
				and (r.block, r.params, r.tags, r.roots, r.links) = ($5, $6, $7, $8, $9) and r.closed_at is not null
			order by s.run desc limit 1`, s.id.ChainID, tokenNum(s.id.TokenID), pin.Evidence[:], pin.Outcome[:],
			pin.Block, pin.Params[:], pin.Tags[:], pin.Roots[:], pin.Links[:])
		out, err = oneScore(rows, err, s.chain.Chain)
		return err
	})
	return out, err
}
