package store

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
)

// Writes returns a counter that rises before a commit of this DB returns, and before a change of the feed is handed out
// for the first time; it may rise without a write too. If it is the same before and after a read of the primary, the
// read has every write and every change that this process has told its callers of. Writes of other processes count only
// when their changes are read here.
func (db *DB) Writes() uint64 { return db.writes.n.Load() }

// writes counts the writes that a process knows of. As a tracer of the pool of writers it sees every commit. Its zero
// value is usable. It is safe for concurrent use.
type writes struct {
	n      atomic.Uint64
	mu     sync.Mutex
	newest ChangeCursor // that was handed out
}

// tracers returns the tracer of the pool of writers: w, and the one of the options if there is one.
func (w *writes) tracers(other pgx.QueryTracer) pgx.QueryTracer {
	if other == nil {
		return w
	}
	return multitracer.New(other, w)
}

// told counts a change that is handed out, unless this or a later one was already.
func (w *writes) told(at ChangeCursor) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.newest.Before(at) {
		w.newest = at
		w.n.Add(1)
	}
}

// ended counts a finished statement unless its transaction is still open: other sessions do not see its writes yet. A
// failure counts, because a commit whose answer was lost may have been done.
func (w *writes) ended(conn *pgx.Conn, err error) {
	const open = 'T' // as the protocol names it
	if err != nil || conn.PgConn().TxStatus() != open {
		w.n.Add(1)
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (w *writes) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (w *writes) TraceQueryEnd(_ context.Context, conn *pgx.Conn, d pgx.TraceQueryEndData) {
	w.ended(conn, d.Err)
}

// TraceBatchStart implements pgx.BatchTracer.
func (w *writes) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer. A batch ends as a whole.
func (w *writes) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (w *writes) TraceBatchEnd(_ context.Context, conn *pgx.Conn, d pgx.TraceBatchEndData) {
	w.ended(conn, d.Err)
}

// TraceCopyFromStart implements pgx.CopyFromTracer.
func (w *writes) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	return ctx
}

// TraceCopyFromEnd implements pgx.CopyFromTracer.
func (w *writes) TraceCopyFromEnd(_ context.Context, conn *pgx.Conn, d pgx.TraceCopyFromEndData) {
	w.ended(conn, d.Err)
}
