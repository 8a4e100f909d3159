package api_test

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"repute"
	"repute/api"
	"repute/api/wire"
	"repute/api/wire/stats"
	"repute/internal/pgtest"
)

// What GraphQL is asked for to compare with REST.
const (
	changeFields = ` agent kind key { text hex size } old { text hex size } new { text hex size }
		at { block logIndex txHash time } cut { field whole } `
	seriesFields = ` agent measure every tag from to points { start value carried low high status epoch } undated
		asOf { chainId block hash time finality } `
)

// changesOf is an agent's history as GraphQL gives it.
type changesOf struct {
	Agent struct {
		History struct {
			Nodes    []stats.AgentChange
			PageInfo struct {
				HasNextPage bool
				EndCursor   *string
			}
			AsOf *wire.AsOf
		}
		Series stats.SeriesAnswer
	}
}

func TestHistoryOfAnAgent(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{})
	list := as[stats.HistoryList](t, get(t, s, "/agents/8453:7/history"))
	var kinds []string
	for _, c := range list.Items {
		kinds = append(kinds, fmt.Sprint(c.Kind, " ", c.At.Block))
	}
	if want := []string{"metadata 3", "metadata 3", "uri 3", "wallet 3", "uri 1", "owner 1"}; !reflect.DeepEqual(kinds,
		want) {
		t.Fatalf("%v, want %v", kinds, want)
	}
	uri, wallet, born := list.Items[2], list.Items[3], list.Items[5]
	if *uri.Old.Text != "https://agent.example/7.json" || uri.Old.Hex != nil ||
		*uri.New.Text != "javascript:alert(1)//\uFFFD(" ||
		uri.New.Hex == nil || uri.At.LogIndex != 3 || uri.At.Time == nil {
		t.Errorf("URI %+v", uri)
	}
	if wallet.Old != nil || *wallet.New.Text != addr(77).Hex() || wallet.New.Size != 20 {
		t.Errorf("wallet %+v", wallet)
	}
	if born.Old != nil || *born.New.Text != addr(2).Hex() || born.Key != nil {
		t.Errorf("owner %+v", born)
	}
	for _, c := range list.Items[:2] {
		model := *c.Key.Text == "model"
		if model && (*c.New.Text != "gpt" || c.New.Hex != nil) ||
			!model && (c.Key.Hex == nil || c.New.Text != nil || *c.New.Hex != "0x00ff") {
			t.Errorf("metadata %+v", c)
		}
	}
	if one := as[stats.HistoryList](t, get(t, s,
		"/agents/8453:7/history?kind=uri,owner&order=asc&at=2")); len(one.Items) != 2 ||
		one.Items[0].Kind != "owner" || one.Items[1].Kind != "uri" || one.AsOf[0].Block != 2 {
		t.Errorf("oldest first at block 2: %+v", one)
	}
	all := data[changesOf](t, ask(t, s, `{ agent(id: "8453:7") { history { nodes {`+changeFields+
		`} asOf { block } } } }`, nil)).Agent.History
	if !reflect.DeepEqual(all.Nodes, list.Items) || all.AsOf == nil || all.AsOf.Block != list.AsOf[0].Block {
		t.Errorf("GraphQL %+v\nREST %+v", all.Nodes, list.Items)
	}
	page := data[changesOf](t,
		ask(t, s, `{ agent(id: "8453:7") { history(kinds: [owner, uri], order: asc, first: 1) { nodes { kind }
		pageInfo { hasNextPage endCursor } } } }`, nil)).Agent.History
	if len(page.Nodes) != 1 || !page.PageInfo.HasNextPage {
		t.Fatalf("%+v", page)
	}
	next := data[changesOf](t,
		ask(t, s,
			`query($after: String) { agent(id: "8453:7") { history(kinds: [owner, uri], order: asc, first: 1, after: $after) {
		nodes { kind } } } }`, map[string]any{"after": page.PageInfo.EndCursor})).Agent.History
	if len(next.Nodes) != 1 || next.Nodes[0].Kind != "uri" {
		t.Errorf("the next page %+v", next)
	}
}

