package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// Statements of a batch read one snapshot and cannot write, and one that fails leaves no connection in its transaction.
func TestReadBatch(t *testing.T) {
	t.Parallel()
	db := open(t)
	for range 20 { // more than there are connections
		var failed pgx.Batch
		failed.Queue("select 1 / 0")
		if err := db.ReadBatch(t.Context(), "divide", &failed); err == nil {
			t.Fatal("no error")
		}
	}
	var write pgx.Batch
	write.Queue("insert into tags (hash, value) values ('', 'a')")
	if err := db.ReadBatch(t.Context(), "write", &write); err == nil {
		t.Error("a batch that reads could write")
	}
	var b pgx.Batch
	var level, again string
	for _, into := range []*string{&level, &again} {
		b.Queue("show transaction_isolation").QueryRow(func(row pgx.Row) error { return row.Scan(into) })
	}
	ok(t, db.ReadBatch(t.Context(), "read", &b))
	if level != "repeatable read" || again != level {
		t.Errorf("the isolation levels of two statements: %q, %q", level, again)
	}
}
