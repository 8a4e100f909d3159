package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/query"
)

// After Warm each connection is open and has the statements of a reputation.
func TestWarmPreparesEveryReader(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	fill, err := store.Open(t.Context(), url, store.Options{})
	ok(t, err)
	t.Cleanup(fill.Close)
	ok(t, query.Warm(t.Context(), fill)) // nothing is indexed
	w := newWorld(7, 100, 1)
	w.mine(repute.Registered{TokenID: tokenID(0), URI: "https://a.example/0", Owner: person(1)})
	w.store(t, fill, w.tip().Number)
	const readers = 5
	db, err := store.Open(t.Context(), url, store.Options{MaxConns: readers})
	ok(t, err)
	t.Cleanup(db.Close)
	ok(t, query.Warm(t.Context(), db))
	if open := db.Readers().Stat().TotalConns(); open != readers {
		t.Errorf("%d connections are open, want %d", open, readers)
	}
	prepared := func(c *pgxpool.Conn) (n int) {
		ok(t,
			c.QueryRow(t.Context(),
				"select count(*) from pg_prepared_statements where statement like '%trust_scores%'").Scan(&n))
		return n
	}
	for range readers {
		c, err := db.Readers().Acquire(t.Context())
		ok(t, err)
		defer c.Release()
		if prepared(c) == 0 {
			t.Error("a connection has no statement that reads scores")
		}
	}
}
