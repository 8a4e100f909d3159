package engine_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/scoredb"
	"repute/store/trustdb"
	"repute/trust/engine"
)

// large is a settled ledger in which agent 0 has as many ratings as those whose accounts are kept.
func large(t testing.TB, ratings int) (*ledger, *store.DB) {
	t.Helper()
	l, db, _ := largeTraced(t, ratings)
	return l, db
}

// largeTraced is large with the statements of the database.
func largeTraced(t testing.TB, ratings int) (*ledger, *store.DB, *statements) {
	t.Helper()
	l := newLedger(5)
	db, url := l.fresh(t)
	s := l.state()
	l.mine(s, append(s.mint(person(8)), s.mint(person(9))...)...)
	l.mine(s, s.rate(0, person(0), 90), s.rate(0, person(1), 80), s.rate(0, person(2), 70))
	for len(l.blocks) < 60 {
		l.mine(l.state())
	}
	l.store(t, db, 60)
	fill(t, db, ratings)
	db, seen := traced(t, url) // without the rows that the first one remembers
	return l, db, seen
}

// stranger is the n-th rater of fill.
func stranger(n int64) common.Address { return common.BigToAddress(big.NewInt(n + 1<<40)) }

// fill gives agent 0 that many ratings more, each of another rater.
func fill(t testing.TB, db *store.DB, ratings int) {
	t.Helper()
	for _, sql := range []string{`
		insert into feedback (chain_id, token_id, client, idx, block, log_index, value, decimals, tag1, tag2, uri_id,
			endpoint, hash)
		select chain_id, token_id, decode(lpad(to_hex(n + (1::bigint << 40)), 40, '0'), 'hex'), 1, block, 10 + n, 11 + n % 89,
			decimals, tag1, tag2, uri_id, endpoint, hash
		from feedback, generate_series(1, $1) n where token_id = 0 and log_index = 0`, `
		insert into sums (chain_id, token_id, client, tag1, tag2, decimals, n, sum)
		select chain_id, token_id, client, tag1, tag2, decimals, 1, value from feedback
		where token_id = 0 and log_index between 11 and 10 + $1`,
		"update agents set feedback = feedback + $1 where token_id = 0"} {
		_, err := db.Pool().Exec(t.Context(), sql, ratings)
		ok(t, err)
	}
	_, err := db.Pool().Exec(t.Context(), "analyze feedback")
	ok(t, err)
}

// The kept account of a large agent gives the scores that all its ratings give, whatever happens to
// the agent: ratings, revocations, a new wallet or owner, a payment, and blocks that are replaced.
func TestLargeAgentByItsAccount(t *testing.T) {
	t.Parallel()
	l, db := large(t, 6000)
	steps, err := engine.NewSteps(db, shortEpochs(t), 9)
	ok(t, err)
	ok(t, steps.Walk(t.Context()))
	ok(t, steps.Rescore(t.Context(), true))
	grown := 0
	check := func(what string) {
		t.Helper()
		l.store(t, db, 60)
		before := steps.Grown()
		n, err := steps.Follow(t.Context())
		ok(t, err)
		if n == 0 {
			t.Errorf("%s: nothing was scored", what)
		}
		grown += steps.Grown() - before
		got := stored(t, db)
		fresh, err := engine.NewSteps(db, shortEpochs(t), 9)
		ok(t, err)
		ok(t, fresh.Walk(t.Context()))
		fresh.ForgetRatings()
		_, err = db.Pool().Exec(t.Context(), "insert into trust_marks (chain_id, token_id) values (9, 0)")
		ok(t, err)
		_, err = db.Pool().Exec(t.Context(), "update trust_scores set block = 0, result = '' where token_id = 0")
		ok(t, err)
		n, err = fresh.Follow(t.Context())
		ok(t, err)
		if want := stored(t, db); n == 0 || difference(got, want) != "one is longer" || len(got) != len(want) {
			t.Errorf("%s: %s", what, difference(got, want))
		}
	}
	event := func(what string, events ...repute.Event) {
		t.Helper()
		l.mine(l.state(), events...)
		check(what)
	}
	rate := func(n int) repute.Event {
		s := l.blocks[len(l.blocks)-1].after
		return s.rate(0, person(n), int64(50+n))
	}
	event("the first event", rate(3))
	event("a root", rate(4))
	event("before an early fork", rate(19))
	l.fork(uint64(len(l.blocks) - 1))
	before := grown
	if event("an early fork", rate(20)); grown == before {
		t.Error("all ratings were read after a fork")
	}
	event("several in a block", rate(5), rate(9), rate(10))
	event("a rater again", rate(0))
	event("a revocation", repute.FeedbackRevoked{TokenID: token(0), Client: person(4), Index: 1})
	event("after a revocation", rate(6))
	event("a revocation by one of many", repute.FeedbackRevoked{TokenID: token(0), Client: stranger(17), Index: 1})
	event("a revocation by a rater with two ratings",
		repute.FeedbackRevoked{TokenID: token(0), Client: person(0), Index: 1})
	event("a rating and its revocation", rate(16),
		repute.FeedbackRevoked{TokenID: token(0), Client: person(16), Index: 1})
	event("after it", rate(17))
	event("a revocation and a rating", repute.FeedbackRevoked{TokenID: token(0), Client: person(6), Index: 1}, rate(18))
	pay(t, db, 0, person(1), 100)
	check("a payment")
	pay(t, db, 0, person(1), 0)
	check("no payment")
	event("before a fork", rate(12))
	l.fork(uint64(len(l.blocks) - 1))
	event("a fork", rate(13))
	event("after a fork", rate(14))
	event("an operator", repute.ApprovalForAll{Owner: person(8), Operator: person(11), Approved: true})
	event("after an operator", rate(7))
	event("a wallet", repute.MetadataSet{TokenID: token(0), Key: "agentWallet", Value: person(3).Bytes()})
	event("after a wallet", rate(15))
	if grown < 10 {
		t.Errorf("the account was kept for %d events", grown)
	}
}

