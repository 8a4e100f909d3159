package store

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// OpenTraced opens a DB whose statements a test watches.
func OpenTraced(t testing.TB, url string, tracer pgx.QueryTracer) *DB {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &DB{pool: pool, readers: pool, replica: pool, options: Options{Classify: classifyByScheme},
		closed: make(chan struct{})}
}
