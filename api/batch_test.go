package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"repute/api"
	"repute/api/batch"
	"repute/api/wire"
	"repute/internal/httpapi"
)

// askBatch asks for the reputations of items, each of which is JSON.
func askBatch(t testing.TB, s *httptest.Server, items ...string) batch.ReputationsAnswer {
	t.Helper()
	return as[batch.ReputationsAnswer](t, postBatch(t, s, `{"agents":[`+strings.Join(items, ",")+`]}`))
}

func postBatch(t testing.TB, s *httptest.Server, body string) reply {
	t.Helper()
	return do(t, s, http.MethodPost, "/reputation:batch", strings.NewReader(body), "Content-Type", "application/json")
}

// withoutClock returns a reputation without what moves while nothing happens.
func withoutClock(r batch.ReputationAnswer) string {
	r.AsOf = wire.SteadyAsOf(r.AsOf)
	raw, _ := json.Marshal(r)
	return string(raw)
}

// Whatever a batch asks for, each agent has the body that the route of one agent gives, in the order asked for, and all
// have the views of the one snapshot.
func TestBatchEqualsSingleAnswers(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1})
	rapid.Check(t, func(r *rapid.T) {
		agents := rapid.SliceOfN(rapid.IntRange(0, scoredAgents+1), 1, 30).Draw(r, "agents")
		var items []string
		for _, n := range agents {
			items = append(items, rapid.SampledFrom([]string{
				fmt.Sprintf(`"%d"`, n), fmt.Sprintf(`"%d:%d"`, scoredChain, n),
				fmt.Sprintf(`{"agent":"%d:%d"}`, scoredChain, n),
				fmt.Sprintf(`{"wallet":%q}`, addr(600+n).Hex()), fmt.Sprintf(`{"wallet":%q}`, addr(500+n).Hex()),
			}).Draw(r, "form"))
		}
		got := askBatch(t, s, items...)
		if len(got.Items) != len(items) || len(got.AsOf) != 1 {
			r.Fatalf("%d items, asOf %+v", len(got.Items), got.AsOf)
		}
		for i, n := range agents {
			single := get(t, s, scoredPath(n, ""))
			item := got.Items[i]
			if n >= scoredAgents {
				if len(item.Agents) > 0 || single.status != http.StatusNotFound ||
					(item.Problem == nil) != strings.Contains(items[i], "wallet") {
					r.Errorf("%s: %+v", items[i], item)
				}
				continue
			}
			want := as[batch.ReputationAnswer](t, single)
			if item.Problem != nil || item.More || len(item.Agents) != 1 ||
				withoutClock(item.Agents[0].Reputation) != withoutClock(want) {
				r.Errorf("%s: %+v\nwant %s", items[i], item, single.body)
			}
			if a := item.Agents[0].Reputation.AsOf; a.Block != got.AsOf[0].Block || *a.Hash != *got.AsOf[0].Hash {
				r.Errorf("%s is of another state: %+v", items[i], a)
			}
		}
	})
}

