package control_test

import (
	"context"
	"encoding/json"
	"math/big"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/net/html"

	"repute/orchestrator/control"
	"repute/store"
	"repute/store/agentdb"
	"repute/store/walletdb"
)

// maxStatements is how many statements a page may cost the database.
const maxStatements = 12

// counter counts the statements that a database is sent, without those that begin and end transactions. It implements
// pgx.QueryTracer.
type counter struct{ n atomic.Int64 }

// TraceQueryStart implements pgx.QueryTracer.
func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	c.add(d.SQL)
	return ctx
}

// add counts a statement.
func (c *counter) add(sql string) {
	switch word, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(sql)), " "); word {
	case "begin", "commit", "rollback", "set", ";", "--":
	default:
		c.n.Add(1)
	}
}

// TraceBatchStart implements pgx.BatchTracer. A batch counts as one statement, because it is one message to the
// database.
func (c *counter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c.n.Add(1)
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (*counter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (*counter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// TraceQueryEnd implements pgx.QueryTracer.
func (*counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// shown is a page with what it says.
type shown struct {
	reply
	text string
}

// page asks for a page and checks what holds for all: nothing runs in it, and no cache keeps it.
func (h *house) page(path string, header ...string) shown {
	h.t.Helper()
	r := h.call(http.MethodGet, path, "", header...)
	if r.header.Get("Cache-Control") != "no-store" || r.header.Get("Vary") == "" ||
		!strings.HasPrefix(r.header.Get("Content-Security-Policy"),
			"default-src 'none'; script-src 'self'; style-src 'self'") {
		h.t.Errorf("%s: %v", path, r.header)
	}
	root, err := html.Parse(strings.NewReader(string(r.body)))
	ok(h.t, err)
	var out strings.Builder
	for n := range root.Descendants() {
		switch {
		case n.Type == html.TextNode:
			out.WriteString(strings.TrimSpace(n.Data) + " ")
		case n.Data == "script" && n.FirstChild != nil, n.Data == "img", n.Data == "iframe":
			h.t.Errorf("%s: has a %s", path, n.Data)
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
				h.t.Errorf("%s: inline %s", path, a.Key)
			}
		}
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, hidden := range "\u202e\u200b\u2066\x00" {
		if strings.ContainsRune(text, hidden) {
			h.t.Errorf("%s: %U is not shown", path, hidden)
		}
	}
	return shown{r, text}
}

// says fails where a page does not say all of some texts.
func (s shown) says(t *testing.T, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(s.text, w) {
			t.Errorf("no %q in %s", w, s.text)
		}
	}
}

// graph asks a GraphQL query; out gets its data, and the code of its first error is returned.
func (h *house) graph(query string, out any, header ...string) (code string) {
	h.t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	ok(h.t, err)
	var a struct {
		Data   json.RawMessage
		Errors []struct {
			Extensions struct{ Code, Hint string }
		}
	}
	h.into(h.call(http.MethodPost, "/graphql", string(body), header...), http.StatusOK, &a)
	if len(a.Errors) > 0 {
		return a.Errors[0].Extensions.Code
	}
	ok(h.t, json.Unmarshal(a.Data, out))
	return ""
}

// hostileGoal is a goal that attacks its readers.
const hostileGoal = `dear </title><script>alert(1)</script><img src=x onerror=alert(1)> \u202etxt.exe`

// TestPagesOfWork: a task that waits for a person is listed and shown with what it waits for; the answer that the form
// of the page sends goes on, and the page then shows what came of it.
func TestPagesOfWork(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, worker{slug: "plain"})
	task := h.submit(`{"goal":"` + hostileGoal + `","valueAtRisk":"1500000000000000000","tags":["<b>"]}`)
	h.waits(task.RunID, "run waits", awaits)
	for _, path := range []string{"/ui/tasks", "/ui/tasks?agent=plain&awaiting=true", "/ui/runs",
		"/ui/runs?awaiting=true&agent=plain"} {
		h.page(path).says(t, "dear </title><script>alert(1)</script>", "⟨U+202E⟩", "plain", "waits for a person")
	}
	h.page("/ui/tasks").says(t, "1.5 coins")
	h.page("/ui/tasks?status=completed").says(t, "No task fits.", "repute task submit")
	h.page("/ui/runs?status=completed").says(t, "No run fits.")

	path := "/ui/runs/" + task.RunID
	waiting := h.page(path)
	waiting.says(t, "What waits for you", "dear tasks are looked at", "Approve", "Reject", "Cancel the task",
		"repute task approve",
		"Phases", "policy")
	if body := string(waiting.body); !strings.Contains(body, `data-act="/v1/runs/`+task.RunID+`/approval"`) ||
		!strings.Contains(body, " data-live") || strings.Contains(body, annsToken) {
		t.Error("the form or the mark of a page that follows its run is missing")
	}
	h.into(h.ann(http.MethodPost, "/v1/runs/"+task.RunID+"/approval",
		`{"subject":"policy","approved":true,"reason":"<i>fine</i>"}`,
		"Origin", h.url), http.StatusOK, new(control.Run))
	rest := h.ended(task)
	over := h.page(path)
	over.says(t, "completed", "did it", "gives its work 100 %", "approved by ann", "<i>fine</i>", "The task is done",
		"record", "The chain of decisions")
	if body := string(over.body); strings.Contains(body, " data-live") || strings.Contains(body, "data-act") {
		t.Error("a run that is over is followed, or can be acted upon")
	}
	var a struct {
		Run struct {
			Phases, Decisions []struct{ Phase string }
			Chain             struct{ Count int64 }
			Used              struct{ Steps int }
		}
	}
	if code := h.graph(`{ run(id: "`+task.RunID+
		`") { phases { phase } decisions { phase } chain { count } used { steps } } }`, &a); code != "" ||
		len(a.Run.Phases) != len(rest.Phases) || len(a.Run.Decisions) != len(rest.Decisions) ||
		a.Run.Chain.Count != rest.Head.Count ||
		a.Run.Used.Steps != rest.Used.Steps {
		t.Errorf("%s: %+v is not %+v", code, a.Run, rest)
	}
	if r := h.call(http.MethodGet, "/ui/runs/nothing", ""); r.status != http.StatusNotFound {
		t.Errorf("an unknown run: %d", r.status)
	}
}

// TestRunsAreListedInPages: each run is on one page of the list, the newest first.
func TestRunsAreListedInPages(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, worker{slug: "plain"})
	want := map[string]bool{}
	for range 5 {
		task := h.submit(`{"goal":"one"}`)
		h.ended(task)
		want[task.RunID] = true
	}
	after, last := "", ""
	for range 10 {
		var a struct {
			Runs struct {
				Nodes    []struct{ ID, Created string }
				PageInfo struct{ EndCursor *string }
			}
		}
		if code := h.graph(`{ runs(first: 2, agent: "plain", status: completed, after: "`+after+
			`") { nodes { id created } pageInfo { endCursor } } }`, &a); code != "" {
			t.Fatal(code)
		}
		for _, r := range a.Runs.Nodes {
			if !want[r.ID] || last != "" && r.Created > last {
				t.Errorf("%s is listed twice or in a wrong place", r.ID)
			}
			delete(want, r.ID)
			last = r.Created
		}
		if a.Runs.PageInfo.EndCursor == nil {
			break
		}
		after = *a.Runs.PageInfo.EndCursor
	}
	if len(want) > 0 {
		t.Errorf("%d runs are not listed", len(want))
	}
	for query, code := range map[string]string{`{ runs(after: "x") { nodes { id } } }`: "INVALID",
		`{ runs(first: 0) { nodes { id } } }`: "INVALID", `{ tasks(after: "x") { nodes { id } } }`: "INVALID",
		`{ tasks(status: lucky) { nodes { id } } }`: "BAD_QUERY", `{ run(id: "nothing") { id } }`: ""} {
		if got := h.graph(query, new(any)); got != code {
			t.Errorf("%s: %q, not %q", query, got, code)
		}
	}
}

// TestPrivatePages: where reads are private, pages and GraphQL show nothing without a token, say what to do, and show
// everything with one in the header.
func TestPrivatePages(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(o *options) { o.PrivateReads = true }, worker{slug: "plain"})
	task := h.submit(`{"goal":"a secret"}`)
	bearer := []string{"Authorization", "Bearer " + annsToken}
	for _, path := range []string{"/ui/tasks", "/ui/runs", "/ui/runs/" + task.RunID, "/ui/treasury"} {
		without := h.page(path)
		without.says(t, "A token is needed", "orchestrator.tokens", "Use it in this tab")
		if without.status != http.StatusOK || strings.Contains(without.text, "a secret") {
			t.Errorf("%s: %d %s", path, without.status, without.text)
		}
		h.page(path, "Authorization", "Bearer wrong").says(t, "A token is needed", "the bearer token is not known")
		if path != "/ui/treasury" {
			h.page(path, bearer...).says(t, "a secret")
		}
	}
	h.page("/ui/treasury", bearer...).says(t, "wallet is not configured here", "orchestrator.wallets")
	for _, query := range []string{`{ tasks { nodes { id } } }`, `{ runs { nodes { id } } }`, `{ run(id: "x") { id } }`,
		`{ treasury { address } }`} {
		if code := h.graph(query, new(any)); code != "UNAUTHORIZED" {
			t.Errorf("%s: %q", query, code)
		}
	}
}