// TestLongHistory: long values are cut, and the path of the whole leads to it.
func TestLongHistory(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t))
	l := newLedger(t, db, 1)
	long := strings.Repeat("é", 40_000)
	l.add(mint(7, addr(1), "https://a.example/"+long)...)
	l.add(repute.URIUpdated{TokenID: token(7), URI: "https://b.example/"},
		repute.MetadataSet{TokenID: token(7), Key: "k", Value: []byte(long)})
	s := serve(t, api.Options{DB: db})
	r := get(t, s, "/agents/1:7/history")
	list := as[stats.HistoryList](t, r)
	if len(r.body) > 30_000 || len(list.Items) != 4 {
		t.Fatalf("%d changes in %d bytes", len(list.Items), len(r.body))
	}
	for i, want := range map[int]string{0: long, 1: "https://a.example/" + long, 2: "https://a.example/" + long} {
		cut := list.Items[i].Cut
		if len(cut) != 1 || cut[0].Whole == nil {
			t.Fatalf("change %d: %+v", i, cut)
		}
		if whole := get(t, s, *cut[0].Whole); string(whole.body) != want {
			t.Errorf("change %d: %s gives %d bytes, not %d", i, *cut[0].Whole, len(whole.body), len(want))
		}
	}
}

func TestSeriesOfAnAgent(t *testing.T) {
	t.Parallel()
	s, l := populated(t, api.Options{})
	for _, q := range []string{"measure=ratings&every=hour", "measure=reviewers&every=week", "", "measure=ratings&tag=",
		"measure=ratings&at=2",
		"every=day&from=2025-06-01&to=2025-06-16T00:00:01Z"} {
		rest := as[stats.SeriesAnswer](t, get(t, s, "/agents/8453:7/series?"+q))
		if q == "measure=ratings&every=hour" {
			var n float64
			for _, p := range rest.Points {
				n += *p.Value
			}
			if n != 17 || len(rest.Points) != 30 || rest.AsOf.Block != wire.Long(l.tip.Number) ||
				rest.From != "2025-06-14T10:00:00Z" {
				t.Errorf("%v ratings in %d hours from %s", n, len(rest.Points), rest.From)
			}
		}
		if strings.HasPrefix(q, "every=day") &&
			(len(rest.Points) != 16 || rest.To != "2025-06-17T00:00:00Z" || rest.Points[0].Value != nil) {
			t.Errorf("days: %+v", rest)
		}
		arguments, at := "", ""
		for pair := range strings.SplitSeq(q, "&") {
			name, value, _ := strings.Cut(pair, "=")
			switch name {
			case "":
			case "at":
				at = ", at: " + fmt.Sprintf("%q", value)
			case "measure", "every":
				arguments += name + ": " + value + " "
			default:
				arguments += fmt.Sprintf("%s: %q ", name, value)
			}
		}
		if arguments != "" {
			arguments = "(" + arguments + ")"
		}
		graph := data[changesOf](t, ask(t, s,
			`{ agent(id: "8453:7"`+at+`) { series`+arguments+` {`+seriesFields+`} } }`, nil)).Agent.Series
		same(t, q, graph, rest)
	}
}

// same compares a series of GraphQL with one of REST, without what the query leaves out of asOf.
func same(t *testing.T, what string, graph, rest stats.SeriesAnswer) {
	t.Helper()
	if graph.AsOf.Block != rest.AsOf.Block || graph.AsOf.Finality != rest.AsOf.Finality {
		t.Errorf("%s: asOf %+v, want %+v", what, graph.AsOf, rest.AsOf)
	}
	graph.AsOf, rest.AsOf = wire.AsOf{}, wire.AsOf{}
	if !reflect.DeepEqual(graph, rest) {
		t.Errorf("%s: GraphQL %+v\nREST %+v", what, graph, rest)
	}
}

// TestTimeInLists: below a list of agents stands what each of them has alone, read with as many statements for many
// agents as for few.
func TestTimeInLists(t *testing.T) {
	t.Parallel()
	dbURL := pgtest.New(t)
	populate(t, open(t, dbURL))
	proxy := newProxy(t, dbURL)
	s := serve(t, api.Options{DB: open(t, proxy.url), QueryCost: 1 << 20}, unlimited())
	const below = ` id history(first: 2) { nodes {` + changeFields + `} pageInfo { hasNextPage } }
		series(measure: ratings, every: hour) {` + seriesFields + `} `
	count := func(first int) int64 {
		q := fmt.Sprintf(`{ agents(first: %d, sort: feedback) { nodes {%s} }
			leaderboard(by: reviewers, first: %d) { nodes { rank agent {%s} } } }`, first, below, first, below)
		return statementsOf(t, s, proxy, q)
	}
	// One or two may be of a reader in the background.
	if few, many := count(2), count(40); many > few+2 || few > many+2 || many == 0 || many > 40 {
		t.Errorf("%d statements for 2 agents, %d for 40", few, many)
	}
	type agent map[string]any
	list := data[struct{ Agents struct{ Nodes []agent } }](t,
		ask(t, s, `{ agents(first: 5, sort: feedback) { nodes {`+below+`} } }`, nil)).Agents.Nodes
	for _, a := range list {
		alone := data[struct{ Agent agent }](t,
			ask(t, s, `query($id: ID!) { agent(id: $id) {`+below+`} }`, map[string]any{"id": a["id"]})).Agent
		if !reflect.DeepEqual(a, alone) {
			t.Errorf("in a list %v, alone %v", a, alone)
		}
	}
}

