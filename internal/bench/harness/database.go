package harness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"repute/internal/pg"
	"repute/store"
)

// Server is a private server, with the product's own settings, that gives out
// empty migrated databases.
type Server struct {
	server *pg.Server
	admin  *pgx.Conn
	url    *url.URL
	count  int       // of databases that Fresh made, for their names
	last   *Database // that Fresh made last, nil for none
}

// template is the migrated database that others are copies of. Nothing stays connected to it: Postgres copies no
// database that has sessions.
const template = "bench_template"

// OnServer runs a benchmark on a private server, which counts statements where that is asked for and the
// server has the library for it, and completes its report. The machine is described before the run, so that the load
// average is of what else it does. The targets are told to say and judged by the caller: a missed one is no error.
func OnServer(ctx context.Context, say Progress, r Report, counting bool,
	run func(*Server) (measurements any, targets []Target, err error)) (_ Report, err error) {
	o := pg.Options{Log: slog.New(slog.DiscardHandler)}
	if counting {
		o.Settings = map[string]string{"shared_preload_libraries": "pg_stat_statements"}
	}
	server, err := StartServer(ctx, o)
	// A server without the library does not start with it; a second one starts without, and counts nothing.
	if err != nil && counting && ctx.Err() == nil {
		o.Settings = nil
		server, err = StartServer(ctx, o)
	}
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	if r.Machine, err = machine(ctx, server.admin); err != nil {
		return r, err
	}
	if r.Measurements, r.Targets, err = run(server); err != nil {
		return r, err
	}
	for _, t := range r.Targets {
		say.Say("%s", t)
	}
	return r, nil
}

// StartServer starts a private server. Server.Stop ends it.
func StartServer(ctx context.Context, o pg.Options) (*Server, error) {
	server, err := pg.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	p := &Server{server: server}
	if err := p.prepare(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// prepare makes the template once: a database that is copied from it is migrated without migrating. The connection of
// admin is to the server's own database, so that any other can be dropped.
func (p *Server) prepare(ctx context.Context) (err error) {
	if p.url, err = url.Parse(p.server.URL()); err != nil {
		return fmt.Errorf("server's url: %w", err)
	}
	if p.admin, err = pgx.Connect(ctx, p.server.URL()); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if _, err := p.admin.Exec(ctx, "create database "+template); err != nil {
		return fmt.Errorf("create template: %w", err)
	}
	return store.Migrate(ctx, p.urlOf(template))
}

// urlOf is the URL of a database of the server.
func (p *Server) urlOf(name string) string {
	u := *p.url
	u.Path = "/" + name
	return u.String()
}

// Stop ends the server and removes its files, within half a minute and whether or not the context of the benchmark has
// ended.
func (p *Server) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var err error
	if p.last != nil {
		err = p.last.Close(ctx)
	}
	if p.admin != nil {
		err = errors.Join(err, p.admin.Close(ctx))
	}
	return errors.Join(err, p.server.Stop(ctx))
}

// Database is an empty migrated database with a connection to look into it.
type Database struct {
	*pgx.Conn
	server *Server
	name   string
	URL    string // for the product's configuration
}

// Fresh makes a database and drops the one that it made before, which MUST have no user any more: its sessions are
// ended. It writes everything dirty out, so that no measurement pays for the one before.
func (p *Server) Fresh(ctx context.Context) (*Database, error) {
	var statements []string
	if p.last != nil {
		_ = p.last.Close(ctx) // the database is dropped anyway
		statements = append(statements, "drop database "+p.last.name+" with (force)")
	}
	p.count++
	d := &Database{server: p, name: fmt.Sprintf("bench_%d", p.count)}
	d.URL = p.urlOf(d.name)
	for _, sql := range append(statements, "create database "+d.name+" template "+template, "checkpoint") {
		if _, err := p.admin.Exec(ctx, sql); err != nil {
			return nil, fmt.Errorf("fresh database: %w", err)
		}
	}
	var err error
	if d.Conn, err = pgx.Connect(ctx, d.URL); err != nil {
		return nil, fmt.Errorf("fresh database: %w", err)
	}
	p.last = d
	return d, nil
}

// wal is the position of the server's log, for differences, in bytes.
func (p *Server) wal(ctx context.Context) (at int64, err error) {
	err = p.admin.QueryRow(ctx, "select (pg_current_wal_insert_lsn() - '0/0')::bigint").Scan(&at)
	return at, err
}

// CPU is the processor time that the sessions now open in the database have used,
// 0 where the system has no such figure. Unlike the clock it does not depend on what
// else the machine does.
func (d *Database) CPU(ctx context.Context) (total time.Duration, err error) {
	rows, err := d.Query(ctx, "select pid from pg_stat_activity where datname = current_database()")
	if err != nil {
		return 0, fmt.Errorf("sessions: %w", err)
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	for _, pid := range pids {
		total += processorTime(pid)
	}
	return total, err
}

// processorTime is what a running process has used, 0 for one that has ended or on another system. The kernel counts
// in ticks of 10 ms, USER_HZ, which is 100 on every architecture that Go runs on.
func processorTime(pid int) (total time.Duration) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(raw), ") ") // a name may hold spaces
	const utime, stime, tick = 11, 12, 10 * time.Millisecond
	fields := strings.Fields(after)
	for _, i := range []int{utime, stime} {
		if i < len(fields) {
			n, _ := strconv.Atoi(fields[i])
			total += time.Duration(n) * tick
		}
	}
	return total
}

// Value reads one value. The error has the beginning of the statement; pgx.ErrNoRows is wrapped where there is no row.
func Value[T any](ctx context.Context, d *Database, sql string, args ...any) (v T, err error) {
	if err := d.QueryRow(ctx, sql, args...).Scan(&v); err != nil {
		return v, fmt.Errorf("%.40s: %w", sql, err)
	}
	return v, nil
}
