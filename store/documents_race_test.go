package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/docdb"
)

// An agent that is stored while its document is saved hears of the document: who reads the agent before the document is
// committed finds none, and nothing else would tell of it.
func TestAgentStoredWhileItsDocumentIsSaved(t *testing.T) {
	t.Parallel()
	const uri, lock = "https://x/late", 77
	db, _ := queue(t, "https://x/0", uri)
	ctx := ctxOf(t)
	sqlExec(t, db, "delete from agents where uri_id = (select id from uris where uri = convert_to($1, 'UTF8'))", uri)
	sqlExec(t, db, `create function wait_for_test() returns trigger language plpgsql as $$
		begin perform pg_advisory_xact_lock(77); return null; end $$`)
	sqlExec(t, db, `create constraint trigger wait_for_test after update on uris deferrable initially deferred
		for each row when (new.sha256 is not null) execute function wait_for_test()`)
	u := claim(t, db, "")[uri]
	since := ""
	told(t, db, "", &since)

	held, err := db.Pool().Begin(ctx)
	ok(t, err)
	defer held.Rollback(ctx)
	_, err = held.Exec(ctx, "select pg_advisory_xact_lock($1)", lock)
	ok(t, err)
	saved := make(chan error, 1)
	go func() { // stays before its commit
		saved <- docdb.SaveDocuments(ctx, db, docdb.FetchResult{URIID: u.ID, FetchedAt: time.Now(), Source: "https",
			Body: []byte("late"), ParserVersion: 1, Registration: linked("late")})
	}()
	waiting := "select exists (select from pg_locks where locktype = 'advisory' and objid = $1 and not granted)"
	for is := false; !is; time.Sleep(time.Millisecond) {
		ok(t, held.QueryRow(ctx, waiting, lock).Scan(&is))
		select {
		case err := <-saved:
			t.Fatalf("the document was saved before: %v", err)
		default:
		}
	}
	share(t, db, uri, 50, 1)
	sqlExec(t, db, "delete from trust_marks") // an engine has scored the agent, without its document
	ok(t, held.Commit(ctx))
	ok(t, <-saved)

	for more := true; more; {
		more, err = docdb.AddSharedChanges(ctx, db, 10)
		ok(t, err)
	}
	if got := told(t, db, "document.updated", &since); len(got) != 1 || got["50"] == "" {
		t.Errorf("agents told of their documents: %v, want agent 50", got)
	}
	rows, err := db.Pool().Query(ctx, "select token_id::text from trust_marks")
	ok(t, err)
	marked, err := pgx.CollectRows(rows, pgx.RowTo[string])
	ok(t, err)
	if len(marked) != 1 || marked[0] != "50" {
		t.Errorf("agents marked for scoring: %v, want agent 50", marked)
	}
}

// pause makes transactions that write a row wait before their commit until release is called. waiting returns once one
// of them waits.
func pause(t *testing.T, db *store.DB, trigger string) (waiting, release func()) {
	t.Helper()
	const lock = 78
	ctx := ctxOf(t)
	sqlExec(t, db, `create function pause_for_test() returns trigger language plpgsql as $$
		begin perform pg_advisory_xact_lock(78); return null; end $$`)
	sqlExec(t, db, "create constraint trigger pause_for_test "+trigger+" execute function pause_for_test()")
	held, err := db.Pool().Begin(ctx)
	ok(t, err)
	t.Cleanup(func() { _ = held.Rollback(context.Background()) })
	_, err = held.Exec(ctx, "select pg_advisory_xact_lock($1)", lock)
	ok(t, err)
	waiting = func() {
		t.Helper()
		for is := false; !is; time.Sleep(time.Millisecond) {
			ok(t, held.QueryRow(ctx, `select exists (select from pg_locks where locktype = 'advisory' and objid = $1
				and not granted)`, lock).Scan(&is))
		}
	}
	return waiting, func() { ok(t, held.Commit(ctx)) }
}

// rounds makes all rounds of shared documents that are due, and those that were postponed.
func rounds(t *testing.T, db *store.DB) {
	t.Helper()
	sqlExec(t, db, "update cursors set due = now() where job = 'shared document' and due is not null")
	for more := true; more; {
		var err error
		more, err = docdb.AddSharedChanges(ctxOf(t), db, 1000)
		ok(t, err)
	}
}