// TestReadsOfTimeRefuse: every parameter is checked, in REST and in GraphQL, and the error names it.
func TestReadsOfTimeRefuse(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{})
	next := as[stats.HistoryList](t, get(t, s, "/agents/8453:7/history?limit=1")).Next
	other := as[wire.FeedbackList](t, get(t, s, "/agents/8453:7/feedback?limit=1")).Next
	for _, c := range []struct{ path, field string }{
		{"/history?kind=name", "kind"}, {"/history?kind=", "kind"}, {"/history?kind=uri,,owner", "kind"},
		{"/history?kind=uri%00", "kind"},
		{"/history?kind=" + strings.Repeat("uri,", 3000), "kind"}, {"/history?order=newest", "order"},
		{"/history?limit=0", "limit"},
		{"/history?limit=201", "limit"}, {"/history?limit=1e3", "limit"}, {"/history?at=noon", "at"},
		{"/history?at=99999999", "at"},
		{"/history?cursor=%00", "cursor"}, {"/history?cursor=" + strings.Repeat("A", 10_000), "cursor"},
		{"/history?cursor=" + *other, "cursor"},
		{"/history?order=asc&cursor=" + *next, "cursor"}, {"/history?kind=uri&cursor=" + *next, "cursor"},
		{"/history?since=1", "since"},
		{"/series?measure=mean", "measure"}, {"/series?every=month", "every"}, {"/series?from=yesterday", "from"},
		{"/series?to=1750000000", "to"},
		{"/series?from=1969-12-31", "from"}, {"/series?from=2025-06-02&to=2025-06-01", "from"},
		{"/series?from=2030-01-01", "from"},
		{"/series?measure=ratings&every=hour&from=2025-01-01&to=2025-06-01", "from"}, {"/series?tag=quality", "tag"},
		{"/series?measure=score&tag=", "tag"}, {"/series?from=", "from"}, {"/series?at=0", "at"},
		{"/series?from=2025-06-01%00", "from"},
	} {
		if b := problemOf(t, get(t, s, "/agents/8453:7"+c.path)); b.Status != http.StatusBadRequest ||
			len(b.Errors) != 1 ||
			b.Errors[0].Field != c.field || b.Hint == "" {
			t.Errorf("%.80s: %d %s, want field %s: %+v", c.path, b.Status, b.Detail, c.field, b.Errors)
		}
	}
	for _, path := range []string{"/agents/8453:99/history", "/agents/8453:99/series", "/agents/5:1/history",
		"/agents/1:0/series?at=safe"} {
		if b := problemOf(t, get(t, s, path)); b.Status != http.StatusNotFound && !strings.Contains(path, "at=") ||
			b.Hint == "" {
			t.Errorf("%s: %+v", path, b)
		}
	}
	if most := get(t, s, "/agents/8453:7/series?measure=ratings&tag="+
		strings.Repeat("t", 8<<10)); most.status != http.StatusOK {
		t.Errorf("a long tag: %d %s", most.status, most.body)
	}
	for _, c := range []struct{ query, code, field string }{
		{`history(first: 0) { nodes { kind } }`, "INVALID", "first"},
		{`history(after: "x") { nodes { kind } }`, "INVALID", "after"},
		{`history(kinds: [name]) { nodes { kind } }`, "BAD_QUERY", ""},
		{`series(measure: mean) { undated }`, "BAD_QUERY", ""},
		{`series(from: "noon") { undated }`, "INVALID", "from"}, {`series(tag: "x") { undated }`, "INVALID", "tag"},
		{`series(measure: ratings, every: hour, from: "2025-01-01", to: "2025-06-01") { undated }`, "INVALID", "from"},
	} {
		a := ask(t, s, `{ agent(id: "8453:7") { `+c.query+` } }`, nil)
		if len(a.Errors) != 1 || a.Errors[0].Extensions["code"] != c.code ||
			c.field != "" && a.Errors[0].Extensions["field"] != c.field {
			t.Errorf("%s: %+v", c.query, a.Errors)
		}
	}
	costly := `{ agents(first: 200) { nodes { series(from: "2025-01-01") { undated } } } }`
	if a := ask(t, s, costly, nil); len(a.Errors) != 1 || a.Errors[0].Extensions["code"] != "TOO_COMPLEX" {
		t.Errorf("two hundred long series: %+v", a.Errors)
	}
}
