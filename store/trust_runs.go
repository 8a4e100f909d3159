package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
)

// TrustRun is one walk over the graph of who vouches for whom on a chain.
type TrustRun struct {
	ChainID uint64
	Run     uint64 // 1, 2, … per chain
	Epoch   uint64
	// Boundary is the epoch's last block, Block the newest one with an event up to there:
	// the state is the same. Block is zero but for its number when there is none.
	Boundary uint64
	Block    repute.Block
	Scorer   string // version of the engine
	// Hashes of the inputs, which TrustInput gives, and of graph and weights.
	Params, Tags, Roots, Links, Weights common.Hash
	Identities, Edges                   int
	Started, Closed                     time.Time // Closed is zero while final scores are missing
}

const selectRun = `select chain_id, run, epoch, boundary, block, block_hash, block_time, scorer, params, tags, roots, links,
	weights, identities, edges, started_at, closed_at from trust_runs `

func scanRun(row pgx.Row) (r TrustRun, err error) {
	var hash, params, tags, roots, links, weights []byte
	var at, closed *time.Time
	err = row.Scan(&r.ChainID, &r.Run, &r.Epoch, &r.Boundary, &r.Block.Number, &hash, &at, &r.Scorer, &params, &tags, &roots, &links,
		&weights, &r.Identities, &r.Edges, &r.Started, &closed)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, repute.ErrNotFound
	}
	r.Block.Hash, r.Block.Time = common.BytesToHash(hash), timeOf(at)
	r.Params, r.Tags, r.Roots, r.Links = common.BytesToHash(params), common.BytesToHash(tags), common.BytesToHash(roots), common.BytesToHash(links)
	r.Weights, r.Started, r.Closed = common.BytesToHash(weights), r.Started.UTC(), timeOf(closed)
	return r, err
}

// TrustRun is a chain's run of that number; 0 means the newest one, closed or not.
// repute.ErrNotFound when there is none.
func (db *DB) TrustRun(ctx context.Context, chainID, run uint64) (TrustRun, error) {
	r, err := scanRun(db.readers.QueryRow(ctx, selectRun+`
		where chain_id = $1 and $2::bigint in (0, run) order by run desc limit 1`, chainID, run))
	return r, failed(fmt.Sprintf("trust run of chain %d", chainID), err)
}