// A wallet and a domain name all of their agents, with how and whether it is proven.
func TestBatchMatches(t *testing.T) {
	t.Parallel()
	db, _ := sold(t)
	s := serve(t, api.Options{DB: db})
	if _, err := db.Pool().Exec(t.Context(),
		`update agents set owner = (select wallet from agents where token_id = 1)`); err != nil {
		t.Fatal(err)
	}
	tell := func(item batch.ReputationsItem) (out string) {
		for _, m := range item.Agents {
			out += fmt.Sprintf("%s %s %v;", m.Reputation.Agent[strings.LastIndex(string(m.Reputation.Agent), ":")+1:],
				strings.Join(m.How, "+"), m.Proven)
		}
		if item.Problem != nil {
			out += item.Problem.Code
		}
		return out
	}
	for item, want := range map[string]string{
		`"99:0"`:                             "0 id true;",
		`{"wallet":"` + addr(1).Hex() + `"}`: "0 wallet true;",
		`{"wallet":"` + addr(2).Hex() + `"}`: "0 owner true;1 wallet+owner true;",
		`{"wallet":"` + addr(3).Hex() + `"}`: "",
		`{"domain":"cheap.example"}`:         "0 registration false;",
		`{"domain":"Dear.example."}`:         "1 wallet+registration true;0 wallet false;",
		`{"domain":"nobody.example"}`:        "",
		`"99:7"`:                             "not_found",
		`"5:7"`:                              "not_found",
		`"eip155:99:0x0000000000000000000000000000000000000001:0"`: "not_found",
		`""`:                                "invalid",
		`"x"`:                               "invalid",
		`7`:                                 "invalid",
		`null`:                              "invalid",
		`[]`:                                "invalid",
		`{}`:                                "invalid",
		`{"wallet":7}`:                      "invalid",
		`{"wallet":"vitalik.eth"}`:          "invalid",
		`{"walet":"` + addr(1).Hex() + `"}`: "invalid",
		`{"agent":"99:0","domain":"dear.example"}`:      "invalid",
		`{"domain":"https://dear.example"}`:             "invalid",
		`{"domain":"dear example"}`:                     "invalid",
		`{"domain":"` + strings.Repeat("d", 254) + `"}`: "invalid",
		`{"domain":"'; drop table agents; --"}`:         "invalid",
		`"` + strings.Repeat("9", 100_000) + `"`:        "invalid",
	} {
		got := askBatch(t, s, `"99:1"`, item, `"99:1"`)
		if tell(got.Items[1]) != want || tell(got.Items[0]) != "1 id true;" ||
			!reflect.DeepEqual(got.Items[0], got.Items[2]) {
			t.Errorf("%.100s: %q, want %q", item, tell(got.Items[1]), want)
		}
		if p := got.Items[1].Problem; p != nil && (p.Hint == "" || len(p.Detail) > 2048 || p.Status == 0) {
			t.Errorf("%.100s: %+v", item, p)
		}
	}
}

// Of an address with many agents the first are named, and the answer says that there are more.
func TestBatchIsBounded(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{})
	got := askBatch(t, s, fmt.Sprintf(`{"wallet":%q}`, addr(3).Hex()))
	if n := len(got.Items[0].Agents); n != 12 || got.Items[0].More {
		t.Errorf("%d agents, more %v", n, got.Items[0].More)
	}
	many, db := documented(t, api.Options{})
	if _, err := db.Pool().Exec(t.Context(), "update agents set owner = $1", addr(3).Bytes()); err != nil {
		t.Fatal(err)
	}
	first := askBatch(t, many, fmt.Sprintf(`{"wallet":%q}`, addr(3).Hex())).Items[0]
	if len(first.Agents) != 20 || !first.More || first.Agents[0].Reputation.Agent[:len("eip155:1:")] != "eip155:1:" {
		t.Errorf("%d agents, more %v", len(first.Agents), first.More)
	}
}

// A body that is no batch is refused as a whole, with the member that is wrong.
func TestBatchBadBodies(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{}, unlimited())
	for body, want := range map[string]string{
		``:                             "body",
		`{`:                            "body",
		`7`:                            "agents",
		`{}`:                           "agents",
		`{"agents":null}`:              "agents",
		`{"agents":[]}`:                "agents",
		`{"agents":{}}`:                "agents",
		`{"agents":"8453:7"}`:          "agents",
		`{"agents":["8453:7"],"at":5}`: "agents",
		`{"agents":["8453:7\u0000"]}`:  "agents",
		"{\"agents\":[\"\xff\"]}":      "body",
		`{"agents":[` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `]}`: "agents",
		`{"agents":["1"` + strings.Repeat(`,"1"`, 500) + `]}`:                      "agents",
	} {
		p := problemOf(t, postBatch(t, s, body))
		if p.Status != http.StatusBadRequest || len(p.Errors) != 1 ||
			p.Errors[0].Field != want && p.Errors[0].Field != "body."+want {
			t.Errorf("%.60q: %+v", body, p)
		}
	}
	if p := problemOf(t, postBatch(t, s, `{"agents":["`+strings.Repeat("x", 1<<20)+
		`"]}`)); p.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("%+v", p)
	}
	if p := problemOf(t, do(t, s, http.MethodPost, "/reputation:batch?at=5",
		strings.NewReader("{}"))); p.Errors[0].Field != "at" {
		t.Errorf("%+v", p)
	}
	if p := problemOf(t, get(t, s, "/reputation:batch")); p.Status != http.StatusMethodNotAllowed {
		t.Errorf("%+v", p)
	}
	if r := postBatch(t, s, `{"agents":["8453:7"]}`); r.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", r.header)
	}
}

