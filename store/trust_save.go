package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"repute"
)

// ScoredAgent is what came of scoring a stale agent.
type ScoredAgent struct {
	StaleAgent
	Owner, Wallet common.Address
	Current       *OwnScore // nil: there is no such agent, or nobody ever judged it
	// Last is the final score, where one was due and the agent existed then; Facts is a
	// digest of what makes two final scores differ besides small changes by age, and of
	// two that differ by less than Tolerance only the first is kept.
	Last  *OwnScore
	Facts common.Hash
	// Shown is such a digest of Current. Where a run changes no more than ages the row of an
	// earlier run stays, which names that run: whatever it shows is within Tolerance of what
	// the newest one gives. With Exact it is written all the same.
	Shown common.Hash
	Exact bool
}

// OwnScore is a score and what it would be without other agents of the same party.
type OwnScore struct {
	repute.Score
	OwnScore, OwnHigh repute.Points
}

// Tolerance is how far score and bounds must move for a final score to be kept again: by a
// tenth of a point. The scores kept are exact; each says of which run it is.
const Tolerance repute.Points = 100

// SaveScores stores what came of scoring agents of a chain as of a run. Agents that
// nobody waits for any more were scored by somebody else meanwhile and are left
// alone; those that were marked again stay stale. Agents of the same party follow.
// repute.ErrFenced when a newer run has begun: the scores would be of weights that are no
// more.
func (db *DB) SaveScores(ctx context.Context, chainID, run uint64, agents []ScoredAgent) error {
	save := func(tx pgx.Tx) error {
		waiting, err := lockStale(ctx, tx, chainID, agents)
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
		for i := range agents {
			if a := &agents[i]; waiting[a.TokenID] {
				queueScore(&b, chainID, run, a)
			}
		}
		return tx.SendBatch(ctx, &b).Close()
	}
	for tries := 5; ; tries-- {
		err := db.inTx(ctx, pgx.TxOptions{}, fmt.Sprintf("save scores of chain %d", chainID), save)
		var pg *pgconn.PgError
		if tries > 0 && errors.As(err, &pg) && pg.Code == "40P01" { // two agents, each kin of the other, of two writers
			continue
		}
		return err
	}
}

// lockStale tells which of the agents are still stale, and keeps them so until the
// transaction ends.
func lockStale(ctx context.Context, tx pgx.Tx, chainID uint64, agents []ScoredAgent) (map[repute.TokenID]bool, error) {
	ids := make([]repute.TokenID, len(agents))
	for i := range agents {
		ids[i] = agents[i].TokenID
	}
	rows, err := tx.Query(ctx, `
		select token_id from trust_stale where chain_id = $1 and token_id = any($2::numeric[]) order by token_id for update`, chainID, tokenArray(ids))
	if err != nil {
		return nil, err
	}
	out := map[repute.TokenID]bool{}
	var token tokenNum
	_, err = pgx.ForEachRow(rows, []any{&token}, func() error {
		out[repute.TokenID(token)] = true
		return nil
	})
	return out, err
}

// queueScore must come to the same rows however often it is done.
func queueScore(b *pgx.Batch, chainID, run uint64, a *ScoredAgent) {
	token := tokenNum(a.TokenID)
	b.Queue(`delete from trust_stale where chain_id = $1 and token_id = $2 and mark = $3`, chainID, token, a.Mark)
	if a.Current == nil {
		b.Queue(kinFollow("own_score", "own_high", false), chainID, token, []byte{}, []byte{}, 0, 0)
		b.Queue(`delete from trust_scores where chain_id = $1 and token_id = $2`, chainID, token)
		return
	}
	s := a.Current
	b.Queue(kinFollow("own_score", "own_high", false), chainID, token, a.Owner[:], hashOrNone(a.Wallet), s.OwnScore, s.OwnHigh)
	b.Queue(`
		insert into trust_scores as s (chain_id, token_id, run, block, block_hash, block_time, evidence,
			rated, score, low, high, mean, confidence, tier, own_score, own_high, owner, wallet, result, facts)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
		on conflict (chain_id, token_id) do update set run = excluded.run, block = excluded.block, block_hash = excluded.block_hash,
			block_time = excluded.block_time, evidence = excluded.evidence, rated = excluded.rated, score = excluded.score,
			low = excluded.low, high = excluded.high, mean = excluded.mean, confidence = excluded.confidence, tier = excluded.tier,
			own_score = excluded.own_score, own_high = excluded.own_high, owner = excluded.owner, wallet = excluded.wallet, result = excluded.result, facts = excluded.facts
		where not (`+sameScore+`)`,
		chainID, token, run, s.Block.Number, hashBytes(s.Block.Hash), maybeTime(s.Block.Time), s.Evidence[:],
		s.Rated, s.Score.Score, s.Low, s.High, s.Mean, s.Confidence, s.Tier, s.OwnScore, s.OwnHigh, a.Owner[:], hashOrNone(a.Wallet), s.Result, a.Shown[:], toleranceOf(a))
	if a.Last != nil {
		queueFinal(b, chainID, run, a)
	}
}

