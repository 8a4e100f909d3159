package control_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/gorilla/websocket"

	"repute"
	"repute/orchestrator/control"
	"repute/store"
	"repute/store/rundb"
	"repute/store/walletdb"
)

// identify indexes agent 7:0 and makes it the identity of task agents.
func (h *house) identify(slugs ...string) repute.AgentID {
	h.t.Helper()
	id := h.own(common.Address{1})
	for _, slug := range slugs {
		m, err := rundb.Module(h.t.Context(), h.db, slug)
		ok(h.t, err)
		m.Agent = &id
		ok(h.t, rundb.SaveModule(h.t.Context(), h.db, m))
	}
	return id
}

// pageOfAgentRuns is the answer to a question for the runs of an agent.
type pageOfAgentRuns struct {
	Nodes []struct {
		ID, Goal, Agent, Status, PaidUsd string
		LastCall                         *struct{ Kind, Ref string }
		Verified                         *float64
	}
	PageInfo struct {
		HasNextPage bool
		EndCursor   *string
	}
}

// TestRunsOfAnAgent: GraphQL, REST and the page show the runs of all task agents with the identity, each once and in
// the same order, with what was called, paid and found; other agents' runs are not among them.
func TestRunsOfAnAgent(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, worker{slug: "plain"}, worker{slug: "second"}, worker{slug: "other"})
	var want []string
	for i := range 3 {
		for _, slug := range []string{"plain", "second", "other"} {
			task := h.submit(fmt.Sprintf(`{"goal":"%d %s %s","coordinatorSlug":"%s"}`, i, slug, hostileGoal[5:], slug))
			h.ended(task)
			if slug != "other" {
				want = append([]string{task.RunID}, want...)
			}
		}
	}
	id := h.identify("plain", "second")
	_, err := h.db.Pool().Exec(t.Context(),
		`insert into run_calls (run_id, step_id, key, kind, ref, summary, chain_id, domain, done, request)
		values ($1, 'only', '1/x', 'tool', 'the-tool', $2, 0, '', true, 'null')`, want[0], "asks </td><script>alert(2)</script>\u202e")
	ok(t, err)
	run, err := rundb.Run(t.Context(), h.db, want[0])
	ok(t, err)
	_, err = walletdb.AddPurchase(t.Context(), h.db,
		walletdb.Purchase{ID: "p", By: "task", ChainID: 1, Agent: "second", Host: "shop.example",
			Worth: 250_000, Task: run.Task, Call: run.ID + "/only/1/x", Expires: time.Now()},
		walletdb.Caps{Host: 1 << 40, Day: 1 << 40, Task: 1 << 40})
	ok(t, err)

	var got []string
	for after, more := "", true; more; {
		var a struct {
			Agent struct{ Runs pageOfAgentRuns }
		}
		if code := h.graph(`{ agent(id: "7:0") { runs(first: 4, after: "`+after+
			`") { nodes { id goal agent status paidUsd lastCall { kind ref } verified }
			pageInfo { hasNextPage endCursor } } } }`, &a); code != "" {
			t.Fatal(code)
		}
		for _, r := range a.Agent.Runs.Nodes {
			got = append(got, r.ID)
			if paid := map[bool]string{true: "0.25", false: "0"}[r.ID == want[0]]; r.PaidUsd != paid ||
				r.Status != "completed" ||
				r.Verified == nil || *r.Verified != 1 || r.Agent == "other" {
				t.Errorf("%+v", r)
			}
			if r.ID == want[0] && (r.LastCall == nil || r.LastCall.Ref != "the-tool") {
				t.Errorf("the newest call is %+v", r.LastCall)
			}
		}
		if more = a.Agent.Runs.PageInfo.HasNextPage; more {
			after = *a.Agent.Runs.PageInfo.EndCursor
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("GraphQL lists %v, want %v", got, want)
	}
	for _, form := range []string{"7:0", id.String()} {
		got = nil
		for cursor, more := "", true; more; {
			var l control.RunList
			h.into(h.call(http.MethodGet, "/v1/runs?limit=4&agentId="+form+cursor, ""), http.StatusOK, &l)
			for _, r := range l.Runs {
				got = append(got, r.ID)
			}
			more, cursor = l.Next != "", "&cursor="+l.Next
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: REST lists %v, want %v", form, got, want)
		}
	}
	for query, n := range map[string]int{"agent=second&agentId=7:0": 3, "agent=other&agentId=7:0": 0, "agent=other": 3,
		"": 9, "agentId=7:1": 0,
		"agentId=7:0&status=failed": 0, "agentId=7:0&awaiting=approval": 0, "agentId=7:0&status=completed": 6} {
		var l control.RunList
		if h.into(h.call(http.MethodGet, strings.TrimSuffix("/v1/runs?"+query, "?"), ""), http.StatusOK,
			&l); len(l.Runs) != n {
			t.Errorf("%s: %d runs, want %d", query, len(l.Runs), n)
		}
	}
	h.page("/ui/agent/7:0/work").says(t, "Runs on this server", "<script>alert(1)</script>",
		"asks </td><script>alert(2)</script>⟨U+202E⟩",
		"second", "0.25 US dollars", "completed", "allowed 100 %", run.Task, "No validator was asked")
	if text := h.page("/ui/agent/7:0/work").text; strings.Contains(text, "2 other") ||
		strings.Contains(text, "A token is needed") {
		t.Errorf("a run of another agent is shown, or a token is asked for: %s", text)
	}
	var l control.RunList
	h.into(h.call(http.MethodGet, "/v1/runs?limit=1&agentId=7:0", ""), http.StatusOK, &l)
	for _, cursor := range []string{l.Next, "x"} { // of REST's list with the id in another form, and of none
		if code := h.graph(`{ agent(id: "7:0") { runs(after: "`+cursor+`") { nodes { id } } } }`,
			new(any)); code != "INVALID" {
			t.Errorf("cursor %s: %q", cursor, code)
		}
	}
}

