package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

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
