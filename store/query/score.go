package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
)

// scoreColumns returns the columns that trust_scores and trust_finals share, of relation s, those of the run r, and the
// readings of sources, which are SQL.
func scoreColumns(readings string) string { return scoreNumbers + ", s.result, " + readings }

// readingsNow returns the SQL of how the sources were read for the newest run of a chain that meets a condition. A
// score that age alone changes little keeps the row of an earlier run, of which the sources may have been well or not.
func readingsNow(chain, condition string) string {
	return "(select n.readings from trust_runs n where n.chain_id = " + chain + condition +
		" order by n.run desc limit 1)"
}

// isClosed is a condition of readingsNow for final scores.
const isClosed = " and n.closed_at is not null"

// scoreNumbers are scoreColumns without the result and the readings of sources.
const scoreNumbers = `s.token_id, s.run, r.epoch, r.scorer, r.params, r.tags, r.roots, r.links, r.sources,
	r.credentials, r.file_scales, r.verified_to, r.boundary, s.evidence,
	s.status, s.score, s.low, s.high, s.mean, s.confidence, s.tier`

// scanScore returns a function that reads a score of a chain, and further columns after it.
func scanScore(c repute.Chain, more ...any) func(pgx.CollectableRow) (repute.Score, error) {
	return func(row pgx.CollectableRow) (s repute.Score, err error) {
		s.Agent.ChainID, s.Agent.Registry = c.ID, c.Identity
		var boundary uint64
		err = row.Scan(append([]any{(*column.TokenNum)(&s.Agent.TokenID), &s.Run, &s.Epoch, &s.Scorer,
			(*column.Hash)(&s.Params), (*column.Hash)(&s.Tags), (*column.Hash)(&s.Roots), (*column.Hash)(&s.Links),
			(*column.Hash)(&s.Sources), (*column.Hash)(&s.Credentials), (*column.Hash)(&s.FileScales), &s.VerifiedTo,
			&boundary, (*column.Hash)(&s.Evidence), &s.Status, &s.Score, &s.Low, &s.High, &s.Mean, &s.Confidence,
			&s.Tier, &s.Result, &s.Readings, &s.Final, &s.Block.Number, (*column.Hash)(&s.Block.Hash),
			(*column.Time)(&s.Block.Time)}, more...)...)
		s.Verified = s.Final && s.VerifiedTo > 0 && boundary <= s.VerifiedTo
		return s, err
	}
}

// ScoreOf returns an agent's stored score: the newest one for repute.Latest, otherwise the final
// one of the last epoch that was closed at or before the block. repute.ErrNotFound when there is no
// such agent (a *repute.MissingError) or no score: nobody rated it, or none was computed yet. Then
// asOf is set, and out is the score of an agent without ratings, of no run. repute.ErrGone when the
// final score may have been pruned.
func ScoreOf(ctx context.Context, db *store.DB, id repute.AgentID, at repute.At) (out repute.Score, asOf repute.AsOf,
	err error) {
	err = chaindb.ViewAgent(ctx, db, "read score", id, at, func(ctx context.Context, s chaindb.Subject) error {
		asOf = s.AsOf
		if out, err = score(ctx, s); err != nil {
			return err
		}
		switch {
		case out.Pruned:
			return fmt.Errorf("the final score of agent %s as of block %d: %w", s.ID.Short(), s.Block, repute.ErrGone)
		case out.Run == 0:
			return repute.ErrNotFound
		}
		return nil
	})
	return out, asOf, err
}

