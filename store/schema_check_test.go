package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/docstats"
)

// A glance tells a schema that is missing, older or newer from ours, and changes none.
func TestCheckSchema(t *testing.T) {
	t.Parallel()
	url := pgtest.Unmigrated(t)
	refusedSchema(t, url, "repute migrate up")
	conn, err := pgx.Connect(t.Context(), url)
	ok(t, err)
	defer conn.Close(t.Context())
	var tables int
	ok(t, conn.QueryRow(t.Context(), "select count(*) from pg_tables where schemaname = 'public'").Scan(&tables))
	if tables != 0 {
		t.Errorf("the glance made %d tables", tables)
	}
	ok(t, store.Migrate(t.Context(), url))
	ok(t, store.CheckSchema(t.Context(), url))
	for _, c := range []struct{ change, want, back string }{
		{"update goose_db_version set version_id = 90000 where version_id = 1", "migration 1 is missing",
			"update goose_db_version set version_id = 1 where version_id = 90000"},
		{"insert into goose_db_version (version_id, is_applied) values (90000, true)", "newer",
			"delete from goose_db_version where version_id = 90000"},
	} {
		_, err = conn.Exec(t.Context(), c.change)
		ok(t, err)
		refusedSchema(t, url, c.want)
		if err := store.Migrate(t.Context(), url); !errors.Is(err, repute.ErrConflict) ||
			!strings.Contains(err.Error(), "fresh database") {
			t.Errorf("migrated a database of another program: %v", err)
		}
		_, err = conn.Exec(t.Context(), c.back)
		ok(t, err)
	}
}

func refusedSchema(t *testing.T, url, want string) {
	t.Helper()
	err := store.CheckSchema(t.Context(), url)
	if !errors.Is(err, repute.ErrConflict) || !strings.Contains(err.Error(), want) ||
		!strings.Contains(err.Error(), "of 127.0.0.1:") {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Who looks sees whether documents wait, and whether anybody works on them.
func TestFetching(t *testing.T) {
	t.Parallel()
	db, _ := queue(t, "https://x/0")
	f, err := docstats.ReadFetching(t.Context(), db)
	if err != nil || f.Workers || f.Since.IsZero() || time.Since(f.Since) > time.Hour {
		t.Errorf("%+v, %v", f, err)
	}
	ok(t, docstats.NoteWorker(t.Context(), db))
	sqlExec(t, db, "update hosts set due_at = now() + interval '1 hour'")
	if f, err = docstats.ReadFetching(t.Context(), db); err != nil || f != (docstats.Fetching{Workers: true}) {
		t.Errorf("%+v, %v", f, err)
	}
	sqlExec(t, db, "update cursors set begun = begun - interval '1 minute' where job = 'documents'")
	if f, err = docstats.ReadFetching(t.Context(), db); err != nil || f.Workers {
		t.Errorf("the worker is gone: %+v, %v", f, err)
	}
}
