package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"repute/api"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/internal/pgtest"
)

// answer is a GraphQL answer.
type answer struct {
	Data   json.RawMessage
	Errors []struct {
		Message    string
		Path       []any
		Extensions map[string]any
	}
}

func ask(t testing.TB, s *httptest.Server, query string, variables map[string]any) answer {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		t.Fatal(err)
	}
	r := do(t, s, http.MethodPost, "/graphql", strings.NewReader(string(body)), "Content-Type", "application/json")
	return as[answer](t, r)
}

// data decodes an answer that must have no errors.
func data[D any](t testing.TB, a answer) D {
	t.Helper()
	if len(a.Errors) > 0 {
		t.Fatalf("%+v", a.Errors)
	}
	var d D
	if err := json.Unmarshal(a.Data, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

const everything = `
fragment point on Point { block logIndex txHash time }
fragment asOf on AsOf { chainId block hash time finality safe finalized head headSeenAt lagSeconds lagBlocks
	completeness { status reason verifiedToBlock ranges { from to } pending undecoded openGaps } }
fragment file on File { status source sha256 keccak256 size fetchedAt reason detail proof { verdict by } problems {
	code } problemCount contradictions { code message }
  feedback { registry tokenId client createdAt value decimals rating scale { min max } tag1 tag2 endpoint text mcp { tool prompt
  	resource } a2a { skills contextId taskId }
    oasf { skills domains } payment { from to chainId txHash } } }
query($id: ID!, $at: String) {
  agent(id: $id, at: $at) {
    id shortId chainId registry tokenId owner ownerClaimed wallet approved uri uriHex uriSize cut { field whole }
    	similar score low high confidence status tier
    metadataCount metadata { key keyHex value text size partial set { ...point } }
    registered { ...point } updated { ...point }
    counts { feedback revoked clients responses validations }
    name description services { name endpoint version } skills domains x402Support active supportedTrust link
    domainProofs { domain verdict url sha256 checkedAt nextCheck reason detail } linkedAgents { id shortId name
    	sameFile }
    document { proof { verdict by } status source sha256 size fetchedAt reason detail nextTry problems { code
    	severity path message } problemCount
      registration { type name description image active x402 supportedTrust partial services { name endpoint version
      	skills domains } registrations { tokenId registry } } }
    asOf { ...asOf }
    feedback(first: 5, includeRevoked: true) {
      nodes { id client index value decimals decimal tag1 tag1Hex tag2 tag2Hex endpoint endpointHex uri uriHex hash
      	isRevoked responseCount partial cut { field whole }
        given { ...point } revoked { ...point } agent { shortId } file { ...file } responses { responder uri uriHex
        	hash file { ...file } at { ...point } } }
      pageInfo { hasNextPage endCursor }
      asOf { ...asOf }
    }
    validations {
      nodes { id contract contractTrusted requestHash validator requestUri requestUriHex requested { ...point }
      	status answers partial cut { field whole } agent { id } requestFile { ...file }
        answer { response uri uriHex hash file { ...file } tag tagHex at { ...point } } }
      pageInfo { hasNextPage endCursor } asOf { block }
    }
    reputation { score asOf { block } summary { count value decimals decimal }
      tagsTotal tags { tag tagHex partial cut { field whole } count reviewers unit median { value decimals decimal }
      	mean { decimal } min { decimal } max { decimal } } }
  }
  chains { chainId name registries { identity reputation validations } startBlock imported agents feedback reorgs
  	upgrades upgradedAtBlock halted stalled lastError
    endpoints { name process kind state latencyMs errorRate requests failures rateLimit concurrency head lastError
    	lastOkAt updatedAt }
    kinds { kind status reason verifiedToBlock pending openGaps gaps { agent client blocks { from to } reason since
    	tries nextTry } } documents { known due } asOf { ...asOf } }
  status { version status chains { chainId } }
}`

type agentData struct {
	Agent *struct {
		wire.Agent
		AsOf     *wire.AsOf
		Feedback struct {
			Nodes []struct {
				ID     string
				Client string
				Agent  struct{ ShortID string }
			}
			PageInfo struct {
				HasNextPage bool
				EndCursor   *string
			}
		}
		Validations struct{ Nodes []struct{ Status string } }
		Reputation  struct {
			Score   *float64
			Summary wire.Summary
			Tags    []wire.TagSummary
		}
	}
	Chains []wire.Chain
	Status wire.StatusAnswer
}

func TestGraphQL(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{Version: "test"})
	d := data[agentData](t, ask(t, s, everything, map[string]any{"id": "8453:7"}))
	rest := as[wire.AgentAnswer](t, get(t, s, "/agents/8453:7"))
	got, _ := json.Marshal(d.Agent.Agent)
	want, _ := json.Marshal(rest.Agent)
	if string(got) != string(want) {
		t.Errorf("GraphQL and REST disagree (the query everything MUST ask for every field):\n%s\n%s", got, want)
	}
	if d.Agent.AsOf == nil || d.Agent.AsOf.Block != rest.AsOf.Block {
		t.Errorf("asOf %+v", d.Agent.AsOf)
	}
	f := d.Agent.Feedback
	if len(f.Nodes) != 5 || !f.PageInfo.HasNextPage || f.PageInfo.EndCursor == nil ||
		f.Nodes[0].Agent.ShortID != "8453:7" ||
		!strings.HasPrefix(f.Nodes[0].ID, agent7+":0x") {
		t.Errorf("feedback %+v", f)
	}
	if len(d.Agent.Validations.Nodes) != 3 || len(d.Agent.Reputation.Tags) != 4 ||
		d.Agent.Reputation.Summary.Value != "15" {
		t.Errorf("%+v %+v", d.Agent.Validations, d.Agent.Reputation)
	}
	if len(d.Chains) != 2 || d.Status.Version != "test" {
		t.Errorf("%+v %+v", d.Chains, d.Status)
	}
	past := data[agentData](t, ask(t, s, everything, map[string]any{"id": "8453:7", "at": "2"}))
	if len(past.Agent.Feedback.Nodes) != 3 || past.Agent.Reputation.Summary.Count != 3 || past.Agent.AsOf.Block != 2 {
		t.Errorf("at block 2: %+v", past.Agent)
	}
	if unknown := data[agentData](t, ask(t, s, everything, map[string]any{"id": "8453:999"})); unknown.Agent != nil {
		t.Errorf("unknown agent: %+v", unknown.Agent)
	}
}

func TestGraphQLWalk(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{})
	type page struct {
		Agents struct {
			Nodes    []struct{ ShortID string }
			PageInfo struct {
				HasNextPage bool
				EndCursor   *string
			}
			AsOf []wire.AsOf
		}
	}
	seen := map[string]bool{}
	var after *string
	for {
		p := data[page](t, ask(t, s,
			`query($after: String, $chains: [Long!]) { agents(first: 25, sort: feedback, after: $after, filter: {chainIds: $chains}) {
			nodes { shortId } pageInfo { hasNextPage endCursor } asOf { chainId } } }`, map[string]any{"after": after, "chains": []any{8453}}))
		for _, n := range p.Agents.Nodes {
			if seen[n.ShortID] {
				t.Fatalf("%s twice", n.ShortID)
			}
			seen[n.ShortID] = true
		}
		if len(p.Agents.AsOf) != 1 {
			t.Errorf("asOf %+v", p.Agents.AsOf)
		}
		if after = p.Agents.PageInfo.EndCursor; !p.Agents.PageInfo.HasNextPage {
			break
		}
	}
	if len(seen) != crowd {
		t.Errorf("%d agents", len(seen))
	}
	byID := data[struct {
		AgentsByID []*struct {
			ShortID  string
			Feedback struct{ Nodes []struct{ Value string } }
		}
	}](t,
		ask(t, s,
			`{ agentsById(ids: ["8453:7", "1:5", "1:0", "8453:7"]) { shortId feedback(first: 2) { nodes { value } } } }`, nil)).AgentsByID
	if len(byID) != 4 || byID[0].ShortID != "8453:7" || byID[1] != nil || byID[2].ShortID != "1:0" ||
		len(byID[3].Feedback.Nodes) != 2 {
		t.Errorf("%+v", byID)
	}
}