// finalScore returns the final score of the last closed run. Scores of a newer run that is open are
// not visible yet.
func finalScore(ctx context.Context, s chaindb.Subject) (repute.Score, error) {
	rows, err := s.Tx.Query(ctx, `
		select `+scoreColumns(readingsNow("$1", isClosed+" and n.boundary <= $3"))+`, true,
			r.block, r.block_hash, r.block_time
		from trust_finals s join trust_runs r using (chain_id, run)
		where s.chain_id = $1 and s.token_id = $2 and s.run <= (
			select max(run) from trust_runs where chain_id = $1 and closed_at is not null and boundary <= $3)
		order by s.run desc limit 1`, s.Key()...)
	score, err := oneScore(rows, err, s.Chain.Chain)
	if err != nil && !errors.Is(err, repute.ErrNotFound) {
		return score, err
	}
	if pruned, e := prunedSince(ctx, s, score.Run); e != nil || pruned {
		return repute.Score{},
			cmp.Or(e, fmt.Errorf("the final score of agent %s as of block %d: %w", s.ID.Short(), s.Block,
				repute.ErrGone))
	}
	return score, err
}

// prunedSince reports whether final scores between a run's and that of the view may have been
// pruned: another one replaced them before the bound.
func prunedSince(ctx context.Context, s chaindb.Subject, run uint64) (pruned bool, err error) {
	err = s.Tx.QueryRow(ctx, `
		select exists (select from trust_runs asked join cursors d using (chain_id) join trust_finals l using (chain_id)
			where asked.chain_id = $1 and asked.run = (select max(run) from trust_runs where chain_id = $1 and closed_at is
				not null and boundary <= $3)
			and asked.run <> $4 and l.token_id = $2 and l.run > asked.run and d.job = 'pruned finals' and l.run <= d.position)`, append(s.Key(), run)...).Scan(&pruned)
	return pruned, err
}

// oneScore reads exactly one score.
func oneScore(rows pgx.Rows, err error, c repute.Chain) (repute.Score, error) {
	if err != nil {
		return repute.Score{}, err
	}
	score, err := pgx.CollectExactlyOneRow(rows, scanScore(c))
	if errors.Is(err, pgx.ErrNoRows) {
		err = repute.ErrNotFound
	}
	return score, err
}

// ScorePin identifies one final score. An epoch may have several runs, because changed roots,
// links, contracts or late logs make another one.
type ScorePin struct {
	Agent repute.AgentID
	// Block is the last block of the epoch.
	Block uint64
	// These are the hashes that a stored score names: its inputs, its evidence, and Outcome, the
	// sha256 of Score.Result. VerifiedTo is as in the score.
	Params, Tags, Roots, Links, Sources, Credentials, FileScales, Evidence, Outcome common.Hash
	VerifiedTo                                                                      uint64
}

// PinnedScore returns the final score of a pin. repute.ErrNotFound when there is none.
func PinnedScore(ctx context.Context, db *store.DB, pin ScorePin) (out repute.Score, err error) {
	err = chaindb.ViewAgent(ctx, db, "read pinned score", pin.Agent, repute.At{Finality: repute.Latest},
		func(ctx context.Context, s chaindb.Subject) error {
			rows, err := s.Tx.Query(ctx, `
			select `+scoreColumns("r.readings")+`, true, r.block, r.block_hash, r.block_time
			from trust_finals s join trust_runs r using (chain_id, run)
			where s.chain_id = $1 and s.token_id = $2 and s.evidence = $3 and sha256(s.result) = $4
				and (r.block, r.params, r.tags, r.roots, r.links) = ($5, $6, $7, $8, $9)
				and (r.sources, r.credentials, r.file_scales) = ($10, $11, $13) and r.verified_to = $12 and r.closed_at is not null
			order by s.run desc limit 1`, s.ID.ChainID, column.TokenNum(s.ID.TokenID), pin.Evidence[:], pin.Outcome[:],
				pin.Block, pin.Params[:], pin.Tags[:], pin.Roots[:], pin.Links[:],
				column.HashBytes(pin.Sources), column.HashBytes(pin.Credentials), pin.VerifiedTo,
				column.HashBytes(pin.FileScales))
			out, err = oneScore(rows, err, s.Chain.Chain)
			return err
		})
	return out, err
}
