package api_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/net/html"

	"repute"
	"repute/api"
	"repute/internal/httpapi"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/changedata"
	"repute/store/docdb"
)

// maxStatements is how many statements a page may cost the database.
const maxStatements = 12

// world is an index with its pages, which counts the statements of its database.
type world struct {
	*httptest.Server
	read *reads
}

// newWorld serves the pages of a database.
func newWorld(t *testing.T, dbURL string) world {
	t.Helper()
	w := world{read: &reads{}}
	db, err := store.Open(context.WithoutCancel(t.Context()), dbURL, store.Options{Tracer: w.read})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w.Server = serve(t, api.Options{DB: db}, unlimited())
	return w
}

// reads are the statements that a database was sent, without those that begin and end transactions. It implements
// pgx.QueryTracer.
type reads struct {
	mu   sync.Mutex
	list []string
}

// TraceQueryStart implements pgx.QueryTracer.
func (r *reads) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	r.add(d.SQL)
	return ctx
}

// add keeps a statement.
func (r *reads) add(sql string) {
	text := strings.Join(strings.Fields(sql), " ")
	switch word, _, _ := strings.Cut(strings.ToLower(text), " "); word {
	case "begin", "commit", "rollback", "set", ";", "--":
	default:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.list = append(r.list, text)
	}
}

// TraceBatchStart implements pgx.BatchTracer. A batch counts as one statement, because it is one message to the
// database.
func (r *reads) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	r.add(fmt.Sprintf("a batch of %d", d.Batch.Len()))
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (*reads) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (*reads) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// TraceQueryEnd implements pgx.QueryTracer.
func (r *reads) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// since returns the statements since the last call.
func (r *reads) since() (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list, r.list = r.list, nil
	return list
}

// hostileNames are names that strangers gave their agents.
func hostileNames() map[string]string {
	return map[string]string{
		"script": `</title></script><script>alert(1)</script><img src=x onerror=alert(1)>`,
		"long":   strings.Repeat("W", 10_000),
		"rtl":    "\u202Etxt.exe \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
		"emoji":  "👩‍👩‍👧 agent 🤖",
		"zalgo":  "Z" + strings.Repeat("\u0301", 200),
		"quote":  `" onmouseover="alert(1)`,
	}
}

// hostileWorld has agents whose tags, URIs and documents attack their readers.
func hostileWorld(t *testing.T) world {
	t.Helper()
	dbURL := pgtest.New(t)
	db := open(t, dbURL)
	populate(t, db)
	yes := true
	files, n := map[string]docdb.FetchResult{}, 10
	for _, name := range hostileNames() {
		f := file(&repute.Registration{Name: name, Description: name, Image: svg, Active: &yes, X402: &yes,
			SupportedTrust: []string{name}, Registrations: links(uint64(n)),
			Services: []repute.Service{{Name: name, Endpoint: "https://user:pass@evil.example/" + name, Version: name,
				Skills: []string{name}, Domains: []string{name}}, {Name: "web", Endpoint: "javascript:alert(1)"},
				{Name: "web", Endpoint: "https://xn--80ak6aa92e.com/"}}}, fmt.Sprintf(`{"n":%d}`, n))
		f.Problems = []repute.Problem{{Code: "WA001", Severity: repute.SeverityWarning, Path: "/" + name[:3],
			Message: name}}
		files[fmt.Sprintf("https://agent.example/%d.json", n)] = f
		n++
	}
	saveFiles(t, db, files)
	return newWorld(t, dbURL)
}

// judgedWorld has agents with scores, roots and a history.
func judgedWorld(t *testing.T) world {
	t.Helper()
	s, l := scoredWorld(t, httpapi.Limits{Rate: -1})
	s.Close()
	return newWorld(t, l.db.Pool().Config().ConnString())
}

// soldWorld has domains with manifests.
func soldWorld(t *testing.T) world {
	t.Helper()
	_, dbURL := sold(t)
	return newWorld(t, dbURL)
}

// TestDashboard follows every link between the pages of three worlds, and checks every page.
func TestDashboard(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]func(*testing.T) world{"hostile": hostileWorld, "judged": judgedWorld,
		"sold": soldWorld} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := made(t)
			seen, kinds := map[string]bool{}, map[string]int{}
			for next := []string{"/", "/docs", "/graphiql", "/ui/compare?id=31337:1+31337:2", "/ui/offers?q=flight",
				"/ui/explore?q=agent", "/ui/explore?q=wheather",
				"/ui/domain/evil.example/graph", "/ui/domain/cheap.example/graph",
				"/ui/validator/" + addr(50).Hex() + "/graph"}; len(next) > 0; {
				path := next[0]
				next = next[1:]
				kind := kindOfPage(path)
				// Of a kind of pages some are enough: a page that is wrong for one agent of twenty is rare.
				if most := 8; seen[path] || kinds[kind] >= most || len(seen) > 150 {
					continue
				}
				seen[path] = true
				if strings.Contains(path, "31337") && name != "judged" {
					continue
				}
				kinds[kind]++
				next = append(next, w.page(t, path)...)
			}
			t.Logf("%d pages: %v", len(seen), kinds)
			if len(kinds) < 8 {
				t.Errorf("only %v were reached", kinds)
			}
		})
	}
}