// TestRunsOfAnAgentNeedTheRole: where reads are private, who may not read runs is refused by every way to an agent, and
// still sees the agent.
func TestRunsOfAnAgentNeedTheRole(t *testing.T) {
	t.Parallel()
	h := newRoles(t, true)
	task := control.Task{}
	h.into(h.ann(http.MethodPost, "/v1/tasks", `{"goal":"a secret","coordinatorSlug":"plain"}`), http.StatusCreated,
		&task)
	h.identify("plain")
	const runs = `{ id runs { nodes { id goal } } }`
	queries := []string{`{ agent(id: "7:0") ` + runs + ` }`, `{ agentsById(ids: ["7:0"]) ` + runs + ` }`,
		`{ agents { nodes ` + runs + ` } }`,
		`{ agent(id: "7:0", at: "1") ` + runs + ` }`}
	var key struct{ Key string }
	h.into(h.ann(http.MethodPost, "/v1/keys", `{"name":"reader","rate":50}`), http.StatusCreated, &key)
	for what, c := range map[string]struct {
		token, code, page string
		status            int
	}{
		"nobody":        {"", "UNAUTHORIZED", "A token is needed", http.StatusUnauthorized},
		"a wrong token": {"wrong-and-long-enough", "UNAUTHORIZED", "A token is needed", http.StatusUnauthorized},
		"an API key":    {key.Key, "UNAUTHORIZED", "A token is needed", http.StatusUnauthorized},
		"who reads":     {tokenOf("looks"), "", "a secret", http.StatusOK},
		"who asks":      {tokenOf("asks"), "", "a secret", http.StatusOK}, // every token may read
	} {
		var header []string
		if c.token != "" {
			header = []string{"Authorization", "Bearer " + c.token}
		}
		for _, query := range queries {
			r := h.call(http.MethodPost, "/graphql", fmt.Sprintf(`{"query":%q}`, query), header...)
			if text := string(r.body); strings.Contains(text, "a secret") != (c.code == "") ||
				c.code != "" && (!strings.Contains(text, c.code) ||
					!strings.Contains(text, `"runs":null`)) || !strings.Contains(text, `"eip155:7:`) {
				t.Errorf("%s: %s: %s", what, query, text)
			}
		}
		if r := h.call(http.MethodGet, "/v1/runs?agentId=7:0", "", header...); r.status != c.status ||
			strings.Contains(string(r.body), "a secret") != (c.code == "") {
			t.Errorf("%s: %d %s", what, r.status, r.body)
		}
		page := h.page("/ui/agent/7:0/work", header...)
		page.says(t, c.page, "What it offers, and prices")
		if page.status != http.StatusOK || strings.Contains(page.text, "a secret") != (c.code == "") {
			t.Errorf("%s: %d %s", what, page.status, page.text)
		}
	}
}