// TestPageOfTreasury: the caps of each agent and what is left of them are shown, as the treasury tells them.
func TestPageOfTreasury(t *testing.T) {
	t.Parallel()
	h := treasuryHouse(t, worker{slug: "plain"}, worker{slug: "second"})
	h.until("events are indexed", func() bool { return strings.Contains(h.page("/ui/treasury").text, "PolicySet") })
	h.page("/ui/treasury").says(t, "The treasury holds 1 000 wei", "100 wei", "250 wei", "plain", h.treasury.Hex()[:6])
	var a struct {
		Treasury struct {
			BalanceWei string
			Agents     []struct{ Agent, LeftWei string }
		}
	}
	if code := h.graph(`{ treasury { balanceWei agents { agent leftWei } } }`, &a); code != "" ||
		a.Treasury.BalanceWei != "1000" ||
		len(a.Treasury.Agents) != 1 || a.Treasury.Agents[0].LeftWei != "100" {
		t.Errorf("%s %+v", code, a.Treasury)
	}
}

// TestPageOfPurchases: payments by x402 are added up as their caps count them, by agent, also where no treasury is.
func TestPageOfPurchases(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(o *options) { o.PrivateReads = true }, worker{slug: "plain"})
	bearer := []string{"Authorization", "Bearer " + annsToken}
	h.page("/ui/treasury", bearer...).says(t, "No agent paid by x402 in the last seven days",
		"wallet is not configured here")
	age := map[string]string{"two-days": "2 days", "nine-days": "9 days"}
	for _, p := range []walletdb.Purchase{
		{ID: "now", Agent: "plain", Worth: 250_000}, {ID: "two-days", Agent: "plain", Worth: 1_000_000},
		{ID: "nine-days", Agent: "plain", Worth: 5_000_000},
		{ID: "refused", Agent: "plain", Worth: 9_000_000, Refused: "too much"},
		{ID: "failed", Worth: 30_000}, // signed, and without an agent
	} {
		p.By, p.ChainID, p.Host, p.Expires = "ann", 1, "shop.example", time.Now()
		_, err := walletdb.AddPurchase(t.Context(), h.db, p, walletdb.Caps{Host: 1 << 40, Day: 1 << 40})
		ok(t, err)
		if age[p.ID] != "" {
			_, err = h.db.Pool().Exec(t.Context(),
				"update acts set created_at = now() - $2::text::interval where id = $1", p.ID, age[p.ID])
			ok(t, err)
		}
	}
	ok(t, walletdb.EndPurchase(t.Context(), h.db, "failed", nil, "no answer"))
	h.page("/ui/treasury", bearer...).says(t, "Agents paid 1.28 US dollars in the last seven days, in 3 payments",
		"0.28 US dollars of it", "1.25 US dollars", "0.25 US dollars", "0.03 US dollars")
	if code := h.graph("{ purchases { weekUsd } }", new(any)); code != "UNAUTHORIZED" {
		t.Errorf("without a token: %q", code)
	}
}

