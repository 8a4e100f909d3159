package scoredb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"repute"
	"repute/store"
	"repute/store/column"
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
	// SameCurrent and SameLast say that the scores in effect stay: see Kept.
	SameCurrent, SameLast bool
	// Stays says the same of both, and that the agent neither has nor had a penalty. Current and Last are then nil, and
	// nothing is stored. Only a pass sets it, for agents with Remembered.
	Stays bool

	deferred                bool // the agent is stale, so that a pass left it out
	wroteCurrent, wroteLast bool // a row was stored
}

// isRemembered reports whether a pass relies on the remembered scores of the agent.
func (a *ScoredAgent) isRemembered() bool { return a.inMemory && !a.deferred }

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
// stay stale, and those that a pass has yet to reach. MarkRelated marks the related agents of
// changed penalties. repute.ErrFenced: a newer run has begun, so the weights are outdated.
// repute.ErrGone: an evidence manifest is not stored.
func SaveScores(ctx context.Context, db *store.DB, chainID, run uint64, agents []ScoredAgent, who Identities) error {
	save := func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(store.PlanOnce)
		waiting := lockStale(&b, chainID, agents)
		// A run that began before the agents were locked is scored by its pass: only now can it be seen.
		var newest uint64
		b.Queue(`select coalesce(max(run), 0) from trust_runs where chain_id = $1`, chainID).QueryRow(
			func(row pgx.Row) error { return row.Scan(&newest) })
		all := make([]*ScoredAgent, len(agents))
		for i := range agents {
			all[i] = &agents[i]
		}
		look := lookBefore(&b, chainID, all, false) // also at agents that are no longer stale, which does no harm
		if err := tx.SendBatch(ctx, &b).Close(); err != nil {
			return err
		}
		if newest > run {
			return fmt.Errorf("scores of run %d: %w: run %d has begun", run, repute.ErrFenced, newest)
		}
		mine := slices.DeleteFunc(all, func(a *ScoredAgent) bool { return !waiting[a.TokenID] })
		return saveLocked(ctx, tx, chainID, run, mine, look, byStaleness, who)
	}
	return retryDeadlock(func() error {
		return db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("save scores of chain %d", chainID), save)
	})
}

// touch adds a statement to a batch that notes that scores of agents were stored for a run otherwise than by a pass,
// for Effects.
func touch(b *pgx.Batch, chainID, run uint64, agents []*ScoredAgent) {
	b.Queue(`
		update trust_scores set touched = $3 where chain_id = $1 and token_id = any($2::numeric[]) and touched < $3`,
		chainID, column.TokenArray(tokensOf(agents)), int64(run))
}

// tokensOf returns the token ids of agents.
func tokensOf(agents []*ScoredAgent) []repute.TokenID {
	tokens := make([]repute.TokenID, len(agents))
	for i, a := range agents {
		tokens[i] = a.TokenID
	}
	return tokens
}

// retryDeadlock calls save again, a few times, where the database ended it because of a deadlock
// with a transaction that marks agents.
func retryDeadlock(save func() error) error {
	for tries := 5; ; tries-- {
		err := save()
		var pg *pgconn.PgError
		if tries > 0 && errors.As(err, &pg) && pg.Code == "40P01" {
			continue
		}
		return err
	}
}

// before is what saveLocked must know of the stored state.
type before struct {
	unlocked  [][]byte // manifests that must be locked
	penalties bool     // some agents have penalties now or had some: another worker may have found one before
}

// lookBefore adds the statements that fill a before about agents, which are locked, to a batch. With inOrder the agents
// are in order.
func lookBefore(b *pgx.Batch, chainID uint64, agents []*ScoredAgent, inOrder bool) *before {
	out := &before{}
	findManifests(b, chainID, agents, &out.unlocked)
	findPenalties(b, chainID, agents, inOrder, &out.penalties)
	return out
}

// saveCause is why saveLocked is called: for stale agents, by a pass, or by the first pass of a run. In a first pass
// the agents are in order, and none of them has a final score of the run.
type saveCause int

