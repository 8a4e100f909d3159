package api_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/api"
	"repute/api/wire"
	"repute/api/wire/stats"
	"repute/internal/httpapi"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/docdb"
)

// svg is an image that runs a script where it is shown as a page.
const svg = `data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`

// saveFiles reads the agents' documents: what files has for a URI, and a failure
// for the others.
func saveFiles(t testing.TB, db *store.DB, files map[string]docdb.FetchResult) {
	t.Helper()
	ctx := context.Background()
	for {
		due, err := docdb.DueURIs(ctx, db, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(due) == 0 {
			return
		}
		for _, u := range due {
			r, found := files[u.URI]
			if !found {
				r.Reason = "timeout"
			}
			r.URIID, r.FetchedAt, r.ParserVersion = u.ID, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 1
			if r.Source == "" {
				r.Source = u.Kind
			}
			if err := docdb.SaveDocuments(ctx, db, r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// links are a file's claims to be the file of agents of chain 8453.
func links(tokens ...uint64) (out []repute.RegistrationLink) {
	for _, n := range tokens {
		id := token(n)
		out = append(out, repute.RegistrationLink{TokenID: &id,
			Registry: "eip155:8453:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432"})
	}
	return out
}

func file(r *repute.Registration, body string) docdb.FetchResult {
	return docdb.FetchResult{Body: []byte(body), MediaType: "application/json", Registration: r}
}

// documented is populated with documents for some of its agents.
func documented(t testing.TB, o api.Options, with ...httpapi.ServerOptions) (*httptest.Server, *store.DB) {
	t.Helper()
	o.DB = open(t, pgtest.New(t))
	populate(t, o.DB)
	yes := true
	service := repute.Service{Name: "MCP", Endpoint: "https://weather.example/mcp", Version: "1",
		Skills: []string{"forecast"}, Domains: []string{"weather"}}
	files := map[string]docdb.FetchResult{
		"data:application/json,{}": file(&repute.Registration{Name: "Empty"}, "{}"),
		"https://agent.example/1.json": file(&repute.Registration{Name: "Weather Oracle", Description: "tells of rain",
			X402: &yes, Active: &yes,
			Services:       []repute.Service{service, {Name: "A2A", Skills: []string{"forecast", "chat"}}},
			SupportedTrust: []string{"reputation"}, Registrations: links(1, 3)}, `{"name":"Weather Oracle"}`),
		"https://agent.example/2.json": file(&repute.Registration{Name: `<script>alert("weather")</script>`,
			Image: svg},
			`<html><script>alert(1)</script></html>`),
		"https://agent.example/3.json": file(&repute.Registration{Name: "Bot of weather",
			Services: []repute.Service{service}, Registrations: links(1)}, `{"name":"Bot of weather"}`),
	}
	saveFiles(t, o.DB, files)
	return serve(t, o, with...), o.DB
}

func ids(agents []wire.Agent) string {
	var out []string
	for _, a := range agents {
		out = append(out, string(a.ShortID))
	}
	return strings.Join(out, " ")
}

func TestSearch(t *testing.T) {
	t.Parallel()
	s, _ := documented(t, api.Options{})
	for path, want := range map[string]string{
		"/agents?q=weather":                                   "8453:3 8453:2 8453:1", // as many names, so by ratings
		"/agents?q=weather&service=mcp":                       "8453:3 8453:1",
		"/agents?q=weather&chainId=1":                         "",
		"/chains/8453/agents?q=oracle":                        "8453:1",
		"/agents?service=mcp,A2A":                             "8453:1",
		"/agents?skill=forecast,chat&domain=weather":          "8453:1",
		"/agents?skill=CHAT":                                  "8453:1",
		"/agents?domain=weather&minFeedback=3":                "8453:3",
		"/agents?supportedTrust=reputation&x402=true":         "8453:1",
		"/agents?active=false":                                "",
		"/agents?status=ok&chainId=1":                         "1:0",
		"/agents?q=weather&owner=" + addr(3).Hex():            "8453:3",
		"/agents?q=%3Cscript%3E&sort=relevance":               "8453:2",
		"/agents?q=%27%3B+drop+table+agents%3B--":             "",
		"/agents?q=weather&tag=quality&status=ok&service=A2A": "8453:1",
	} {
		list := as[wire.AgentList](t, get(t, s, path))
		if got := ids(list.Items); got != want ||
			list.Total != (wire.Total{Value: wire.Long(len(strings.Fields(want))), Relation: "eq"}) {
			t.Errorf("%s: %q, total %+v, want %q", path, got, list.Total, want)
		}
	}
	if list := as[wire.AgentList](t, get(t, s, "/agents?limit=1")); list.Total != (wire.Total{Value: crowd + 1,
		Relation: "eq"}) || list.Match != nil {
		t.Errorf("a plain list: %+v, match %v", list.Total, list.Match)
	}
	if first := get(t, s, "/agents?q=weather"); get(t, s, "/agents?q=weather", "If-None-Match",
		first.header.Get("ETag")).status != 304 {
		t.Error("a search that finds the same has another ETag")
	}
}

// TestSearchSaysOnlyWhatIsKnown has similar where near-identical agents were looked for, and
// match where an agent matches.
func TestSearchSaysOnlyWhatIsKnown(t *testing.T) {
	t.Parallel()
	s, _ := documented(t, api.Options{})
	for path, want := range map[string]bool{"/agents?q=weather": true, "/agents?q=weather&fold=false": false,
		"/agents?service=mcp": false, "/agents": false} {
		if list := as[wire.AgentList](t, get(t, s, path)); (list.Items[0].Similar != nil) != want || want &&
			*list.Items[0].Similar != 0 {
			t.Errorf("%s: similar %v", path, list.Items[0].Similar)
		}
	}
	if a := as[wire.AgentAnswer](t, get(t, s, "/agents/8453:1")); a.Similar != nil {
		t.Errorf("of one agent: similar %d", *a.Similar)
	}
	for _, path := range []string{"/agents?q=qqqqqq", "/agents/facets?q=qqqqqq"} {
		if f := as[stats.Facets](t, get(t, s, path)); f.Match != nil || f.Total.Value != 0 {
			t.Errorf("%s: match %v of %+v", path, *f.Match, f.Total)
		}
	}
	a := ask(t, s,
		`{ none: search(query: "qqqqqq") { match facets { match } } some: search(query: "weather") { nodes { similar } } all: agents(first: 1) { nodes { similar } } }`, nil)
	if got := string(a.Data); !strings.Contains(got, `"none":{"match":null,"facets":{"match":null}}`) ||
		!strings.Contains(got, `"similar":0`) || !strings.Contains(got, `"all":{"nodes":[{"similar":null}]}`) {
		t.Errorf("graphql: %s, %v", got, a.Errors)
	}
}

// The pages of a search are the whole of it.
func TestSearchPages(t *testing.T) {
	t.Parallel()
	s, _ := documented(t, api.Options{})
	var got []string
	path := "/agents?status=failed&limit=7"
	for cursor := ""; ; {
		list := as[wire.AgentList](t, get(t, s, path+cursor))
		got = append(got, strings.Fields(ids(list.Items))...)
		if list.Next == nil {
			break
		}
		cursor = "&cursor=" + *list.Next
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(got)))
	if len(got) != crowd-3 || len(distinct) != len(got) {
		t.Errorf("%d agents, %d of them different, want %d", len(got), len(distinct), crowd-3)
	}
}

func TestFacets(t *testing.T) {
	t.Parallel()
	s, _ := documented(t, api.Options{})
	f := as[stats.Facets](t, get(t, s, "/agents/facets?q=weather"))
	want := "{{3 eq} [{mcp 2} {a2a 1}] [{forecast 2} {chat 1}] [{weather 2}] [{reputation 1}] [{8453 3}] [{ok 3}]"
	if got := fmt.Sprint(f); !strings.HasPrefix(got, want) || len(f.AsOf) != 2 {
		t.Errorf("got %s, want %s", got, want)
	}
	if f := as[stats.Facets](t, get(t, s, "/chains/1/agents/facets")); f.Total.Value != 1 || len(f.AsOf) != 1 {
		t.Errorf("%+v", f)
	}
}

// A script in a name stays text: JSON, escaped, never to be sniffed as a page.
func TestHostileNamesStayText(t *testing.T) {
	t.Parallel()
	s, _ := documented(t, api.Options{})
	for _, path := range []string{"/agents?q=script", "/agents/8453:2", "/agents/facets?q=script"} {
		r := get(t, s, path)
		if r.status != 200 || bytes.Contains(r.body, []byte("<script")) || bytes.Contains(r.body, []byte("<svg")) {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
		if ct := r.header.Get("Content-Type"); ct != "application/json" ||
			r.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, r.header)
		}
	}
	if r := get(t, s, "/graphql"+query("query",
		`{ search(query: "script") { nodes { document { registration { name image } } } } }`)); bytes.Contains(r.body,
		[]byte("<script")) {
		t.Errorf("%s", r.body)
	}
}

func TestGraphQLSearch(t *testing.T) {
	t.Parallel()
	s, _ := documented(t, api.Options{})
	type found struct {
		Search struct {
			Nodes []struct {
				ShortID    string
				Reputation struct{ Summary struct{ Count int } }
			}
			PageInfo struct {
				HasNextPage bool
				EndCursor   *string
			}
			Total  struct{ Value, Relation any }
			Facets struct{ Services []struct{ Value, Count any } }
			AsOf   []struct{ ChainID int }
		}
	}
	const q = `query($after: String) { search(query: "weather", filter: {service: "mcp", minFeedback: 1}, first: 1, after: $after) {
		nodes { shortId reputation { summary { count } } } pageInfo { hasNextPage endCursor } total { value relation }
		facets { services { value count } } asOf { chainId } } }`
	first := data[found](t, ask(t, s, q, nil)).Search
	if got := fmt.Sprint(first.Nodes, first.PageInfo.HasNextPage, first.Total, first.Facets,
		len(first.AsOf)); got != "[{8453:3 {{3}}}] true {2 eq} {[{mcp 2} {a2a 1}]} 2" {
		t.Errorf("first page: %s", got)
	}
	second := data[found](t, ask(t, s, q, map[string]any{"after": first.PageInfo.EndCursor})).Search
	if len(second.Nodes) != 1 || second.Nodes[0].ShortID != "8453:1" || second.PageInfo.HasNextPage {
		t.Errorf("second page: %+v", second)
	}
	for _, bad := range []string{`search(query: "a") { asOf { block } }`, `search(query: "") { asOf { block } }`,
		`search(filter: {minFeedback: -1}) { asOf { block } }`,
		`search(first: 201) { asOf { block } }`, `search(after: "x") { asOf { block } }`} {
		if a := ask(t, s, "{"+bad+"}", nil); len(a.Errors) != 1 || a.Errors[0].Extensions["code"] != "INVALID" ||
			a.Errors[0].Extensions["hint"] == nil {
			t.Errorf("%s: %+v", bad, a.Errors)
		}
	}
}
