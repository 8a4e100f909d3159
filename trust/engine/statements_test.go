package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"repute/store"
)

// statements is a tracer that counts the statements of a database and the rows that they return or change. Statements
// that begin or end transactions do not count.
type statements struct {
	mu   sync.Mutex
	list []string
	rows int64
}

// sqlKey is the key of a statement's text in its context.
type sqlKey struct{}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, sqlKey{}, strings.Join(strings.Fields(d.SQL), " "))
}

func (s *statements) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryEndData) {
	sql, _ := ctx.Value(sqlKey{}).(string)
	if verb, _, _ := strings.Cut(sql, " "); verb == "begin" || verb == "commit" || verb == "rollback" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list, s.rows = append(s.list, sql), s.rows+d.CommandTag.RowsAffected()
}

// TraceBatchStart counts a batch as one statement, because it is one round trip.
func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, fmt.Sprintf("a batch of %d", d.Batch.Len()))
	return ctx
}

func (s *statements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchQueryData) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows += d.CommandTag.RowsAffected()
}

func (*statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// take returns what was counted since the last call.
func (s *statements) take() (list []string, rows int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, rows = s.list, s.rows
	s.list, s.rows = nil, 0
	return list, rows
}

// traced opens a database whose statements are counted.
func traced(t testing.TB, url string) (*store.DB, *statements) {
	t.Helper()
	s := &statements{}
	db, err := store.Open(t.Context(), url, store.Options{MaxConns: 8, Tracer: s})
	ok(t, err)
	t.Cleanup(db.Close)
	return db, s
}
