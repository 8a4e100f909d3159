package oaf_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"repute"
	"repute/agent/llm"
	"repute/agent/llm/oafagent"
	"repute/internal/modeltest"
	format "repute/manifest/oaf"
	"repute/orchestrator"
	"repute/orchestrator/oaf"
	"repute/orchestrator/standard"
	"repute/policy"
	"repute/store/rundb"
)

// shop is an MCP server whose only tool counts its calls; the first ones are never answered.
func shop(t *testing.T, called *atomic.Int64, silent int64) format.Server {
	t.Helper()
	srv := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
	sdk.AddTool(srv, &sdk.Tool{Name: "buy", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true,
		IdempotentHint: true}},
		func(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			if called.Add(1) <= silent {
				<-ctx.Done()
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "bought"}}}, nil, nil
		})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return srv }, nil))
	t.Cleanup(web.CloseClientConnections)
	return format.Server{Name: "shop", Connection: format.Connection{Type: format.TransportHTTP, URL: web.URL}}
}

// A call of a tool that had begun when its engine ended is not made again on the word of the server: a person is
// asked, and an agent's own file may say that a repetition does no harm.
func TestCallOfUnknownEnd(t *testing.T) {
	for name, c := range map[string]struct {
		settings string
		asked    bool
		yes      bool
		calls    int64
		told     string
	}{
		"approved":   {`{}`, true, true, 2, "bought"},
		"refused":    {`{}`, true, false, 1, "it is unknown whether the call happened, and it is not made again"},
		"idempotent": {`{"idempotentTools": ["shop__buy"]}`, false, false, 2, "bought"},
	} {
		t.Run(name, func(t *testing.T) {
			var called atomic.Int64
			s := modeltest.New(call("shop__buy", `{}`), modeltest.Turn{Text: "done"})
			h := newHouse(t, s)
			def := agent("buyer", func(a *format.Agent) {
				a.Servers = []format.Server{shop(t, &called, 1)}
				a.Harness = map[string]json.RawMessage{"repute": json.RawMessage(c.settings)}
			})
			stop := h.start("", def)
			task := h.submit("acme-buyer", policy.Bounds{})
			h.until("the tool is called", func() bool { return called.Load() == 1 })
			stop()
			h.start("", def)
			if c.asked {
				open := h.awaited(task)
				if !strings.Contains(string(open.Reasons), "unknown whether it happened") || called.Load() != 1 {
					t.Fatalf("asked %s after %d calls", open.Reasons, called.Load())
				}
				runs, err := rundb.TaskRuns(t.Context(), h.db, task.ID)
				ok(t, err)
				ok(t, h.client.Approve(t.Context(), runs[0].ID, open.Subject, c.yes, "alice", "test"))
			}
			if run := h.ended(task); run.Status != repute.RunCompleted || called.Load() != c.calls {
				t.Fatalf("%s: %s, after %d calls", run.Status, run.Error, called.Load())
			}
			seen := s.Seen()
			if last := seen[len(seen)-1]; !last.Contains(c.told) {
				t.Errorf("told %q", last.Texts)
			}
		})
	}
}

// A person who had a call made again is asked again where that one was cut off, too, and everything that was asked
// and made is in the record.
func TestCallOfUnknownEndTwice(t *testing.T) {
	var called atomic.Int64
	h := newHouse(t, modeltest.New(call("shop__buy", `{}`), modeltest.Turn{Text: "done"}))
	def := agent("buyer", func(a *format.Agent) { a.Servers = []format.Server{shop(t, &called, 2)} })
	stop := h.start("", def)
	task := h.submit("acme-buyer", policy.Bounds{})
	subjects := map[string]bool{}
	for n := range int64(2) {
		h.until("the tool is called", func() bool { return called.Load() == n+1 })
		stop()
		stop = h.start("", def)
		open := h.awaited(task)
		subjects[open.Subject] = true
		runs, err := rundb.TaskRuns(t.Context(), h.db, task.ID)
		ok(t, err)
		ok(t, h.client.Approve(t.Context(), runs[0].ID, open.Subject, true, "alice", "test"))
	}
	run := h.ended(task)
	receipts, err := rundb.Receipts(t.Context(), h.db, run.ID)
	ok(t, err)
	open := 0
	for _, r := range receipts {
		if strings.Contains(r.Error, "unknown whether the call happened") {
			open++
		}
	}
	if run.Status != repute.RunCompleted || called.Load() != 3 || len(subjects) != 2 || open != 2 {
		t.Errorf("%s: %s, after %d calls, asked %v, %d receipts of unknown end", run.Status, run.Error, called.Load(),
			subjects, open)
	}
}

