// Package store connects to the Postgres database that holds everything: pools, transactions,
// leases, migrations and the change feed. It and the packages below it are the only ones with
// SQL; each of them owns its tables, and offers functions that take the *DB:
//
//   - chaindb: chains, their cursor and head, gaps, endpoints; snapshots for reading
//   - eventdb, importdb: events, histories and current rows; import, export, rebuild
//   - verifydb: comparison of the index with the chain
//   - docdb, searchtext, denydb: documents, their search text, and the deny-list
//   - query, searchdb: the reads of the API
//   - trustdb, scoredb: evidence about agents, and runs with the scores that follow from it
//   - paydb: payments that ratings claim
//   - rundb, walletdb: tasks and runs, and the transactions they send
//
// # Pools
//
// A DB has a pool of writers and a larger one of readers, so that requests cannot use up the connections of indexing,
// leases and jobs. A reader that gets no connection within two seconds fails, and its caller may ask again. InSnapshot
// reads from a replica where there is one: an answer may lack what this process wrote a moment ago. What must see its
// own writes reads by InTx or Readers.
//
// # Transactions
//
// InTx commits when its function returns nil. A function that takes a pgx.Tx is part of its caller's transaction and
// neither commits nor rolls back. Every session has timeouts, so that a process that is frozen within a transaction
// blocks others for less than 15 seconds. Failed wraps each error once with what was being done: ErrDatabase for the
// log, and repute.ErrUnavailable where the same call may succeed later.
//
// Rows go from Query straight to pgx.CollectRows or pgx.ForEachRow, which return the error of Query too. So that error
// is dropped where the rows are made.
//
// # Leases
//
// A lease is the right of one process to write under a name, such as the events of a chain. Its epoch rises with each
// Acquire. A transaction under it takes an advisory lock and checks the epoch (InLease); Acquire ends the sessions that
// hold the lock of a former epoch, so that a process that was frozen while it held the lease commits nothing. A process
// that is killed loses its lease within milliseconds, because Postgres drops the lock of its session.
//
// # The change feed
//
// Table changes is an outbox: each transaction that changes what users see inserts a row. Changes returns rows in the
// order of their transactions, and only those below the oldest transaction that still writes. So a reader that
// continues at the cursor it got misses no change, however late it commits. The price is that an open write delays all
// changes after it.
package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

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
	// MaxConns bounds the connections of readers, 16 when 0; pool_max_conns in the URL wins.
	// Writers, leases and the job queue have 8 of their own, which readers cannot use up.
	MaxConns int32
	// NoFiles leaves out the files of feedback, responses and validations where
	// documents are fetched.
	NoFiles bool
	// SharedHosts are hosts that serve files for many agents, such as this service's own:
	// lower case, without port. No file of theirs proves that a domain is an agent's.
	SharedHosts []string
	// Seal signs the head of a chain of decisions, in the transaction that moves it, or returns
	// it without a signature. Nil: heads are not signed.
	Seal func(repute.DecisionsHead) (repute.SealedHead, error)
	// Tracer sees every statement of both pools. Nil: none does.
	Tracer pgx.QueryTracer
	// ReadURL is a replica of the database, from which InSnapshot reads. Empty: the database itself.
	ReadURL string
}

// DB is a connection to the database: pools of readers and writers. It is safe for concurrent use.
type DB struct {
	pool    *pgxpool.Pool // writes, leases, documents, jobs
	readers *pgxpool.Pool // read-only transactions and the feed
	replica *pgxpool.Pool // snapshots of the index; readers where there is no replica
	options Options
	kept    sync.Map      // reflect.Type to a value of it: Kept
	session session       // shows other processes that this one lives
	writes  *writes       // that this process knows of
	closed  chan struct{} // closed with the DB
	close   func()
}

// Kept returns the value of type T that lives as long as db, such as a cache or a limit on what
// runs at once. The first call makes it; T is a type of the caller's package.
func Kept[T any](db *DB, create func() *T) *T {
	key := reflect.TypeFor[T]()
	if v, ok := db.kept.Load(key); ok {
		return v.(*T)
	}
	v, _ := db.kept.LoadOrStore(key, create())
	return v.(*T)
}

// Options returns the options that db was opened with, defaults filled in.
func (db *DB) Options() Options { return db.options }

// Readers returns the pool of read-only connections.
func (db *DB) Readers() *pgxpool.Pool { return db.readers }

// Closed returns a channel that is closed when Close begins.
func (db *DB) Closed() <-chan struct{} { return db.closed }

// Limits of every session. A statement that takes longer than two minutes, or than ten seconds
// where a caller waits for the answer, is a mistake, except where a function lifts the limit for
// its own transaction.
//
// A process that is frozen inside a transaction gets its last lock within lockTimeout and keeps it
// for idleInTransactionTimeout. Their sum bounds how long a frozen process can block others,
// whichever of its transactions wait for each other. It MUST stay below 15 seconds, the time in
// which another process takes over.
const (
	idleInTransactionTimeout = "8s"
	lockTimeout              = "5s"
	statementTimeout         = "120s"
	readStatementTimeout     = "10s"
)

