// Package store keeps the index in Postgres and is the only package with SQL.
// Writes of one chain are one transaction each, fenced by a lease and by the
// chain's cursor; reads take their data and its freshness from one snapshot.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"repute"
	"repute/migrations"
)

// Options tune a DB. The zero value works.
type Options struct {
	// Classify names a URI's kind and the host its fetch is queued under. Nil:
	// the kind by scheme alone, no host.
	Classify func(uri string) (kind, host string)
	// Decode reads a stored log again. Only merging late logs needs it (Import).
	Decode func(types.Log) (repute.Event, error)
	// MaxConns bounds the pool; 0 leaves it to pgx.
	MaxConns int32
}

// DB is the index. It is safe for concurrent use.
type DB struct {
	pool     *pgxpool.Pool
	classify func(uri string) (kind, host string)
	decode   func(types.Log) (repute.Event, error)
	dict     *dictionary
	totals   totals
}

// Limits of every session. A frozen writer must not hold its locks for longer
// than a lease lasts; a statement longer than two minutes is a mistake, except
// where a method lifts the limit for its own transaction.
const (
	idleInTransactionTimeout = "10s"
	statementTimeout         = "120s"
)

// Open connects to the database at url, whose schema must be migrated (Migrate).
// It does not wait for the database: see Ping.
func Open(ctx context.Context, url string, o Options) (*DB, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("database url: %w", err)
	}
	params := cfg.ConnConfig.RuntimeParams
	if params["application_name"] == "" {
		params["application_name"] = "repute"
	}
	params["idle_in_transaction_session_timeout"] = idleInTransactionTimeout
	params["statement_timeout"] = statementTimeout
	if o.MaxConns > 0 {
		cfg.MaxConns = o.MaxConns
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if o.Classify == nil {
		o.Classify = classifyByScheme
	}
	return &DB{pool: pool, classify: o.Classify, decode: o.Decode, dict: newDictionary()}, nil
}

// Close waits for connections in use and closes the pool.
func (db *DB) Close() { db.pool.Close() }

// Pool is the pool itself, for River only.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Ping reports repute.ErrUnavailable when Postgres does not answer.
func (db *DB) Ping(ctx context.Context) error {
	if err := db.pool.Ping(ctx); err != nil {
		return fmt.Errorf("database: %w (%w)", repute.ErrUnavailable, err)
	}
	return nil
}

// migrateLock is the advisory lock under which the schema changes.
const migrateLock = 0x72657075 // "repu"

// Migrate brings the schema, ours and River's, up to date. Several processes may
// call it at once.
func Migrate(ctx context.Context, url string) error {
	return migrate(ctx, url, func(p *goose.Provider, r *rivermigrate.Migrator[pgx.Tx]) error {
		if _, err := p.Up(ctx); err != nil {
			return fmt.Errorf("migrate up: %w", err)
		}
		if _, err := r.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
			return fmt.Errorf("migrate river up: %w", err)
		}
		return nil
	})
}

// MigrateDown removes everything Migrate made, data included.
func MigrateDown(ctx context.Context, url string) error {
	return migrate(ctx, url, func(p *goose.Provider, r *rivermigrate.Migrator[pgx.Tx]) error {
		if _, err := r.Migrate(ctx, rivermigrate.DirectionDown, &rivermigrate.MigrateOpts{TargetVersion: -1}); err != nil {
			return fmt.Errorf("migrate river down: %w", err)
		}
		if _, err := p.DownTo(ctx, 0); err != nil {
			return fmt.Errorf("migrate down: %w", err)
		}
		return nil
	})
}

func migrate(ctx context.Context, url string, run func(*goose.Provider, *rivermigrate.Migrator[pgx.Tx]) error) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer pool.Close()
	lock, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("open database: %w (%w)", repute.ErrUnavailable, err)
	}
	defer lock.Release()
	if _, err := lock.Exec(ctx, "select pg_advisory_lock($1)", migrateLock); err != nil {
		return fmt.Errorf("lock schema: %w", err)
	}
	defer lock.Exec(context.WithoutCancel(ctx), "select pg_advisory_unlock($1)", migrateLock)
	return withMigrators(pool, run)
}

func withMigrators(pool *pgxpool.Pool, run func(*goose.Provider, *rivermigrate.Migrator[pgx.Tx]) error) error {
	var std *sql.DB = stdlib.OpenDBFromPool(pool)
	defer std.Close()
	quiet := slog.New(slog.DiscardHandler)
	ours, err := goose.NewProvider(goose.DialectPostgres, std, migrations.FS, goose.WithSlog(quiet))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	river, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return fmt.Errorf("river migrations: %w", err)
	}
	return run(ours, river)
}

// classifyByScheme is the default Options.Classify.
func classifyByScheme(uri string) (kind, host string) {
	lower := strings.ToLower(uri[:min(len(uri), 8)])
	switch {
	case uri == "":
		return "empty", ""
	case strings.HasPrefix(lower, "data:"):
		return "data", ""
	case uri[0] == '{':
		return "json", ""
	case strings.HasPrefix(lower, "https://"):
		return "https", ""
	case strings.HasPrefix(lower, "http://"):
		return "http", ""
	case strings.HasPrefix(lower, "ipfs://"):
		return "ipfs", ""
	}
	return "unsupported", ""
}

// failed wraps an error of the database with what was being done, and marks it
// repute.ErrUnavailable when the database or the way to it is gone.
func failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	var pg *pgconn.PgError
	var connect *pgconn.ConnectError
	var network net.Error
	away := errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		pgconn.SafeToRetry(err) // a pooled connection that had died unnoticed
	if errors.As(err, &pg) {
		// 08: connection; 57P: shutdown and session kills; 53: out of resources.
		away = strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "57P") || strings.HasPrefix(pg.Code, "53")
	}
	if away && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w (%w)", doing, repute.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// inTx runs f in a transaction: committed when f returns nil, else rolled back.
func (db *DB) inTx(ctx context.Context, o pgx.TxOptions, doing string, f func(pgx.Tx) error) error {
	tx, err := db.pool.BeginTx(ctx, o)
	if err != nil {
		return failed(doing, err)
	}
	// The rollback must reach the server also when ctx is done.
	defer tx.Rollback(context.WithoutCancel(ctx))
	if err := f(tx); err != nil {
		return failed(doing, err)
	}
	return failed(doing, tx.Commit(ctx))
}