// The fallback does not work where the time of the conversation is used up, also by a server that is asked for its
// tools.
func TestNoFallbackAfterWall(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(silent.CloseClientConnections)
	s := modeltest.New(modeltest.Turn{Text: "I took over."})
	h := newHouse(t, s)
	main := agent("main", func(a *format.Agent) {
		a.Servers = []format.Server{{Name: "slow",
			Connection: format.Connection{Type: format.TransportHTTP, URL: silent.URL}}}
		a.MCPServers = []format.ServerRef{{Server: "slow", Required: true}}
		a.Agents = []format.AgentRef{{Agent: "helper", Vendor: "acme"}}
		a.Orchestration = format.Orchestration{Fallback: "helper"}
	})
	var modules []orchestrator.Module
	for _, def := range []*format.Agent{main, agent("helper", nil)} {
		a, err := oafagent.New(t.Context(), def, oafagent.Options{Models: h.models, Client: &http.Client{},
			Bounds: llm.Bounds{Wall: 300 * time.Millisecond}, Getenv: func(string) string { return "" }})
		ok(t, err)
		m, err := oaf.New(a, nil, "")
		ok(t, err)
		modules = append(modules, m)
	}
	h.run("", modules...)
	if run := h.ended(h.submit("acme-main", policy.Bounds{})); run.Status != repute.RunFailed ||
		!strings.Contains(run.Error, "wall time") || len(s.Seen()) != 0 {
		t.Errorf("%s: %s, %d requests", run.Status, run.Error, len(s.Seen()))
	}
}

// The fallback has the time that the conversation left.
func TestFallbackEndsWithTheWall(t *testing.T) {
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	s := &modeltest.Server{Script: func(_ int, r *modeltest.Request) modeltest.Turn {
		if r.Contains("You help.") {
			return modeltest.Turn{Text: "late", Wait: never}
		}
		return modeltest.Turn{Status: http.StatusBadRequest}
	}}
	h := newHouse(t, s)
	main := agent("main", func(a *format.Agent) {
		a.Agents = []format.AgentRef{{Agent: "helper", Vendor: "acme"}}
		a.Orchestration = format.Orchestration{Fallback: "helper"}
	})
	var modules []orchestrator.Module
	for def, wall := range map[*format.Agent]time.Duration{main: 6 * time.Second,
		agent("helper", func(a *format.Agent) { a.Body = "You help." }): time.Hour} {
		a, err := oafagent.New(t.Context(), def, oafagent.Options{Models: h.models, Bounds: llm.Bounds{Wall: wall},
			Getenv: func(string) string { return "" }})
		ok(t, err)
		m, err := oaf.New(a, nil, "")
		ok(t, err)
		modules = append(modules, m)
	}
	h.run("", modules...)
	if run := h.ended(h.submit("acme-main", policy.Bounds{})); run.Status != repute.RunFailed ||
		!strings.Contains(run.Error, "wall time") || len(s.Seen()) != 2 {
		t.Errorf("%s: %s, %d requests", run.Status, run.Error, len(s.Seen()))
	}
}

// The summary of a run says that it has a part of a long answer alone, and is cut at a whole character.
func TestLongSummarySaysThatItIsCut(t *testing.T) {
	h := newHouse(t, modeltest.New(modeltest.Turn{Text: "x" + strings.Repeat("é", 10<<10)}))
	h.start("", agent("writer", nil))
	run := h.ended(h.submit("acme-writer", policy.Bounds{}))
	phases, err := rundb.Phases(t.Context(), h.db, run.ID)
	ok(t, err)
	var s standard.Summary
	ok(t, json.Unmarshal(phases[repute.PhaseSummarize-1].Result, &s))
	if run.Status != repute.RunCompleted || s.Text != "x"+strings.Repeat("é", 8<<10-1) || len(s.Warnings) != 1 ||
		!strings.Contains(s.Warnings[0], "20481 bytes, of which 16384 are shown") {
		t.Errorf("%s: %s, %d bytes, %q", run.Status, run.Error, len(s.Text), s.Warnings)
	}
}

