package api_test

import (
	"strings"
	"testing"

	"repute/api"
	"repute/api/batch"
	"repute/api/wire"
	"repute/api/wire/stats"
)

// TestAgentsByPrice: agents are found by the lowest known price of the domains that their documents name, with or
// without a text, in REST, GraphQL, facets and on the page.
func TestAgentsByPrice(t *testing.T) {
	t.Parallel()
	db, _ := sold(t)
	s := serve(t, api.Options{DB: db})
	for query, want := range map[string]string{
		"":                          "99:0 99:1",
		"minPrice=0":                "99:0 99:1",
		"maxPrice=1":                "99:0",
		"minPrice=0.11":             "99:1",
		"minPrice=0.1&maxPrice=5":   "99:0 99:1",
		"maxPrice=0.05":             "",
		"minPrice=6":                "",
		"q=Ada&maxPrice=1":          "99:0",
		"maxPrice=1&service=web":    "99:0",
		"maxPrice=1&status=pending": "",
	} {
		list := as[wire.AgentList](t, get(t, s, "/agents?sort=id&order=asc&"+query))
		got := ""
		for _, a := range list.Items {
			got += string(a.ShortID) + " "
		}
		if got = strings.TrimSpace(got); got != want || int(list.Total.Value) != len(list.Items) {
			t.Errorf("%s: %s of %d, want %s", query, got, list.Total.Value, want)
		}
		if facets := as[stats.Facets](t, get(t, s,
			"/agents/facets?"+query)); int(facets.Total.Value) != len(list.Items) {
			t.Errorf("%s: %d agents in facets", query, facets.Total.Value)
		}
	}
	for query, field := range map[string]string{"maxPrice=-1": "maxPrice", "minPrice=0x1": "minPrice",
		"maxPrice=NaN":  "maxPrice",
		"minPrice=1e13": "minPrice", "minPrice=1e-20000": "minPrice", "maxPrice=1e-351": "maxPrice",
		"maxPrice=0.000000000000000000000000000000000000001": "maxPrice"} {
		if r := get(t, s, "/agents?"+query); r.status != 400 || !strings.Contains(string(r.body), field) {
			t.Errorf("%s: %d %s", query, r.status, r.body)
		}
	}
	found := data[struct {
		Agents struct{ Nodes []struct{ ShortID string } }
	}](t, ask(t, s, `{ agents(filter: {minPrice: "1", maxPrice: "5"}) { nodes { shortId } } }`, nil)).Agents.Nodes
	if len(found) != 1 || found[0].ShortID != "99:1" {
		t.Errorf("%+v", found)
	}
	r := get(t, s, "/ui/explore?maxPrice=1")
	if text := textOf(t, r.body); !strings.Contains(text, "1 agent") ||
		!strings.Contains(text, "from 0.1 US dollars") ||
		!strings.Contains(text, "maxPrice: 1") {
		t.Errorf("%s", text)
	}
}

// TestPriceOfAgents: an agent shows the same price that searches filter by, the lowest of all domains that its document
// names. A manifest that only pays its wallet gives no price.
func TestPriceOfAgents(t *testing.T) {
	t.Parallel()
	db, _ := sold(t)
	stranger := shop("stranger.example", addr(2).Hex(), "0.01")
	serveManifest(t, db, "stranger.example", stranger)
	for _, sql := range []string{
		`insert into domains (sha256, domain) select u.sha256, 'cheap.example' from agents a join uris u on u.id = a.uri_id where token_id = 1`,
		`update manifests set verified = 4 where domain = 'stranger.example'`,
	} {
		if _, err := db.Pool().Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, api.Options{DB: db})
	m := as[wire.AgentAnswer](t, get(t, s, "/agents/99:1")).Manifest
	if m == nil || m.Domain != "dear.example" || m.Price == nil || *m.Price != "0.1" {
		t.Errorf("of two domains: %+v", m)
	}
	for query, want := range map[string]int{"maxPrice=0.05": 0, "maxPrice=0.1": 2, "minPrice=0.2": 0} {
		if list := as[wire.AgentList](t, get(t, s, "/agents?"+query)); len(list.Items) != want {
			t.Errorf("%s: %d agents, want %d", query, len(list.Items), want)
		}
	}
	if _, err := db.Pool().Exec(t.Context(), `delete from domains`); err != nil {
		t.Fatal(err)
	}
	m = as[wire.AgentAnswer](t, get(t, s, "/agents/99:1")).Manifest
	if m == nil || m.Domain != "stranger.example" || m.Proven || m.Price != nil {
		t.Errorf("of a stranger: %+v", m)
	}
	for _, a := range as[batch.Comparison](t, get(t, s, "/compare?ids=99:0,99:1")).Agents {
		if len(a.Prices) != 0 {
			t.Errorf("compared: %+v", a.Prices)
		}
	}
}

// TestDeniedManifestsHaveNoPrice: what an operator denied selects no agent.
func TestDeniedManifestsHaveNoPrice(t *testing.T) {
	t.Parallel()
	db, _ := sold(t)
	if _, err := db.Pool().Exec(t.Context(),
		`insert into denied (kind, value, reason) values ('host', 'cheap.example', 'test')`); err != nil {
		t.Fatal(err)
	}
	s := serve(t, api.Options{DB: db})
	if list := as[wire.AgentList](t, get(t, s, "/agents?minPrice=0")); len(list.Items) != 1 ||
		string(list.Items[0].ShortID) != "99:1" {
		t.Errorf("%+v", list.Items)
	}
}