// A revocation and a rating that was stored late leave as many ratings as before, but not the same ones.
func TestRevocationAndLateRating(t *testing.T) {
	t.Parallel()
	_, db := large(t, 10)
	known := trustdb.Known{AnyRevoked: true}
	var hash []byte
	ok(t, db.Pool().QueryRow(t.Context(), `
		select b.number, b.hash, a.feedback from agents a, blocks b where a.chain_id = 9 and a.token_id = 0 and b.chain_id = 9
		order by b.number desc limit 1 offset 1`).Scan(&known.Block, &hash, &known.Live))
	known.Hash = common.Hash(hash)
	grown := func() bool {
		t.Helper()
		_, grown, err := trustdb.ReadGrowth(t.Context(), db, 9, token(0), known, nil)
		ok(t, err)
		return grown
	}
	if !grown() {
		t.Fatal("nothing happened to the ratings, but they are not known")
	}
	// One of the agent's ratings takes no part in its count yet, as one that is stored late.
	_, err := db.Pool().Exec(t.Context(), `update feedback set revoked_block = $1, revoked_log = 0
		where chain_id = 9 and token_id = 0 and log_index = 11`, known.Block+1)
	ok(t, err)
	_, err = db.Pool().Exec(t.Context(), "update agents set revoked = revoked + 1 where chain_id = 9 and token_id = 0")
	ok(t, err)
	if grown() {
		t.Error("a revoked rating counts")
	}
}

// The owner of a large agent that its own domain proves, and who never acts, stays accountable with regard to that
// domain however many ratings follow one by one.
func TestDomainOfALargeAgent(t *testing.T) {
	t.Parallel()
	l := newLedger(99)
	db, url := l.fresh(t)
	s := l.state()
	l.mine(s, append(s.at("own.example", person(21)), s.at("own.example", person(21))...)...)
	l.give(0, person(8))
	l.give(1, person(8))
	s = l.state()
	l.mine(s, s.words(0, 11, 0, rooted)...)
	l.store(t, db, l.tip().Number)
	serve(t, db, "own.example", person(8), 0, 1)
	for len(l.blocks) < 60 {
		l.mine(l.state())
	}
	l.store(t, db, 60)
	fill(t, db, 6000)
	db = open(t, url)
	steps, err := engine.NewSteps(db, shortEpochs(t), 9)
	ok(t, err)
	ok(t, steps.Walk(t.Context()))
	ok(t, steps.Rescore(t.Context(), true))
	for n := range 4 {
		if !limited(t, db, 1) {
			t.Fatalf("after %d events the other agent of the domain is free", n)
		}
		s := l.state()
		l.mine(s, s.rate(0, person(40+n), 50))
		l.store(t, db, 60)
		_, err := steps.Follow(t.Context())
		ok(t, err)
		_, err = scoredb.MarkRelated(t.Context(), db, 9, 100)
		ok(t, err)
		_, err = db.Pool().Exec(t.Context(), "update trust_stale set cause = 0") // so that Follow scores it
		ok(t, err)
		_, err = steps.Follow(t.Context())
		ok(t, err)
	}
}