const batchQuery = `query($ids: [ID!], $wallets: [Address!], $domains: [String!]) {
	reputations(ids: $ids, wallets: $wallets, domains: $domains) {
		items { more problem { code detail hint field } matches { agent how proven reputation {
			score low high confidence status tier tagsTotal summary { count value decimals decimal }
			scored { sentence reason } independence { ratings raters clusters oneAgentShare burstiness }
			tags { tag count reviewers median { decimal } } asOf { chainId block hash } } } }
		asOf { chainId block hash } } }`

// GraphQL answers a batch as REST does.
func TestGraphQLBatchEqualsREST(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1})
	type match struct {
		Agent      wire.ID
		How        []string
		Proven     bool
		Reputation struct {
			wire.Standing
			TagsTotal    wire.Long
			Summary      wire.Summary
			Scored       struct{ Sentence string }
			Independence wire.Independence
			AsOf         struct{ Block wire.Long }
		}
	}
	graph := data[struct {
		Reputations struct {
			Items []struct {
				More    bool
				Problem *struct{ Code, Detail string }
				Matches []match
			}
			AsOf []struct{ Block wire.Long }
		}
	}](t, ask(t, s, batchQuery, map[string]any{"ids": []string{"31337:1", "31337:99", "x"},
		"wallets": []string{addr(602).Hex(), addr(7).Hex()}, "domains": []string{"nobody.example"}})).Reputations
	rest := askBatch(t, s, `"31337:1"`, `"31337:99"`, `"x"`, fmt.Sprintf(`{"wallet":%q}`, addr(602).Hex()),
		fmt.Sprintf(`{"wallet":%q}`, addr(7).Hex()), `{"domain":"nobody.example"}`)
	if len(graph.Items) != len(rest.Items) || graph.AsOf[0].Block != rest.AsOf[0].Block {
		t.Fatalf("%+v", graph)
	}
	for i, want := range rest.Items {
		got := graph.Items[i]
		if len(got.Matches) != len(want.Agents) || (got.Problem == nil) != (want.Problem == nil) ||
			got.Problem != nil && (got.Problem.Code != strings.ToUpper(want.Problem.Code) ||
				got.Problem.Detail != want.Problem.Detail) {
			t.Errorf("item %d: %+v, REST %+v", i, got, want)
			continue
		}
		for j, w := range want.Agents {
			m := got.Matches[j]
			if m.Agent != w.Reputation.Agent || !reflect.DeepEqual(m.How, w.How) || m.Proven != w.Proven ||
				m.Reputation.Standing != w.Reputation.Standing || m.Reputation.Summary != w.Reputation.Summary ||
				m.Reputation.TagsTotal != w.Reputation.TagsTotal ||
				m.Reputation.Scored.Sentence != w.Reputation.Sentence ||
				m.Reputation.Independence != w.Reputation.Independence ||
				m.Reputation.AsOf.Block != w.Reputation.AsOf.Block {
				t.Errorf("item %d: %+v\nREST %+v", i, m, w)
			}
		}
	}
	many := map[string]any{"ids": strings.Split(strings.Repeat("1,", 500)+"1", ",")}
	if a := ask(t, s, batchQuery, many); len(a.Errors) != 1 || a.Errors[0].Extensions["field"] != "ids" {
		t.Errorf("%+v", a.Errors)
	}
	if a := ask(t, s, batchQuery, nil); len(a.Errors) != 0 || strings.Count(string(a.Data), "[]") != 1 {
		t.Errorf("no agents: %s %+v", a.Data, a.Errors)
	}
	wallets := strings.Split(strings.Repeat(addr(1).Hex()+",", 60)+addr(1).Hex(), ",")
	if a := ask(t, s, batchQuery, map[string]any{"wallets": wallets}); len(a.Errors) != 1 ||
		a.Errors[0].Extensions["code"] != "TOO_COMPLEX" {
		t.Errorf("%+v", a.Errors)
	}
}

