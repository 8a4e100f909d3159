package scoredb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// judgedAgents is the SQL condition of agents that have or had ratings, or answers of contracts on
// the allow-list.
const judgedAgents = `(feedback > 0 or revoked > 0 or validations > 0)`

// Pass is the progress of scoring all agents of a chain, in the order of their ids, for its newest run: agents that
// have or had ratings, and agents that have a score. It is stored in the run after each batch, so that a crash loses
// only the batch that was being scored.
//
// An agent that becomes stale before the pass reaches it is scored for its own reason at once, and stays stale. The
// pass skips it, and its final score is computed after the pass has advanced. So the pass never replaces a newer score
// with an older one.
type Pass struct {
	ChainID, Run uint64
	// Number is increased by beginPass. A batch of a pass with another number is not stored.
	Number int64
	// Final says that final scores are computed too, because the run is open.
	Final bool
	// After is the token id of the last agent that was scored, in decimal; "-1" at the beginning.
	After string
}

// ReadPass returns the pass of a chain's newest run. repute.ErrNotFound means that all agents are scored.
func ReadPass(ctx context.Context, db *store.DB, chainID uint64) (Pass, error) {
	p := Pass{ChainID: chainID}
	err := db.Pool().QueryRow(ctx, `
		select run, passes, closed_at is null, scored_to::text from trust_runs
		where chain_id = $1 and run = (select max(run) from trust_runs where chain_id = $1) and scored_to is not null`,
		chainID).Scan(&p.Run, &p.Number, &p.Final, &p.After)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, repute.ErrNotFound
	}
	return p, store.Failed(fmt.Sprintf("pass over the agents of chain %d", chainID), err)
}

// beginPass starts a pass over all agents of a chain for its newest run, with final scores while the run is open. A
// pass that is in progress cannot store its next batch, because it may have read older data.
func beginPass(ctx context.Context, tx pgx.Tx, chainID uint64) error {
	_, err := tx.Exec(ctx, `
		update trust_runs set scored_to = -1, passes = passes + 1
		where chain_id = $1 and run = (select max(run) from trust_runs where chain_id = $1)`, chainID)
	return store.Failed("score all agents", err)
}

// passAgents returns the next agents of the pass, up to limit, with their scores in effect, whose hashes it numbers by
// names. Fewer than limit means that no agents follow.
func passAgents(ctx context.Context, db *store.DB, p Pass, limit int, by *names) (list []StaleAgent, err error) {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = db.InTx(ctx, options, "agents of a pass", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, store.PlanByKey); err != nil {
			return err
		}
		const after = `token_id > $2::text::numeric order by token_id limit $3`
		judged, err := judgedAgentsOf(ctx, tx, p, judgedAgents+` and `+after, p.After, limit)
		if err != nil {
			return err
		}
		scored, err := scoredAgentsOf(ctx, tx, p, by, after, p.After, limit)
		if err != nil {
			return err
		}
		list = mergeAgents(judged, scored)
		list = list[:min(len(list), limit)]
		return nil
	})
	return list, err
}

// judgedAgentsOf returns agents of a pass, of those under an SQL condition whose parameters begin with $2, that have or
// had ratings or answers. They are in order.
func judgedAgentsOf(ctx context.Context, tx pgx.Tx, p Pass, which string, args ...any) ([]StaleAgent, error) {
	rows, _ := tx.Query(ctx, `select token_id, feedback, `+judgedAgents+` from agents where chain_id = $1 and `+which,
		append([]any{p.ChainID}, args...)...)
	var list []StaleAgent
	a := StaleAgent{Final: p.Final}
	var judged bool
	_, err := pgx.ForEachRow(rows, []any{(*column.TokenNum)(&a.TokenID), &a.Rows, &judged}, func() error {
		if judged {
			list = append(list, a)
		}
		return nil
	})
	slices.SortFunc(list, func(a, b StaleAgent) int { return a.TokenID.Cmp(&b.TokenID) })
	return list, err
}

// scoredAgentsOf returns agents of a pass, as judgedAgentsOf, that have a score.
func scoredAgentsOf(ctx context.Context, tx pgx.Tx, p Pass, by *names, which string,
	args ...any) ([]StaleAgent, error) {
	rows, _ := tx.Query(ctx, `
		select token_id, run, block, block_hash, evidence, facts, score, low, high, mean, confidence from trust_scores
		where chain_id = $1 and `+which, append([]any{p.ChainID}, args...)...)
	var hash, evidence, facts []byte
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (StaleAgent, error) {
		e := &inEffect{}
		a := StaleAgent{Final: p.Final, Scored: true, current: e}
		err := row.Scan((*column.TokenNum)(&a.TokenID), &e.run, &e.block, &hash, &evidence, &facts, &e.score,
			&e.low, &e.high, &e.mean, &e.confidence)
		e.hash, e.evidence = by.number(common.BytesToHash(hash)), by.number(common.BytesToHash(evidence))
		e.facts = by.number(common.BytesToHash(facts))
		return a, err
	})
	slices.SortFunc(list, func(a, b StaleAgent) int { return a.TokenID.Cmp(&b.TokenID) })
	return list, err
}

// mergeAgents merges two lists in order of their ids. An agent in both has the rows of the first one.
func mergeAgents(judged, scored []StaleAgent) []StaleAgent {
	out := make([]StaleAgent, 0, max(len(judged), len(scored)))
	for len(judged) > 0 && len(scored) > 0 {
		switch judged[0].TokenID.Cmp(&scored[0].TokenID) {
		case -1:
			out, judged = append(out, judged[0]), judged[1:]
		case 1:
			out, scored = append(out, scored[0]), scored[1:]
		default:
			scored[0].Rows = judged[0].Rows
			out, judged, scored = append(out, scored[0]), judged[1:], scored[1:]
		}
	}
	return append(append(out, judged...), scored...)
}

