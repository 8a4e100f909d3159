package control_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/api"
	"repute/devnet"
	"repute/internal/httpapi"
	"repute/internal/pgtest"
	"repute/mcp"
	"repute/orchestrator"
	"repute/orchestrator/control"
	"repute/orchestrator/control/workgraph"
	"repute/orchestrator/standard"
	"repute/orchestrator/tasks"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
	"repute/trust/explain"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// worker is an agent that does nothing, or waits until a test lets it go on.
type worker struct {
	slug string
	gate chan struct{} // nil: it does not wait
}

func (w worker) Info() standard.Info {
	return standard.Info{Slug: w.slug, DisplayName: w.slug, Version: "1.0.0", IdentityMode: standard.IdentityMode,
		Manifest: standard.Manifest{Schema: standard.ManifestSchema, Name: w.slug, Slug: w.slug, Version: "1.0.0",
			Description:    "does <b>nothing</b>",
			OperatorWallet: "0x00000000000000000000000000000000000000aB",
			Endpoints:      map[string]string{"api": "https://worker.example/api"}}}
}

func (worker) CanHandle(context.Context, standard.Task) (bool, error) { return true, nil }

func (w worker) Plan(_ context.Context, t standard.Task, _ *orchestrator.Context) (standard.Plan, error) {
	return standard.Plan{Steps: []standard.Step{{ID: "only", Description: t.Goal, Agent: w.slug}}}, nil
}

func (w worker) Execute(ctx context.Context, _ standard.Task, p standard.Plan,
	c *orchestrator.Context) (standard.Execution, error) {
	return c.RunPlan(ctx, p, func(ctx context.Context, _ standard.Step, _ map[string]json.RawMessage,
		_ *orchestrator.Context) (json.RawMessage, error) {
		if w.gate != nil {
			select {
			case <-w.gate:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return json.RawMessage(`{"done":"</script>"}`), nil
	})
}

func (worker) Verify(context.Context, standard.Task, standard.Execution,
	*orchestrator.Context) (standard.Verification, error) {
	return standard.Verification{Checks: []standard.Check{{Name: "done", Passed: true}}, Score: 1}, nil
}

func (worker) Summarize(context.Context, standard.Task, standard.Execution, standard.Verification,
	*orchestrator.Context) (standard.Summary, error) {
	return standard.Summary{Text: "did it"}, nil
}

const (
	annsToken = "a-token-that-is-long-enough"
	rules     = "version: \"1\"\nrules:\n  - {id: ask, when: 'task.goal.startsWith(\"dear\")', effect: require_approval, reason: dear tasks are looked at}\n"
)

// options are those of the routes and of the server that they are on.
type options struct {
	served *mcp.Server // at /mcp; nil: none
	pages  *store.DB   // that the index and GraphQL read; nil: that of the routes under /v1
	control.Options
	on httpapi.ServerOptions
}

// house is a server over a database with an engine.
type house struct {
	t   *testing.T
	db  *store.DB
	url string
	o   options

	d        *devnet.Devnet // nil without a wallet
	treasury common.Address
}

// newHouse runs an engine with the agents, and a server with the routes of the index too; change may
// alter its options.
func newHouse(t *testing.T, change func(*options), agents ...orchestrator.Module) *house {
	t.Helper()
	db, err := store.Open(t.Context(), pgtest.New(t), store.Options{})
	ok(t, err)
	t.Cleanup(db.Close)
	client, err := tasks.NewClient(db)
	ok(t, err)
	p, err := policy.Parse([]byte(rules))
	ok(t, err)
	replay, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	current := func() *policy.Policy { return p }
	quiet := slog.New(slog.DiscardHandler)
	h := &house{t: t, db: db, o: options{
		Options: control.Options{DB: db, Client: client, Policy: current, Lenient: true, Replay: replay,
			Coordinator: "plain", PublicURL: "https://repute.example", Tools: mcp.New(mcp.Options{Logger: quiet})},
		on: httpapi.ServerOptions{Tokens: map[string]string{"ann": annsToken}, Logger: quiet}}}
	if change != nil {
		change(&h.o)
	}
	server := httptest.NewServer(h.o.handler(t))
	t.Cleanup(server.Close)
	h.url = server.URL
	h.engine(current, agents)
	return h
}

// handler serves every route of the product.
func (o *options) handler(t *testing.T) http.Handler {
	t.Helper()
	server, err := httpapi.NewServer(o.on)
	ok(t, err)
	o.Server = server
	if o.DB == nil {
		o.DB, err = store.Open(t.Context(), "postgres://nobody@127.0.0.1:1/none", store.Options{}) // nothing connects
		ok(t, err)
		t.Cleanup(o.DB.Close)
	}
	if o.pages == nil {
		o.pages = o.DB
	}
	tasks := workgraph.New(o.pages, o.Operator, o.PrivateReads)
	_, err = api.New(api.Options{Server: server, DB: o.pages, Tools: o.served, Work: tasks, Treasury: tasks})
	ok(t, err)
	_, err = control.New(o.Options)
	ok(t, err)
	h, err := server.Handler()
	ok(t, err)
	return h
}

// ask is the answer of a server that has no database, to a request from an address.
func ask(h http.Handler, path, from string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
	r.RemoteAddr = from
	h.ServeHTTP(w, r)
	return w
}

func (h *house) engine(current func() *policy.Policy, agents []orchestrator.Module) {
	h.t.Helper()
	if len(agents) == 0 {
		return
	}
	e, err := orchestrator.New(h.db, orchestrator.Options{Lenient: true, Policy: current, Modules: agents,
		Hold: 2 * time.Second, Tools: map[string]orchestrator.Tool{"dump": dump{}}})
	ok(h.t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Run(ctx) }()
	h.t.Cleanup(func() { stop(); <-done })
	for _, m := range agents {
		h.until("agent is installed",
			func() bool { _, err := rundb.Module(h.t.Context(), h.db, m.Info().Slug); return err == nil })
	}
}

func (h *house) until(what string, f func() bool) {
	h.t.Helper()
	for end := time.Now().Add(90 * time.Second); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("waited in vain: %s", what)
		}
	}
}

