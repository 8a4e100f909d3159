package api_test

import (
	"strings"
	"testing"

	"repute/api"
	"repute/api/wire"
	"repute/internal/pgtest"
)

// TestListsAreBounded: what an agent publishes cannot make a list long. Many
// agents share one document here; a single answer says where all of it is.
func TestListsAreBounded(t *testing.T) {
	t.Parallel()
	const agents = 50
	for name, registration := range map[string]string{
		"unknown member": `jsonb_build_object('name', 'n', 'extra', jsonb_build_object('k', '"' || repeat('a', 300000) || '"'))`,
		"of a service":   `jsonb_build_object('name', 'n', 'services', jsonb_build_array(jsonb_build_object('name', 's', 'extra', jsonb_build_object('k', '"' || repeat('a', 300000) || '"'))))`,
		"many services":  `jsonb_build_object('name', 'n', 'services', (select jsonb_agg(jsonb_build_object('name', repeat('a', 3000))) from generate_series(1, 100)))`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, pgtest.New(t))
			l := newLedger(t, db, 1)
			uri := "https://evil.example/" + strings.Repeat("é", 5_000)
			for n := range uint64(agents) {
				l.add(mint(n, addr(1), uri)...)
			}
			for _, sql := range []string{
				`insert into documents values (sha256('d'), 'x', 'application/json', now())`,
				`insert into parses values (sha256('d'), 'registration', 1, ` + registration +
					`, (select jsonb_agg('{"Code": "WA515"}'::jsonb) from generate_series(1, 40)), 0)`,
				`update uris set sha256 = sha256('d')`,
			} {
				if _, err := db.Pool().Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
			s := serve(t, api.Options{DB: db})
			r := get(t, s, "/agents?limit=200")
			list := as[wire.AgentList](t, r)
			if len(r.body) > agents*8_000 || len(list.Items) != agents {
				t.Errorf("%d bytes, %d agents", len(r.body), len(list.Items))
			}
			a := list.Items[0]
			if d := a.Document; d.Registration == nil || d.Registration.Name != "n" || !d.Registration.Partial ||
				len(d.Problems) != 10 || d.ProblemCount != 40 {
				t.Errorf("document %+v", d)
			}
			if len(a.URI) > 2048 || len(a.URI) < 2040 || a.URIHex != nil || int(a.URISize) != len(uri) ||
				!strings.HasPrefix(uri, strings.TrimSuffix(a.URI, "…")) {
				t.Errorf("uri of %d bytes, %d on chain, hex %v", len(a.URI), a.URISize, a.URIHex)
			}
			one := get(t, s, "/agents/1:0")
			whole := as[wire.AgentAnswer](t, one)
			if len(one.body) > 64<<10 || !whole.Document.Registration.Partial || len(whole.Cut) != 2 ||
				string(get(t, s, *whole.Cut[0].Whole).body) != uri ||
				string(get(t, s, *whole.Cut[1].Whole).body) != "x" {
				t.Errorf("the agent itself has %d bytes, cut %+v", len(one.body), whole.Cut)
			}
		})
	}
}
