package api_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"repute/api"
	"repute/api/wire"
)

// GraphQL tells the history of documents as REST does, and refreshes them, by POST only.
func TestGraphQLDocuments(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{})
	const id = "8453:7"
	list := as[wire.DocumentList](t, get(t, s, "/agents/"+id+"/documents"))
	got := data[struct {
		Agent struct {
			Documents struct{ Nodes []wire.DocumentVersion }
		}
	}](t, ask(t, s, `{ agent(id: "`+id+
		`") { documents { nodes { uri uriHex uriSize cut { field whole } fromBlock toBlock fetchedAt source sha256 size kept reason } pageInfo { hasNextPage } asOf { block } } } }`, nil))
	a, _ := json.Marshal(list.Items)
	b, _ := json.Marshal(got.Agent.Documents.Nodes)
	if len(list.Items) == 0 || string(a) != string(b) {
		t.Errorf("REST %s, GraphQL %s", a, b)
	}
	const refresh = `mutation { refreshDocument(id: "` + id + `") { queued nextAllowedAt } }`
	r := do(t, s, http.MethodGet, "/graphql"+query("query", refresh), nil)
	if !strings.Contains(string(r.body), "by POST") || strings.Contains(string(r.body), `"queued":true`) {
		t.Errorf("by GET: %s", r.body)
	}
	d := data[struct{ RefreshDocument wire.RefreshAnswer }](t, ask(t, s, refresh, nil))
	if !d.RefreshDocument.Queued || d.RefreshDocument.NextAllowedAt == nil {
		t.Errorf("by POST: %+v", d)
	}
	r = do(t, s, http.MethodPost, "/graphql", strings.NewReader(`{"query":`+strconv.Quote(refresh)+`}`))
	again := as[answer](t, r)
	if len(again.Errors) != 1 || again.Errors[0].Extensions["code"] != "LIMITED" {
		t.Fatalf("at once again: %+v", again.Errors)
	}
	if wait, _ := strconv.Atoi(r.header.Get("Retry-After")); wait < 1 ||
		again.Errors[0].Extensions["retryAfter"] != float64(wait) {
		t.Errorf("when to come back: %q, %v", r.header.Get("Retry-After"), again.Errors[0].Extensions)
	}
}
