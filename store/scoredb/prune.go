package scoredb

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

const (
	// pruneRest is the pause between two passes.
	pruneRest = 24 * time.Hour
	// inputAge is how long an input stays after it was last used, because scores that are being
	// stored may name it.
	inputAge = 24 * time.Hour
	// prunePage is how many rows one transaction reads.
	prunePage = 1000
)

// PruneFinals deletes one batch of final scores that were replaced longer than kept ago, and
// reports whether there may be more. The score that was in effect then, newer ones, and those that
// decisions of runs name stay. With 0 all stay. Any number of processes may call it; one at a time
// works.
func PruneFinals(ctx context.Context, db *store.DB, kept time.Duration) (more bool, err error) {
	if kept <= 0 {
		return false, nil
	}
	return db.RunNext(ctx, "final scores", func(ctx context.Context, tx pgx.Tx, p *store.Pass) error {
		var chain, run int64
		token := "-1"
		if p.Place == nil {
			if err := beginPrune(ctx, tx, kept); err != nil {
				return err
			}
		} else if _, err := fmt.Sscan(string(p.Place), &chain, &token, &run); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, `
			with page as (
				select chain_id, token_id, run from trust_finals
				where (chain_id, token_id, run) > ($1, $2::text::numeric, $3) order by chain_id, token_id, run limit $4),
			gone as (
				delete from trust_finals f using page p join cursors d on (d.job, d.chain_id, d.part) = ('pruned finals', p.chain_id, 0)
				where (f.chain_id, f.token_id, f.run) = (p.chain_id, p.token_id, p.run)
				and exists (select from trust_finals l where l.chain_id = f.chain_id and l.token_id = f.token_id and l.run >
					f.run and l.run <= d.position)
				and not exists (select from run_decisions where pins @> array[f.evidence]))
			select chain_id, token_id::text, run from page p order by p.chain_id, p.token_id, p.run`, chain, token, run, prunePage)
		n := 0
		_, err = pgx.ForEachRow(rows, []any{&chain, &token, &run}, func() error { n++; return nil })
		p.Place = fmt.Appendf(nil, "%d %s %d", chain, token, run)
		if n < prunePage {
			p.Place, p.Rest = nil, pruneRest
		}
		return err
	})
}

// beginPrune stores the run up to which final scores may be pruned, which query.ScoreOf reads.
func beginPrune(ctx context.Context, tx pgx.Tx, kept time.Duration) error {
	_, err := tx.Exec(ctx, `
		insert into cursors as c (job, chain_id, position)
		select 'pruned finals', chain_id, max(run) from trust_runs where closed_at < now() - $1::interval group by chain_id
		on conflict (job, chain_id, part) do update set position = greatest(c.position, excluded.position)`, kept)
	return err
}

// unnamed is the SQL of whether no score, no final score and no decision names input i.
const unnamed = `
	not exists (select from trust_scores where evidence = i.hash)
	and not exists (select from trust_finals where evidence = i.hash)
	and not exists (select from run_decisions where pins @> array[i.hash])
	and not exists (select from run_decisions where policy = i.hash)`

// PruneInputs deletes one batch of inputs that nothing names and that were not used for inputAge,
// and reports whether there may be more. A writer that is about to name a stored input MUST lock it
// (SaveScores) or renew it (RenewInputs). Any number of processes may call it; one at a time works.
func PruneInputs(ctx context.Context, db *store.DB) (more bool, err error) {
	return db.RunNext(ctx, "inputs of scores", func(ctx context.Context, tx pgx.Tx, p *store.Pass) error {
		if p.Place == nil {
			p.Place = []byte{}
		}
		var last []byte
		var n int
		err := tx.QueryRow(ctx, `
			select count(*), (array_agg(hash order by hash desc))[1] from (select hash from trust_inputs where hash > $1
				order by hash limit $2) page`,
			p.Place, prunePage).Scan(&n, &last)
		if err == nil && n > 0 {
			err = pruneInputs(ctx, tx, p.Place, last)
		}
		p.Place = last
		if n < prunePage {
			p.Place, p.Rest = nil, pruneRest
		}
		return err
	})
}

// pruneInputs deletes unnamed inputs after one hash up to another one.
func pruneInputs(ctx context.Context, tx pgx.Tx, after, last []byte) error {
	rows, _ := tx.Query(ctx, `
		select hash from trust_inputs i where hash > $1 and hash <= $2 and kept_at < now() - $3::interval and `+unnamed+` for update skip locked`,
		after, last, inputAge)
	loose, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil || len(loose) == 0 {
		return err
	}
	if rows, err = tx.Query(ctx,
		`select distinct unnest(array[params, tags, roots, links, validations, sources, credentials, file_scales,
			gateways]) from trust_runs`); err != nil {
		return err
	}
	ofRuns, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return err
	}
	// A transaction that held one of them before may have named it since. Only a new statement sees
	// that.
	_, err = tx.Exec(ctx, `delete from trust_inputs i where hash = any($1) and hash <> all($2) and `+unnamed, loose,
		ofRuns)
	return err
}

// findManifests adds a statement to a batch that sets the manifests of scores that are about to be stored. Those that
// an agent's newest score names are left out, because they need no lock.
func findManifests(b *pgx.Batch, chainID uint64, agents []*ScoredAgent, into *[][]byte) {
	var tokens []repute.TokenID
	var hashes [][]byte
	add := func(token repute.TokenID, s *AgentScore, stays bool) {
		if s != nil && !stays && s.Evidence != (common.Hash{}) {
			tokens, hashes = append(tokens, token), append(hashes, s.Evidence.Bytes())
		}
	}
	for _, a := range agents {
		add(a.TokenID, a.Current, a.SameCurrent)
		add(a.TokenID, a.Last, a.SameLast)
	}
	if len(tokens) == 0 {
		return
	}
	b.Queue(`
		select distinct n.hash from unnest($2::numeric[], $3::bytea[]) n(token, hash)
		where not exists (select from trust_scores s where s.chain_id = $1 and s.token_id = n.token and s.evidence = n.hash)`,
		chainID, column.TokenArray(tokens), hashes).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
		return err
	})
}

// holdManifests locks manifests until the transaction ends. repute.ErrGone when one is not stored.
func holdManifests(ctx context.Context, tx pgx.Tx, hashes [][]byte) error {
	if len(hashes) == 0 {
		return nil
	}
	held, err := tx.Exec(ctx, `select from trust_inputs where hash = any($1) order by hash for key share`, hashes)
	if err == nil && int(held.RowsAffected()) < len(hashes) {
		err = fmt.Errorf("manifests of evidence: %w", repute.ErrGone)
	}
	return err
}

// RenewInputs keeps inputs that are about to be named from being pruned for inputAge.
// repute.ErrGone when one is not stored.
func RenewInputs(ctx context.Context, db *store.DB, hashes ...common.Hash) error {
	list := make([][]byte, len(hashes))
	different := map[common.Hash]bool{}
	for i, h := range hashes {
		list[i], different[h] = h.Bytes(), true
	}
	tag, err := db.Pool().Exec(ctx, "update trust_inputs set kept_at = now() where hash = any($1)", list)
	if err == nil && int(tag.RowsAffected()) < len(different) {
		err = fmt.Errorf("inputs of a run: %w", repute.ErrGone)
	}
	return store.Failed("renew inputs of scores", err)
}
