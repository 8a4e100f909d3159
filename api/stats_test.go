package api_test

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"repute"
	"repute/api"
	"repute/api/wire"
	"repute/api/wire/stats"
	"repute/internal/httpapi"
	"repute/internal/pgtest"
)

// What GraphQL is asked for to compare with REST.
const (
	clientFields = ` address chains { chainId ratings revoked agents first { block time } last { block time } isRoot isReviewedWriter
		related { address agent role } trust { epoch weight granted root path sources identity members read counted countedShare
		excluded { reason count } } } `
	validatorFields = ` chainId address requests answered answeredShare agents medianBlocks medianSeconds meanResponse
		first { block time } last { block time } tags { tag count cut { field whole } } `
	tagFields = ` tag1 tag tagHex hash cut { field whole } ratings agents raters scoredShare
		meaning { unit better channel use weight min max reason } `
)

// nodesOf is a connection of GraphQL.
type nodesOf[N any] struct {
	Nodes    []N
	PageInfo struct {
		HasNextPage bool
		EndCursor   *string
	}
	AsOf []wire.AsOf
}

// TestClient: a reviewer of a chain whose agents were scored: what it weighs and why, with the ratings that do not
// count. GraphQL says the same.
func TestClient(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1}, 1<<20)
	for n, kind := range map[int]string{firstRoot: "root", 601: "wallet", 405: "stranger", 503: "owner",
		999: "nobody"} {
		path := "/clients/" + addr(n).Hex()
		c := as[stats.ClientAnswer](t, get(t, s, path+"?limit=200"))
		graph := data[struct {
			Client struct {
				stats.Client
				Feedback nodesOf[struct {
					Client wire.Address
					Index  wire.Long
					Agent  struct{ ID wire.ID }
				}]
				AsOf []wire.AsOf
			}
		}](t, ask(t, s, `query($a: Address!) { client(address: $a) {`+clientFields+` asOf { block }
			feedback(first: 200) { nodes { client index agent { id } } asOf { block } } } }`, map[string]any{"a": addr(n).Hex()})).Client
		if !reflect.DeepEqual(graph.Client, c.Client) || len(graph.Feedback.Nodes) != len(c.Items) ||
			graph.AsOf[0].Block != c.AsOf[0].Block {
			t.Errorf("%s: GraphQL %+v\nREST %+v", kind, graph, c)
		}
		for i, f := range graph.Feedback.Nodes {
			if f.Agent.ID != c.Items[i].Agent || f.Index != c.Items[i].Index {
				t.Errorf("%s: rating %d is %+v, not %+v", kind, i, f, c.Items[i])
			}
		}
		if kind == "nobody" {
			if len(c.Chains) != 0 || len(c.Items) != 0 || c.Next != nil {
				t.Errorf("nobody: %+v", c)
			}
			continue
		}
		checkClient(t, kind, c)
	}
	if r := as[stats.ClientAnswer](t, get(t, s,
		"/clients/"+strings.ToLower(addr(601).Hex())+"?chainId=31337&limit=1")); len(r.Items) != 1 || r.Next == nil {
		t.Errorf("a page of one: %+v", r)
	}
}

// checkClient expects of a reviewer what scoredWorld makes of its kind.
func checkClient(t *testing.T, kind string, c stats.ClientAnswer) {
	t.Helper()
	if len(c.Chains) != 1 || c.Chains[0].ChainID != scoredChain || c.Chains[0].Ratings != wire.Long(len(c.Items)) ||
		c.Chains[0].Trust == nil {
		t.Fatalf("%s: %+v", kind, c.Chains)
	}
	chain, trust := c.Chains[0], c.Chains[0].Trust
	var excluded wire.Long
	for _, e := range trust.Excluded {
		excluded += e.Count
	}
	if trust.Read != chain.Ratings || trust.Counted+excluded != trust.Read || trust.CountedShare == nil ||
		chain.First == nil || chain.First.Block > chain.Last.Block {
		t.Errorf("%s: %+v, %+v", kind, chain, trust)
	}
	switch kind {
	case "root":
		if !chain.IsRoot || !trust.Root || trust.Weight != 1 || len(trust.Path) != 1 || trust.Path[0] != c.Address {
			t.Errorf("root: %+v %+v", chain, trust)
		}
	case "stranger":
		if chain.IsRoot || trust.Weight != 0 || len(trust.Path) != 0 {
			t.Errorf("stranger: %+v %+v", chain, trust)
		}
	case "wallet":
		if len(chain.Related) != 1 || chain.Related[0].Role != "owner" ||
			chain.Related[0].Address != wire.Address(addr(501).Hex()) {
			t.Errorf("wallet: %+v", chain.Related)
		}
		if trust.Weight > 0 && (len(trust.Path) < 2 || trust.Path[len(trust.Path)-1] != trust.Identity) {
			t.Errorf("wallet: %+v", trust)
		}
	case "owner":
		if len(chain.Related) != 1 || chain.Related[0].Role != "wallet" {
			t.Errorf("owner: %+v", chain.Related)
		}
		for _, e := range trust.Excluded {
			if e.Reason == "self" {
				return
			}
		}
		t.Errorf("owner: its ratings of its own agent count: %+v", trust)
	}
}

