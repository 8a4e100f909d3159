package trustdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"repute"
	"repute/store"
)

// ScoredAgent is the result of scoring a stale agent.
type ScoredAgent struct {
	StaleAgent
	// Current is the score at the newest block; nil when the agent does not exist or has no
	// ratings.
	Current *AgentScore
	// Last is the final score, where one was due and the agent existed then. Facts is a digest of
	// everything but small changes by age in which two final scores may differ: of two with the
	// same digest that differ by less than Tolerance only the first is stored.
	Last  *AgentScore
	Facts common.Hash
	// Shown is such a digest of Current. Where a run changes only ages, the row of an earlier run
	// stays, which names that run and is within Tolerance of the new score. With Exact the new row
	// is always written.
	Shown common.Hash
	Exact bool
}

// AgentScore is a score with the penalties that it brings for related agents.
type AgentScore struct {
	repute.Score
	// Guarded says that a penalty of a related agent limits the score.
	Guarded bool
	// Plain says that the agent has no ratings and no penalty limits it. Such a score is stored
	// only when it replaces a limited one.
	Plain bool
	// Penalties are for the identities that owned the agent.
	Penalties []repute.Penalty
}

// Tolerance is how far a score or its bounds must move for a final score to be stored again: a
// tenth of a point. Stored scores are exact, and each names its run.
const Tolerance repute.Points = 100

// SaveScores stores the results of scoring agents of a chain as of a run. Agents that are no
// longer stale were scored by another process and are skipped; agents that were marked again
// stay stale. MarkRelated marks the related agents of changed penalties. repute.ErrFenced: a
// newer run has begun, so the weights are outdated. repute.ErrGone: an evidence manifest is
// not stored.
func SaveScores(ctx context.Context, db *store.DB, chainID, run uint64, agents []ScoredAgent, who Identities) error {
	save := func(tx pgx.Tx) error {
		waiting, err := lockStale(ctx, tx, chainID, agents)
		if err != nil {
			return err
		}
		if err := holdManifests(ctx, tx, chainID, agents); err != nil {
			return err
		}
		penalties, err := hasPenalties(ctx, tx, chainID, agents) // another worker may have found one before
		if err != nil {
			return err
		}
		// A run that began before the agents were locked has marked them: only now can it be seen.
		var newest uint64
		err = tx.QueryRow(ctx, `select coalesce(max(run), 0) from trust_runs where chain_id = $1`, chainID).Scan(&newest)
		if err != nil {
			return err
		}
		if newest > run {
			return fmt.Errorf("scores of run %d: %w: run %d has begun", run, repute.ErrFenced, newest)
		}
		var b pgx.Batch
		var mine []*ScoredAgent
		for i := range agents {
			if a := &agents[i]; waiting[a.TokenID] {
				queueScore(&b, chainID, run, a)
				mine = append(mine, a)
			}
		}
		if err := tx.SendBatch(ctx, &b).Close(); err != nil || !penalties {
			return err
		}
		return savePenalties(ctx, tx, chainID, run, mine, who)
	}
	for tries := 5; ; tries-- {
		err := db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("save scores of chain %d", chainID), save)
		var pg *pgconn.PgError
		if tries > 0 && errors.As(err, &pg) && pg.Code == "40P01" { // a deadlock with a transaction that marks agents
			continue
		}
		return err
	}
}

// lockStale locks the agents that are still stale and returns them.
func lockStale(ctx context.Context, tx pgx.Tx, chainID uint64, agents []ScoredAgent) (map[repute.TokenID]bool, error) {
	ids := make([]repute.TokenID, len(agents))
	for i := range agents {
		ids[i] = agents[i].TokenID
	}
	rows, err := tx.Query(ctx, `
		select token_id from trust_stale where chain_id = $1 and token_id = any($2::numeric[]) order by token_id for
			update`, chainID, store.TokenArray(ids))
	if err != nil {
		return nil, err
	}
	out := map[repute.TokenID]bool{}
	var token store.TokenNum
	_, err = pgx.ForEachRow(rows, []any{&token}, func() error {
		out[repute.TokenID(token)] = true
		return nil
	})
	return out, err
}

// limitedBefore is the SQL of whether an agent's newest final score is limited by a related
// agent. An agent without ratings is scored until the limit ends.
const limitedBefore = `coalesce((select guarded from trust_finals where chain_id = $1 and token_id = $2 order by run desc limit 1), false)`

