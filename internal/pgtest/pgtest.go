// Package pgtest gives every test a fresh database on a real Postgres. It is
// imported by _test files only, and because it runs store.Migrate, tests of
// package store that need a database live in package store_test.
//
// All test binaries of a machine user share one private server under the
// temporary directory: the first one starts it, and a watchdog ends it when no
// test has used it for a while. REPUTE_TEST_DATABASE_URL names another server
// instead; its user must be allowed to create databases.
package pgtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"repute/migrations"
	"repute/store"
)

const (
	// urlVariable overrides the shared server.
	urlVariable = "REPUTE_TEST_DATABASE_URL"
	// setupLock is the advisory lock under which templates are made.
	setupLock = 8004_8004
	// staleAfter is when a database whose test was killed is dropped.
	staleAfter = 2 * time.Hour
	// timeout bounds each setup and clean-up.
	timeout = 2 * time.Minute
)

// New gives the URL of a database of its own with all migrations applied. It is
// dropped when the test ends.
func New(t testing.TB) string {
	t.Helper()
	h := setup(t)
	return h.create(t, " template "+h.template+
		" strategy file_copy") // the template was not written since the last checkpoint
}

// Unmigrated gives the URL of an empty database.
func Unmigrated(t testing.TB) string {
	t.Helper()
	return setup(t).create(t, "")
}

// host is the server of this process with its migrated template.
type host struct {
	admin    string // URL of a database that is not a test's
	template string
	inUse    *flock.Flock // of the shared server; released by the process's end
}

// shared is set up once per process: by the first test that needs it.
var shared = sync.OnceValues(func() (host, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	h := host{admin: os.Getenv(urlVariable)}
	var err error
	if h.admin == "" {
		if h.admin, h.inUse, err = sharedServer(ctx); err != nil {
			return host{}, err
		}
	}
	h.template, err = h.prepare(ctx)
	return h, err
})

func setup(t testing.TB) host {
	t.Helper()
	h, err := shared()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return h
}

// create makes a database and has it dropped at the end, also from under
// connections that a failed test left open.
func (h host) create(t testing.TB, options string) string {
	t.Helper()
	name := fmt.Sprintf("repute_t_%d_%s", time.Now().Unix(), rand.Text()[:10])
	name = strings.ToLower(name)
	if err := h.exec("create database " + name + options); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := h.exec("drop database " + name + " with (force)"); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return h.url(name)
}

func (h host) exec(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, h.admin)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return execIdle(ctx, conn, sql)
}

// execIdle repeats a statement that needs a database without sessions while one
// that was just closed is still on its way out.
func execIdle(ctx context.Context, conn *pgx.Conn, sql string) error {
	const objectInUse = "55006"
	for {
		_, err := conn.Exec(ctx, sql)
		var refused *pgconn.PgError
		if err == nil || !errors.As(err, &refused) || refused.Code != objectInUse {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// url is the admin URL with another database.
func (h host) url(database string) string {
	u, err := url.Parse(h.admin)
	if err != nil {
		return h.admin // reported by the first connection
	}
	u.Path = "/" + database
	return u.String()
}

// prepare drops what killed tests left and makes the template unless another
// process has.
func (h host) prepare(ctx context.Context) (template string, err error) {
	conn, err := pgx.Connect(ctx, h.admin)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx) // and with it the lock
	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", setupLock); err != nil {
		return "", err
	}
	if err := dropStale(ctx, conn); err != nil {
		return "", err
	}
	if template, err = templateName(); err != nil {
		return "", err
	}
	var exists bool
	err = conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", template).Scan(&exists)
	if err == nil && !exists {
		err = h.makeTemplate(ctx, conn, template)
	}
	return template, err
}

// makeTemplate migrates under another name: a template is complete or absent.
func (h host) makeTemplate(ctx context.Context, conn *pgx.Conn, name string) error {
	building := name + "_building"
	for _, sql := range []string{"drop database if exists " + building + " with (force)",
		"create database " + building} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	if err := store.Migrate(ctx, h.url(building)); err != nil {
		return fmt.Errorf("migrate the template: %w", err)
	}
	return execIdle(ctx, conn, "alter database "+building+" rename to "+name)
}

// templateName changes with every migration, ours and River's.
func templateName() (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(migrations.FS, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(migrations.FS, path)
		fmt.Fprintf(sum, "%s %d\n%s\n", path, len(b), b)
		return err
	})
	if err != nil {
		return "", err
	}
	river, err := rivermigrate.New(riverpgxv5.New(nil), nil)
	if err != nil {
		return "", err
	}
	for _, m := range river.AllVersions() {
		fmt.Fprintf(sum, "river %d %s\n", m.Version, m.SQLUp)
	}
	return "repute_tpl_" + hex.EncodeToString(sum.Sum(nil)[:10]), nil
}

// dropStale removes databases whose test can no longer run. Their names carry
// the second they were made.
func dropStale(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, `select datname from pg_database where datname like 'repute\_t\_%'`)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		made, err := strconv.ParseInt(strings.Split(name, "_")[2], 10, 64)
		if err != nil || time.Since(time.Unix(made, 0)) < staleAfter {
			continue
		}
		if _, err := conn.Exec(ctx, "drop database if exists "+pgx.Identifier{name}.Sanitize()+
			" with (force)"); err != nil {
			return err
		}
	}
	return nil
}
