package engine_test

import (
	"cmp"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"repute/store"
	"repute/trust/engine"
)

// BenchmarkOneEvent is the work for one more rating of an agent that has forty: from the
// change feed to the stored score.
func BenchmarkOneEvent(b *testing.B) {
	l := newLedger(1)
	db, _ := l.fresh(b)
	l.grow(300)
	s := l.state()
	for n := range 40 {
		l.mine(s, s.rate(1, person(n%people), 90))
		s = l.state()
	}
	l.store(b, db, 300)
	stop := start(b, db)
	settle(b, db, 9, 300)
	stop()
	e, err := engine.NewSteps(db, shortEpochs(b), 9)
	ok(b, err)
	ok(b, e.Walk(b.Context()))
	var busy time.Duration
	for b.Loop() {
		b.StopTimer()
		s := l.state()
		l.mine(s, s.rate(1, person(b.N%people), 90))
		l.store(b, db, 300)
		b.StartTimer()
		before := cpu(b)
		n, err := e.Follow(b.Context())
		ok(b, err)
		busy += cpu(b) - before
		if n == 0 {
			b.Fatal("nothing was scored")
		}
	}
	b.ReportMetric(float64(busy.Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// cpu is what this process has worked, which is the same on a busy machine. The
// database's work is not in it.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	ok(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEpoch is an epoch of REPUTE_BENCH_RATINGS ratings (100,000) of a tenth as many agents, on which nothing but
// age changed since the epoch before: reading what changed, the walk, then the pass over all agents, which finds their
// scores unchanged. The first epoch of the engine, which reads and stores everything, is not part of it.
func BenchmarkEpoch(b *testing.B) {
	db := crowd(b, benchRatings(b))
	steps, err := engine.NewSteps(db, shortEpochs(b), 9)
	ok(b, err)
	epoch(b, db, steps, 0)
	n := 0
	for b.Loop() {
		n++
		epoch(b, db, steps, n)
	}
}

// benchRatings is REPUTE_BENCH_RATINGS.
func benchRatings(b *testing.B) int {
	b.Helper()
	ratings, err := strconv.Atoi(cmp.Or(os.Getenv("REPUTE_BENCH_RATINGS"), "100000"))
	ok(b, err)
	return ratings
}

// partyAt is the SQL of the address of a party of crowd.
func partyAt(n string) string {
	return "decode(lpad(to_hex((1::bigint << 40) + " + n + "), 40, '0'), 'hex')"
}

// epoch lets the engine make the n-th epoch after block 70.
func epoch(b *testing.B, db *store.DB, steps *engine.Steps, n int) {
	b.Helper()
	_, err := db.Pool().Exec(b.Context(), `
		with block as (
			insert into blocks (chain_id, number, hash, parent, time)
			select 9, 70 + 10 * $1::bigint, decode(lpad(to_hex(70 + 10 * $1::bigint), 64, '0'), 'hex'), '',
				max(time) + interval '10 minutes' from blocks on conflict do nothing)
		update chains set cursor_block = 70 + 10 * $1::bigint, finalized_block = 70 + 10 * $1::bigint`, n)
	ok(b, err)
	began, busy := time.Now(), cpu(b)
	ok(b, steps.Walk(b.Context()))
	walked, walkBusy := time.Since(began), cpu(b)-busy
	began, busy = time.Now(), cpu(b)
	ok(b, steps.Pass(b.Context()))
	b.Logf("walk %v, %v of processors; pass %v, %v of processors", walked, walkBusy, time.Since(began), cpu(b)-busy)
	ok(b, steps.Rescore(b.Context(), true)) // closes the run
}

// crowd is a chain with that many random ratings, most of few agents.
func crowd(b *testing.B, ratings int) *store.DB {
	b.Helper()
	l := newLedger(1)
	db, _ := l.fresh(b)
	l.grow(60)
	l.store(b, db, 60)
	for _, sql := range []string{`
		insert into agents (chain_id, token_id, owner, claimed, wallet, approved, uri_id, registered_block, registered_log,
			updated_block, updated_log)
		select 9, 1000 + i, ` + partyAt("i") + `, false, '', '', 1, 1, i, 60, i from generate_series(0, $1::bigint / 10 - 1) i`, `
		insert into agent_states (chain_id, token_id, from_block, owner, claimed, wallet, approved, uri_id)
		select 9, token_id, 1, owner, false, '', '', 1 from agents where token_id >= 1000 and $1 > 0`, `
		insert into feedback (chain_id, token_id, client, idx, block, log_index, value, decimals, tag1, tag2, uri_id, endpoint,
			hash)
		select distinct on (token_id, client) 9, token_id, client, 1, block, i, case when i % 10 = 0 then 15 else 90 end, 0,
			t.tag1, t.tag2, t.uri_id, '', ''
		from (select 1000 + floor(power(random(), 2) * ($1::bigint / 10))::bigint token_id,
			` + partyAt("floor(random() * ($1::bigint / 10))::bigint") + ` client, 1 + i % 60 block, i
			from generate_series(0, $1::bigint - 1) i) g, (select tag1, tag2, uri_id from feedback limit 1) t`, `
		update agents a set feedback = n from (select token_id, count(*) n from feedback
			where token_id >= 1000 and $1 > 0 group by 1) f where f.token_id = a.token_id`, `
		insert into trust_roots (chain_id, set_name, address, weight, reason)
		select 9, 'default', owner, 1000000, 'bench' from agents where token_id >= 1000 and token_id % 100 = 0 and $1 > 0`,
	} {
		_, err := db.Pool().Exec(b.Context(), sql, ratings)
		ok(b, err)
	}
	for _, sql := range []string{`
		insert into blocks (chain_id, number, hash, parent, time)
		select 9, n, decode(lpad(to_hex(n), 64, '0'), 'hex'), '', (select min(time) from blocks) + n * interval '1 minute'
		from generate_series(1, 60) n on conflict (chain_id, number) do update set time = excluded.time`,
		"update cursors set position = position + 1 where job = 'roots and links'", "analyze"} {
		_, err := db.Pool().Exec(b.Context(), sql)
		ok(b, err)
	}
	return db
}
