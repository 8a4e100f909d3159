package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/config"
	"repute/contracts"
	"repute/indexer/documents"
	"repute/internal/pg"
	"repute/store"
	"repute/store/searchdb"
)

// Database is the Postgres of this run: a given one, a private one started
// here, or the private one of another process.
type Database struct {
	URL string
	// Stop ends the server where this process started it, and does nothing otherwise. It is never nil, and waits ten
	// seconds at most.
	Stop func()
	// Restarts returns how often the private server of this run was restarted, and when last; nil
	// for another server.
	Restarts func() (n int, last time.Time)
}

// FindDatabase starts a private server only when no URL is configured and none runs in the data directory. The file of
// a server that has ended may still be there, so that a running one is only believed when it answers.
func FindDatabase(ctx context.Context, c config.Config, log *slog.Logger) (Database, error) {
	if c.Database != "" {
		return Database{URL: c.Database, Stop: func() {}}, nil
	}
	dir := c.Postgres()
	if url, ok := pg.Running(dir); ok && answers(ctx, url) {
		log.Debug("using the private Postgres of another process", "dir", dir)
		return Database{URL: url, Stop: func() {}}, nil
	}
	return startPrivate(ctx, dir, log)
}

// startPrivate runs a server in dir, in a temporary directory when dir is empty. When it ends by itself it is started
// again under the same URL.
func startPrivate(ctx context.Context, dir string, log *slog.Logger) (Database, error) {
	server, err := pg.Start(ctx, pg.Options{Dir: dir, Log: log})
	if err != nil {
		return Database{}, err
	}
	stop := func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := server.Stop(ctx); err != nil {
			log.Warn("private Postgres did not stop cleanly", "error", err)
		}
	}
	server.Keep()
	return Database{URL: server.URL(), Stop: stop, Restarts: server.Restarts}, nil
}

// answers reports whether a server accepts connections at a URL within three seconds. The
// process that wrote the URL may have ended.
func answers(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return false
	}
	return conn.Close(ctx) == nil
}

// AwaitStore is openStore for services: it retries while Postgres does not answer, so that processes may start in any
// order. The pause doubles from one second to fifteen. Any other failure, such as a schema of a newer program, ends the
// wait at once.
func AwaitStore(ctx context.Context, url string, c config.Config, log *slog.Logger) (*store.DB, error) {
	for wait := time.Second; ; wait = min(2*wait, 15*time.Second) {
		db, err := openStore(ctx, url, c)
		silent := errors.Is(err, repute.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
		if err == nil || !silent || ctx.Err() != nil {
			return db, err
		}
		log.Warn("the database does not answer yet", "error", err, "retry", wait)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// openStore migrates and opens the database, or returns at once why that is impossible. Filling the search table is a
// part of the migration that needs the program's code; it does nothing when it was done.
func openStore(ctx context.Context, url string, c config.Config) (*store.DB, error) {
	if err := store.Migrate(ctx, url); err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	db, err := openMigrated(ctx, url, c)
	if err != nil {
		return nil, err
	}
	if err := searchdb.FillSearch(ctx, db); err != nil {
		db.Close()
		return nil, fmt.Errorf("database: %w", err)
	}
	return db, nil
}

// openMigrated opens a database with what the configuration says of documents and signatures, so that commands store
// what a server would.
func openMigrated(ctx context.Context, url string, c config.Config) (*store.DB, error) {
	return store.Open(ctx, url, store.Options{Classify: documents.Classify, Decode: contracts.Read,
		NoFiles: !c.Documents.Feedback, SharedHosts: c.Orchestrator.SharedHosts(), Seal: c.Signing.Seal(),
		ReadURL: c.DatabaseRead})
}

// WithStore runs f on the configured database, for commands that do one thing
// with what is stored. They leave the schema alone: a glance from a newer program must
// not change what a running one works with. repute.ErrInvalid where no database is,
// repute.ErrConflict where its schema is another one.
func (p *Program) WithStore(ctx context.Context, f func(config.Config, *store.DB) error) error {
	c, err := p.Flags.Load()
	if err != nil {
		return err
	}
	if !c.HasDatabase() {
		return repute.Invalid("data-dir", "no database is in "+c.DataDir,
			"give --data-dir or --database-url of one; serve and import make one")
	}
	return p.opened(ctx, c, f, func(ctx context.Context, url string, c config.Config) (*store.DB, error) {
		if err := store.CheckSchema(ctx, url); err != nil {
			return nil, err
		}
		return openMigrated(ctx, url, c)
	})
}

// OnStore returns the body of a command that does one thing on the configured database: f within WithStore, with the
// context and the arguments of the command.
func (p *Program) OnStore(f func(ctx context.Context, c config.Config, db *store.DB, args []string) error) func(
	*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return p.WithStore(cmd.Context(), func(c config.Config, db *store.DB) error {
			return f(cmd.Context(), c, db, args)
		})
	}
}

// WithAnyStore is WithStore that creates a private database if there is none, and migrates.
func (p *Program) WithAnyStore(ctx context.Context, f func(config.Config, *store.DB) error) error {
	c, err := p.Flags.Load()
	if err != nil {
		return err
	}
	return p.opened(ctx, c, f, openStore)
}

// opened runs f on the configured database as open opens it. The database is closed before a private server is stopped,
// by the order of the deferred calls.
func (p *Program) opened(ctx context.Context, c config.Config, f func(config.Config, *store.DB) error,
	open func(context.Context, string, config.Config) (*store.DB, error)) error {
	c.DatabaseRead = "" // a command sees what it and others wrote a moment ago
	database, err := FindDatabase(ctx, c, c.Logger(p.Stderr))
	if err != nil {
		return err
	}
	defer database.Stop()
	db, err := open(ctx, database.URL, c)
	if err != nil {
		return err
	}
	defer db.Close()
	return f(c, db)
}
