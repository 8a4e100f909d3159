package subgraphdb

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"repute/internal/pgtest"
)

// TestServices: the fields of a file that are taken from its services are those of their SQL.
func TestServices(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(ctx) })
	var fields []*Field
	var columns []string
	file := Entities().Entity("AgentRegistrationFile")
	for i := range file.Fields {
		f := &file.Fields[i]
		if f.services == nil {
			continue
		}
		sql := "(" + strings.ReplaceAll(f.SQL, "{p}", "p") + ")"
		switch {
		case f.List:
			sql += "::text"
		case f.Type == String:
			sql = "left(" + sql + ", " + maxText + ")"
		}
		fields, columns = append(fields, f), append(columns, sql)
	}
	columns = append(columns, strings.ReplaceAll(services(fields), "{p}", "p"))
	text := rapid.SampledFrom([]string{"", "x", "https://é.example/%", "a\"b\\", strings.Repeat("é", maxCharacters+1)})
	list := rapid.SliceOfN(text, 0, 3)
	one := rapid.Custom(func(t *rapid.T) map[string]any {
		s := map[string]any{}
		if name := rapid.SampledFrom([]string{"", "MCP", "mcp", "A2A", "web", "Web", "OASF", "oasf", "email", "ENS",
			"did", "mcp2"}).Draw(t, "name"); name != "" {
			s["name"] = name
		}
		for _, member := range []string{"endpoint", "version"} {
			if v := text.Draw(t, member); v != "" {
				s[member] = v
			}
		}
		for _, member := range []string{"skills", "domains", "tools", "prompts", "resources"} {
			if v := list.Draw(t, member); len(v) > 0 {
				s[member] = v
			}
		}
		if rapid.IntRange(0, 9).Draw(t, "long") == 0 {
			s["extra"] = map[string]any{"long": strings.Repeat("x", 5_000)}
		}
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		content := map[string]any{}
		if all := rapid.SliceOfN(one, 0, 5).Draw(t, "services"); len(all) > 0 {
			content["services"] = all
		}
		stored, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := conn.Query(ctx, "select "+strings.Join(columns, ", ")+
			" from (select $1::text::jsonb as content) p", string(stored))
		if err != nil {
			t.Fatal(err)
		}
		want, err := pgx.CollectExactlyOneRow(rows, func(r pgx.CollectableRow) ([]any, error) { return r.Values() })
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := decodeServices(want[len(fields)])
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range fields {
			cell, err := f.cell(want[i])
			got, gotErr := decoded.cell(f)
			if err != nil || gotErr != nil || !reflect.DeepEqual(got, cell) {
				t.Fatalf("%s: %v, not %v (%v, %v): %.500s", f.Name, got, cell, err, gotErr, stored)
			}
		}
	})
}
