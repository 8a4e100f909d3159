package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"repute"
	"repute/migrations"
)

// CheckSchema returns repute.ErrConflict when this program cannot work with the schema of the
// database at url without changing it. The text names the database and what to do.
func CheckSchema(ctx context.Context, url string) error {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("database url: %w", err)
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return Failed("open database", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	name := fmt.Sprintf("database %s of %s:%d", cfg.Database, cfg.Host, cfg.Port)
	applied, err := appliedMigrations(ctx, conn)
	if err != nil {
		return Failed("read schema", err)
	}
	ours, err := ownMigrations()
	if err != nil {
		return err
	}
	for _, n := range ours {
		if !applied[n] {
			return repute.Conflict("%s: its schema is older than this program (migration %d is missing): repute migrate up brings it up to date, as serve and import do", name, n)
		}
		delete(applied, n)
	}
	for n := range applied {
		return repute.Conflict("%s: its schema is newer than this program, which does not know migration %d: use the newer program", name, n)
	}
	return nil
}

// appliedMigrations returns the numbers of the applied migrations; none where nothing was ever
// migrated.
func appliedMigrations(ctx context.Context, conn *pgx.Conn) (map[int64]bool, error) {
	applied := map[int64]bool{}
	var there bool
	if err := conn.QueryRow(ctx, "select to_regclass('goose_db_version') is not null").Scan(&there); err != nil ||
		!there {
		return applied, err
	}
	rows, _ := conn.Query(ctx, "select version_id from goose_db_version where is_applied and version_id > 0")
	var n int64
	_, err := pgx.ForEachRow(rows, []any{&n}, func() error { applied[n] = true; return nil })
	return applied, err
}

// ownMigrations returns the numbers of this program's migrations, ascending.
func ownMigrations() (numbers []int64, err error) {
	files, err := fs.Glob(migrations.FS, "*.sql")
	for _, file := range files {
		digits, _, _ := strings.Cut(file, "_")
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("migration %s has no number: %w", file, err)
		}
		numbers = append(numbers, n)
	}
	return numbers, err
}

// explainOrder adds what to do about a schema that a program between two versions migrated.
func explainOrder(err error) error {
	if err == nil || !strings.Contains(err.Error(), "out-of-order") {
		return err
	}
	return fmt.Errorf("%w (%w)",
		repute.Conflict("the schema comes from a program between two versions and cannot be brought up to date: "+
			"begin with a fresh database, or repute migrate down takes everything out of this one"), err)
}

// explainExtension adds what to do when the extension pg_trgm cannot be created.
func explainExtension(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || !strings.Contains(pg.Message, "pg_trgm") {
		return err
	}
	hint := "install Postgres's contrib modules on its machine (package postgresql-contrib)"
	if pg.Code == "42501" {
		hint = "as the database's owner or a superuser run: create extension pg_trgm"
	}
	return fmt.Errorf("%w; %s", err, hint)
}
