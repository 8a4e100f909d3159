package scoredb

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// Kept finds the scores in effect that a pass need not store again, because only the age of ratings changed them, by
// less than Tolerance. These are most scores.
type Kept struct {
	db   *store.DB
	pass Pass
	// block is the block of the pass's run.
	block uint64
	// runs has the blocks of the runs with the same inputs as the pass's run, by number.
	runs  map[uint64]uint64
	names *names
}

// ReadKept returns the Kept of a pass that Effects began. block is the block of the pass's run.
func ReadKept(ctx context.Context, f *Effects, p Pass, block uint64) (*Kept, error) {
	db := f.db
	k := &Kept{db: db, pass: p, block: block, runs: map[uint64]uint64{}, names: f.names}
	rows, _ := db.Pool().Query(ctx, `
		select was.run, was.block from trust_runs was join trust_runs is_ using (chain_id)
		where chain_id = $1 and is_.run = $2 and `+sameInputs, p.ChainID, int64(p.Run))
	var run, at uint64
	_, err := pgx.ForEachRow(rows, []any{&run, &at}, func() error { k.runs[run] = at; return nil })
	return k, store.Failed("runs with equal inputs", err)
}

// Mark sets SameCurrent and SameLast of scored agents of a batch, which Effects.Next returned one after the other. It
// may leave them false for scores that are the same: SavePass compares again. A score in effect that another process
// replaced since Effects.Next is that of an agent that SavePass leaves out.
func (k *Kept) Mark(ctx context.Context, agents []ScoredAgent) error {
	if len(agents) == 0 {
		return nil
	}
	for i := range agents {
		a := &agents[i]
		if a.Stays {
			continue
		}
		a.SameCurrent = a.Current != nil && !a.Exact && a.current != nil && k.current(a.current, a)
	}
	if !k.pass.Final {
		return nil
	}
	var unknown []*ScoredAgent
	for i := range agents {
		if a := &agents[i]; a.final == nil {
			unknown = append(unknown, a)
		}
	}
	if len(unknown) > 0 {
		err := k.db.InTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly},
			fmt.Sprintf("final scores in effect before run %d", k.pass.Run), func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, store.PlanByKey); err != nil {
					return err
				}
				return k.readFinals(ctx, tx, unknown, len(unknown) == len(agents))
			})
		if err != nil {
			return err
		}
	}
	for i := range agents {
		if a := &agents[i]; !a.Stays {
			a.SameLast = k.last(a)
		}
	}
	return nil
}

// Stays reports whether Mark will find that neither score of an agent need be stored again. It may report false for
// scores that stay.
func (k *Kept) Stays(a *ScoredAgent) bool {
	return a.inMemory && a.Current != nil && a.Last != nil && !a.Exact && k.current(a.current, a) && k.last(a)
}

// last reports whether the final score of an agent, of which the one in effect is known, need not be stored again.
func (k *Kept) last(a *ScoredAgent) bool {
	e := a.final
	_, comparable := k.runs[e.run]
	return a.Last != nil && e.run > 0 && comparable && k.names.is(e.facts, a.Facts) &&
		isNear(e.score, a.Last.Score.Score) && isNear(e.low, a.Last.Low) && isNear(e.high, a.Last.High)
}

// readFinals sets the final scores in effect of agents, which are in order. With all they are read as one range.
func (k *Kept) readFinals(ctx context.Context, tx pgx.Tx, agents []*ScoredAgent, all bool) error {
	finals := make([]finalInEffect, len(agents))
	tokens := make([]repute.TokenID, len(agents))
	for i, a := range agents {
		a.final, tokens[i] = &finals[i], a.TokenID
	}
	which, args := `token_id = any($3::numeric[])`, []any{k.pass.ChainID, int64(k.pass.Run), column.TokenArray(tokens)}
	if all {
		which, args = `token_id between $3 and $4`, append(args[:2], column.TokenNum(tokens[0]),
			column.TokenNum(tokens[len(tokens)-1]))
	}
	rows, _ := tx.Query(ctx, `
		select distinct on (token_id) token_id, run, facts, score, low, high from trust_finals
		where chain_id = $1 and run < $2 and `+which+` order by token_id, run desc`, args...)
	var e finalInEffect
	var token column.TokenNum
	var facts []byte
	next := 0
	_, err := pgx.ForEachRow(rows, []any{&token, &e.run, &facts, &e.score, &e.low, &e.high}, func() error {
		id := repute.TokenID(token)
		for next < len(agents) && agents[next].TokenID.Lt(&id) {
			next++
		}
		if next < len(agents) && agents[next].TokenID == id {
			e.facts = k.names.number(common.BytesToHash(facts))
			finals[next] = e
		}
		return nil
	})
	return err
}

// isNear reports whether a stored number differs by less than Tolerance.
func isNear(stored int32, now repute.Points) bool {
	far := stored - int32(now)
	return max(far, -far) < int32(Tolerance)
}

// current reports whether the provisional score of an agent need not be stored again. It has the conditions of
// sameScore without its rare cases.
func (k *Kept) current(e *inEffect, a *ScoredAgent) bool {
	s := a.Current
	was, comparable := k.runs[e.run]
	confidence := e.confidence - int32(s.Confidence)
	return comparable && e.block == was && k.names.is(e.evidence, s.Evidence) && k.names.is(e.facts, a.Shown) &&
		isNear(e.score, s.Score.Score) && isNear(e.low, s.Low) && isNear(e.high, s.High) && isNear(e.mean, s.Mean) &&
		max(confidence, -confidence) < 10*int32(Tolerance) &&
		(e.block == s.Block.Number && k.names.is(e.hash, s.Block.Hash) ||
			e.block <= k.block && s.Block.Number == k.block)
}