func TestValidatorRoutes(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{})
	list := as[stats.ValidatorList](t, get(t, s, "/validators"))
	if len(list.Items) != 2 || len(list.AsOf) != 2 {
		t.Fatalf("%+v", list)
	}
	top := list.Items[0]
	if top.Address != wire.Address(addr(50).Hex()) || top.ChainID != 8453 || top.Requests != 2 || top.Answered != 1 ||
		top.AnsweredShare != 0.5 ||
		*top.MedianBlocks != 1 || *top.MedianSeconds != 2 || *top.MeanResponse != 0 || top.Tags[0].Tag != "tee" ||
		top.Agents != 1 {
		t.Errorf("%+v", top)
	}
	if trusted := as[stats.ValidatorList](t, get(t, s,
		"/validators?trustedOnly=true&chainId=8453")); len(trusted.Items) != 1 ||
		len(trusted.AsOf) != 1 || trusted.Items[0].Address != top.Address {
		t.Errorf("trusted: %+v", trusted)
	}
	one := as[stats.ValidatorAnswer](t, get(t, s, "/validators/"+addr(50).Hex()))
	if len(one.Chains) != 1 || !reflect.DeepEqual(one.Chains[0], top) || len(one.Items) != 2 ||
		one.Items[0].Validator != top.Address {
		t.Errorf("%+v", one)
	}
	graph := data[struct {
		Validators nodesOf[stats.ValidatorChain]
		Validator  struct {
			Chains      []stats.ValidatorChain
			Validations nodesOf[struct {
				RequestHash wire.Hash
				Agent       struct{ ID wire.ID }
			}]
		}
	}](t, ask(t, s, `query($a: Address!) { validators { nodes {`+validatorFields+`} asOf { block } }
		validator(address: $a) { chains {`+validatorFields+`} validations { nodes { requestHash agent { id } } } } }`,
		map[string]any{"a": addr(50).Hex()}))
	if !reflect.DeepEqual(graph.Validators.Nodes, list.Items) ||
		!reflect.DeepEqual(graph.Validator.Chains, one.Chains) ||
		len(graph.Validator.Validations.Nodes) != 2 || graph.Validator.Validations.Nodes[0].Agent.ID != agent7 {
		t.Errorf("GraphQL %+v", graph)
	}
	if none := as[stats.ValidatorAnswer](t, get(t, s, "/validators/"+addr(99).Hex())); len(none.Chains) != 0 ||
		len(none.Items) != 0 {
		t.Errorf("an address that nobody asked: %+v", none)
	}
}