// reply is an answer read whole.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// call sends a request; header are pairs of names and values.
func (h *house) call(method, path, body string, header ...string) reply {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, bytes.NewBufferString(body))
	ok(h.t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	ok(h.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	ok(h.t, err)
	return reply{resp.StatusCode, resp.Header, b}
}

// ann sends a request as somebody who may.
func (h *house) ann(method, path, body string, header ...string) reply {
	h.t.Helper()
	return h.call(method, path, body, append(header, "Authorization", "Bearer "+annsToken)...)
}

// into decodes an answer of a status.
func (h *house) into(r reply, status int, v any) {
	h.t.Helper()
	if r.status != status {
		h.t.Fatalf("status %d, not %d: %.400s", r.status, status, r.body)
	}
	ok(h.t, json.Unmarshal(r.body, v))
}

func (h *house) submit(body string) control.Task {
	h.t.Helper()
	var t control.Task
	h.into(h.ann(http.MethodPost, "/v1/tasks", body), http.StatusCreated, &t)
	return t
}

// waits for a run to be as f says.
func (h *house) waits(id, what string, f func(control.Run) bool) (r control.Run) {
	h.t.Helper()
	h.until(what, func() bool {
		r = control.Run{}
		h.into(h.call(http.MethodGet, "/v1/runs/"+id, ""), http.StatusOK, &r)
		return f(r)
	})
	return r
}

func (h *house) ended(t control.Task) control.Run {
	h.t.Helper()
	return h.waits(t.RunID, "task ends", func(r control.Run) bool { return r.Status.Ended() })
}

func awaits(r control.Run) bool { return r.Awaiting == repute.AwaitingApproval }
