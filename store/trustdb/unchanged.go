package trustdb

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
)

// Kept finds the scores in effect that a pass need not store again, because only the age of ratings changed them, by
// less than Tolerance. These are most scores.
type Kept struct {
	db   *store.DB
	pass Pass
	// block is the block of the pass's run.
	block uint64
	// runs has the blocks of the runs with the same inputs as the pass's run, by number.
	runs map[uint64]uint64
}

// ReadKept returns the Kept of a pass. block is the block of the pass's run.
func ReadKept(ctx context.Context, db *store.DB, p Pass, block uint64) (*Kept, error) {
	k := &Kept{db: db, pass: p, block: block, runs: map[uint64]uint64{}}
	rows, err := db.Pool().Query(ctx, `
		select was.run, was.block from trust_runs was join trust_runs is_ using (chain_id)
		where chain_id = $1 and is_.run = $2 and `+sameInputs, p.ChainID, int64(p.Run))
	if err != nil {
		return nil, store.Failed("runs with equal inputs", err)
	}
	var run, at uint64
	_, err = pgx.ForEachRow(rows, []any{&run, &at}, func() error { k.runs[run] = at; return nil })
	return k, store.Failed("runs with equal inputs", err)
}

// inEffect has the columns of a stored score that decide whether it is replaced.
type inEffect struct {
	run, block                         uint64
	hash, evidence, facts              []byte
	score, low, high, mean, confidence int32
}

// near reports whether the numbers of a stored score and of one that may replace it differ by less
// than Tolerance.
func (e *inEffect) near(s *AgentScore) bool {
	far := func(a, b int32) bool { return max(a-b, b-a) >= int32(Tolerance) }
	return !far(e.score, int32(s.Score.Score)) && !far(e.low, int32(s.Low)) && !far(e.high, int32(s.High))
}

// Mark sets SameCurrent and SameLast of scored agents of a batch, which PassAgents returned one after the other. It may
// leave them false for scores that are the same: SavePass compares again. A score in effect that another process
// replaced since PassAgents is that of an agent that SavePass leaves out.
func (k *Kept) Mark(ctx context.Context, agents []ScoredAgent) error {
	if len(agents) == 0 {
		return nil
	}
	for i := range agents {
		a := &agents[i]
		a.SameCurrent = a.Current != nil && !a.Exact && a.current != nil && k.current(a.current, a)
	}
	if !k.pass.Final {
		return nil
	}
	return k.db.InTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly},
		fmt.Sprintf("final scores in effect before run %d", k.pass.Run), func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, planByKey); err != nil {
				return err
			}
			return k.markFinals(ctx, tx, agents)
		})
}

// markFinals sets SameLast of scored agents, which are in order.
func (k *Kept) markFinals(ctx context.Context, tx pgx.Tx, agents []ScoredAgent) error {
	rows, err := tx.Query(ctx, `
		select distinct on (token_id) token_id, run, facts, score, low, high from trust_finals
		where chain_id = $1 and token_id between $2 and $3 and run < $4 order by token_id, run desc`,
		k.pass.ChainID, store.TokenNum(agents[0].TokenID), store.TokenNum(agents[len(agents)-1].TokenID), int64(k.pass.Run))
	if err != nil {
		return err
	}
	var e inEffect
	var token store.TokenNum
	next := 0
	_, err = pgx.ForEachRow(rows, []any{&token, &e.run, &e.facts, &e.score, &e.low, &e.high}, func() error {
		id := repute.TokenID(token)
		for next < len(agents) && agents[next].TokenID.Lt(&id) {
			next++
		}
		if next == len(agents) || agents[next].TokenID != id {
			return nil
		}
		a := &agents[next]
		_, comparable := k.runs[e.run]
		a.SameLast = a.Last != nil && comparable && common.BytesToHash(e.facts) == a.Facts && e.near(a.Last)
		return nil
	})
	return err
}

// current reports whether the provisional score of an agent need not be stored again. It has the conditions of
// sameScore without its rare cases.
func (k *Kept) current(e *inEffect, a *ScoredAgent) bool {
	s := a.Current
	was, comparable := k.runs[e.run]
	mean, confidence := e.mean-int32(s.Mean), e.confidence-int32(s.Confidence)
	return comparable && e.block == was && common.BytesToHash(e.evidence) == s.Evidence &&
		common.BytesToHash(e.facts) == a.Shown && e.near(s) && max(mean, -mean) < int32(Tolerance) &&
		max(confidence, -confidence) < 10*int32(Tolerance) &&
		(e.block == s.Block.Number && common.BytesToHash(e.hash) == s.Block.Hash ||
			e.block <= k.block && s.Block.Number == k.block)
}