// What an agent remembers belongs to the caller who gave the task: another caller who names the same session, or
// searches, finds nothing of it.
func TestMemoryOfCallers(t *testing.T) {
	s := &modeltest.Server{Script: func(n int, _ *modeltest.Request) modeltest.Turn {
		switch n {
		case 0:
			return call("memory_edit", `{"label":"user","text":"Ann's secret"}`)
		case 2, 4, 6:
			return call("memory_search", `{"query":"secret"}`)
		}
		return modeltest.Turn{Text: "end"}
	}}
	h := newHouse(t, s)
	h.start("", agent("clerk", func(a *format.Agent) {
		a.Memory = &format.Memory{Type: format.MemoryEditable, Blocks: []format.MemoryBlock{{Label: "user"}}}
	}))
	for i, by := range []string{"ann", "ann", "bob", ""} {
		before := len(s.Seen())
		task, _, err := h.client.Submit(t.Context(), standard.Request{Goal: "x", Coordinator: "acme-clerk", By: by,
			Input: json.RawMessage(`{"session":"shared"}`)})
		ok(t, err)
		if run := h.ended(task); run.Status != repute.RunCompleted {
			t.Fatalf("%s: %s", run.Status, run.Error)
		}
		seen := s.Seen()
		prompt, found := seen[before].Contains("Ann's secret"), seen[len(seen)-1].Contains(`"text":"Ann's secret"`)
		if i > 0 && (prompt != (by == "ann") || found != (by == "ann")) {
			t.Errorf("caller %q: prompt %v, found %v: %q", by, prompt, found, seen[len(seen)-1].Texts)
		}
	}
}

// A sub-agent whose entry names another identity than the registered agent has gets no work.
func TestIdentityOfSubAgent(t *testing.T) {
	for entry, good := range map[string]bool{`7`: true, `"7"`: true, `8`: false} {
		t.Run(entry, func(t *testing.T) {
			s := &modeltest.Server{Script: func(n int, r *modeltest.Request) modeltest.Turn {
				if n == 0 {
					return call("agent_acme_helper", `{"task":"help"}`)
				}
				return modeltest.Turn{Text: "done"}
			}}
			h := newHouse(t, s)
			module := func(def *format.Agent, id *repute.AgentID) *oaf.Module {
				a, err := oafagent.New(t.Context(), def,
					oafagent.Options{Models: h.models, Getenv: func(string) string { return "" }})
				ok(t, err)
				m, err := oaf.New(a, id, "")
				ok(t, err)
				return m
			}
			ref, err := repute.ParseAgentRef("eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:7")
			ok(t, err)
			main := agent("main", func(a *format.Agent) {
				a.Agents = []format.AgentRef{{Vendor: "acme", Agent: "helper", Extra: map[string]json.RawMessage{
					"agentId": json.RawMessage(entry), "chain": json.RawMessage(`1`)}}}
			})
			h.run("", module(main, nil), module(agent("helper", nil),
				&repute.AgentID{ChainID: ref.ChainID, Registry: *ref.Registry, TokenID: ref.TokenID}))
			run := h.ended(h.submit("acme-main", policy.Bounds{}))
			if good != (run.Status == repute.RunCompleted) || !good && (len(s.Seen()) != 0 ||
				!strings.Contains(run.Error, "plan.identities.acme-helper") || !strings.Contains(run.Error, ":7")) {
				t.Errorf("%s: %s; %d requests", run.Status, run.Error, len(s.Seen()))
			}
		})
	}
}

// An answer that was cut fails the run, and calls beyond the bound of a message are a warning of its summary.
func TestIncompleteAnswers(t *testing.T) {
	h := newHouse(t, modeltest.New(modeltest.Turn{Text: "It rains and", Length: true}))
	h.start("", agent("forecaster", nil))
	if run := h.ended(h.submit("acme-forecaster", policy.Bounds{})); run.Status != repute.RunFailed ||
		!strings.Contains(run.Error, "config.max_tokens, which is 50") {
		t.Errorf("%s: %s", run.Status, run.Error)
	}
	turn := modeltest.Turn{}
	for range 18 {
		turn.Calls = append(turn.Calls, modeltest.Call{Name: "skill", Input: `{"name":"weather"}`})
	}
	h = newHouse(t, modeltest.New(turn, modeltest.Turn{Text: "It rains."}))
	h.start("", agent("forecaster", nil))
	run := h.ended(h.submit("acme-forecaster", policy.Bounds{}))
	phases, err := rundb.Phases(t.Context(), h.db, run.ID)
	ok(t, err)
	if summary := string(phases[len(phases)-2].Result); run.Status != repute.RunCompleted ||
		!strings.Contains(summary, "2 calls of tools were not made") {
		t.Errorf("%s: %s, %s", run.Status, run.Error, summary)
	}
}
