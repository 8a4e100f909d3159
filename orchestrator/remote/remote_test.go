package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/internal/pgtest"
	"repute/orchestrator"
	"repute/orchestrator/remote"
	"repute/orchestrator/standard"
	"repute/orchestrator/tasks"
	"repute/orchestrator/transaction"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func manifestOf(slug string) standard.Manifest {
	return standard.Manifest{OperatorWallet: "0x0000000000000000000000000000000000000005",
		Schema: standard.ManifestSchema, Name: "Faraway", Slug: slug, Version: "1.2.3"}
}

// server is an agent that looks a word up with a tool before it answers.
func server(t *testing.T, change func(method string, w http.ResponseWriter) bool) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := strings.TrimPrefix(r.URL.Path, "/agent/")
		if change != nil && change(method, w) {
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		if method == "info" {
			_ = json.NewEncoder(w).Encode(remote.Info{Protocol: remote.Protocol, Slug: "faraway",
				DisplayName:  "Faraway",
				Version:      "1.2.3",
				IdentityMode: standard.IdentityMode, DryRun: true, Manifest: manifestOf("faraway")})
			return
		}
		var q remote.Question
		if json.NewDecoder(r.Body).Decode(&q) != nil || q.Protocol != remote.Protocol {
			http.Error(w, "bad question", http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(reply(method, q))
	}))
	t.Cleanup(s.Close)
	return s
}

func reply(method string, q remote.Question) remote.Answer {
	result := func(v any) remote.Answer {
		b, _ := json.Marshal(v)
		return remote.Answer{Result: b}
	}
	switch method {
	case "can-handle":
		return result(q.Task.Goal != "impossible")
	case "plan":
		return result(standard.Plan{Steps: []standard.Step{{ID: "look", Agent: "faraway",
			Description: "look it up"}}})
	case "dry-run":
		if q.Task.Goal == "pay" {
			return result(standard.DryRun{Calls: []transaction.Tx{payment, payment}})
		}
		return result(standard.DryRun{Warnings: []string{"it sends nothing"}})
	case "execute":
		if q.Task.Goal == "pay" { // and again, under another key, where that is no success
			for _, o := range q.Outcomes {
				if o.Error != "" && o.ReceiptID == "" {
					return remote.Answer{Error: "refused without a receipt: " + o.Error}
				}
			}
			again := payment
			again.Key = fmt.Sprint("payment ", len(q.Outcomes)+1)
			return remote.Answer{Calls: []remote.Call{{Kind: "send", Tx: &again}}}
		}
		if q.Task.Goal == "hoard" {
			return remote.Answer{Calls: slices.Repeat([]remote.Call{{Kind: "tool", Tool: "tome"}}, 16)}
		}
		if len(q.Outcomes) == 0 {
			return remote.Answer{Calls: []remote.Call{{Kind: "tool", Tool: "dictionary",
				Input: json.RawMessage(`"word"`)},
				{Kind: "tool", Tool: "nothing"}}}
		}
		return result(map[string]any{"found": q.Outcomes[0].Result, "lacking": q.Outcomes[1].Error,
			"receiptIds": []string{q.Outcomes[0].ReceiptID},
			"has": fmt.Sprint(q.OperatorWallet, q.Services["tools"], q.Budget.ToolCalls,
				q.Outcomes[1].ReceiptID == "")})
	case "verify":
		return result(standard.Verification{Checks: []standard.Check{{Name: "found",
			Passed: strings.Contains(string(q.Execution.Steps[0].Result), "meaning")}}, Score: 1})
	}
	return result(standard.Summary{Text: "looked it up"})
}

// tome is a tool with a long answer.
type tome struct{}

func (tome) Call(context.Context, transaction.Origin, string, json.RawMessage) (json.RawMessage, error) {
	return json.Marshal(strings.Repeat("x", 1<<20))
}

type dictionary struct{}

func (dictionary) Call(context.Context, transaction.Origin, string, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(`"meaning"`), nil
}

var payment = transaction.Tx{ChainID: 7, Target: common.Address{1}, Value: "1", Purpose: "pay"}

// patient is a chain that does not confirm what it is sent in time.
type patient struct {
	transaction.Chain
	sent chan string
}

func (patient) Simulate(context.Context, transaction.Origin, transaction.Tx) (transaction.Simulation, error) {
	return transaction.Simulation{OK: true, FeeWei: "1"}, nil
}

func (p patient) Send(_ context.Context, i transaction.Intent) (transaction.Sent, error) {
	p.sent <- i.ID
	return transaction.Sent{}, fmt.Errorf("not confirmed: %w", repute.ErrUnavailable)
}