// sameScore tells whether the row s of trust_scores still stands where excluded would be
// put. It is the same row; or nothing happened to the agent since and all that changed by
// age is less than the tolerance $21, with the same inputs of both runs. A score that other
// agents of the party are held to is always exact: one that is written late would make
// theirs depend on when that was. So is one whose block was replaced, which nobody sees.
const sameScore = `
	(s.evidence, s.owner, s.wallet, s.facts) = (excluded.evidence, excluded.owner, excluded.wallet, excluded.facts)
	and ((s.run, s.block, s.block_hash, s.result) = (excluded.run, excluded.block, excluded.block_hash, excluded.result)
		or abs(s.score - excluded.score) < $21 and abs(s.low - excluded.low) < $21 and abs(s.high - excluded.high) < $21
		and abs(s.mean - excluded.mean) < $21 and abs(s.confidence - excluded.confidence) < $21 * 10
		and ((s.own_score, s.own_high) = (excluded.own_score, excluded.own_high) or least(s.own_high, excluded.own_high) >= 0
			and abs(s.own_score - excluded.own_score) < $21 and abs(s.own_high - excluded.own_high) < $21)
		and exists (select from trust_runs was join trust_runs is_ using (chain_id)
			where (was.chain_id, was.run, is_.run) = (s.chain_id, s.run, excluded.run)
			and (was.scorer, was.params, was.tags, was.roots, was.links, was.validations) = (is_.scorer, is_.params, is_.tags, is_.roots, is_.links, is_.validations)
			and is_.repaired = 0
			and ((s.block, s.block_hash) = (excluded.block, excluded.block_hash) or s.block <= is_.block and excluded.block = is_.block)
			and (s.block = was.block or exists (select from blocks b where (b.chain_id, b.number, b.hash) = (s.chain_id, s.block, s.block_hash)))))`

// toleranceOf is how far the numbers of a row may be from those that are not written.
func toleranceOf(a *ScoredAgent) int32 {
	if a.Exact {
		return 0
	}
	return int32(Tolerance)
}

// hashOrNone is an address as a column holds it: empty for none.
func hashOrNone(a common.Address) []byte {
	if a == (common.Address{}) {
		return []byte{}
	}
	return a[:]
}

func queueFinal(b *pgx.Batch, chainID, run uint64, a *ScoredAgent) {
	token, s := tokenNum(a.TokenID), a.Last
	b.Queue(kinFollow("final_own_score", "final_own_high", true),
		chainID, token, a.Owner[:], hashOrNone(a.Wallet), s.OwnScore, s.OwnHigh)
	b.Queue(`update trust_scores set final_own_score = $3, final_own_high = $4 where chain_id = $1 and token_id = $2
		and (final_own_score is null or least(final_own_high, $4) < 0 and (final_own_score, final_own_high) <> ($3, $4)
			or abs(final_own_score - $3) >= $5 or abs(final_own_high - $4) >= $5)`, chainID, token, s.OwnScore, s.OwnHigh, toleranceOf(a))
	b.Queue(`delete from trust_finals where chain_id = $1 and token_id = $2 and run = $3`, chainID, token, run)
	b.Queue(`
		insert into trust_finals (chain_id, token_id, run, evidence, rated, score, low, high, mean, confidence, tier, facts, result)
		select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13
		where not exists (select from (
				select * from trust_finals where chain_id = $1 and token_id = $2 and run < $3 order by run desc limit 1) p
			join trust_runs was on (was.chain_id, was.run) = ($1, p.run)
			join trust_runs is_ on (is_.chain_id, is_.run) = ($1, $3)
			where p.facts = $12 and abs(p.score - $6) < $14 and abs(p.low - $7) < $14 and abs(p.high - $8) < $14
			and (was.scorer, was.params, was.tags, was.roots, was.links, was.validations) = (is_.scorer, is_.params, is_.tags, is_.roots, is_.links, is_.validations) and is_.repaired = 0)`,
		chainID, token, run, s.Evidence[:], s.Rated, int32(s.Score.Score), int32(s.Low), int32(s.High), int32(s.Mean), s.Confidence, s.Tier, a.Facts[:], s.Result,
		int32(Tolerance))
}