const (
	byStaleness saveCause = iota
	byPass
	byFirstPass
)

// saveLocked stores scores and penalties of agents that no other process writes meanwhile.
func saveLocked(ctx context.Context, tx pgx.Tx, chainID, run uint64, agents []*ScoredAgent, look *before,
	cause saveCause, who Identities) error {
	if err := holdManifests(ctx, tx, look.unlocked); err != nil {
		return err
	}
	var b pgx.Batch
	if cause == byStaleness {
		dropMarks(&b, chainID, run, agents)
	}
	writeFinals(&b, chainID, run, agents, cause == byFirstPass)
	writeCurrent(&b, chainID, run, agents)
	if cause == byStaleness {
		touch(&b, chainID, run, agents)
	}
	if err := tx.SendBatch(ctx, &b).Close(); err != nil || !look.penalties {
		return err
	}
	return savePenalties(ctx, tx, chainID, run, agents, who)
}

// lockStale adds statements to a batch that do what lockScores does and lock the agents that are still stale, which it
// returns.
func lockStale(b *pgx.Batch, chainID uint64, agents []ScoredAgent) map[repute.TokenID]bool {
	ids, waiting := make([]repute.TokenID, len(agents)), make(map[repute.TokenID]bool, len(agents))
	for i := range agents {
		ids[i] = agents[i].TokenID
	}
	b.Queue(scoresLock, int64(chainID))
	b.Queue(`select token_id from trust_stale where chain_id = $1 and token_id = any($2::numeric[]) order by token_id for update`,
		chainID, column.TokenArray(ids)).Query(func(rows pgx.Rows) error {
		list, err := column.CollectTokens(rows)
		maps.Copy(waiting, list)
		return err
	})
	return waiting
}

// dropMarks adds a statement to a batch that makes locked agents no longer stale, unless they were marked again since
// they were claimed. Those that the pass of the run has yet to reach wait for it.
func dropMarks(b *pgx.Batch, chainID, run uint64, agents []*ScoredAgent) {
	marks := make([]int64, len(agents))
	for i, a := range agents {
		marks[i] = a.Mark
	}
	b.Queue(`
		with n as materialized (
			select n.token_id, n.mark, r.run is not null as ahead
			from unnest($2::numeric[], $3::bigint[]) n(token_id, mark)
			left join trust_runs r on (r.chain_id, r.run) = ($1, $4) and r.scored_to < n.token_id),
		gone as (
			delete from trust_stale t using n
			where (t.chain_id, t.token_id) = ($1, n.token_id) and t.mark = n.mark and not n.ahead)
		update trust_stale t set cause = $5, claimed = '-infinity' from n
		where (t.chain_id, t.token_id) = ($1, n.token_id) and t.mark = n.mark and n.ahead`,
		chainID, column.TokenArray(tokensOf(agents)), marks, int64(run), causeRun)
}

// limitedBefore is the SQL of whether the newest final score of agent n is limited by a related
// agent. An agent without ratings is scored until the limit ends.
const limitedBefore = `coalesce((select guarded from trust_finals where chain_id = $1 and token_id = n.token_id order by run desc limit 1), false)`