// SavePass stores the scores of the next agents of a pass, as SaveScores does, advances the pass to the last of them,
// and returns the advanced pass. With last the pass ends. repute.ErrFenced means that the lease is lost, that another
// run or another pass has begun, or that another process has stored these agents; nothing is stored then.
// repute.ErrGone means that an evidence manifest is not stored.
func SavePass(ctx context.Context, db *store.DB, l store.Lease, p Pass, agents []ScoredAgent, last bool,
	who Identities) (Pass, error) {
	to := p
	if len(agents) > 0 {
		to.After = agents[len(agents)-1].TokenID.Dec()
	}
	err := retryDeadlock(func() error {
		return db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("save a pass of chain %d", p.ChainID), func(tx pgx.Tx) error {
			if err := store.HoldLease(ctx, tx, l); err != nil {
				return err
			}
			if err := lockScores(ctx, tx, p.ChainID); err != nil {
				return err
			}
			stale, err := deferStale(ctx, tx, p, to.After, last)
			if err != nil {
				return err
			}
			if err := p.move(ctx, tx, to.After, last); err != nil {
				return err
			}
			var mine []*ScoredAgent
			for i := range agents {
				a := &agents[i]
				a.wroteCurrent, a.wroteLast = false, false
				if a.deferred = stale[a.TokenID]; !a.deferred && !a.Stays {
					mine = append(mine, a)
				}
			}
			if err := p.untouched(ctx, tx, agents); err != nil {
				return err
			}
			cause := byPass
			if p.Number == 1 {
				cause = byFirstPass
			}
			var b pgx.Batch
			look := lookBefore(&b, p.ChainID, mine, cause == byFirstPass)
			if err := tx.SendBatch(ctx, &b).Close(); err != nil {
				return err
			}
			return saveLocked(ctx, tx, p.ChainID, p.Run, mine, look, cause, who)
		})
	})
	return to, err
}

// untouched makes sure that the remembered scores of agents are still those of the pass before: a transaction that
// stored others may have been in progress when Effects looked. It ended before deferStale, which waits for it.
// repute.ErrFenced means that it is not so; nothing MUST be remembered then.
func (p Pass) untouched(ctx context.Context, tx pgx.Tx, agents []ScoredAgent) error {
	remembered := 0
	for i := range agents {
		if agents[i].isRemembered() {
			remembered++
		}
	}
	if remembered == 0 {
		return nil
	}
	rows, _ := tx.Query(ctx, `
		select token_id from trust_scores where chain_id = $1 and touched >= $2 and touched > 0 and token_id between $3 and $4`,
		p.ChainID, int64(p.Run)-1, column.TokenNum(agents[0].TokenID), column.TokenNum(agents[len(agents)-1].TokenID))
	touched, err := column.CollectTokens(rows)
	if err != nil {
		return err
	}
	for token := range touched {
		i, found := slices.BinarySearchFunc(agents, token,
			func(a ScoredAgent, t repute.TokenID) int { return a.TokenID.Cmp(&t) })
		if found && agents[i].isRemembered() {
			return fmt.Errorf("scores of agent %s before run %d: %w", token.Dec(), p.Run, repute.ErrFenced)
		}
	}
	return nil
}

// deferStale locks the stale agents among those of the batch, marks them so that they are scored after the pass, with
// their final scores, and returns them.
func deferStale(ctx context.Context, tx pgx.Tx, p Pass, to string, last bool) (map[repute.TokenID]bool, error) {
	if _, err := tx.Exec(ctx, store.PlanByKey); err != nil {
		return nil, err
	}
	rows, _ := tx.Query(ctx, `
		with s as (
			select token_id from trust_stale
			where chain_id = $1 and token_id > $2::text::numeric and (token_id <= $3::text::numeric or $4)
			order by token_id for update)
		update trust_stale t set final = t.final or $5, mark = default, claimed = '-infinity'
		from s where t.chain_id = $1 and t.token_id = s.token_id
		returning t.token_id`, p.ChainID, p.After, to, last, p.Final)
	return column.CollectTokens(rows)
}

// move advances the stored pass. repute.ErrFenced means that the stored pass is no longer p.
func (p Pass) move(ctx context.Context, tx pgx.Tx, to string, last bool) error {
	tag, err := tx.Exec(ctx, `
		update trust_runs set scored_to = case when not $6 then $5::text::numeric end
		where chain_id = $1 and run = $2 and passes = $3 and scored_to = $4::text::numeric and (closed_at is null) = $7
		and run = (select max(run) from trust_runs where chain_id = $1)`,
		p.ChainID, int64(p.Run), p.Number, p.After, to, last, p.Final)
	if err == nil && tag.RowsAffected() == 0 {
		err = fmt.Errorf("pass of run %d after agent %s: %w", p.Run, p.After, repute.ErrFenced)
	}
	return err
}

// PassLease returns the name of the lease that the process scoring all agents of a chain MUST have.
func PassLease(chainID uint64) string { return fmt.Sprintf("scores:%d", chainID) }

// PassLeaseTTL is how long the lease lasts without being renewed. It is longer than scoring a batch takes.
const PassLeaseTTL = time.Minute
