package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"repute"
	"repute/store"
)

// place is a position of a list.
type place struct {
	Block int64 `json:"b"`
}

func TestPagesBeginAtTheirCursor(t *testing.T) {
	t.Parallel()
	first := place{-1}
	question, from, err := store.BeginPage("", first, "list", 1)
	ok(t, err)
	if from != first {
		t.Errorf("without a cursor the page begins at %v", from)
	}
	cursor, err := store.EncodeCursor(question, place{7})
	ok(t, err)
	if _, from, err = store.BeginPage(cursor, first, "list", 1); err != nil || from != (place{7}) {
		t.Errorf("the page begins at %v, %v", from, err)
	}
	for name, parts := range map[string][]any{"filter": {"list", 2}, "list": {"tsil", 1}, "less": {"list"}} {
		if _, _, err := store.BeginPage(cursor, first, parts...); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzCursors: a cursor is a text of a stranger.
func FuzzCursors(f *testing.F) {
	question, _ := store.CursorFor("list")
	good, _ := store.EncodeCursor(question, place{3})
	for _, s := range []string{"", good, "e30", "bnVsbA", good[:len(good)-1], "=", "1-2", "01-2",
		"18446744073709551616-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_, given, err := store.DecodeCursor[place](question, s)
		if err != nil && (given || !errors.Is(err, repute.ErrInvalid)) {
			t.Errorf("%q: given %t, %v", s, given, err)
		}
		if given != (err == nil && s != "") {
			t.Errorf("%q: given %t, %v", s, given, err)
		}
		at, err := store.ParseChangeCursor(s)
		if err != nil && !errors.Is(err, repute.ErrInvalid) || err == nil && at.String() != s {
			t.Errorf("%q is cursor %v, %v", s, at, err)
		}
	})
}

// Callers retry what is unavailable, and show others nothing of the database.
func TestFailuresHaveTheirKind(t *testing.T) {
	t.Parallel()
	pg := func(code string) error { return fmt.Errorf("exec: %w", &pgconn.PgError{Code: code, Message: "m"}) }
	for name, c := range map[string]struct {
		err         error
		database    bool
		unavailable bool
	}{
		"statement timeout": {pg("57014"), true, true},
		"lock timeout":      {pg("55P03"), true, true},
		"idle timeout":      {pg("25P03"), true, true},
		"shutdown":          {pg("57P01"), true, true},
		"full":              {pg("53300"), true, true},
		"replica conflict":  {pg("40001"), true, true},
		"connection":        {pg("08006"), true, true},
		"end of file":       {fmt.Errorf("read: %w", io.ErrUnexpectedEOF), true, true},
		"unique":            {pg("23505"), true, false},
		"syntax":            {pg("42601"), true, false},
		"no rows":           {pgx.ErrNoRows, true, false},
		"caller left":       {fmt.Errorf("query: %w", context.Canceled), true, false},
		"deadline":          {fmt.Errorf("query: %w", context.DeadlineExceeded), true, false},
		"no slot":           {fmt.Errorf("busy: %w", repute.ErrUnavailable), false, true},
		"not found":         {fmt.Errorf("agent: %w", repute.ErrNotFound), false, false},
		"fenced":            {repute.ErrFenced, false, false},
	} {
		got := store.Failed("doing", c.err)
		if !errors.Is(got, c.err) || !strings.HasPrefix(got.Error(), "doing: ") {
			t.Errorf("%s: %v", name, got)
		}
		if errors.Is(got, store.ErrDatabase) != c.database || errors.Is(got, repute.ErrUnavailable) != c.unavailable {
			t.Errorf("%s: %v", name, got)
		}
		if again := store.Failed("more", got); errors.Is(again, store.ErrDatabase) != c.database ||
			errors.Is(again, repute.ErrUnavailable) != c.unavailable {
			t.Errorf("%s, wrapped again: %v", name, again)
		}
	}
	if store.Failed("doing", nil) != nil {
		t.Error("nothing failed")
	}
	lines := store.Failed("connect", errors.New("failed:\n\thost a: refused\n\thost a: refused\n\thost b: timeout\n"))
	if text := lines.Error(); !strings.HasSuffix(text, "failed: host a: refused; host b: timeout") {
		t.Errorf("the text is %q", text)
	}
}

func TestNothingIsWrittenUnderALostLease(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	lost, err := db.Acquire(ctx, "chain:1", "a", time.Hour)
	ok(t, err)
	held, err := db.Acquire(ctx, "chain:1", "a", time.Hour)
	ok(t, err)
	write := func(job string) func(pgx.Tx) error {
		return func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "insert into cursors (job) values ($1)", job)
			return err
		}
	}
	if err := db.InLease(ctx, lost, "write", write("lost")); !errors.Is(err, repute.ErrFenced) {
		t.Errorf("under a lost lease: %v", err)
	}
	ok(t, db.InLease(ctx, held, "write", write("held")))
	ok(t, db.InLease(ctx, store.Lease{}, "write", write("unchecked")))
	var jobs string
	ok(t, db.Readers().QueryRow(ctx,
		"select string_agg(job, ' ' order by job) from cursors where job in ('lost', 'held', 'unchecked')").Scan(&jobs))
	if jobs != "held unchecked" {
		t.Errorf("written: %s", jobs)
	}
}
