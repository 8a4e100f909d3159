package store_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/query"
)

// preparations counts the statements that connections prepare. It implements pgx.QueryTracer and pgx.PrepareTracer.
type preparations struct{ n atomic.Int64 }

func (*preparations) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (*preparations) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (p *preparations) TracePrepareStart(ctx context.Context, _ *pgx.Conn, d pgx.TracePrepareStartData) context.Context {
	p.n.Add(1)
	return ctx
}

func (*preparations) TracePrepareEnd(context.Context, *pgx.Conn, pgx.TracePrepareEndData) {}

// After Warm no reader prepares a statement for a reputation, however many ask at once.
func TestWarmPreparesEveryReader(t *testing.T) {
	t.Parallel()
	url, seen := pgtest.New(t), &preparations{}
	fill, err := store.Open(t.Context(), url, store.Options{})
	ok(t, err)
	t.Cleanup(fill.Close)
	ok(t, query.Warm(t.Context(), fill)) // nothing is indexed
	w := newWorld(7, 100, 1)
	w.mine(repute.Registered{TokenID: tokenID(0), URI: "https://a.example/0", Owner: person(1)},
		repute.Registered{TokenID: tokenID(1), URI: "https://a.example/1", Owner: person(1)})
	w.store(t, fill, w.tip().Number)
	db, err := store.Open(t.Context(), url, store.Options{MaxConns: 5, Tracer: seen})
	ok(t, err)
	t.Cleanup(db.Close)
	ok(t, query.Warm(t.Context(), db))
	warmed := seen.n.Load()
	var asking sync.WaitGroup
	for range 50 {
		asking.Go(func() {
			q := query.ReputationQuery{At: repute.At{Finality: repute.Latest}}
			if _, err := query.ReadReputation(t.Context(), db, w.id(1), q); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	if prepared := seen.n.Load(); warmed == 0 || prepared != warmed {
		t.Errorf("%d statements were prepared before the requests, %d after them", warmed, prepared)
	}
	if open := db.Readers().Stat().TotalConns(); open != 5 {
		t.Errorf("%d connections are open, want 5", open)
	}
}
