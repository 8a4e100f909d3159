package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"repute/internal/pg"
	"repute/store"
)

// Replica is a server that follows another one.
type Replica struct {
	// Primary and URL are migrated databases: the one that is written, and its copy, which can only be read.
	Primary, URL string
	t            testing.TB
}

// NewReplica starts two servers of this test, of which one follows the other by streaming replication.
func NewReplica(t testing.TB) *Replica {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	settings := map[string]string{"wal_level": "replica", "max_wal_senders": "4", "fsync": "off",
		"shared_buffers": "32MB",
		"max_wal_size":   "256MB"}
	primary := startServer(t, ctx, pg.Options{Settings: settings})
	if err := store.Migrate(ctx, primary.URL()); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	replica := startServer(t, ctx, pg.Options{Settings: settings, ReplicaOf: primary.URL()})
	return &Replica{Primary: primary.URL(), URL: replica.URL(), t: t}
}

// startServer starts a server that ends with the test.
func startServer(t testing.TB, ctx context.Context, o pg.Options) *pg.Server {
	t.Helper()
	s, err := pg.Start(ctx, o)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return s
}

// Pause makes the replica stay behind from now on.
func (r *Replica) Pause() { r.t.Helper(); r.exec("select pg_wal_replay_pause()") }

// Resume ends Pause.
func (r *Replica) Resume() { r.t.Helper(); r.exec("select pg_wal_replay_resume()") }

func (r *Replica) exec(sql string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, r.URL)
	if err == nil {
		_, err = conn.Exec(ctx, sql)
		_ = conn.Close(ctx)
	}
	if err != nil {
		r.t.Fatalf("pgtest: %v", err)
	}
}

// Position returns how far the log of the primary is written.
func (r *Replica) Position() (lsn string) {
	r.t.Helper()
	r.read(r.Primary, "select pg_current_wal_lsn()::text", &lsn)
	return lsn
}

// Reached reports whether the replica shows all that was written up to a position.
func (r *Replica) Reached(lsn string) (reached bool) {
	r.t.Helper()
	r.read(r.URL, "select pg_last_wal_replay_lsn() >= '"+lsn+"'::pg_lsn", &reached)
	return reached
}

func (r *Replica) read(url, sql string, into any) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err == nil {
		err = conn.QueryRow(ctx, sql).Scan(into)
		_ = conn.Close(ctx)
	}
	if err != nil {
		r.t.Fatalf("pgtest: %v", err)
	}
}