// queueScore writes a score. It MUST be idempotent.
func queueScore(b *pgx.Batch, chainID, run uint64, a *ScoredAgent) {
	token, s := store.TokenNum(a.TokenID), a.Current
	b.Queue(`delete from trust_stale where chain_id = $1 and token_id = $2 and mark = $3`, chainID, token, a.Mark)
	if a.Final {
		queueFinal(b, chainID, run, a)
	}
	switch {
	case s == nil:
		b.Queue(`delete from trust_scores where chain_id = $1 and token_id = $2`, chainID, token)
		return
	case s.Plain:
		b.Queue(`delete from trust_scores where chain_id = $1 and token_id = $2 and not `+limitedBefore, chainID, token)
	}
	b.Queue(`
		insert into trust_scores as s (chain_id, token_id, run, block, block_hash, block_time, evidence,
			status, score, low, high, mean, confidence, tier, result, facts)
		select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $17 where not $16 or `+limitedBefore+`
		on conflict (chain_id, token_id) do update set run = excluded.run, block = excluded.block, block_hash =
			excluded.block_hash,
			block_time = excluded.block_time, evidence = excluded.evidence, status = excluded.status, score = excluded.score,
			low = excluded.low, high = excluded.high, mean = excluded.mean, confidence = excluded.confidence, tier = excluded.tier,
			result = excluded.result, facts = excluded.facts
		where not (`+sameScore+`)`,
		chainID, token, int64(run), int64(s.Block.Number), store.HashBytes(s.Block.Hash), store.MaybeTime(s.Block.Time),
		s.Evidence[:],
		s.Status, int32(s.Score.Score), int32(s.Low), int32(s.High), int32(s.Mean), s.Confidence, s.Tier, s.Result, s.Plain,
		a.Shown[:], toleranceOf(a))
}

// sameScore is the SQL of whether row s of trust_scores stays where excluded would be stored. It
// stays when it is the same row, or when nothing happened to the agent since and age alone changed
// it by less than the tolerance $18, with the same inputs of both runs. A row whose block was
// replaced, which nobody sees, is always written.
const sameScore = `
	(s.evidence, s.facts) = (excluded.evidence, excluded.facts)
	and ((s.run, s.block, s.block_hash, s.result) = (excluded.run, excluded.block, excluded.block_hash, excluded.result)
		or abs(s.score - excluded.score) < $18 and abs(s.low - excluded.low) < $18 and abs(s.high - excluded.high) < $18
		and abs(s.mean - excluded.mean) < $18 and abs(s.confidence - excluded.confidence) < $18 * 10
		and exists (select from trust_runs was join trust_runs is_ using (chain_id)
			where (was.chain_id, was.run, is_.run) = (s.chain_id, s.run, excluded.run)
			and ` + sameInputs + ` and is_.repaired = 0
			and ((s.block, s.block_hash) = (excluded.block, excluded.block_hash) or s.block <= is_.block and excluded.block = is_.block)
			and (s.block = was.block or exists (select from blocks b where (b.chain_id, b.number, b.hash) = (s.chain_id,
				s.block, s.block_hash)))))`

// sameInputs is the SQL of whether runs was and is_ have the same inputs but for the newer state, and are verified
// alike: what was computed from unproven blocks is written again once they are proven.
const sameInputs = `
	(was.scorer, was.params, was.tags, was.roots, was.links, was.validations, was.sources,
		was.verified_to >= was.boundary)
	= (is_.scorer, is_.params, is_.tags, is_.roots, is_.links, is_.validations, is_.sources,
		is_.verified_to >= is_.boundary)`

// toleranceOf returns how far the numbers of a stored row may differ from those that are not
// written.
func toleranceOf(a *ScoredAgent) int32 {
	if a.Exact {
		return 0
	}
	return int32(Tolerance)
}

// queueFinal stores a final score if it differs from the one in effect.
func queueFinal(b *pgx.Batch, chainID, run uint64, a *ScoredAgent) {
	token, s := store.TokenNum(a.TokenID), a.Last
	b.Queue(`delete from trust_finals where chain_id = $1 and token_id = $2 and run = $3`, chainID, token, run)
	if s == nil {
		return
	}
	b.Queue(`
		insert into trust_finals (chain_id, token_id, run, evidence, status, score, low, high, mean, confidence, tier,
			facts, result, guarded)
		select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $15
		where (not $16 or exists (select from trust_finals where chain_id = $1 and token_id = $2 and run < $3))
		and not exists (select from (
				select * from trust_finals where chain_id = $1 and token_id = $2 and run < $3 order by run desc limit 1) p
			join trust_runs was on (was.chain_id, was.run) = ($1, p.run)
			join trust_runs is_ on (is_.chain_id, is_.run) = ($1, $3)
			where p.facts = $12 and abs(p.score - $6) < $14 and abs(p.low - $7) < $14 and abs(p.high - $8) < $14
			and `+sameInputs+` and is_.repaired = 0)`,
		chainID, token, run, s.Evidence[:], s.Status, int32(s.Score.Score), int32(s.Low), int32(s.High), int32(s.Mean),
		s.Confidence, s.Tier, a.Facts[:], s.Result,
		int32(Tolerance), s.Guarded, s.Plain)
}
