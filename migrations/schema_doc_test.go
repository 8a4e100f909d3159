package migrations_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"repute/internal/pgtest"
	"repute/migrations"
)

var update = flag.Bool("update", false, "write docs/reference/schema.md anew")

// schemaDoc is the page that this test keeps in step with the database.
const schemaDoc = "../docs/reference/schema.md"

// maxTables is how many tables a reader of the schema is asked to know, River's aside: 60, and two for the manifests of
// domains, which have other keys than all that is on a chain or behind a URI, one for what agents remember, which
// outlives the runs and the payments that the other tables are about, one for webhooks, each with its own place in the
// feed, one for the keys of callers, two for totals of agents, which have other keys than the rows they add up, and one
// for hours, of agents and of chains.
const maxTables = 68

// column is one row of information_schema, with its comment.
type column struct{ Name, Type, Null, Default, Comment string }

// Every table has a comment, and docs/reference/schema.md says what the database says.
func TestSchemaDoc(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	got := page(t, conn)
	if *update {
		if err := os.WriteFile(schemaDoc, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(schemaDoc)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Error("docs/reference/schema.md differs from the database: go test ./migrations -run SchemaDoc -update")
	}
}

// page is docs/reference/schema.md: the tables in the order and under the headings of the migration.
func page(t *testing.T, conn *pgx.Conn) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Schema\n\nMade from the database by `go test ./migrations -update`. Addresses are 20 raw bytes (empty for none),\n" +
		"hashes 32. River's tables, which hold jobs, are not shown.\n\n## References\n\nTables that a foreign key joins; " +
		"the others are joined by `chain_id` and `token_id`.\n\n```mermaid\nerDiagram\n")
	b.WriteString(references(t, conn))
	b.WriteString("```\n")
	seen := 0
	for _, part := range outline(t) {
		if part.heading != "" {
			fmt.Fprintf(&b, "\n## %s\n", part.heading)
			continue
		}
		seen++
		table(t, conn, &b, part.table)
	}
	var all int
	one(t, conn, &all, "select count(*) from pg_tables where schemaname = 'public' and tablename !~ '^(goose|river)_'")
	if all != seen {
		t.Errorf("%d tables, the migration creates %d", all, seen)
	}
	if all > maxTables {
		t.Errorf("%d tables, want at most %d: merge what has one key and one owner", all, maxTables)
	}
	return b.String()
}

// part is a heading or the name of a table.
type part struct{ heading, table string }

// outline reads headings and tables from the migration.
func outline(t *testing.T) (out []part) {
	t.Helper()
	raw, err := migrations.FS.ReadFile("00001_schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	up, _, _ := strings.Cut(string(raw), "-- +goose Down")
	_, up, _ = strings.Cut(up, "-- +goose Up")
	for _, m := range regexp.MustCompile(`(?m)^(?:-- ([A-Z].*)\.|create table (\w+) \()$`).FindAllStringSubmatch(up, -1) {
		out = append(out, part{heading: m[1], table: m[2]})
	}
	return out
}

func one(t *testing.T, conn *pgx.Conn, into any, sql string, args ...any) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(into); err != nil {
		t.Fatal(err)
	}
}

// lines are the rows of a query that gives one text.
func lines(t *testing.T, conn *pgx.Conn, sql string, args ...any) []string {
	t.Helper()
	rows, err := conn.Query(context.WithoutCancel(t.Context()), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func references(t *testing.T, conn *pgx.Conn) string {
	return strings.Join(lines(t, conn, `
		select distinct format(E'    %s ||--o{ %s : has\n', confrelid::regclass, conrelid::regclass) as line
		from pg_constraint where contype = 'f' and connamespace = 'public'::regnamespace and conrelid::regclass::text !~
			'^river_' order by line`), "")
}

func table(t *testing.T, conn *pgx.Conn, b *strings.Builder, name string) {
	t.Helper()
	var about, key string
	one(t, conn, &about, "select coalesce(obj_description($1::regclass, 'pg_class'), '')", name)
	if about == "" {
		t.Errorf("table %s has no comment", name)
	}
	one(t, conn, &key,
		"select coalesce((select replace(pg_get_constraintdef(oid), 'PRIMARY KEY', 'Primary key') from pg_constraint where conrelid = $1::regclass and contype = 'p') || '.', 'No primary key.')", name)
	fmt.Fprintf(b,
		"\n### %s\n\n%s\n\n%s\n\n| column | type | null | default | meaning |\n|---|---|---|---|---|\n", name,
		about, key)
	for _, c := range columns(t, conn, name) {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", c.Name, c.Type, c.Null,
			strings.ReplaceAll(c.Default, "|", `\|`),
			c.Comment)
	}
	checks := lines(t, conn,
		"select pg_get_constraintdef(oid, true) from pg_constraint where conrelid = $1::regclass and contype = 'c' order by conname", name)
	for i, c := range checks {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "- `%s`\n", c)
	}
}

func columns(t *testing.T, conn *pgx.Conn, name string) []column {
	t.Helper()
	rows, err := conn.Query(t.Context(), `
		select a.attname, replace(format_type(a.atttypid, a.atttypmod), 'timestamp with time zone', 'timestamptz'), case
			when a.attnotnull then '' else 'yes' end,
			case when a.attidentity <> '' then 'counted up' else coalesce(pg_get_expr(d.adbin, d.adrelid), '') end,
			coalesce(col_description(a.attrelid, a.attnum), '')
		from pg_attribute a left join pg_attrdef d on (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
		where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum`, name)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	if err != nil {
		t.Fatal(err)
	}
	return out
}