func TestGraphQLErrors(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{})
	deep := "{ agent(id: \"8453:7\") { feedback { nodes " + strings.Repeat("{ agent { feedback { nodes ",
		6) + "{ id }" + strings.Repeat(" } } }", 6) + " } } }"
	cases := []struct{ query, code, field string }{
		{`{ agent(id: "x") { id } }`, "INVALID", "id"},
		{`{ agent(id: "8453:7", chainId: 1) { id } }`, "INVALID", "chainId"},
		{`{ agent(id: "8453:7", at: "noon") { id } }`, "INVALID", "at"},
		{`{ agent(id: "5:7") { id } }`, "NOT_FOUND", ""},
		{`{ agent(id: "7") { id } }`, "INVALID", "id"},
		{`{ agents(first: 0) { nodes { id } } }`, "INVALID", "first"},
		{`{ agents(first: 201) { nodes { id } } }`, "INVALID", "first"},
		{`{ agents(after: "x") { nodes { id } } }`, "INVALID", "after"},
		{`{ agents(filter: {owner: "me"}) { nodes { id } } }`, "INVALID", "owner"},
		{`{ agents(filter: {owner: 5}) { nodes { id } } }`, "BAD_QUERY", ""},
		{`{ agents(sort: nope) { nodes { id } } }`, "BAD_QUERY", ""},
		{`{ agent(id: "8453:7") { feedback(clients: ["x"]) { nodes { id } } } }`, "INVALID", "clients"},
		{`{ agent(id: "8453:7") { feedback(after: "x") { nodes { id } } } }`, "INVALID", "after"},
		{`{ agents(first: 200) { nodes { a: feedback(first: 100) { nodes { id } } b: feedback(first: 99) { nodes { id } } } } }`, "TOO_COMPLEX", ""},
		{aliases(250), "TOO_COMPLEX", ""},
		{deep, "BAD_QUERY", ""},
		{`{ nope }`, "BAD_QUERY", ""},
		{`{ agent(id: "8453:7") `, "BAD_QUERY", ""},
		{`{ agent(id: 1, chainId: 99999999999999999999) { id } }`, "BAD_QUERY", ""},
		{`mutation { x }`, "BAD_QUERY", ""},
		{`mutation { refreshDocument(id: "x") { queued } }`, "INVALID", "id"},
		{`mutation { refreshDocument(id: "8453:999") { queued } }`, "NOT_FOUND", ""},
		{`{ agent(id: "8453:7") { documents(first: 0) { nodes { uri } } } }`, "INVALID", "first"},
		{`{ agent(id: "8453:7") { documents(after: "x") { nodes { uri } } } }`, "INVALID", "after"},
		{`subscription { x }`, "BAD_QUERY", ""},
		{strings.Repeat(" ", 20<<10) + `{ chains { name } }`, "BAD_QUERY", ""},
	}
	for _, c := range cases {
		a := ask(t, s, c.query, nil)
		name := fmt.Sprintf("%.80s", strings.TrimSpace(c.query))
		if len(a.Errors) == 0 {
			t.Errorf("%s: no error, %s", name, a.Data)
			continue
		}
		e := a.Errors[0]
		if e.Extensions["code"] != c.code || e.Message == "" {
			t.Errorf("%s: %+v", name, e)
		}
		if c.field != "" && (e.Extensions["field"] != c.field || e.Extensions["hint"] == "") {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// aliases is a query that asks for one agent n times.
func aliases(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%d:agent(id:\"8453:%d\"){id} ", i, i)
	}
	return "{" + b.String() + "}"
}

func TestGraphQLTransport(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Options{DB: open(t, nowhere)}, httpapi.ServerOptions{Limits: httpapi.Limits{Body: 4096}})
	introspection := get(t, s, "/graphql"+query("query", `query Q($n: String!) { __type(name: $n) { name } }`,
		"variables", `{"n":"Agent"}`, "operationName", "Q"))
	if !strings.Contains(string(introspection.body), `"name":"Agent"`) {
		t.Errorf("GET: %s", introspection.body)
	}
	for _, c := range []struct {
		r      reply
		status int
		field  string
	}{
		{get(t, s, "/graphql"), 400, "query"},
		{get(t, s, "/graphql?query={chains{name}}&variables=x"), 400, "variables"},
		{do(t, s, "POST", "/graphql", strings.NewReader("{"), "Content-Type", "application/json"), 400, "body"},
		{do(t, s, "POST", "/graphql", strings.NewReader("[]"), "Content-Type", "application/json"), 400, "body"},
		{do(t, s, "POST", "/graphql", strings.NewReader("{}"), "Content-Type", "application/json; charset=utf-8"), 400,
			"query"},
		{do(t, s, "POST", "/graphql", strings.NewReader("query=x"), "Content-Type",
			"application/x-www-form-urlencoded"),
			400, "body"},
		{do(t, s, "POST", "/graphql", strings.NewReader(`{"query":"`+strings.Repeat("x", 5000)+`"}`)), 413, ""},
	} {
		b := problemOf(t, c.r)
		if b.Status != c.status || (c.field != "" && b.Errors[0].Field != c.field) {
			t.Errorf("want %d %s, got %+v", c.status, c.field, b)
		}
	}
	plain := do(t, s, "POST", "/graphql", strings.NewReader(`{"query":"{ __typename }"}`), "Content-Type",
		"application/x-www-form-urlencoded")
	if !strings.Contains(string(plain.body), `"Query"`) {
		t.Errorf("curl -d: %s", plain.body)
	}
	down := ask(t, s, `{ chains { name } }`, nil)
	if len(down.Errors) != 1 || down.Errors[0].Extensions["code"] != "UNAVAILABLE" ||
		strings.Contains(down.Errors[0].Message, "127.0.0.1") {
		t.Errorf("database away: %+v", down)
	}
}