// writeCurrent adds statements to a batch that store the newest scores of agents and add their changes to the feed. The
// hash of a score's block is stored only while that block is part of the chain: a rewind may have been stored after the
// score was computed.
func writeCurrent(b *pgx.Batch, chainID, run uint64, agents []*ScoredAgent) {
	var c scoreColumns
	var gone []repute.TokenID
	var plain []bool
	tolerance := int32(Tolerance)
	for _, a := range agents {
		s := a.Current
		if s == nil || s.Plain {
			gone, plain = append(gone, a.TokenID), append(plain, s != nil)
		}
		if s != nil && !a.SameCurrent {
			c.add(a.TokenID, s, a.Shown)
		}
		if a.Exact {
			tolerance = 0
		}
	}
	if len(gone) > 0 {
		dropCurrent(b, chainID, gone, plain)
	}
	if len(c.tokens) == 0 {
		return
	}
	b.Queue(`
		with before as materialized (`+scoresBefore()+`), written as (
		insert into trust_scores as s (chain_id, token_id, run, block, block_hash, block_time, evidence,
			status, score, low, high, mean, confidence, tier, result, facts)
		select $1, n.token_id, $2, n.block, case when n.block = k.block or n.block_hash = (
				select b.hash from blocks b where (b.chain_id, b.number) = ($1, n.block)) then n.block_hash else '' end,
			n.block_time, n.evidence,
			n.status, n.score, n.low, n.high, n.mean, n.confidence, n.tier, n.result, n.facts
		from `+scoreRows+` join trust_runs k on (k.chain_id, k.run) = ($1, $2)
		where not n.plain or `+limitedBefore+`
		order by n.token_id
		on conflict (chain_id, token_id) do update set run = excluded.run, block = excluded.block, block_hash =
			excluded.block_hash,
			block_time = excluded.block_time, evidence = excluded.evidence, status = excluded.status, score = excluded.score,
			low = excluded.low, high = excluded.high, mean = excluded.mean, confidence = excluded.confidence, tier = excluded.tier,
			result = excluded.result, facts = excluded.facts
		where not (`+sameScore+`)
		returning s.*),
		changed as materialized (`+scoresChanged()+`),
		told as (`+tellCurrent()+`),
		statuses as (select old_status as old, status as new from changed),
		totals as (`+addTotals("statuses")+`)
		select token_id from written`, append(c.args(chainID, run), tolerance)...).Query(
		noteWritten("newest scores", agents, func(a *ScoredAgent) { a.wroteCurrent = true }))
}

// noteWritten returns a function for a queued statement that calls note with the agents of which a row was stored. what
// names the rows in errors.
func noteWritten(what string, agents []*ScoredAgent, note func(*ScoredAgent)) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		written, err := column.CollectTokens(rows)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		for _, a := range agents {
			if written[a.TokenID] {
				note(a)
			}
		}
		return nil
	}
}

// sameScore is the SQL of whether row s of trust_scores stays where excluded would be stored. It
// stays when it is the same row, or when nothing happened to the agent since and age alone changed
// it by less than the tolerance $19, with the same inputs of both runs. A row whose block was
// replaced, which nobody sees, is always written.
const sameScore = `
	(s.evidence, s.facts) = (excluded.evidence, excluded.facts)
	and ((s.run, s.block, s.block_hash, s.result) = (excluded.run, excluded.block, excluded.block_hash, excluded.result)
		or abs(s.score - excluded.score) < $19 and abs(s.low - excluded.low) < $19 and abs(s.high - excluded.high) < $19
		and abs(s.mean - excluded.mean) < $19 and abs(s.confidence - excluded.confidence) < $19 * 10
		and exists (select from trust_runs was join trust_runs is_ using (chain_id)
			where (was.chain_id, was.run, is_.run) = (s.chain_id, s.run, excluded.run)
			and ` + sameInputs + `
			and ((s.block, s.block_hash) = (excluded.block, excluded.block_hash) or s.block <= is_.block and excluded.block = is_.block)
			and (s.block = was.block or exists (select from blocks b where (b.chain_id, b.number, b.hash) = (s.chain_id,
				s.block, s.block_hash)))))`

// sameInputs is the SQL of whether runs was and is_ have the same inputs besides events, no log was found late in
// between, and both are verified alike: what was computed from unproven blocks is written again once they are proven.
const sameInputs = `(was.scorer, was.params, was.tags, was.roots, was.links, was.validations, was.sources, was.gateways,
		was.verified_to >= was.boundary)
	= (is_.scorer, is_.params, is_.tags, is_.roots, is_.links, is_.validations, is_.sources, is_.gateways,
		is_.verified_to >= is_.boundary) and is_.repaired = 0`

// scoreColumns are scores as arrays, one for each column.
type scoreColumns struct {
	tokens                                         []repute.TokenID
	blocks                                         []int64
	hashes, evidence, results, facts               [][]byte
	times                                          []*time.Time
	statuses                                       []string
	scores, lows, highs, means, confidences, tiers []int32
	plain, guarded                                 []bool
}

