package engine_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"repute"
	"repute/trust"
	"repute/trust/explain"
)

// All raters who speak as one are left out of a counterfactual, not only those listed.
func TestCounterfactualWithoutACrowd(t *testing.T) {
	t.Parallel()
	l := newLedger(5)
	db, _ := l.fresh(t)
	s := l.state()
	l.mine(s, s.mint(person(8))...)
	var events []repute.Event
	for i := range people {
		if i == 0 || i > rooted { // one root and those who say the same as it
			events = append(events, s.rate(0, person(i), 100))
		}
	}
	l.mine(s, events...)
	l.pad(60)
	l.store(t, db, 60)
	start(t, db)
	settle(t, db, 9, 60)
	r, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	a, err := r.Explain(t.Context(), newest(t, db, 0).Agent, repute.At{Finality: repute.Latest}, nil)
	ok(t, err)
	if len(a.Counterfactuals) != 1 {
		t.Fatalf("%d counterfactuals, want one: %+v", len(a.Counterfactuals), a.Contributions)
	}
	if c := a.Counterfactuals[0]; len(c.Without) != 10 || c.Result.Rows != 0 || a.Result.Rows != people-rooted {
		t.Errorf("without %d listed raters %d of %d rows are left", len(c.Without), c.Result.Rows, a.Result.Rows)
	}
}

// An agent with very many ratings, half of them of one rater and half of a rater each, goes
// through engine, explanation and replay in bounded memory. It is alone, so that memory is
// its own.
func TestAgentOfVeryManyRatings(t *testing.T) {
	half := 40_000
	if testing.Short() {
		half = 10_000
	}
	l := newLedger(5)
	db, _ := l.fresh(t)
	s := l.state()
	l.mine(s, append(s.mint(person(8)), s.mint(person(9))...)...)
	l.mine(s, s.rate(0, person(0), 90), s.rate(0, person(1), 80), s.rate(0, person(2), 70))
	l.pad(60)
	l.store(t, db, 60)
	for _, sql := range []string{`
		insert into feedback (chain_id, token_id, client, idx, block, log_index, value, decimals, tag1, tag2, uri_id,
			endpoint, hash)
		select chain_id, token_id, client, 1 + n, block, 10 + n, 11 + n % 89, decimals, tag1, tag2, uri_id, endpoint, hash
		from feedback, generate_series(1, $1) n where client = $2`, `
		insert into feedback (chain_id, token_id, client, idx, block, log_index, value, decimals, tag1, tag2, uri_id,
			endpoint, hash)
		select chain_id, token_id, decode(lpad(to_hex(n + (1::bigint << 40)), 40, '0'), 'hex'), 1, block, 10 + $1 + n, 11 +
			n % 89, decimals, tag1, tag2, uri_id, endpoint, hash
		from feedback, generate_series(1, $1) n where client = $2 and idx = 1`} {
		_, err := db.Pool().Exec(t.Context(), sql, half, person(0).Bytes())
		ok(t, err)
	}
	for _, table := range []string{"feedback", "agents", "blocks"} { // as the server would before long
		_, err := db.Pool().Exec(t.Context(), "analyze "+table)
		ok(t, err)
	}
	_, err := db.Pool().Exec(t.Context(), "update agents set feedback = feedback + 2 * $1 where token_id = 0", half)
	ok(t, err)
	peak := watchHeap(t)
	began := time.Now()
	start(t, db)
	settle(t, db, 9, 60)
	scored := time.Since(began)
	r, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	began = time.Now()
	a, err := r.Explain(t.Context(), newest(t, db, 0).Agent, repute.At{Finality: repute.Latest}, nil)
	ok(t, err)
	t.Logf("%d ratings: engine %v, explanation %v, heap at most %d MiB", a.Result.Rows, scored, time.Since(began),
		peak()>>20)
	if a.Result.Rows != 2*half+3 || a.Result.Status != trust.Rated {
		t.Errorf("%d rows, %s", a.Result.Rows, a.Result.Status)
	}
	replayAll(t, db)
	if most := uint64(1 << 30); peak() > most {
		t.Errorf("the heap had %d MiB", peak()>>20)
	}
}

// watchHeap tells the most that the heap had since.
func watchHeap(t *testing.T) (peak func() uint64) {
	t.Helper()
	var most atomic.Uint64
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	go func() {
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most.Store(max(most.Load(), m.HeapAlloc))
			select {
			case <-done:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return most.Load
}