// TestListsBelowLists: what is cut off below a list says so.
func TestListsBelowLists(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{})
	type connection struct {
		Nodes    []struct{ Index int }
		PageInfo struct {
			HasNextPage bool
			EndCursor   *string
		}
		AsOf *wire.AsOf
	}
	d := data[struct {
		Agents struct {
			Nodes []struct {
				Few, Many   connection
				Validations connection
				Reputation  struct{ Summary wire.Summary }
			}
		}
	}](t, ask(t, s, `{ agents(first: 2, sort: feedback) { nodes {
		few: feedback(first: 5) { nodes { index } pageInfo { hasNextPage endCursor } asOf { block } }
		many: feedback(first: 100) { nodes { index } pageInfo { hasNextPage endCursor } }
		validations(first: 3) { nodes { id } pageInfo { hasNextPage endCursor } }
		reputation { summary { count value decimals decimal } } } } }`, nil))
	top := d.Agents.Nodes[0]
	if len(top.Few.Nodes) != 5 || !top.Few.PageInfo.HasNextPage || top.Few.PageInfo.EndCursor != nil ||
		top.Few.AsOf != nil {
		t.Errorf("cut off: %+v", top.Few)
	}
	if len(top.Many.Nodes) != 17 || top.Many.PageInfo.HasNextPage || len(top.Validations.Nodes) != 3 ||
		top.Validations.PageInfo.HasNextPage {
		t.Errorf("whole: %+v %+v", top.Many, top.Validations)
	}
	if alone := as[wire.ReputationAnswer](t,
		get(t, s, "/agents/8453:7/reputation")).Summary; top.Reputation.Summary != alone {
		t.Errorf("summary %+v, alone %+v", top.Reputation.Summary, alone)
	}
}