// The members of other indexes say what ours say.
func TestOtherNames(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1})
	rated := 0
	for n := range scoredAgents {
		r := get(t, s, scoredPath(n, ""))
		got := as[batch.ReputationAnswer](t, r)
		var members map[string]json.RawMessage
		if err := json.Unmarshal(r.body, &members); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"score", "avgRating", "totalFeedback", "overall_score", "tier_name"} {
			if members[name] == nil {
				t.Errorf("no member %s in %s", name, r.body)
			}
		}
		if got.TotalFeedback != got.Counts.Feedback {
			t.Errorf("totalFeedback %d of %d", got.TotalFeedback, got.Counts.Feedback)
		}
		if got.Status == "unrated" {
			if got.AvgRating != nil || got.OverallScore != nil {
				t.Errorf("an unrated agent has %v, %v", got.AvgRating, got.OverallScore)
			}
			continue
		}
		rated++
		if avg, overall := 3+got.Score/50, 2.5+got.Score/40; *got.AvgRating-avg > 0.005 || avg-*got.AvgRating > 0.005 ||
			*got.OverallScore-overall > 0.005 || overall-*got.OverallScore > 0.005 {
			t.Errorf("score %v: %v, %v", got.Score, *got.AvgRating, *got.OverallScore)
		}
	}
	if rated == 0 {
		t.Error("nobody is rated")
	}
}

// New filters of lists are refused or answered alike by REST and GraphQL.
func TestNewFilters(t *testing.T) {
	t.Parallel()
	s, _ := documented(t, api.Options{}, unlimited())
	for _, c := range []struct{ query, filter, want string }{
		{"host=weather.example", `host: "weather.example"`, "8453:1 8453:3"},
		{"host=WEATHER.example&q=oracle", `host: "WEATHER.example"`, "8453:1"},
		{"host=example.org", `host: "example.org"`, ""},
		{"operator=" + addr(9).Hex(), `operator: "` + addr(9).Hex() + `"`, ""},
		{"chainId=8453&registeredSince=2", `chainIds: [8453], registeredSinceBlock: 2`, ""},
		{"chainId=1&registeredSince=1", `chainIds: [1], registeredSinceBlock: 1`, "1:0"},
		{"chainId=8453&updatedSince=15", `chainIds: [8453], updatedSinceBlock: 15`, "8453:7"},
		{"updatedSince=2025-06-15T15:07:00Z", `updatedSince: "2025-06-15T15:07:00Z"`, "8453:7"},
	} {
		rest := ids(as[wire.AgentList](t, get(t, s, "/agents?sort=id&limit=200&"+c.query)).Items)
		args := "sort: id, first: 200"
		if strings.Contains(c.query, "q=") {
			args += `, query: "oracle"`
		}
		graph := data[struct {
			Agents struct{ Nodes []struct{ ShortID string } }
		}](t, ask(t, s, "{ agents("+args+", filter: {"+c.filter+"}) { nodes { shortId } } }", nil)).Agents
		var got []string
		for _, n := range graph.Nodes {
			got = append(got, n.ShortID)
		}
		if rest != c.want || strings.Join(got, " ") != c.want {
			t.Errorf("%s: REST %q, GraphQL %v, want %q", c.query, rest, got, c.want)
		}
	}
	next := *as[wire.AgentList](t, get(t, s, "/agents?limit=1&updatedSince=2020-01-01")).Next
	for path, field := range map[string]string{
		"/agents?operator=vitalik.eth":                                    "operator",
		"/agents?operator=":                                               "operator",
		"/agents?operator=" + strings.Repeat("a", 8000):                   "operator",
		"/agents?host=https://weather.example/mcp":                        "host",
		"/agents?host=a%20b":                                              "host",
		"/agents?host=a.b%00":                                             "host",
		"/agents?host=%ff.example":                                        "host",
		"/agents?host=" + strings.Repeat("d", 300) + ".com":               "host",
		"/agents?host=%27%3Bdrop%20table%20agents":                        "host",
		"/agents?registeredSince=5":                                       "registeredSince",
		"/agents?chainId=1,8453&updatedSince=5":                           "updatedSince",
		"/agents?chainId=1&updatedSince=9999999999999999999":              "updatedSince",
		"/agents?chainId=1&updatedSince=-5":                               "updatedSince",
		"/agents?updatedSince=yesterday":                                  "updatedSince",
		"/agents?updatedSince=":                                           "updatedSince",
		"/agents?updatedSince=2021-01-01&cursor=" + url.QueryEscape(next): "cursor",
		"/agents?updatedSince=2020-01-01&cursor=" + next[:len(next)-3]:    "cursor",
	} {
		if p := problemOf(t, get(t, s, path)); p.Status != http.StatusBadRequest || len(p.Errors) != 1 ||
			p.Errors[0].Field != field {
			t.Errorf("%.80s: %+v", path, p)
		}
	}
}