// timesTold returns how many changes of documents the agents got, by their ids.
func timesTold(t *testing.T, db *store.DB, since *string) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, c := range readChanges(t, ctxOf(t), db, *since) {
		if *since = c.Cursor; c.Kind == "document.updated" {
			out[c.TokenID.Dec()]++
		}
	}
	return out
}

// A second agent of a URI whose transaction has not ended when the document is saved hears of the document too: who
// reads the agent before the document is committed finds the former one. The transactions do not wait for each other.
func TestSecondAgentOfADocumentThatIsSaved(t *testing.T) {
	t.Parallel()
	const uri = "https://x/shared"
	db, w := queue(t, uri)
	u, since := claim(t, db, "")[uri], ""
	read(t, db, u, "former", linked("former"))
	timesTold(t, db, &since)
	waiting, release := pause(t, db,
		"after insert on agents deferrable initially deferred for each row when (new.token_id = 1)")
	w.mine(repute.Transfer{To: person(1), TokenID: tokenID(1)},
		repute.Registered{TokenID: tokenID(1), URI: uri, Owner: person(1)})
	stored := make(chan struct{})
	go func() {
		defer close(stored)
		w.store(t, db, w.tip().Number)
	}()
	waiting()
	read(t, db, u, "new", linked("new"))
	rounds(t, db) // finds the agent's transaction, and is made again later
	release()
	<-stored
	rounds(t, db)
	if got := timesTold(t, db, &since); got["0"] != 2 || got["1"] != 1 || len(got) != 2 {
		t.Errorf("told %v, want the first agent at once and with the second one", got)
	}
	rounds(t, db)
	if got := timesTold(t, db, &since); len(got) != 0 {
		t.Errorf("told again: %v", got)
	}
}

// An agent of a document that is being saved is stored after the document, so that its readers find the new one.
func TestAgentWaitsForTheDocumentThatIsSaved(t *testing.T) {
	t.Parallel()
	const uri = "https://x/shared"
	db, w := queue(t, uri)
	u, since := claim(t, db, "")[uri], ""
	waiting, release := pause(t, db,
		"after update on uris deferrable initially deferred for each row when (new.sha256 is not null)")
	saved := make(chan struct{})
	go func() {
		defer close(saved)
		read(t, db, u, "new", linked("new"))
	}()
	waiting()
	w.mine(repute.Transfer{To: person(1), TokenID: tokenID(1)},
		repute.Registered{TokenID: tokenID(1), URI: uri, Owner: person(1)})
	stored := make(chan struct{})
	go func() {
		defer close(stored)
		w.store(t, db, w.tip().Number)
	}()
	for is := false; !is; time.Sleep(time.Millisecond) {
		ok(t, db.Pool().QueryRow(ctxOf(t), `select exists (select from pg_stat_activity where wait_event_type = 'Lock'
			and datname = current_database() and query like '%for key share%')`).Scan(&is))
	}
	release()
	<-saved
	<-stored
	if got := timesTold(t, db, &since); got["0"] != 1 || len(got) != 1 {
		t.Errorf("told %v, want the agent that was stored before", got)
	}
}

// A round waits for a while only: agents that arrive without a break do not keep others from being told.
func TestRoundsDoNotWaitForever(t *testing.T) {
	t.Parallel()
	const uri = "https://x/shared"
	db, _ := queue(t, uri)
	u := claim(t, db, "")[uri]
	share(t, db, uri, 100, 1500)
	tx, err := db.Pool().Begin(ctxOf(t))
	ok(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	ok(t, docdb.ShowURIs(ctxOf(t), tx, []int64{u.ID}))
	read(t, db, u, "new", linked("new"))
	for waited := 0; ; waited++ {
		rounds(t, db)
		var told int
		ok(t, db.Pool().QueryRow(ctxOf(t), "select count(*) from changes where kind = 'document.updated'").Scan(&told))
		if told == 1501 && waited == 8 {
			return
		}
		if told > 0 || waited > 8 {
			t.Fatalf("%d agents are told after %d rounds that waited, want all after 8", told, waited)
		}
	}
}