// Large agents of one batch whose accounts cannot be continued, because a rating has no time, are read again together.
func TestLargeAgentsWithoutTimes(t *testing.T) {
	t.Parallel()
	l, db := large(t, 6000)
	for _, sql := range []string{`
		insert into feedback (chain_id, token_id, client, idx, block, log_index, value, decimals, tag1, tag2, uri_id,
			endpoint, hash)
		select chain_id, 1, client, idx, block, log_index + 20000, value, decimals, tag1, tag2, uri_id, endpoint, hash
		from feedback where token_id = 0`,
		"update agents set feedback = (select feedback from agents where token_id = 0) where token_id = 1",
		"update blocks set time = null where number = (select max(block) from feedback where token_id = 1)"} {
		_, err := db.Pool().Exec(t.Context(), sql)
		ok(t, err)
	}
	steps, err := engine.NewSteps(db, shortEpochs(t), 9)
	ok(t, err)
	ok(t, steps.Walk(t.Context()))
	ok(t, steps.Pass(t.Context()))
	for range 3 {
		s := l.state()
		l.mine(s, s.rate(0, person(20), 50), s.rate(1, person(20), 50))
		l.store(t, db, 60)
		n, err := steps.Follow(t.Context())
		if ok(t, err); n != 2 || steps.Grown() != 0 {
			t.Errorf("%d agents were scored, %d by a kept account", n, steps.Grown())
		}
	}
}

// largestAgent is how many ratings the agent with most has on a public chain.
const largestAgent = 284_072

// BenchmarkEventAtALargeAgent is the work for one more rating of an agent with 284,072 ratings, by
// an engine that has scored it before: of raters without weight, and of the parties of BenchmarkEpoch, which have some.
func BenchmarkEventAtALargeAgent(b *testing.B) {
	b.Run("strangers", func(b *testing.B) {
		l, db := large(b, largestAgent)
		eventAtALargeAgent(b, db, func(n int) {
			s := l.state()
			l.mine(s, s.rate(0, person(n%people), 90))
			l.store(b, db, 60)
		})
	})
	b.Run("crowd", func(b *testing.B) {
		db := crowd(b, benchRatings(b))
		for _, sql := range []string{`
			insert into feedback (chain_id, token_id, client, idx, block, log_index, value, decimals, tag1, tag2, uri_id,
				endpoint, hash)
			select 9, 1005, ` + partyAt("i") + `, 777, 1 + i % 60, 1000000 + i, 11 + i % 89, 0, t.tag1, t.tag2, t.uri_id, '', ''
			from generate_series(0, $1::bigint - 1) i, (select tag1, tag2, uri_id from feedback limit 1) t`,
			"update agents set feedback = feedback + $1 where token_id = 1005"} {
			_, err := db.Pool().Exec(b.Context(), sql, largestAgent)
			ok(b, err)
		}
		_, err := db.Pool().Exec(b.Context(), "analyze")
		ok(b, err)
		eventAtALargeAgent(b, db, func(n int) {
			_, err := db.Pool().Exec(b.Context(), `
				with block as (
					insert into blocks (chain_id, number, hash, parent, time)
					select 9, max(number) + 1, decode(lpad(to_hex(max(number) + 1), 64, '0'), 'hex'), '', max(time) + interval '1 minute'
					from blocks returning number),
				rated as (
					insert into feedback (chain_id, token_id, client, idx, block, log_index, value, decimals, tag1, tag2, uri_id,
						endpoint, hash)
					select 9, 1005, f.client, 1000 + $1, b.number, 0, 90, 0, f.tag1, f.tag2, f.uri_id, '', ''
					from (select * from feedback where token_id = 1005 and log_index = 1000000 + $1) f, block b),
				counted as (
					update agents set feedback = feedback + 1, updated_block = (select number from block) where token_id = 1005),
				marked as (insert into trust_marks (chain_id, token_id) values (9, 1005))
				update chains set cursor_block = (select number from block)`, n)
			ok(b, err)
		})
	})
}

// eventAtALargeAgent measures events at a large agent. rate stores the n-th one.
func eventAtALargeAgent(b *testing.B, db *store.DB, rate func(n int)) {
	b.Helper()
	steps, err := engine.NewSteps(db, shortEpochs(b), 9)
	ok(b, err)
	ok(b, steps.Walk(b.Context()))
	ok(b, steps.Pass(b.Context()))
	first := time.Duration(0)
	var busy time.Duration
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		rate(n)
		before, began := cpu(b), time.Now()
		b.StartTimer()
		scored, err := steps.Follow(b.Context())
		b.StopTimer()
		if ok(b, err); scored == 0 {
			b.Fatal("nothing was scored")
		}
		if n == 0 {
			first = time.Since(began)
		} else {
			busy += cpu(b) - before
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(first.Microseconds())/1000, "first-ms")
	b.ReportMetric(float64(busy.Microseconds())/1000/float64(max(1, b.N-1)), "cpu-ms/op")
}