// TestRunsOfAgentsAreReadAtOnce: the runs of many agents cost as many statements as those of one.
func TestRunsOfAgentsAreReadAtOnce(t *testing.T) {
	t.Parallel()
	count := new(counter)
	h := newHouse(t, func(o *options) {
		db, err := store.Open(t.Context(), o.DB.Pool().Config().ConnString(), store.Options{Tracer: count})
		ok(t, err)
		t.Cleanup(db.Close)
		o.pages = db
	}, worker{slug: "plain"})
	h.ended(h.submit(`{"goal":"one"}`))
	h.identify("plain")
	runs := 0
	statements := func() int64 {
		query := `{ agents { nodes { id runs(first: 5) { nodes { id lastCall { ref } paidUsd } } } } }`
		if code := h.graph(query, new(any)); code != "" { // connections and types are known then
			t.Fatal(code)
		}
		before := count.n.Load()
		var a struct {
			Agents struct {
				Nodes []struct{ Runs pageOfAgentRuns }
			}
		}
		h.graph(query, &a)
		runs = 0
		for _, n := range a.Agents.Nodes {
			runs += len(n.Runs.Nodes)
		}
		return count.n.Load() - before
	}
	few := statements()
	_, err := h.db.Pool().Exec(t.Context(), `
		insert into agents (chain_id, token_id, owner, claimed, wallet, approved, uri_id, registered_block, registered_log, updated_block, updated_log)
		select chain_id, token_id + i, owner, claimed, wallet, approved, uri_id, registered_block, registered_log, updated_block, updated_log
		from agents, generate_series(1, 15) i`)
	ok(t, err)
	_, err = h.db.Pool().Exec(t.Context(),
		`insert into modules (slug, url, chain_id, registry, token_id, dry_run, manifest)
		select 'plain-' || i, '', chain_id, registry, token_id + i, dry_run, manifest from modules, generate_series(1, 15) i where slug = 'plain'`)
	ok(t, err)
	for range 5 {
		h.ended(h.submit(`{"goal":"more"}`))
	}
	_, err = h.db.Pool().Exec(t.Context(),
		`update runs set slug = 'plain-' || i from generate_series(1, 2) i where slug = 'plain' and id in
		(select id from runs order by id offset i limit 1)`)
	ok(t, err)
	if many := statements(); many != few || few == 0 || runs < 6 {
		t.Errorf("%d statements for an agent with a run, %d for many with %d", few, many, runs)
	}
}

// TestRunsInSubscriptionsNeedTheRole: an agent that is pushed shows its runs to those alone who may read them.
func TestRunsInSubscriptionsNeedTheRole(t *testing.T) {
	t.Parallel()
	h := newRoles(t, true)
	var task control.Task
	h.into(h.ann(http.MethodPost, "/v1/tasks", `{"goal":"a secret","coordinatorSlug":"plain"}`), http.StatusCreated,
		&task)
	h.identify("plain")
	for token, want := range map[string]string{"": "UNAUTHORIZED", tokenOf("looks"): "a secret"} {
		header := http.Header{}
		if token != "" {
			header.Set("Authorization", "Bearer "+token)
		}
		dialer := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}}
		conn, _, err := dialer.Dial(strings.Replace(h.url, "http", "ws", 1)+"/graphql", header)
		ok(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		ok(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		ok(t, conn.WriteJSON(map[string]any{"type": "connection_init"}))
		ok(t, conn.WriteJSON(map[string]any{"id": "1", "type": "subscribe", "payload": map[string]any{
			"query": `subscription { agent(id: "7:0") { agent { id runs { nodes { goal } } } } }`}}))
		got := ""
		for !strings.Contains(got, `"next"`) &&
			!strings.Contains(got, `"error"`) { // the first ones are of the connection
			_, raw, err := conn.ReadMessage()
			ok(t, err)
			got = string(raw)
		}
		if !strings.Contains(got, want) || strings.Contains(got, "a secret") != (token != "") ||
			!strings.Contains(got, "eip155:7:") {
			t.Errorf("%q: %s", token, got)
		}
	}
}