// Sizes of the two pools. Readers cannot use up the connections that writers need.
const (
	readerConns = 16
	writerConns = 8
	// readerWait is how long a reader waits for a connection.
	readerWait = 2 * time.Second
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
	// The server must notice within seconds that a client's machine is gone.
	params["tcp_keepalives_idle"], params["tcp_keepalives_interval"], params["tcp_keepalives_count"] = "5", "2", "3"
	params["tcp_user_timeout"] = "10000"
	if o.Tracer != nil {
		cfg.ConnConfig.Tracer = o.Tracer
	}
	read := cfg.Copy()
	cfg.MaxConns = writerConns
	params["lock_timeout"] = lockTimeout
	if !setsMaxConns(url) {
		read.MaxConns = cmp.Or(o.MaxConns, readerConns)
	}
	read.ConnConfig.RuntimeParams["statement_timeout"] = readStatementTimeout
	known := &writes{}
	cfg.ConnConfig.Tracer = known.tracers(o.Tracer)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	readers, err := pgxpool.NewWithConfig(ctx, read)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("open database: %w", err)
	}
	replica, err := openReplica(ctx, o, readers)
	if err != nil {
		readers.Close()
		pool.Close()
		return nil, err
	}
	if o.Classify == nil {
		o.Classify = classifyByScheme
	}
	closed := make(chan struct{})
	return &DB{pool: pool, readers: readers, replica: replica, options: o, writes: known, closed: closed,
		close: sync.OnceFunc(func() { close(closed) })}, nil
}

// openReplica returns the pool of the replica, with the limits of readers; readers where there is none.
func openReplica(ctx context.Context, o Options, readers *pgxpool.Pool) (*pgxpool.Pool, error) {
	if o.ReadURL == "" {
		return readers, nil
	}
	cfg, err := pgxpool.ParseConfig(o.ReadURL)
	if err != nil {
		return nil, errors.New("the URL of the replica is none of Postgres") // not quoted: it may hold a password
	}
	like := readers.Config()
	params := maps.Clone(like.ConnConfig.RuntimeParams)
	maps.Copy(params, cfg.ConnConfig.RuntimeParams)
	cfg.ConnConfig.RuntimeParams, cfg.ConnConfig.Tracer = params, o.Tracer
	if !setsMaxConns(o.ReadURL) {
		cfg.MaxConns = like.MaxConns
	}
	replica, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, errors.New("the URL of the replica is none of Postgres")
	}
	return replica, nil
}

// Close waits for connections in use and closes both pools.
func (db *DB) Close() {
	db.close()
	if db.replica != db.readers {
		db.replica.Close()
	}
	db.readers.Close()
	db.pool.Close()
	db.session.end()
}

// Pool returns the pool of writers.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Ping returns repute.ErrUnavailable when Postgres does not answer.
func (db *DB) Ping(ctx context.Context) error {
	if err := db.pool.Ping(ctx); err != nil {
		return fmt.Errorf("database: %w (%w)", repute.ErrUnavailable, err)
	}
	return nil
}

// Ready reports whether any chain is known and whether any has an indexed block, with one cheap
// query. It returns repute.ErrUnavailable when Postgres does not answer.
func (db *DB) Ready(ctx context.Context) (known, indexed bool, err error) {
	conn, err := acquireReader(ctx, db.replica)
	if err != nil {
		return false, false, Failed("look whether anything is indexed", err)
	}
	defer conn.Release()
	err = conn.QueryRow(ctx, `
		select exists (select from chains where identity <> ''),
			exists (select from chains where identity <> '' and cursor_block >= start_block and covered <> '{}')`).Scan(&known, &indexed)
	return known, indexed, Failed("look whether anything is indexed", err)
}

// migrateLock is the advisory lock that a process holds while it changes the schema.
const migrateLock = 0x72657075 // "repu"

// migrateWait is how long a process waits for the migration of another one.
const migrateWait = "5min"

// Migrate applies all missing migrations, of this program and of River. Several processes may call
// it at once.
func Migrate(ctx context.Context, url string) error {
	return migrate(ctx, url, func(pool *pgxpool.Pool, p *goose.Provider, r *rivermigrate.Migrator[pgx.Tx]) error {
		if err := refuseForeign(ctx, pool); err != nil {
			return err
		}
		if _, err := p.Up(ctx); err != nil {
			return fmt.Errorf("migrate up: %w", explainOrder(explainExtension(err)))
		}
		if _, err := r.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
			return fmt.Errorf("migrate river up: %w", err)
		}
		return settleCluster(ctx, pool)
	})
}

// refuseForeign returns repute.ErrConflict for a database with a migration that this program does
// not know, because its tables may differ from what the program expects.
func refuseForeign(ctx context.Context, pool *pgxpool.Pool) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	applied, err := appliedMigrations(ctx, conn.Conn())
	if err != nil {
		return err
	}
	ours, err := ownMigrations()
	for _, n := range ours {
		delete(applied, n)
	}
	for n := range applied {
		return repute.Conflict("the schema has migration %d, which this program does not know: use the program that made it, or begin with a fresh database", n)
	}
	return err
}