func TestTagRoutes(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{})
	list := as[stats.TagList](t, get(t, s, "/tags"))
	if len(list.Items) != 4 || list.Items[0].Tag != "quality" || list.Items[0].Tag1 != nil {
		t.Fatalf("%+v", list)
	}
	quality := list.Items[0]
	if m := quality.Meaning; m == nil || m.Unit != "points of 100" || m.Better != "higher" || m.Use != "score" ||
		*m.Min != 0 || *m.Max != 100 ||
		quality.ScoredShare != 1 || quality.Agents != 45 || quality.Raters != 4 || quality.Ratings != 91 {
		t.Errorf("quality: %+v %+v", quality, quality.Meaning)
	}
	for _, tag := range list.Items {
		if tag.Tag != "quality" && tag.Tag != "speed" && (tag.Meaning != nil || tag.ScoredShare != 0) {
			t.Errorf("%q: %+v", tag.Tag, tag)
		}
		if whole := get(t, s, "/tags/"+string(tag.Hash)); whole.status != http.StatusOK {
			t.Errorf("%q: %d %s", tag.Tag, whole.status, whole.body)
		}
	}
	second := as[stats.TagList](t, get(t, s, "/tags?tag1=quality"))
	if len(second.Items) != 1 || second.Items[0].Tag != "web" || *second.Items[0].Tag1 != "quality" ||
		second.Items[0].Meaning == nil {
		t.Errorf("second tags: %+v", second)
	}
	if untagged := as[stats.TagList](t, get(t, s, "/tags?tag1=")); len(untagged.Items) != 1 ||
		untagged.Items[0].Ratings != 1 {
		t.Errorf("second tags of the empty tag: %+v", untagged)
	}
	graph := data[struct{ Tags, Second nodesOf[stats.Tag] }](t, ask(t, s, `{ tags { nodes {`+tagFields+`} }
		second: tags(tag1: "quality") { nodes {`+tagFields+`} } }`, nil))
	if !reflect.DeepEqual(graph.Tags.Nodes, list.Items) || !reflect.DeepEqual(graph.Second.Nodes, second.Items) {
		t.Errorf("GraphQL %+v\nREST %+v", graph.Tags.Nodes, list.Items)
	}
}

func TestLeaderboard(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1}, 1<<20)
	for _, by := range []string{"score", "reviewers", "growth"} {
		list := as[stats.LeaderList](t, get(t, s, "/leaderboard?limit=200&by="+by))
		if len(list.Items) < 3 || len(list.AsOf) != 1 {
			t.Fatalf("%s: %+v", by, list)
		}
		for i, l := range list.Items {
			one := as[wire.AgentAnswer](t, get(t, s, "/agents/"+string(l.Agent.ShortID)))
			value := map[string]float64{"score": one.Score, "reviewers": float64(one.Counts.Clients),
				"growth": l.Value}[by]
			if l.Rank != wire.Long(i+1) || l.Value != value || l.Reviewers != one.Counts.Clients ||
				(l.NewReviewers != nil) != (by == "growth") ||
				i > 0 && l.Value > list.Items[i-1].Value || by == "score" && one.Status != "rated" {
				t.Errorf("%s: %d is %+v, alone %+v", by, i, l, one.Standing)
			}
		}
		var paged []stats.Leader
		for cursor := ""; ; {
			page := as[stats.LeaderList](t, get(t, s, "/leaderboard?limit=2&by="+by+cursor))
			if paged = append(paged, page.Items...); page.Next == nil {
				break
			}
			cursor = "&cursor=" + *page.Next
		}
		if !reflect.DeepEqual(paged, list.Items) {
			t.Errorf("%s: pages of two differ from the whole", by)
		}
		graph := data[struct {
			Leaderboard nodesOf[struct {
				Rank  wire.Long
				Value float64
				stats.Growth
				Agent struct{ ID wire.ID }
			}]
		}](t, ask(t, s, `{ leaderboard(first: 200, by: `+by+
			`) { nodes { rank value reviewers newReviewers newRatings agent { id } } } }`, nil)).Leaderboard
		if len(graph.Nodes) != len(list.Items) {
			t.Fatalf("%s: %d agents by GraphQL, %d by REST", by, len(graph.Nodes), len(list.Items))
		}
		for i, n := range graph.Nodes {
			if l := list.Items[i]; n.Rank != l.Rank || n.Value != l.Value || n.Agent.ID != l.Agent.ID ||
				!reflect.DeepEqual(n.Growth, l.Growth) {
				t.Errorf("%s: %+v by GraphQL, %+v by REST", by, n, l)
			}
		}
	}
	if few := as[stats.LeaderList](t, get(t, s, "/leaderboard?by=reviewers&minReviewers=12")); len(few.Items) == 0 ||
		few.Items[len(few.Items)-1].Reviewers < 12 {
		t.Errorf("%+v", few)
	}
}

