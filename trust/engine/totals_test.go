package engine_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"repute/store"
	"repute/trust/engine"
)

// crash is a tracer that ends a context when the statement that stores newest scores begins or ends for the n-th time.
type crash struct {
	left atomic.Int64
	end  atomic.Pointer[context.CancelFunc]
}

// in returns a context that ends after so many beginnings and ends.
func (c *crash) in(ctx context.Context, n int64) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	c.left.Store(n)
	c.end.Store(&cancel)
	return ctx
}

func (c *crash) count(sql string) {
	if strings.Contains(sql, "insert into trust_scores") && c.left.Add(-1) == 0 {
		(*c.end.Load())()
	}
}

func (c *crash) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (c *crash) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *crash) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	for _, q := range d.Batch.QueuedQueries {
		c.count(q.SQL)
	}
	return ctx
}

func (c *crash) TraceBatchQuery(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchQueryData) {
	c.count(d.SQL)
}

func (c *crash) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// totals are the numbers of rated and thin agents of the newest run, and those counted now.
type totals struct{ rated, thin, ratedNow, thinNow int64 }

// totalsOf reads totals right after a run was closed.
func totalsOf(t *testing.T, db *store.DB) (n totals) {
	t.Helper()
	ok(t, db.Pool().QueryRow(t.Context(), `
		select r.rated, r.thin, count(*) filter (where s.status = 'rated'), count(*) filter (where s.status = 'thin')
		from trust_runs r left join trust_scores s using (chain_id)
		where r.run = (select max(run) from trust_runs where closed_at is not null) group by 1, 2`).Scan(
		&n.rated, &n.thin, &n.ratedNow, &n.thinNow))
	return n
}

// A run that is killed while it stores scores, and is resumed by another process, ends with the same numbers of rated
// and thin agents as one that is not, which are those of the stored scores. Between the runs events change scores, and
// a reorganization removes agents.
func TestTotalsOfARunThatIsKilled(t *testing.T) {
	t.Parallel()
	killed, different := 0, map[totals]bool{}
	for seed := range histories(t) {
		l := newLedger(300 + seed)
		whole, _ := l.fresh(t)
		first, url := l.fresh(t)
		steady, err := engine.NewSteps(whole, shortEpochs(t), 9)
		ok(t, err)
		for epoch := range 5 {
			l.grow(20)
			var c crash
			broken, err := store.Open(t.Context(), url, store.Options{MaxConns: 8, Tracer: &c})
			ok(t, err)
			for _, db := range []*store.DB{whole, first} {
				l.store(t, db, l.tip().Number)
			}
			ok(t, steady.Walk(t.Context()))
			ok(t, steady.Rescore(t.Context(), true))
			for n := int64(1); ; n += n/2 + 1 { // a new process each time
				steps, err := engine.NewSteps(broken, shortEpochs(t), 9)
				ok(t, err)
				steps.SmallBatches()
				ok(t, steps.Walk(t.Context()))
				if err = steps.Rescore(c.in(t.Context(), n), true); err == nil {
					break
				}
				killed++
				_, err = first.Pool().Exec(t.Context(),
					"update trust_stale set claimed = '-infinity'") // as after a minute
				ok(t, err)
			}
			broken.Close()
			got, want := totalsOf(t, first), totalsOf(t, whole)
			if got != want || got.rated != got.ratedNow || got.thin != got.thinNow {
				t.Fatalf("seed %d epoch %d: %+v after crashes, %+v without", seed, epoch, got, want)
			}
			different[got] = true
			if a, b := stored(t, first), stored(t, whole); !slices.Equal(a, b) {
				t.Fatalf("seed %d epoch %d: other rows after crashes: %s", seed, epoch, difference(a, b))
			}
			l.rewindBetweenRuns(t, first, whole)
		}
	}
	if killed < 20 || len(different) < 5 {
		t.Errorf("%d crashes and %d different totals: the test shows less than it should", killed, len(different))
	}
}

// rewindBetweenRuns lets events change scores of some databases, and a reorganization take some of the events back.
func (l *ledger) rewindBetweenRuns(t *testing.T, dbs ...*store.DB) {
	t.Helper()
	final := l.tip().Number
	for n := range 2 {
		if n > 0 {
			l.fork(final + 1)
		}
		l.grow(4)
		for _, db := range dbs {
			l.store(t, db, final)
			steps, err := engine.NewSteps(db, shortEpochs(t), 9)
			ok(t, err)
			ok(t, steps.Walk(t.Context()))
			for scored := 1; scored > 0; {
				scored, err = steps.Follow(t.Context())
				ok(t, err)
			}
		}
	}
}
