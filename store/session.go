package store

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// session is a connection that proves to other processes that this one is alive. It holds an
// advisory lock under a random key, which Postgres drops as soon as the connection ends. The zero
// value has no connection yet. It is safe for concurrent use.
type session struct {
	mu     sync.Mutex
	lock   int64 // key of the lock, 0 while there is no connection
	conn   *pgx.Conn
	ended  chan struct{} // closed when the connection has ended
	stop   context.CancelFunc
	pooled bool // a pooler is in between, whose connections outlive ours
}

// sessionTimeout bounds opening the connection.
const sessionTimeout = 2 * time.Second

// key returns the key of the lock, 0 when no lock can be held. A connection that ended is replaced
// by one with another key.
func (s *session) key(ctx context.Context, pool *pgxpool.Pool) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock != 0 {
		select {
		case <-s.ended:
			s.forget()
		default:
		}
	}
	if s.lock == 0 && !s.pooled {
		s.open(ctx, pool)
	}
	return s.lock
}

// open connects and takes the lock. Where that fails, only the expiry of leases counts. Behind a
// connection pooler it always fails: the lock would belong to the pooler's connection, whose
// process id differs from the one that the client was told.
func (s *session) open(ctx context.Context, pool *pgxpool.Pool) {
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	if err != nil {
		return
	}
	key := 1 + rand.Int64N(math.MaxInt64)
	var pid uint32
	err = conn.QueryRow(ctx, "select pg_backend_pid()").Scan(&pid)
	s.pooled = err == nil && pid != conn.PgConn().PID()
	if err == nil && !s.pooled {
		_, err = conn.Exec(ctx, "select set_config('idle_session_timeout', '0', false), pg_advisory_lock($1)", key)
	}
	if err != nil || s.pooled {
		_ = conn.Close(ctx)
		return
	}
	s.lock, s.conn = key, conn
	s.watch()
}

// watch reads from the connection until it ends. The server sends nothing on it.
func (s *session) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	ended, conn := make(chan struct{}), s.conn
	s.stop, s.ended = cancel, ended
	go func() {
		defer close(ended)
		for {
			if _, err := conn.WaitForNotification(ctx); err != nil {
				_ = conn.Close(ctx)
				return
			}
		}
	}()
}

// forget drops a connection that has ended.
func (s *session) forget() {
	s.stop()
	s.lock, s.conn = 0, nil
}

// end closes the connection if there is one.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock != 0 {
		s.stop()
		<-s.ended
		s.forget()
	}
}