// kinFollow makes other agents of the same party stale, the youngest, when one of them
// becomes surely bad, is so in another way, or is so no more: also when it changes hands,
// then those of the party it leaves too. $3 to $6 are its owner, wallet, score and upper
// bound now; of one whose score goes away no owner, no wallet and zeros.
func kinFollow(score, high string, final bool) string {
	return fmt.Sprintf(`
		insert into trust_stale (chain_id, token_id, turn, final)
		select $1, a.token_id, 0, %[3]t from (
			with was as (select owner, wallet, coalesce(%[1]s, 0) as score, coalesce(%[2]s, 0) as high from trust_scores where chain_id = $1 and token_id = $2),
			moved as (
				select from (values (1)) one left join was on true
				where least($6::integer, coalesce(was.high, 0)) < 0
				and (was.owner, was.wallet, was.score, was.high) is distinct from ($3::bytea, $4::bytea, $5::integer, $6::integer)),
			party as (select unnest(array[$3::bytea, $4::bytea]) as who union select owner from was union select wallet from was)
			select token_id from agents where exists (select from moved) and chain_id = $1
				and owner = any(array(select who from party)) and owner <> '' and token_id <> $2 and `+judgedAgents+`
			union select token_id from agents where exists (select from moved) and chain_id = $1
				and wallet = any(array(select who from party)) and wallet <> '' and token_id <> $2 and `+judgedAgents+`
			order by token_id desc limit 1000) a
		order by a.token_id`, score, high, final) + markTokens
}

// Kin is another agent of the same party that is surely bad.
type Kin struct {
	Of                repute.TokenID // whose kin it is
	TokenID           repute.TokenID
	OwnScore, OwnHigh repute.Points
}

// TrustKin finds, for each of the agents, the worst other agent with the same owner or
// wallet whose score, without its own kin, is surely below a number of points of at most
// 0: among final scores or among the newest ones.
func (db *DB) TrustKin(ctx context.Context, subjects []TrustSubject, below repute.Points, final bool) (map[repute.TokenID]Kin, error) {
	if len(subjects) == 0 {
		return nil, nil
	}
	score, high := "own_score", "own_high"
	if final {
		score, high = "final_own_score", "final_own_high"
	}
	var ids []repute.TokenID
	var owners, wallets [][]byte
	for _, s := range subjects {
		ids, owners, wallets = append(ids, s.Agent.TokenID), append(owners, s.Owner.Bytes()), append(wallets, hashOrNone(s.Wallet))
	}
	worst := func(column string) string {
		return `(select k.token_id, k.` + score + ` as score, k.` + high + ` as high from trust_scores k where k.chain_id = $1 and k.` + column + ` = any(array[u.o, u.w])
			and k.` + column + ` <> '' and k.` + high + ` < 0 and k.` + high + ` < $5 and k.token_id <> u.t order by k.` + score + `, k.token_id limit 1)`
	}
	rows, err := db.readers.Query(ctx, `
		select u.t, k.token_id, k.score, k.high from unnest($2::numeric[], $3::bytea[], $4::bytea[]) u(t, o, w)
		cross join lateral (select * from (`+worst("owner")+` union all `+worst("wallet")+`) k order by score, token_id limit 1) k`,
		subjects[0].Agent.ChainID, tokenArray(ids), owners, wallets, int32(min(below, 0)))
	if err != nil {
		return nil, failed("read kin", err)
	}
	out := map[repute.TokenID]Kin{}
	var k Kin
	_, err = pgx.ForEachRow(rows, []any{(*tokenNum)(&k.Of), (*tokenNum)(&k.TokenID), &k.OwnScore, &k.OwnHigh}, func() error {
		out[k.Of] = k
		return nil
	})
	return out, failed("read kin", err)
}

// DumpScores gives every stored score of a chain, one line each, in order: two chains
// with the same events, roots and runs have the same.
func (db *DB) DumpScores(ctx context.Context, chainID uint64) (lines []string, err error) {
	rows, err := db.readers.Query(ctx, `
		select format('%s now %s %s %s %s', s.token_id, s.block, encode(s.block_hash, 'hex'), encode(r.weights, 'hex'), convert_from(s.result, 'UTF8'))
		from trust_scores s join trust_runs r using (chain_id, run) where s.chain_id = $1
		union all
		select format('%s final %s %s %s', s.token_id, r.boundary, encode(r.weights, 'hex'), convert_from(s.result, 'UTF8'))
		from trust_finals s join trust_runs r using (chain_id, run) where s.chain_id = $1
		order by 1`, chainID)
	if err != nil {
		return nil, failed("dump scores", err)
	}
	lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
	return lines, failed("dump scores", err)
}