// kindOfPage is the path of a page without what it is about.
func kindOfPage(path string) string {
	path, query, _ := strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	if len(parts) > 3 {
		parts[3] = "*"
	}
	values, _ := url.ParseQuery(query)
	return strings.Join(append(parts, slices.Sorted(maps.Keys(values))...), "/")
}

// TestPagesOfErrors: what cannot be shown is a page too, with what to do next.
func TestPagesOfErrors(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{}, unlimited())
	for path, want := range map[string]struct {
		status int
		says   string
	}{
		"/ui/agent/8453:99999999":          {404, "No page or agent of this name"},
		"/ui/agent/9:1":                    {404, "Nothing here"},
		"/ui/agent/%3Cscript%3E":           {400, "This cannot be asked"},
		"/ui/agent/8453:7/nothing":         {404, "Nothing here"},
		"/ui/nothing":                      {404, "Nothing here"},
		"/ui/explore?tier=high":            {400, "a number"},
		"/ui/explore?tier=1e400":           {400, "a number"},
		"/ui/explore?owner=me":             {400, "owner"},
		"/ui/explore?after=%00":            {400, "after"},
		"/ui/explore?sort=%22%3E%3Cscript": {400, "This cannot be asked"},
		"/ui/explore?chain=NaN":            {400, "a number"},
		"/ui/chain/x":                      {400, "a number"}, "/ui/chain/77": {404, "Nothing here"},
		"/ui/compare?id=8453:1": {400, "two to five"}, "/ui/compare?id=8453:1+8453:99999": {404, "Nothing here"},
		"/ui/offers?minScore=x": {400, "a score"}, "/ui/offers?maxPrice=x": {400, "maxPrice"},
		"/ui/leaders?by=luck": {400, "cannot be asked"},
		"/ui/reviewer/me":     {400, "cannot be asked"}, "/ui/domain/nowhere.example": {404, "Nothing here"},
		"/ui/validator/me/graph": {400, "cannot be asked"}, "/ui/domain/%2E/graph": {404, "Nothing here"},
		"/ui/domain/0x0000000000000000000000000000000000000001/graph": {400, "host"},
		"/ui/agent/8453:7/ratings?after=no":                           {400, "after"},
	} {
		r := get(t, s, path)
		if text := textOf(t, r.body); r.status != want.status || !strings.Contains(text, want.says) {
			t.Errorf("%s: %d %s", path, r.status, text)
		}
		checkPage(t, path, r)
	}
}

// TestPagesWithoutDatabase: a page says that the index is unavailable, and how to see why.
func TestPagesWithoutDatabase(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Options{DB: open(t, nowhere)})
	for _, path := range []string{"/", "/ui/explore", "/ui/agent/1:1"} {
		r := get(t, s, path)
		if text := textOf(t, r.body); r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" ||
			!strings.Contains(text, "The index does not answer") || !strings.Contains(text, "/readyz") {
			t.Errorf("%s: %d %s", path, r.status, text)
		}
		checkPage(t, path, r)
	}
	if r := get(t, s, "/ui/latest"); r.status != http.StatusServiceUnavailable || len(r.body) > 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestPagesOfStates: empty, stale and incomplete indexes say so, with what to do next.