// MigrateDown removes everything that Migrate created, with all data.
func MigrateDown(ctx context.Context, url string) error {
	return migrate(ctx, url, func(_ *pgxpool.Pool, p *goose.Provider, r *rivermigrate.Migrator[pgx.Tx]) error {
		if _, err := r.Migrate(ctx, rivermigrate.DirectionDown,
			&rivermigrate.MigrateOpts{TargetVersion: -1}); err != nil {
			return fmt.Errorf("migrate river down: %w", err)
		}
		if _, err := p.DownTo(ctx, 0); err != nil {
			return fmt.Errorf("migrate down: %w", err)
		}
		return nil
	})
}

// migration changes the schema with the two migrators: goose for our tables, rivermigrate for
// River's.
type migration func(*pgxpool.Pool, *goose.Provider, *rivermigrate.Migrator[pgx.Tx]) error

// migrate runs a migration under the advisory lock, on a pool of its own, whose sessions do not
// have the limits of other sessions.
func migrate(ctx context.Context, url string, run migration) error {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("database url: %w", err)
	}
	cfg.MaxConns = max(cfg.MaxConns, 4) // the lock has one of them
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer pool.Close()
	lock, err := pool.Acquire(ctx)
	if err != nil {
		return Failed("open database", err)
	}
	defer lock.Release()
	if _, err := lock.Exec(ctx, "select set_config('lock_timeout', $1, false)", migrateWait); err != nil {
		return Failed("lock schema", err)
	}
	if _, err := lock.Exec(ctx, "select pg_advisory_lock($1)", migrateLock); err != nil {
		return Failed("lock schema, which another process may be migrating", err)
	}
	defer lock.Exec(context.WithoutCancel(ctx), "select pg_advisory_unlock($1)", migrateLock)
	return Failed("schema", withMigrators(pool, run))
}

// withMigrators calls run with the migrators of a database.
func withMigrators(pool *pgxpool.Pool, run migration) error {
	std := stdlib.OpenDBFromPool(pool)
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
	return run(pool, ours, river)
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

// ErrDatabase marks errors that come from the database, not from the request. Their text may name
// its address and user, so it is for the log only.
var ErrDatabase = errors.New("database")

// Failed wraps an error of the database with what was being done and marks it ErrDatabase. When the
// database cannot be reached it is repute.ErrUnavailable too. It returns nil for nil.
func Failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	for _, kind := range []error{ErrDatabase, repute.ErrNotFound, repute.ErrInvalid, repute.ErrConflict,
		repute.ErrFenced, repute.ErrHeld, repute.ErrLimited} {
		if errors.Is(err, kind) {
			return fmt.Errorf("%s: %w", doing, brief(err))
		}
	}
	err = brief(err)
	var pg *pgconn.PgError
	var connect *pgconn.ConnectError
	var network net.Error
	away := errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) ||
		pgconn.SafeToRetry(err) // a pooled connection that had died unnoticed
	if errors.As(err, &pg) {
		// 08: connection; 57P: shutdown and session kills; 53: out of resources; 57014,
		// 55P03 and 25P03: the timeouts of a statement, of a lock and between statements.
		// 40001: a replica ended the read, because the primary removed rows that it saw.
		away = strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "57P") ||
			strings.HasPrefix(pg.Code, "53") ||
			slices.Contains([]string{"57014", "55P03", "25P03", "40001"}, pg.Code)
	}
	if away && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w: %w (%w)", doing, ErrDatabase, repute.ErrUnavailable, err)
	}
	if errors.Is(err, repute.ErrUnavailable) { // it is not the database's: a limit, or a transaction that is signed
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("%s: %w: %w", doing, ErrDatabase, err)
}

// briefError is an error with a shorter text.
type briefError struct {
	error
	text string
}

// Error returns the shorter text.
func (e *briefError) Error() string { return e.text }

// Unwrap returns the original error.
func (e *briefError) Unwrap() error { return e.error }

// brief puts a failure to connect on one line. The driver writes a line for each attempt, with and
// without TLS, and most of them say the same.
func brief(err error) error {
	if text := err.Error(); strings.Contains(text, "\n") {
		var lines []string
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
		first, rest := lines[0], strings.Join(lines[1:], "; ")
		return &briefError{err, strings.TrimSpace(first + " " + rest)}
	}
	return err
}

// conn acquires a connection from the pool for the access mode. A reader that gets none within
// readerWait gets repute.ErrUnavailable.
func (db *DB) conn(ctx context.Context, mode pgx.TxAccessMode) (*pgxpool.Conn, error) {
	if mode != pgx.ReadOnly {
		return db.pool.Acquire(ctx)
	}
	return acquireReader(ctx, db.readers)
}

// setsMaxConns reports whether a URL bounds the connections of readers itself.
func setsMaxConns(url string) bool {
	c, err := pgx.ParseConfig(url)
	return err == nil && c.RuntimeParams["pool_max_conns"] != ""
}