// statsPaths are a path of each route, all with several pages in populate's database.
func statsPaths() []string {
	return []string{"/agents/8453:7/history", "/agents/8453:7/series", "/clients/" + addr(200).Hex(), "/validators",
		"/validators/" + addr(50).Hex(), "/tags", "/leaderboard", "/leaderboard?by=growth"}
}

// TestStatsAreCached: an answer has an ETag, which the clock does not change and an event does.
func TestStatsAreCached(t *testing.T) {
	t.Parallel()
	s, l := populated(t, api.Options{})
	tags := map[string]string{}
	for _, path := range statsPaths() {
		r := get(t, s, path)
		if tags[path] = r.header.Get("ETag"); r.status != http.StatusOK || tags[path] == "" ||
			r.header.Get("Cache-Control") != "public, max-age=2" {
			t.Errorf("%s: %d %v", path, r.status, r.header)
		}
		if again := get(t, s, path, "If-None-Match", tags[path]); again.status != http.StatusNotModified ||
			len(again.body) > 0 {
			t.Errorf("%s again: %d", path, again.status)
		}
	}
	l.add(ratingOf(7, 200, 13, 5, 0, "speed", ""), repute.URIUpdated{TokenID: token(7), URI: "https://new.example"})
	for _, path := range statsPaths() {
		if after := get(t, s, path, "If-None-Match", tags[path]); after.status != http.StatusOK {
			t.Errorf("%s after an event: %d", path, after.status)
		}
	}
}

// TestStatsRefuse: every parameter is checked, in REST and in GraphQL, and the error names it.
func TestStatsRefuse(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{})
	next := as[stats.TagList](t, get(t, s, "/tags?limit=1")).Next
	client, validator := "/clients/"+addr(200).Hex(), "/validators/"+addr(50).Hex()
	for _, c := range []struct{ path, field string }{
		{"/clients/vitalik.eth", "address"}, {"/clients/0x8004a169FB4a3325136EB29fA0ceB6D2e539a432", "address"},
		{"/clients/0x00", "address"},
		{"/clients/" + strings.Repeat("0", 4000), "address"}, {client + "?chainId=0", "chainId"},
		{client + "?chainId=1,,2", "chainId"},
		{client + "?includeRevoked=maybe", "includeRevoked"}, {client + "?limit=201", "limit"},
		{client + "?cursor=x", "cursor"},
		{client + "?cursor=" + *next, "cursor"}, {client + "?at=5", "at"}, {"/validators/7", "address"},
		{validator + "?trustedOnly=2", "trustedOnly"},
		{validator + "?limit=0", "limit"}, {validator + "?cursor=" + *next, "cursor"},
		{"/validators?cursor=" + *next, "cursor"},
		{"/validators?trustedOnly=", "trustedOnly"}, {"/validators?chainId=x", "chainId"},
		{"/validators?limit=-1", "limit"},
		{"/tags?cursor=%ff%00", "cursor"}, {"/tags?cursor=" + strings.Repeat("A", 10_000), "cursor"},
		{"/tags?tag1=quality&cursor=" + *next, "cursor"},
		{"/tags?limit=0", "limit"}, {"/tags?chainId=", "chainId"}, {"/tags?tag2=x", "tag2"},
		{"/leaderboard?by=age", "by"},
		{"/leaderboard?by=growth&period=1d", "period"}, {"/leaderboard?period=7d", "period"},
		{"/leaderboard?by=reviewers&period=30d", "period"},
		{"/leaderboard?minReviewers=-1", "minReviewers"},
		{"/leaderboard?minReviewers=9223372036854775808", "minReviewers"},
		{"/leaderboard?minReviewers=many", "minReviewers"}, {"/leaderboard?cursor=" + *next, "cursor"},
		{"/leaderboard?chainId=-1", "chainId"},
		{"/leaderboard?limit=1000", "limit"}, {"/leaderboard?by=", "by"},
	} {
		if b := problemOf(t, get(t, s, c.path)); b.Status != http.StatusBadRequest || len(b.Errors) != 1 ||
			b.Errors[0].Field != c.field || b.Hint == "" {
			t.Errorf("%.80s: %d %s, want field %s: %+v", c.path, b.Status, b.Detail, c.field, b.Errors)
		}
	}
	for _, path := range []string{client + "?chainId=5", "/validators?chainId=8453,5", "/tags?chainId=5",
		"/leaderboard?chainId=5"} {
		if b := problemOf(t, get(t, s, path)); b.Status != http.StatusNotFound ||
			!strings.Contains(b.Detail, "chain 5") {
			t.Errorf("%s: %+v", path, b)
		}
	}
	if long := get(t, s, "/tags"+query("tag1", strings.Repeat("t\x00\xff", 1000))); long.status != http.StatusOK {
		t.Errorf("a long hostile tag: %d %s", long.status, long.body)
	}
	for _, c := range []struct{ query, code, field string }{
		{`client(address: "me") { address }`, "INVALID", "address"},
		{`client(address: 5) { address }`, "BAD_QUERY", ""},
		{`client(address: "` + addr(200).Hex() + `") { feedback(first: 0) { nodes { id } } }`, "INVALID", "first"},
		{`client(address: "` + addr(200).Hex() + `") { feedback(after: "x") { nodes { id } } }`, "INVALID", "after"},
		{`client(address: "` + addr(200).Hex() + `", chainIds: [5]) { address }`, "NOT_FOUND", ""},
		{`validator(address: "") { address }`, "INVALID", "address"},
		{`validators(first: 201) { nodes { requests } }`, "INVALID", "first"},
		{`validators(after: "x") { nodes { requests } }`, "INVALID", "after"},
		{`tags(after: "` + *next + `", tag1: "a") { nodes { tag } }`, "INVALID", "after"},
		{`leaderboard(by: age) { nodes { rank } }`, "BAD_QUERY", ""},
		{`leaderboard(period: "7d") { nodes { rank } }`, "INVALID", "period"},
		{`leaderboard(minReviewers: -1) { nodes { rank } }`, "INVALID", "minReviewers"},
		{`tags(first: 200) { nodes { tag } } leaderboard(by: reviewers, first: 200) { nodes { agent {
			feedback(first: 200) { nodes { id } } } } }`,
			"TOO_COMPLEX", ""},
	} {
		a := ask(t, s, "{ "+c.query+" }", nil)
		if len(a.Errors) != 1 || a.Errors[0].Extensions["code"] != c.code ||
			c.field != "" && a.Errors[0].Extensions["field"] != c.field {
			t.Errorf("%.90s: %+v", c.query, a.Errors)
		}
	}
}