// add adds a row.
func (c *scoreColumns) add(token repute.TokenID, s *AgentScore, facts common.Hash) {
	c.tokens, c.blocks = append(c.tokens, token), append(c.blocks, int64(s.Block.Number))
	c.hashes, c.times = append(c.hashes, column.HashBytes(s.Block.Hash)), append(c.times,
		column.MaybeTime(s.Block.Time))
	c.evidence, c.facts = append(c.evidence, s.Evidence[:]), append(c.facts, facts[:])
	c.statuses, c.results = append(c.statuses, string(s.Status)), append(c.results, s.Result)
	c.scores, c.lows, c.highs = append(c.scores, int32(s.Score.Score)), append(c.lows, int32(s.Low)), append(c.highs,
		int32(s.High))
	c.means, c.confidences = append(c.means, int32(s.Mean)), append(c.confidences, int32(s.Confidence))
	c.tiers, c.plain, c.guarded = append(c.tiers, int32(s.Tier)), append(c.plain, s.Plain), append(c.guarded, s.Guarded)
}

// args are the parameters of a statement with scoreRows: the chain, the run, and the columns.
func (c *scoreColumns) args(chainID, run uint64) []any {
	return []any{chainID, int64(run), column.TokenArray(c.tokens), c.blocks, c.hashes, c.times, c.evidence, c.statuses,
		c.scores, c.lows, c.highs, c.means, c.confidences, c.tiers, c.results, c.facts, c.plain, c.guarded}
}

// scoreRows is the SQL of rows n of scores that are parameters.
const scoreRows = `unnest($3::numeric[], $4::bigint[], $5::bytea[], $6::timestamptz[], $7::bytea[], $8::text[],
	$9::integer[], $10::integer[], $11::integer[], $12::integer[], $13::integer[], $14::integer[], $15::bytea[], $16::bytea[],
	$17::boolean[], $18::boolean[]) n(token_id, block, block_hash, block_time, evidence, status, score, low, high, mean,
	confidence, tier, result, facts, plain, guarded)`

// writeFinals adds statements to a batch that store the final scores that differ from those in effect. With first no
// agent has one of the run.
func writeFinals(b *pgx.Batch, chainID, run uint64, agents []*ScoredAgent, first bool) {
	var c scoreColumns
	var due []repute.TokenID
	for _, a := range agents {
		if !a.Final {
			continue
		}
		due = append(due, a.TokenID)
		if a.Last != nil && !a.SameLast {
			c.add(a.TokenID, a.Last, a.Facts)
		}
	}
	if len(due) > 0 && !first {
		b.Queue(`delete from trust_finals where chain_id = $1 and token_id = any($2::numeric[]) and run = $3`,
			chainID, column.TokenArray(due), int64(run))
	}
	if len(c.tokens) == 0 {
		return
	}
	b.Queue(`
		insert into trust_finals (chain_id, token_id, run, evidence, status, score, low, high, mean, confidence, tier,
			facts, result, guarded)
		select $1, n.token_id, $2, n.evidence, n.status, n.score, n.low, n.high, n.mean, n.confidence, n.tier,
			n.facts, n.result, n.guarded
		from `+scoreRows+`
		left join lateral (
			select * from trust_finals p where p.chain_id = $1 and p.token_id = n.token_id and p.run < $2
			order by p.run desc limit 1) p on true
		where (not n.plain or p.run is not null)
		and not coalesce(p.facts = n.facts and abs(p.score - n.score) < $19 and abs(p.low - n.low) < $19 and abs(p.high - n.high) < $19
			and exists (select from trust_runs was join trust_runs is_ on (is_.chain_id, is_.run) = ($1, $2)
				where (was.chain_id, was.run) = ($1, p.run) and `+sameInputs+`), false)
		returning token_id`,
		append(c.args(chainID, run), int32(Tolerance))...).Query(
		noteWritten("final scores", agents, func(a *ScoredAgent) { a.wroteLast = true }))
}