// A remote agent goes through the same phases, with the same counted calls.
func TestRemoteAgentRuns(t *testing.T) {
	t.Parallel()
	agent := server(t, nil)
	client, seen := watch(t, "/agent")
	o := remote.Options{Client: client}
	m, err := remote.Open(t.Context(), agent.URL+"/agent", o)
	ok(t, err)
	db, err := store.Open(t.Context(), pgtest.New(t), store.Options{})
	ok(t, err)
	t.Cleanup(db.Close)
	b, err := json.Marshal(m.Info().Manifest)
	ok(t, err)
	ok(t, rundb.SaveModule(t.Context(), db, repute.Module{Slug: "faraway", URL: agent.URL + "/agent", DryRun: true,
		Manifest: b}))
	p, err := policy.Parse([]byte("version: \"1\"\n"))
	ok(t, err)
	chain := patient{sent: make(chan string, 100)}
	e, err := orchestrator.New(db, orchestrator.Options{Lenient: true, Policy: func() *policy.Policy { return p },
		Chain: chain, ExecutionChain: 7,
		Tools:  map[string]orchestrator.Tool{"dictionary": dictionary{}, "tome": tome{}},
		Remote: func(known repute.Module) (orchestrator.Module, error) { return remote.Stored(known, o) }})
	ok(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	tasks, err := tasks.NewClient(db)
	ok(t, err)
	task, _, err := tasks.Submit(t.Context(), standard.Request{Goal: "find it", Coordinator: "faraway"})
	ok(t, err)
	run := ended(t, db, task)
	if run.Status != repute.RunCompleted || run.Used.ToolCalls != 1 {
		t.Fatalf("run %s, %d tool calls: %s", run.Status, run.Used.ToolCalls, run.Error)
	}
	steps, err := rundb.Steps(t.Context(), db, run.ID)
	if ok(t, err); !strings.Contains(string(steps[0].Result), `"found":"meaning"`) ||
		!strings.Contains(string(steps[0].Result), "does not exist") ||
		!strings.Contains(string(steps[0].Result),
			`"has":"0x0000000000000000000000000000000000000005[dictionary tome] 50 true"`) {
		t.Errorf("step %s", steps[0].Result)
	}
	task, _, err = tasks.Submit(t.Context(), standard.Request{Goal: "impossible", Coordinator: "faraway"})
	ok(t, err)
	if run := ended(t, db, task); !strings.Contains(run.Error, "cannot handle") {
		t.Errorf("run %s: %s", run.Status, run.Error)
	}
	task, _, err = tasks.Submit(t.Context(), standard.Request{Goal: "hoard", Coordinator: "faraway"})
	ok(t, err)
	if run := ended(t, db, task); run.Used.ToolCalls != 16 || !strings.Contains(run.Error, "brought more than") {
		t.Errorf("hoarding run %s with %d calls: %s", run.Status, run.Used.ToolCalls, run.Error)
	}
	task, _, err = tasks.Submit(t.Context(), standard.Request{Goal: "pay", Coordinator: "faraway"})
	ok(t, err)
	if run := ended(t, db, task); len(chain.sent) != 1 || !strings.Contains(run.Error, "not confirmed") {
		t.Errorf("paying run %s sent %d transactions: %s", run.Status, len(chain.sent), run.Error)
	}
	asked := map[string]bool{}
	for len(seen) > 0 {
		asked[<-seen] = true
	}
	for _, method := range []string{"/info", "/can-handle", "/plan", "/dry-run", "/execute", "/verify", "/summarize"} {
		if !asked[method] {
			t.Errorf("%s was not asked", method)
		}
	}
}

func ended(t *testing.T, db *store.DB, task repute.Task) repute.Run {
	t.Helper()
	for range 3000 {
		r, err := rundb.Run(t.Context(), db, task.Run)
		ok(t, err)
		if r.Status.Ended() {
			return r
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the run did not end")
	return repute.Run{}
}

// Answers that are none say what is wrong, and cost no more than their bounds.
func TestRemoteAnswersAreBounded(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		answer func(w http.ResponseWriter)
		want   string
		kind   error
	}{
		"html": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html>hello</html>"))
		}, "text/html", repute.ErrInvalid},
		"large": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`"` + strings.Repeat("x", 10<<20) + `"`))
		}, "more than", repute.ErrInvalid},
		"redirect": {func(w http.ResponseWriter) {
			w.Header().Set("Location", "/agent/plan")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, "redirects with status 307", repute.ErrInvalid},
		"status": {func(w http.ResponseWriter) { http.Error(w, "no", http.StatusTeapot) }, "status 418",
			repute.ErrInvalid},
		"no json": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("{"))
		}, "no JSON", repute.ErrInvalid},
		"deep": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"result":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`))
		}, "can-handle.result: nests too deep", repute.ErrInvalid},
		"NUL": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"result":true,"reason":"\u0000"}`))
		}, "can-handle.reason: has NUL", repute.ErrInvalid},
		"half a surrogate pair": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"result":true,"reason":"\ud800"}`))
		}, "can-handle.reason: has half", repute.ErrInvalid},
		"empty": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("{}"))
		}, "neither", repute.ErrInvalid},
		"endless": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"calls":[{"kind":"tool","tool":"a"}]}`))
		}, "none in can-handle", repute.ErrInvalid},
		"slow": {func(w http.ResponseWriter) { time.Sleep(2 * time.Second) }, "deadline", repute.ErrUnavailable},
		"drop by drop": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			for range 40 {
				_, _ = w.Write([]byte(" "))
				_ = http.NewResponseController(w).Flush()
				time.Sleep(50 * time.Millisecond)
			}
		}, "deadline", repute.ErrUnavailable},
		"hangs up": {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "EOF", repute.ErrUnavailable},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := server(t, func(method string, w http.ResponseWriter) bool {
				if method == "can-handle" {
					c.answer(w)
				}
				return method == "can-handle"
			})
			m, err := remote.Open(t.Context(), agent.URL+"/agent",
				remote.Options{Client: agent.Client(), Timeout: 500 * time.Millisecond})
			ok(t, err)
			_, err = m.CanHandle(t.Context(), standard.Task{ID: "t", Goal: "g"})
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("answered with %v", err)
			}
		})
	}
}
