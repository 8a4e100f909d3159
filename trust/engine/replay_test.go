package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/trust/explain"
	"repute/trust/replay"
)

// scene is a settled ledger of n blocks on which an engine runs: agent 0 is rated badly by
// all roots, agent 1 of the same owner and agent 2 of another one well.
func scene(t *testing.T, n int) (*ledger, *store.DB) {
	t.Helper()
	l, db, _ := played(t, n)
	return l, db
}

// played is a scene with what stops the engine.
func played(t *testing.T, n int) (l *ledger, db *store.DB, stop func()) {
	t.Helper()
	l = newLedger(99)
	db, _ = l.fresh(t)
	s := l.state()
	events := append(append(s.mint(person(8)), s.mint(person(8))...), s.mint(person(9))...)
	for i := range rooted {
		events = append(events, s.rate(0, person(i), int64(i%3)), s.rate(1, person(i), int64(90+i%3)),
			s.rate(2, person(i), int64(90+i%3)))
	}
	l.mine(s, events...)
	l.pad(n)
	l.store(t, db, uint64(n))
	stop = start(t, db)
	settle(t, db, 9, uint64(n))
	return l, db, stop
}

// pad mines blocks without events.
func (l *ledger) pad(to int) {
	for len(l.blocks) < to {
		l.mine(l.state())
	}
}

func replayed(t *testing.T, db *store.DB, agent, block uint64) (repute.Score, error) {
	t.Helper()
	r, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	return r.Replay(t.Context(), repute.AgentID{ChainID: 9, TokenID: token(agent)}, block)
}

// pay has a payment of an agent's rating verified, or no longer so, as settling it does.
func pay(t *testing.T, db *store.DB, agent uint64, rater common.Address, usd int64) {
	t.Helper()
	tx, err := db.Pool().Begin(t.Context())
	ok(t, err)
	defer tx.Rollback(context.Background())
	for _, sql := range []string{
		`insert into payments (chain_id, token_id, client, idx, payer, payee, pay_chain, tx, state, pay_block, pay_log, pay_time, token, symbol, decimals, amount, paid, given, block, log_index)
		values (9, $1, $2, 1, $2, $2, 9, $2, case when $3 > 0 then 'verified' else 'pending' end, 1, 0, now(), '\x01',
			'USDC', 6, $3 * 1000000, $3 * 1000000, now(), 1, 3)
		on conflict (chain_id, token_id, client, idx) do update set state = excluded.state, paid = excluded.paid`,
		`insert into payment_ledger (chain_id, token_id, client, idx, paid) values (9, $1, $2, 1, $3 * 1000000)`,
		`insert into trust_marks (chain_id, token_id) select 9, $1 where $2::bytea is not null and $3::bigint is not null`,
	} {
		_, err := tx.Exec(t.Context(), sql, agent, rater.Bytes(), usd)
		ok(t, err)
	}
	ok(t, tx.Commit(t.Context()))
}

// A payment that is verified after a final score, or no longer so, changes nothing of that
// score: neither of one that knows of none, nor of one that knows of another.
func TestLaterPaymentLeavesFinal(t *testing.T) {
	t.Parallel()
	l, db := scene(t, 60)
	r, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	for i, block := range []uint64{60, 70, 80} {
		if block > 60 {
			s := l.state()
			l.mine(s, s.rate(1, person(5), 91)) // so that there is another final score
			l.pad(int(block))
			l.store(t, db, block)
			settle(t, db, 9, block)
		}
		before := newest(t, db, 1)
		pay(t, db, 1, person(i), 100)
		await(t, "the payment counts", func() bool { return newest(t, db, 1).Evidence != before.Evidence })
		final, err := replayed(t, db, 1, block)
		if err != nil {
			t.Fatalf("replay as of block %d: %v", block, err)
		}
		then, err := r.Explain(t.Context(), final.Agent, repute.At{Block: block}, nil)
		ok(t, err)
		now, err := r.Explain(t.Context(), final.Agent, repute.At{Finality: repute.Latest}, nil)
		ok(t, err)
		if final.Block.Number != block || then.Result.Mean != final.Mean || now.Result.Mean != newest(t, db, 1).Mean {
			t.Errorf("explained means %s and %s, stored %s and %s", then.Result.Mean, now.Result.Mean, final.Mean,
				newest(t, db, 1).Mean)
		}
	}
	before := newest(t, db, 1)
	pay(t, db, 1, person(0), 0)
	await(t, "the payment counts no more", func() bool { return newest(t, db, 1).Evidence != before.Evidence })
	replayAll(t, db)
	_, err = db.Pool().Exec(t.Context(), "delete from payment_ledger where client = $1", person(1).Bytes())
	ok(t, err)
	var pruned *replay.PrunedError
	if _, err := replayed(t, db, 1, 80); !errors.As(err, &pruned) {
		t.Errorf("without an entry of the ledger: %v", err)
	}
}

// Replay finds whatever was changed about a stored score.
func TestReplayFindsForgery(t *testing.T) {
	t.Parallel()
	_, db := scene(t, 60)
	if _, err := replayed(t, db, 1, 60); err != nil {
		t.Fatal(err)
	}
	exec := func(sql string) {
		t.Helper()
		tag, err := db.Pool().Exec(t.Context(), sql)
		ok(t, err)
		if tag.RowsAffected() == 0 {
			t.Fatalf("changes nothing: %s", sql)
		}
	}
	exec("create table honest as select * from trust_finals where token_id = 1")
	for _, set := range []string{"score = score + 1", "low = low - 1", "high = high + 1", "mean = mean + 1",
		"confidence = confidence + 1", "tier = tier + 1", "status = 'thin'"} {
		exec("update trust_finals set " + set + " where token_id = 1")
		var differs *explain.DiffersError
		if _, err := replayed(t, db, 1, 60); !errors.As(err, &differs) {
			t.Errorf("%s: %v", set, err)
		}
		exec("delete from trust_finals where token_id = 1")
		exec("insert into trust_finals select * from honest")
	}
	for _, forge := range []string{
		`update trust_finals set result = convert_to(regexp_replace(convert_from(result, 'UTF8'), '("guard":.*"score":)-?[0-9.]+', '\1-44.444'), 'UTF8') where token_id = 1`,
		`update trust_inputs set body = convert_to(regexp_replace(convert_from(body, 'UTF8'), '("score":)-?[0-9]+', '\1-44444'), 'UTF8') where hash = (select evidence from honest)`,
		`delete from trust_inputs where hash = (select evidence from honest)`,
	} {
		exec(forge)
		var pruned *replay.PrunedError
		if _, err := replayed(t, db, 1, 60); !errors.As(err, &pruned) {
			t.Errorf("%s: %v", forge, err)
		}
	}
}