func TestPagesOfStates(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t))
	s := serve(t, api.Options{DB: db}, unlimited())
	says := func(path string, want ...string) {
		t.Helper()
		text := textOf(t, get(t, s, path).body)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s does not say %q: %s", path, w, text)
			}
		}
	}
	says("/", "No chain is indexed yet.", "repute serve --chain", "No agent is indexed yet.")
	says("/ui/explore", "No agent fits.", "Remove a filter")
	l := newLedger(t, db, 8453)
	l.add(mint(1, addr(1), "https://agent.example/1.json")...)
	says("/", "chain 8453", "No roots: nobody is trusted", "repute roots add", "being verified", "not seen")
	says("/ui/agent/8453:1", "unrated", "Nobody has rated this agent.", "waits to be read",
		"the head of the chain was not seen lately")
	says("/ui/agent/8453:1/score", "Every rating of this agent can be read.")
	says("/ui/agent/8453:1/work", "No validator was asked", "No domain offers anything")
	says("/ui/agent/8453:1/ratings", "No rating here.")
	if err := chaindb.SetHead(t.Context(), db, 8453, store.Lease{},
		chaindb.Head{Head: l.tip.Number + 3, SeenAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	says("/", "3 blocks")
}

// TestPageSaysTheScore: the sentence, the bounds and the gates of a score are on the agent's page, and rows with their
// transactions on that of its score.
func TestPageSaysTheScore(t *testing.T) {
	t.Parallel()
	w := judgedWorld(t)
	a := data[struct {
		Agent struct {
			Reputation struct{ Scored struct{ Sentence string } }
		}
	}](t, ask(t, w.Server, `{ agent(id: "31337:1") { reputation { scored { sentence } } } }`, nil))
	text := textOf(t, get(t, w.Server, "/ui/agent/31337:1").body)
	for _, want := range []string{a.Agent.Reputation.Scored.Sentence, "Gates", "confidence", "What clients said",
		"starred"} {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(want)) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	text = textOf(t, get(t, w.Server, "/ui/agent/31337:1/score").body)
	for _, want := range []string{"add up to", "transaction", "Without", "block", "What does not count"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}

// TestShownQueries: the documents that a page shows give what it shows, over HTTP.
func TestShownQueries(t *testing.T) {
	t.Parallel()
	w := judgedWorld(t)
	root, err := html.Parse(strings.NewReader(string(get(t, w.Server, "/ui/agent/31337:1/ratings").body)))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for n := range root.Descendants() {
		fragment, found := strings.CutPrefix(attr(n, "href"), "/graphiql#")
		if n.Data != "a" || !found {
			continue
		}
		asked, err := url.ParseQuery(fragment)
		if err != nil {
			t.Fatal(err)
		}
		r := get(t, w.Server, "/graphql?"+asked.Encode())
		if r.status != http.StatusOK || strings.Contains(string(r.body), `"errors"`) ||
			!strings.Contains(string(r.body), "starred") {
			t.Errorf("%d %.300s", r.status, r.body)
		}
		ran++
	}
	if ran != 1 {
		t.Errorf("%d queries are shown", ran)
	}
}

// TestLiveRowsFollowAllChanges: the first page listens to every kind of change.
func TestLiveRowsFollowAllChanges(t *testing.T) {
	t.Parallel()
	w := soldWorld(t)
	_, rest, _ := strings.Cut(string(get(t, w.Server, "/").body), `data-kinds="`)
	kinds, _, _ := strings.Cut(rest, `"`)
	if got, want := slices.Sorted(slices.Values(strings.Fields(kinds))), slices.Sorted(slices.Values(changedata.Kinds())); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	root := textOf(t, get(t, w.Server, "/ui/latest").body)
	if !strings.Contains(root, "99:0") || strings.Contains(root, "Overview") {
		t.Errorf("the newest rows are %q", root)
	}
}

// TestAssets: files have names by their content, and browsers keep them compressed and for ever.
func TestAssets(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Options{DB: open(t, nowhere)})
	page := string(get(t, s, "/graphiql").body)
	for _, name := range []string{"repute.", "page.", "htmx.min.", "graphiql.", "icon."} {
		_, rest, found := strings.Cut(page, `"/assets/`+name)
		hash, _, _ := strings.Cut(rest, `"`)
		if !found {
			t.Errorf("no %s in %s", name, page)
			continue
		}
		plain := get(t, s, "/assets/"+name+hash, "Accept-Encoding", "identity")
		packed := get(t, s, "/assets/"+name+hash, "Accept-Encoding", "gzip")
		if plain.status != 200 || !strings.Contains(plain.header.Get("Cache-Control"), "immutable") ||
			packed.header.Get("Content-Encoding") != "gzip" || len(packed.body) >= len(plain.body) ||
			plain.header.Get("Vary") == "" {
			t.Errorf("%s: %d %v, %d of %d bytes", name, plain.status, packed.header, len(packed.body), len(plain.body))
		}
	}
	for _, path := range []string{"/assets/repute.css", "/assets/nope.js", "/assets/vendor"} {
		if r := get(t, s, path); r.status != 404 {
			t.Errorf("%s: %d", path, r.status)
		}
	}
}

// TestPageBudget: what a browser has to load for a page, compressed.
func TestPageBudget(t *testing.T) {
	t.Parallel()
	w := hostileWorld(t)
	for _, path := range []string{"/", "/ui/explore", "/ui/agent/8453:7", "/ui/agent/8453:7/ratings"} {
		r := get(t, w.Server, path, "Accept-Encoding", "gzip")
		whole := len(r.body)
		plain := string(get(t, w.Server, path).body)
		for _, ref := range strings.Split(plain, `"/assets/`)[1:] {
			name, _, _ := strings.Cut(ref, `"`)
			whole += len(get(t, w.Server, "/assets/"+name, "Accept-Encoding", "gzip").body)
		}
		t.Logf("%s: %d bytes", path, whole)
		if whole > 60_000 {
			t.Errorf("%s: %d bytes", path, whole)
		}
	}
}