// TestStatsStatements: pages of any size are read with as many statements.
func TestStatsStatements(t *testing.T) {
	t.Parallel()
	dbURL := pgtest.New(t)
	populate(t, open(t, dbURL))
	proxy := newProxy(t, dbURL)
	s := serve(t, api.Options{DB: open(t, proxy.url), QueryCost: 1 << 20}, unlimited())
	for name, q := range map[string]string{
		"client": `{ client(address: "` + addr(101).Hex() + `") {` + clientFields +
			` feedback(first: %d) { nodes { id agent { id name
			reputation { score summary { count } } } } } } }`,
		"validator": `{ validator(address: "` + addr(50).Hex() +
			`") { validations(first: %d) { nodes { id agent { id } } } } }`,
		"validators":  `{ validators(first: %d) { nodes {` + validatorFields + `} } }`,
		"tags":        `{ tags(first: %d) { nodes {` + tagFields + `} } }`,
		"leaderboard": `{ leaderboard(by: growth, first: %d) { nodes { rank agent { id name feedback(first: 2) { nodes { id } } } } } }`,
	} {
		few, many := statementsOf(t, s, proxy, fmt.Sprintf(q, 1)), statementsOf(t, s, proxy, fmt.Sprintf(q, 50))
		if few != many || many == 0 || many > 20 {
			t.Errorf("%s: %d statements for a page of 1, %d for one of 50", name, few, many)
		}
	}
}

// statementsOf counts what a query sends to the database once connections and types are known: the least of some
// counts, because the server asks for changes meanwhile, now and then.
func statementsOf(t *testing.T, s *httptest.Server, proxy *proxy, q string) int64 {
	t.Helper()
	data[any](t, ask(t, s, q, nil))
	least := int64(math.MaxInt64)
	for range 5 {
		before := proxy.statements.Load()
		data[any](t, ask(t, s, q, nil))
		least = min(least, proxy.statements.Load()-before)
	}
	return least
}
