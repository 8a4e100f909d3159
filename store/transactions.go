package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"repute"
)

// Querier is what pools and transactions have in common.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// acquireReader acquires a connection of a reader within readerWait.
func acquireReader(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	wait, cancel := context.WithTimeout(ctx, readerWait)
	defer cancel()
	conn, err := pool.Acquire(wait)
	if err != nil && wait.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no connection is free: %w", repute.ErrUnavailable)
	}
	return conn, err
}

// InTx runs f in a transaction, which is committed when f returns nil and rolled back otherwise.
// Errors of the database are wrapped with doing.
func (db *DB) InTx(ctx context.Context, o pgx.TxOptions, doing string, f func(pgx.Tx) error) error {
	conn, err := db.conn(ctx, o.AccessMode)
	if err != nil {
		return Failed(doing, err)
	}
	defer conn.Release()
	return inTx(ctx, conn, o, doing, f)
}

// ReadBatch sends a batch of statements that read, in a transaction on one snapshot, in one round trip. Errors of the
// database are wrapped with doing.
func (db *DB) ReadBatch(ctx context.Context, doing string, b *pgx.Batch) error {
	conn, err := db.conn(ctx, pgx.ReadOnly)
	if err != nil {
		return Failed(doing, err)
	}
	defer conn.Release() // which closes a connection whose transaction did not end
	var all pgx.Batch
	all.Queue("begin isolation level repeatable read read only")
	all.QueuedQueries = append(all.QueuedQueries, b.QueuedQueries...)
	all.Queue("commit")
	return Failed(doing, conn.SendBatch(ctx, &all).Close())
}

// byIndex are settings with which Postgres reads by indexes and joins by loops alone.
const byIndex = `('enable_seqscan', 'off'), ('enable_hashjoin', 'off'), ('enable_mergejoin', 'off'), ('jit', 'off')`

// PlanByKey is a statement for the beginning of a transaction. Postgres then plans each later statement by indexes. The
// statistics of a table that grows fast, or that a pass rewrites, are always out of date, and a hash join or a generic
// plan made when the table was empty would read all of it.
const PlanByKey = `select set_config(name, value, true) from (
	values ('plan_cache_mode', 'force_custom_plan'), ` + byIndex + `) v(name, value)`

// PlanOnce is a statement for the beginning of a transaction with few rows. Postgres then plans each later statement
// once for a connection, by indexes. Otherwise it plans statements with arrays again each time, which takes longer than
// executing them. A plan that is made while a table is small may read all of it, and is kept until the table is
// analyzed again. So statements are planned each time until the statistics say that the tables that grow are not small;
// only then do plans by key cost less than others. They are also planned each time while a table, as a queue that was
// empty, has several times the pages that it had when it was last vacuumed or analyzed: planning looks at these.
const PlanOnce = `
	select set_config(name, value, true) from (
		select min(reltuples) filter (where oid not in ('trust_stale'::regclass, 'trust_penalties'::regclass)) > 10000
			and bool_and(pg_relation_size(oid) <= 8192 * (32 + 4 * relpages::bigint)) as large
		from pg_class where oid in ('feedback'::regclass, 'agents'::regclass, 'agent_states'::regclass, 'events'::regclass,
			'trust_scores'::regclass, 'trust_finals'::regclass, 'trust_stale'::regclass, 'trust_penalties'::regclass)) t,
	lateral (values ('plan_cache_mode', case when large then 'force_generic_plan' else 'force_custom_plan' end),
		` + byIndex + `) v(name, value)`

// InSnapshot runs f in a read-only transaction on one snapshot of the index, of the replica where there is one. A
// replica is behind the database: what must see its own writes, or follows the change feed, reads by InTx or Readers.
func (db *DB) InSnapshot(ctx context.Context, doing string, f func(pgx.Tx) error) error {
	conn, err := acquireReader(ctx, db.replica)
	if err != nil {
		return Failed(doing, err)
	}
	defer conn.Release()
	return inTx(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, doing, f)
}

// InSnapshots runs f like InSnapshot on each connection that InSnapshot may use, on all at once, at most as many as
// readers have by default. It opens those that are not open yet, and leaves out those that others use.
func (db *DB) InSnapshots(ctx context.Context, doing string, f func(context.Context, pgx.Tx) error) error {
	var running errgroup.Group
	for range min(db.replica.Config().MaxConns, readerConns) {
		wait, cancel := context.WithTimeout(ctx, readerWait/10)
		conn, err := db.replica.Acquire(wait)
		cancel()
		if err != nil {
			break
		}
		defer conn.Release()
		running.Go(func() error {
			return inTx(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, doing,
				func(tx pgx.Tx) error { return f(ctx, tx) })
		})
	}
	return running.Wait()
}

// inTx is InTx on a connection.
func inTx(ctx context.Context, conn *pgxpool.Conn, o pgx.TxOptions, doing string, f func(pgx.Tx) error) error {
	tx, err := conn.BeginTx(ctx, o)
	if err != nil {
		return Failed(doing, err)
	}
	// The rollback must reach the server also when ctx is done.
	defer tx.Rollback(context.WithoutCancel(ctx))
	if err := f(tx); err != nil {
		return Failed(doing, err)
	}
	return Failed(doing, tx.Commit(ctx))
}

// WaitForLocks disables the lock timeout of a transaction, for an operator's command that does not
// retry.
func WaitForLocks(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "set local lock_timeout = 0")
	return err
}