// TestPagesOfWorkCostFewStatements: a page about a run with calls and decisions asks the database at most twelve times.
func TestPagesOfWorkCostFewStatements(t *testing.T) {
	t.Parallel()
	count := new(counter)
	h := newHouse(t, func(o *options) {
		db, err := store.Open(t.Context(), o.DB.Pool().Config().ConnString(), store.Options{Tracer: count})
		ok(t, err)
		t.Cleanup(db.Close)
		o.pages = db
	}, worker{slug: "plain"})
	task := h.submit(`{"goal":"one"}`)
	h.ended(task)
	h.identify("plain")
	for _, path := range []string{"/ui/tasks", "/ui/runs", "/ui/runs/" + task.RunID, "/ui/operations", "/ui/runtime",
		"/ui/agent/7:0/work"} {
		first := h.page(path, "Authorization", "Bearer "+annsToken) // connections and types are known then
		if path == "/ui/runtime" {
			first.says(t, "No agent runs on this database.", "repute agent new")
		}
		before := count.n.Load()
		h.page(path, "Authorization", "Bearer "+annsToken)
		// Requests share what runtimes did for some seconds.
		if n := count.n.Load() - before; n == 0 && path != "/ui/runtime" || n > maxStatements {
			t.Errorf("%s: %d statements", path, n)
		}
	}
}