// TestStatementsPerPage: what hangs below a page of agents is read at once: the
// number of statements does not depend on the number of agents.
func TestStatementsPerPage(t *testing.T) {
	t.Parallel()
	dbURL := pgtest.New(t)
	populate(t, open(t, dbURL))
	proxy := newProxy(t, dbURL)
	s := serve(t, api.Options{DB: open(t, proxy.url)})
	count := func(first int) int64 {
		q := fmt.Sprintf(`{ agents(first: %d, sort: feedback) { nodes { id
			f: feedback(first: 3) { nodes { id agent { id } } } v: validations(first: 3) { nodes { id } } domainProofs { domain }
			reputation { score summary { count } tags { tag count } tagsTotal scored { reason gates { id } } independence {
				raters } } } } }`, first)
		d := data[struct{ Agents struct{ Nodes []any } }](t, ask(t, s, q, nil))
		if len(d.Agents.Nodes) != first {
			t.Fatalf("%d agents, want %d", len(d.Agents.Nodes), first)
		}
		return statementsOf(t, s, proxy, q)
	}
	few, many := count(3), count(50)
	t.Logf("%d statements for 3 agents, %d for 50", few, many)
	if few != many || many == 0 || many > 40 {
		t.Errorf("%d statements for 3 agents, %d for 50", few, many)
	}
}

