package store_test

import (
	"testing"
	"time"

	"repute/store"
	"repute/store/trustdb"
)

// followed is a chain on which an engine has read every change.
func followed(t *testing.T, chain uint64) (*store.DB, *world) {
	t.Helper()
	db, w := open(t), newWorld(chain, 100, 52)
	w.grow(20)
	w.store(t, db, w.tip().Number)
	ok(t, trustdb.AddRun(t.Context(), db, trustdb.Run{ChainID: chain, Run: 1, Scorer: "test"}))
	until(t, "all changes are read", func() bool {
		var unread bool
		marked(t, db, chain)
		ok(t, db.Pool().QueryRow(t.Context(),
			"select exists (select from changes c join trust_feed f using (chain_id) where (c.xid, c.seq) > (f.xid, f.seq))").Scan(&unread))
		return !unread
	})
	clear(t, db)
	return db, w
}

// marked is how many changes of a chain were read.
func marked(t *testing.T, db *store.DB, chain uint64) int {
	t.Helper()
	n, err := trustdb.MarkStale(t.Context(), db, chain, 1000)
	ok(t, err)
	return n
}

func clear(t *testing.T, db *store.DB) {
	t.Helper()
	_, err := db.Pool().Exec(t.Context(), "delete from trust_stale")
	ok(t, err)
}

func stale(t *testing.T, db *store.DB) (n int) {
	t.Helper()
	ok(t, db.Pool().QueryRow(t.Context(), "select count(*) from trust_stale").Scan(&n))
	return n
}

// An engine that reads after the changes it waited for were pruned looks at every agent,
// once.
func TestStaleAfterPrunedChanges(t *testing.T) {
	t.Parallel()
	db, w := followed(t, 7)
	w.grow(5)
	w.store(t, db, w.tip().Number)
	_, err := db.Pool().Exec(t.Context(), "delete from changes where seq < (select max(seq) from changes)")
	ok(t, err)
	_, err = db.Pool().Exec(t.Context(), "update trust_runs set scored_to = null")
	ok(t, err)
	marked(t, db, 7)
	before, err := trustdb.ReadPass(t.Context(), db, 7)
	if err != nil {
		t.Fatalf("no pass after changes were lost: %v", err)
	}
	for range 3 {
		marked(t, db, 7)
	}
	if after, err := trustdb.ReadPass(t.Context(), db, 7); err != nil || after != before {
		t.Errorf("another pass: %+v, %v", after, err)
	}
}

// What other chains do costs a quiet chain nothing: its position follows theirs, over no
// change of its own.
func TestStaleOfAQuietChain(t *testing.T) {
	t.Parallel()
	db, w := followed(t, 7)
	other := newWorld(8, 100, 53)
	other.grow(20)
	other.store(t, db, other.tip().Number)
	_, err := db.Pool().Exec(t.Context(), "update trust_feed set read_at = read_at - interval '1 hour'")
	ok(t, err)
	behind := func() (n int) {
		ok(t, db.Pool().QueryRow(t.Context(),
			"select count(*) from changes c, trust_feed f where f.chain_id = 7 and (c.xid, c.seq) > (f.xid, f.seq)").Scan(&n))
		return n
	}
	if behind() == 0 {
		t.Fatal("the other chain changed nothing")
	}
	until(t, "the position moves", func() bool { return marked(t, db, 7) == 0 && behind() == 0 })
	if n := stale(t, db); n > 0 {
		t.Errorf("%d agents are stale without a change of theirs", n)
	}
	w.grow(5)
	w.store(t, db, w.tip().Number)
	until(t, "the changes are read", func() bool { return marked(t, db, 7) > 0 })
	if stale(t, db) == 0 {
		t.Error("nobody is stale after changes")
	}
}

// After a restore into another cluster, where transaction ids start anew, nothing waits
// for the old ones to come round.
func TestStaleInAnotherCluster(t *testing.T) {
	t.Parallel()
	db, url := testDBAt(t)
	w := newWorld(7, 100, 52)
	w.grow(20)
	w.store(t, db, w.tip().Number)
	ok(t, trustdb.AddRun(t.Context(), db, trustdb.Run{ChainID: 7, Run: 1, Scorer: "test"}))
	for _, as := range []string{"update cursors set position = position - 1 where job = 'cluster'",
		"update changes set xid = (xid::text::bigint + 1000000000000)::text::xid8",
		"update trust_feed set xid = (xid::text::bigint + 1000000000000)::text::xid8", "delete from trust_stale"} {
		_, err := db.Pool().Exec(t.Context(), as)
		ok(t, err)
	}
	ok(t, store.Migrate(t.Context(), url))
	marked(t, db, 7)
	clear(t, db)
	w.grow(5)
	w.store(t, db, w.tip().Number)
	until(t, "the changes are read", func() bool { return marked(t, db, 7) > 0 })
	if stale(t, db) == 0 {
		t.Error("nobody is stale after changes")
	}
}

// until waits for what comes true as soon as no older transaction is open.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what + ": never")
		}
	}
}

// markAll marks all agents instead of beginning a pass.
func markAll(t *testing.T, db *store.DB) {
	t.Helper()
	for _, sql := range []string{"update trust_runs set scored_to = null", `
		insert into trust_stale (chain_id, token_id, cause, final)
		select chain_id, token_id, 1, true from agents where feedback + revoked + validations > 0`} {
		_, err := db.Pool().Exec(t.Context(), sql)
		ok(t, err)
	}
}

// Agents that are stale because of a run wait until its pass is behind them, others do not, and the
// run is not closed before.
func TestStaleAgentsWaitForThePass(t *testing.T) {
	t.Parallel()
	db, _ := followed(t, 7)
	ok(t, trustdb.AddRun(t.Context(), db, trustdb.Run{ChainID: 7, Run: 2, Scorer: "test"}))
	markAll(t, db)
	want := stale(t, db)
	if want < 4 {
		t.Fatalf("%d agents: the test shows nothing", want)
	}
	claimed := func(urgent bool) int {
		list, err := trustdb.ClaimStale(t.Context(), db, 7, 2, urgent, 1000, 0)
		ok(t, err)
		return len(list)
	}
	exec := func(sql string) {
		_, err := db.Pool().Exec(t.Context(), sql)
		ok(t, err)
	}
	exec("update trust_runs set scored_to = -1")
	if n := claimed(false); n != 0 {
		t.Errorf("%d agents are claimed before the pass reached them", n)
	}
	exec("update trust_stale set cause = 0 where token_id = (select max(token_id) from trust_stale)")
	if n := claimed(true); n != 1 {
		t.Errorf("%d agents with an event are claimed", n)
	}
	exec("update trust_runs set scored_to = (select min(token_id) from trust_stale)")
	if n := claimed(false); n != 1 {
		t.Errorf("%d agents behind the pass are claimed", n)
	}
	clear(t, db)
	if closed, err := trustdb.CloseRun(t.Context(), db, 7); closed || err != nil {
		t.Errorf("closed %v, %v", closed, err)
	}
	exec("update trust_runs set scored_to = null")
	if closed, err := trustdb.CloseRun(t.Context(), db, 7); !closed || err != nil {
		t.Errorf("closed %v, %v", closed, err)
	}
}