// TestPageOfOperations: operators see queues, webhooks and keys with their token, and nobody else does.
func TestPageOfOperations(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(o *options) {
		o.on.Tokens["bob"] = "another-token-that-is-long"
		o.on.Roles = map[string][]string{"bob": {"read", "ask"}}
	}, worker{slug: "plain"})
	h.ended(h.submit(`{"goal":"one"}`))
	h.into(h.ann(http.MethodPost, "/v1/keys", `{"name":"reader","rate":5}`), http.StatusCreated, new(any))
	h.into(h.ann(http.MethodPost, "/v1/webhooks",
		`{"url":"https://hook.example/a?x=<script>","filter":{"kinds":["score.changed"]}}`), http.StatusCreated,
		new(any))
	// The queue records the end of a job some time after the run has ended.
	h.until("the job is completed", func() bool {
		return strings.Contains(h.page("/ui/operations", "Authorization", "Bearer "+annsToken).text, "completed")
	})
	h.page("/ui/operations").says(t, "A token is needed")
	h.page("/ui/operations", "Authorization", "Bearer another-token-that-is-long").says(t, "The token is not enough",
		"operate")
	h.page("/ui/operations", "Authorization", "Bearer "+annsToken).says(t, "The pages of the job queue",
		"No chain is indexed yet.",
		"https://hook.example/a?x=<script>", "score.changed", "reader", "5/s", "completed", "run")
	h.page("/ui/runtime").says(t, "A token is needed")
	ok(t, agentdb.Maintain(t.Context(), h.db, agentdb.MinRetention))
	ok(t, agentdb.Add(t.Context(), h.db, agentdb.Entry{Kind: agentdb.Execution, Agent: "eip155:1:0x8004:7",
		Capability: "<b>echo", Outcome: "200",
		Amount: big.NewInt(1_500_000), Decimals: 6, Currency: "USDC", Settlement: agentdb.X402}))
	h.page("/ui/runtime", "Authorization", "Bearer "+annsToken).says(t, "1:7", "<b>echo", "1.5 USDC", "normal",
		"no signed policy")
	for header, want := range map[string]string{"": "UNAUTHORIZED", "another-token-that-is-long": "FORBIDDEN",
		annsToken: ""} {
		if code := h.graph(`{ operations { keys { name } } }`, new(any), "Authorization",
			"Bearer "+header); code != want {
			t.Errorf("%q, not %q", code, want)
		}
	}
}