// TestPagesBelowLists are as large as those of one agent, and as those of REST.
func TestPagesBelowLists(t *testing.T) {
	t.Parallel()
	s, _ := documented(t, api.Options{})
	for _, below := range []string{"feedback(first: 200)", "validations(first: 200)"} {
		if a := ask(t, s, "{ agents(first: 2) { nodes { "+below+" { nodes { id: __typename } } } } }",
			nil); len(a.Errors) > 0 {
			t.Errorf("%s: %+v", below, a.Errors)
		}
	}
	if a := ask(t, s, "{ agents(first: 2) { nodes { feedback(first: 201) { nodes { id } } } } }",
		nil); len(a.Errors) == 0 || a.Errors[0].Extensions["hint"] != "a number from 1 to 200" {
		t.Errorf("too many: %+v", a.Errors)
	}
}

// TestReputationsInLists: below a list stands what the agent alone has.
func TestReputationsInLists(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1}, 1<<20)
	const reputation = ` id reputation { score low high confidence status tier summary { count value } tagsTotal tags { tag count reviewers median { decimal } }
		independence { ratings raters clusters oneAgentShare burstiness } openfi { overallTrustScore }
		scored { score reason gates { id passed lacks { what have } } scorer finality epoch verified verifiedTo sourced { raters } sources { status } scoredAt { block hash } hashes
			{ params evidence } } }
		filtered: reputation(tag1: "starred") { summary { count value } }
		rated: feedback(first: 3, tag1: "starred", includeRevoked: true) { nodes { id } } documents { nodes { uri } } linkedAgents { id } explain(limit: 1) { score }`
	type agent map[string]any
	list := data[struct{ Agents struct{ Nodes []agent } }](t,
		ask(t, s, `{ agents(first: 50) { nodes {`+reputation+`} } }`, nil)).Agents.Nodes
	if len(list) != scoredAgents {
		t.Fatalf("%d agents", len(list))
	}
	for _, a := range list {
		alone := data[struct{ Agent agent }](t, ask(t, s, `query($id: ID!) { agent(id: $id) {`+reputation+`} }`,
			map[string]any{"id": a["id"]})).Agent
		if !reflect.DeepEqual(a, alone) {
			t.Errorf("in a list %v, alone %v", a, alone)
		}
	}
}

// The query that tools send to learn a schema must fit the limits.
func TestStandardIntrospection(t *testing.T) {
	s, _ := populated(t, api.Options{})
	deep := "kind name"
	for range 9 {
		deep = "kind name ofType { " + deep + " }"
	}
	query := "{ __schema { queryType { name } types { kind name fields(includeDeprecated: true) { name args { name type { " +
		deep + " } } type { " + deep + " } } } } }"
	a := ask(t, s, query, nil)
	if len(a.Errors) > 0 || !strings.Contains(string(a.Data), "AgentConnection") {
		t.Errorf("got %v, %.300s", a.Errors, a.Data)
	}
}
