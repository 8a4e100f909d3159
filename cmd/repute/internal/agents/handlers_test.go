package agents_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"repute/cmd/repute/internal/clitest"
	"repute/internal/httpapi"
	"repute/internal/modeltest"
	"repute/internal/pgtest"
	"repute/orchestrator"
	"repute/orchestrator/control"
	"repute/orchestrator/standard"
	"repute/orchestrator/tasks"
	"repute/policy"
	"repute/store"
	"repute/trust/explain"
)

// TestMain lets the test's binary be a handler: an MCP server on standard input and output.
func TestMain(m *testing.M) {
	if os.Getenv("MCP_PROGRAM") == "" {
		os.Exit(m.Run())
	}
	serveTools()
}

// reviewerFile is an agent of the Open Agent Format.
const reviewerFile = `---
name: "Reviewer"
vendorKey: "acme"
agentKey: "reviewer"
version: "1.0.0"
slug: "acme/reviewer"
description: "Reviews code for quality and best practices, with all the care that it needs."
author: "@acme"
license: "MIT"
tags: ["review"]
---

You review code.
`

// insider is the directory of an agent that requires an MCP server at an address.
func insider(t *testing.T, url string) string {
	t.Helper()
	dir := t.TempDir()
	ok(t, os.MkdirAll(filepath.Join(dir, "mcp-configs", "near"), 0o700))
	server := "mcpServers: [{vendor: acme, server: near, version: \"1.0.0\", configDir: mcp-configs/near, required: true}]\n"
	for name, text := range map[string]string{"AGENTS.md": strings.Replace(reviewerFile, "tags:", server+"tags:", 1),
		"mcp-configs/near/config.yaml": fmt.Sprintf("connection: {type: http, url: %q}\n", url)} {
		ok(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// serveTools answers calls of tools with their arguments and the id of the process.
func serveTools() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var q struct {
			ID     json.RawMessage
			Method string
			Params struct{ Arguments json.RawMessage }
		}
		if json.Unmarshal(in.Bytes(), &q) != nil || q.ID == nil {
			continue
		}
		text, _ := json.Marshal(fmt.Sprintf(`{"pid":%d,"got":%s}`, os.Getpid(), q.Params.Arguments))
		result := fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, text)
		if q.Method == "initialize" {
			result = `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}`
		}
		fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n", q.ID, result)
	}
}

// toolServer is an MCP server over HTTP that demands a token.
func toolServer(t *testing.T) string {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "tools", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: "shout", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{StructuredContent: json.RawMessage(strings.ToUpper(string(r.Params.Arguments)))}, nil
		})
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s },
		&sdk.StreamableHTTPOptions{Stateless: true})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer tool-token" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	return web.URL
}

// counting is an agent of an orchestrator, which gives the task's input back.
type counting struct{}

func (counting) Info() standard.Info {
	return standard.Info{Slug: "counting", DisplayName: "counting", Version: "1.0.0",
		IdentityMode: standard.IdentityMode,
		Manifest: standard.Manifest{Schema: standard.ManifestSchema, Name: "counting", Slug: "counting",
			Version: "1.0.0"}}
}

func (counting) CanHandle(context.Context, standard.Task) (bool, error) { return true, nil }

func (counting) Plan(_ context.Context, t standard.Task, _ *orchestrator.Context) (standard.Plan, error) {
	return standard.Plan{Steps: []standard.Step{{ID: "count", Description: t.Goal, Agent: "counting",
		Input: t.Input}}}, nil
}

func (counting) Execute(ctx context.Context, t standard.Task, p standard.Plan,
	c *orchestrator.Context) (standard.Execution,
	error) {
	return c.RunPlan(ctx, p, func(context.Context, standard.Step, map[string]json.RawMessage,
		*orchestrator.Context) (json.RawMessage, error) {
		return json.Marshal(map[string]any{"goal": t.Goal, "tags": t.Tags, "input": t.Input})
	})
}

func (counting) Verify(context.Context, standard.Task, standard.Execution,
	*orchestrator.Context) (standard.Verification,
	error) {
	return standard.Verification{Checks: []standard.Check{{Name: "done", Passed: true}}, Score: 1}, nil
}

func (counting) Summarize(context.Context, standard.Task, standard.Execution, standard.Verification,
	*orchestrator.Context) (standard.Summary, error) {
	return standard.Summary{Text: "counted"}, nil
}

const officeToken = "a-token-that-is-long-enough"

