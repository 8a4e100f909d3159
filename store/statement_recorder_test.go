package store_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"repute/store"
)

// statement is one that a tracer saw.
type statement struct {
	sql  string
	args []any
}

// recorder keeps the statements of its connections, without transaction control.
type recorder struct {
	mu   sync.Mutex
	seen []statement
}

func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	r.add(d.SQL, d.Args)
	return ctx
}

// add keeps a statement.
func (r *recorder) add(sql string, args []any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if verb, _, _ := strings.Cut(strings.TrimSpace(sql), " "); verb != "begin" && verb != "commit" &&
		verb != "rollback" && verb != "set" {
		r.seen = append(r.seen, statement{sql, args})
	}
}

// TraceBatchStart keeps each statement of a batch.
func (r *recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	for _, q := range d.Batch.QueuedQueries {
		r.add(q.SQL, q.Arguments)
	}
	return ctx
}

func (*recorder) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (*recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (*recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// take gives what was seen since the last call.
func (r *recorder) take() []statement {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.seen
	r.seen = nil
	return out
}

func checkPlan(t *testing.T, name, plan, sql string) {
	t.Helper()
	for _, line := range strings.Split(plan, "\n") {
		_, table, found := strings.Cut(line, "Seq Scan on ")
		table, _, _ = strings.Cut(strings.TrimSpace(table), " ")
		allowed := !found
		for _, s := range small {
			allowed = allowed || table == s
		}
		if !allowed {
			t.Errorf("%s reads all of %s:\n%s\n%s", name, table, sql, plan)
			return
		}
	}
}

func explain(t *testing.T, db *store.DB, mode string, s statement) string {
	t.Helper()
	ctx := context.Background()
	tx, err := db.Pool().Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	if _, err := tx.Exec(ctx, "select set_config('plan_cache_mode', $1, true)", mode); err != nil {
		t.Fatal(err)
	}
	sql, args := "explain "+s.sql, s.args
	if mode == "force_generic_plan" { // explain by itself plans for the values, whatever the mode
		sql, args = "explain execute read"+prepared(t, tx.Conn(), s), nil
		defer tx.Conn().Deallocate(ctx, "read")
	}
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%v: %s", err, s.sql)
	}
	return strings.Join(lines, "\n")
}

// prepared prepares a statement under the name read, and returns its arguments as SQL.
func prepared(t *testing.T, c *pgx.Conn, s statement) string {
	t.Helper()
	d, err := c.Prepare(context.Background(), "read", s.sql)
	ok(t, err)
	var values []string
	for i, a := range s.args {
		text, err := c.TypeMap().Encode(d.ParamOIDs[i], pgx.TextFormatCode, a, nil)
		ok(t, err)
		value := "null"
		if text != nil {
			value = "'" + strings.ReplaceAll(string(text), "'", "''") + "'"
		}
		values = append(values, value)
	}
	if values == nil {
		return ""
	}
	return "(" + strings.Join(values, ", ") + ")"
}