// office is a running orchestrator with one agent.
func office(t *testing.T) string {
	t.Helper()
	db, err := store.Open(context.WithoutCancel(t.Context()), pgtest.New(t), store.Options{})
	ok(t, err)
	t.Cleanup(db.Close)
	rules, err := policy.Parse([]byte("version: \"1\"\n"))
	ok(t, err)
	current := func() *policy.Policy { return rules }
	client, err := tasks.NewClient(db)
	ok(t, err)
	replay, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	quiet := slog.New(slog.DiscardHandler)
	server, err := httpapi.NewServer(httpapi.ServerOptions{Tokens: map[string]string{"agent": officeToken},
		Logger: quiet})
	ok(t, err)
	modules := []orchestrator.Module{counting{}}
	_, err = control.New(control.Options{Server: server, DB: db, Client: client, Policy: current, Replay: replay,
		Lenient: true,
		Modules: modules})
	ok(t, err)
	h, err := server.Handler()
	ok(t, err)
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	e, err := orchestrator.New(db, orchestrator.Options{Policy: current, Modules: modules, Lenient: true, Log: quiet})
	ok(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return web.URL
}

// TestConfiguredHandlers: agent.yaml reaches every kind of handler: a program under its limits, a tool
// of an MCP server over HTTP and of a program, and a task of an orchestrator.
func TestConfiguredHandlers(t *testing.T) {
	w := newWorld(t)
	t.Setenv("TOOL_TOKEN", "tool-token")
	t.Setenv("OFFICE_TOKEN", officeToken)
	self, err := os.Executable()
	ok(t, err)
	text, err := os.ReadFile(w.agentFile(t, "0", w.key, "", "http://127.0.0.1:1"))
	ok(t, err)
	head, _, _ := strings.Cut(string(text), "capabilities:")
	model := httptest.NewServer(modeltest.New(modeltest.Turn{Text: `{"reviewed":true}`}))
	t.Cleanup(model.Close)
	reviewer := filepath.Dir(w.file(t, "AGENTS.md", reviewerFile))
	var reached atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(inside.Close)
	file := head +
		fmt.Sprintf("models: {default: m, table: {m: {provider: openai, model: m, base_url: %q}}}\ncapabilities:\n",
			model.URL)
	for name, h := range map[string]string{
		"limits":   `{exec: [/bin/sh, -c, 'printf "[%s,%s]" "$(ulimit -v)" "$(ulimit -t)"'], env: {PATH: "/usr/bin:/bin"}, memory: 100, cpu: 7}`,
		"shout":    fmt.Sprintf(`{mcp: {url: %q, tool: shout, token_env: TOOL_TOKEN}}`, toolServer(t)),
		"program":  fmt.Sprintf(`{mcp: {command: [%q], tool: any}, env: {MCP_PROGRAM: "1"}}`, self),
		"program2": fmt.Sprintf(`{mcp: {command: [%q], tool: any}, env: {MCP_PROGRAM: "1"}}`, self),
		"task": fmt.Sprintf(`{task: {url: %q, token_env: OFFICE_TOKEN, coordinator: counting, goal: count it, tags: [x],
      budget: {maxSteps: 1}}}`, office(t)),
		"review":  fmt.Sprintf(`{oaf: {dir: %q, max_tokens: 10000}}`, reviewer),
		"inside":  fmt.Sprintf(`{oaf: {dir: %q}}`, insider(t, inside.URL)),
		"refused": fmt.Sprintf(`{task: {url: %q, token_env: TOOL_TOKEN, coordinator: counting}}`, office(t)),
	} {
		file += fmt.Sprintf("  - name: %s\n    version: 1.0.0\n    inputSchema: {type: object}\n    outputSchema: {}\n    handler: %s\n",
			name, h)
	}
	url, out, stop := w.serve(t, w.file(t, "agent.yaml", file))
	call := func(name string) (int, string) {
		res := post(t, url+"/capability/"+name, `{"text":"hi"}`, nil)
		raw, err := io.ReadAll(res.Body)
		ok(t, err)
		return res.StatusCode, string(raw)
	}
	for name, want := range map[string]string{"limits": `[102400,7]`, "shout": `{"TEXT":"HI"}`,
		"review": `{"reviewed":true}`, "task": `{"goal":"count it","input":{"text":"hi"},"tags":["x"]}`} {
		if status, body := call(name); status != http.StatusOK || body != want {
			t.Errorf("%s: %d %s, want %s: %s", name, status, body, want, out)
		}
	}
	_, first := call("program")
	if _, second := call("program2"); first != second || !strings.Contains(first, `"got":{"text":"hi"}`) {
		t.Errorf("two capabilities do not share a program: %s, %s", first, second)
	}
	if status, body := call("refused"); status != http.StatusServiceUnavailable || strings.Contains(body, "token") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := call("inside"); status != http.StatusServiceUnavailable || reached.Load() != 0 {
		t.Errorf("an agent's files lead to an internal address: %d %s, asked %d times", status, body, reached.Load())
	}
	ok(t, stop())
	var pid struct{ PID int }
	ok(t, json.Unmarshal([]byte(first), &pid))
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid.PID)); err != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the MCP program %d outlives the agent", pid.PID)
		}
	}
	missing := strings.ReplaceAll(file, "OFFICE_TOKEN", "NO_SUCH_TOKEN")
	err = w.run(t.Context(), &clitest.Output{}, "serve", "--config", w.file(t, "agent.yaml", missing), "--main-config",
		w.main,
		"--database-url", w.database)
	if err == nil || !strings.Contains(err.Error(), "capabilities.task.handler.task.token_env") ||
		!strings.Contains(err.Error(), "NO_SUCH_TOKEN") {
		t.Errorf("%v", err)
	}
}
