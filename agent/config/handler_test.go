package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"repute"
	"repute/agent/config"
)

// withHandler is the file with another handler.
func withHandler(text string) []byte {
	return []byte(strings.Replace(file, "handler: {exec: [/bin/cat]}", "handler: "+text, 1))
}

// TestHandlers: each kind of handler is read, and programs get the limits of the specification.
func TestHandlers(t *testing.T) {
	t.Parallel()
	read := func(text string) config.Handler {
		c, err := config.Parse(withHandler(text), env(nil))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return c.Capabilities[0].Handler
	}
	if h := read(`{exec: [/bin/cat]}`); h.Memory != 512 || h.CPU != 10 {
		t.Errorf("%+v", h)
	}
	if h := read(`{exec: [/bin/cat], memory: 64, cpu: 1.5, env: {A: b}, dir: /tmp}`); h.Memory != 64 || h.CPU != 1.5 {
		t.Errorf("%+v", h)
	}
	if h := read(`{mcp: {url: "http://127.0.0.1:1/mcp", tool: echo, token_env: T}}`); h.MCP.Tool != "echo" ||
		h.Memory != 0 {
		t.Errorf("%+v", h.MCP)
	}
	if h := read(`{mcp: {command: [/bin/server, --stdio], tool: echo}, env: {A: b}}`); len(h.MCP.Command) != 2 {
		t.Errorf("%+v", h.MCP)
	}
	h := read(`{task: {url: "https://o.example", token_env: T, coordinator: lead, tags: a, step: s, budget: {maxSteps: 3}}}`)
	if h.Task.Coordinator != "lead" || h.Task.Tags[0] != "a" || *h.Task.Budget.Steps != 3 {
		t.Errorf("%+v", h.Task)
	}
	h = read(`{oaf: {dir: ./a, programs: true, env: TOKEN, max_tokens: 100, max_cost_usd: 0.5}}`)
	if b, err := h.OAF.Budget("x"); err != nil || b.Tokens != 100 || b.Cost != 500_000 || !h.OAF.Programs ||
		h.OAF.Env[0] != "TOKEN" {
		t.Errorf("%+v, %+v, %v", h.OAF, b, err)
	}
}

// Every relative path of the file follows its directory, wherever the process was started; others stay as they are.
func TestPathsFollowTheFile(t *testing.T) {
	dir := t.TempDir()
	const text = `agent: {id: "1", key: "file:key", rpc: "http://a"}
policy: {uri: policy.json}
models:
  table: {m: {provider: openai, model: x, key: "file:secrets/m"}, n: {provider: openai, model: x, key: "env:K"}}
profile: {name: a}
validation: {answerer: treasury}
capabilities:
`
	const capability = "  - {name: c%d, version: 1.0.0, inputSchema: {}, outputSchema: {}, handler: %s, validates: %[2]s}\n"
	file1 := text
	handlers := []string{"{exec: [./work, ./arg], dir: sub}", "{exec: [/bin/work]}",
		"{mcp: {command: [bin/server], tool: t}}",
		"{mcp: {command: [npx, server], tool: t}, dir: /srv}", "{oaf: {dir: ../b}}", "{oaf: {dir: .}}",
		"{http: \"http://a\"}"}
	for i, h := range handlers {
		file1 += fmt.Sprintf(capability, i, h)
	}
	if err := os.WriteFile(filepath.Join(dir, "agent.yaml"), []byte(file1), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(dir)) // a relative name of the file has the same effect
	c, err := config.Load(filepath.Join(filepath.Base(dir), "agent.yaml"),
		env(map[string]string{"AGENT_POLICY_URI": "p.json"}))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{c.Agent.Key, c.Policy.URI, c.Models.Table["m"].Key, c.Models.Table["n"].Key}
	for i := range c.Capabilities {
		own, judge := c.Capabilities[i].Handler, *c.Capabilities[i].Validates
		if !reflect.DeepEqual(own, judge) {
			t.Errorf("%s: validates differs: %+v, %+v", handlers[i], own, judge)
		}
		line := own.Dir + "|" + strings.Join(own.Exec, " ")
		if own.MCP != nil {
			line += strings.Join(own.MCP.Command, " ")
		}
		if own.OAF != nil {
			line += own.OAF.Dir
		}
		got = append(got, line)
	}
	want := []string{"file:" + dir + "/key", "p.json", "file:" + dir + "/secrets/m", "env:K", dir + "/sub|" + dir +
		"/work ./arg",
		dir + "|/bin/work", dir + "|" + dir + "/bin/server", "/srv|npx server", "|" + filepath.Join(dir, "../b"),
		"|" + dir, "|"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// The table of models is part of the file and checked like it.
func TestModels(t *testing.T) {
	t.Parallel()
	const table = "models: {default: m, table: {m: {provider: openai, model: x, key: \"env:K\", input_usd: 0.15}}}\n"
	c, err := config.Parse([]byte(table+file), env(nil))
	if err != nil || c.Models.Table["m"].InputUSD != 150_000 {
		t.Errorf("%+v, %v", c, err)
	}
	_, err = config.Parse([]byte(strings.Replace(table, "env:K", "sk-secret", 1)+file), env(nil))
	if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), "models.table.m.key") ||
		strings.Contains(err.Error(), "sk-secret") {
		t.Error(err)
	}
}

// TestWrongHandlers: errors name the member and what is allowed.
func TestWrongHandlers(t *testing.T) {
	t.Parallel()
	const at = "capabilities.0.handler"
	for text, want := range map[string]string{
		`{}`:                                                               at + ": names no work",
		`{exec: [/bin/cat], http: "http://a/"}`:                            at + ": names exec and http",
		`{exec: [""]}`:                                                     at + ".exec",
		`{exec: [/bin/cat], memory: -1}`:                                   at + ".memory",
		`{exec: [/bin/cat], cpu: 301}`:                                     at + ".cpu",
		`{http: "http://a/", memory: 3}`:                                   at + ": has memory or cpu without exec",
		`{http: "http://a/", env: {A: b}}`:                                 at + ": has dir or env without a program",
		`{http: "ftp://a/"}`:                                               at + ".http",
		`{oaf: {programs: true}}`:                                          at + ".oaf.dir",
		`{oaf: {dir: a, max_tokens: -1}}`:                                  at + ".oaf.max_tokens",
		`{oaf: {dir: a, max_cost_usd: much}}`:                              at + ".oaf.max_cost_usd",
		`{oaf: {dir: a, program: true}}`:                                   "handler.oaf.program: is not known",
		`{mcp: {tool: echo}}`:                                              at + ".mcp: names no server",
		`{mcp: {url: "http://a/", command: [x], tool: echo}}`:              at + ".mcp: names no server, or two",
		`{mcp: {url: "http://a/"}}`:                                        at + ".mcp.tool",
		`{mcp: {command: [x], tool: echo, token_env: T}}`:                  at + ".mcp.token_env",
		`{mcp: {url: "/mcp", tool: echo}}`:                                 at + ".mcp.url",
		`{mcp: {url: "http://a/", toll: echo}}`:                            "handler.mcp.toll: is not known",
		`{task: {token_env: T}}`:                                           at + ".task.url",
		`{task: {url: "http://a/"}}`:                                       at + ".task.token_env",
		`{task: {url: "http://a/", token_env: T, budget: {steps: 1}}}`:     "handler.task.budget.steps: is not known",
		`{task: {url: "http://a/", token_env: T, budget: {maxSteps: -1}}}`: at + ".task.budget",
	} {
		_, err := config.Parse(withHandler(text), env(nil))
		if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		if err != nil && strings.Count(err.Error(), want) != 1 {
			t.Errorf("%s: %v names %s more than once", text, err, want)
		}
	}
}

// TestValidates: a handler that judges results of others needs an account that answers, and the reverse; it gets
// the limits of programs.
func TestValidates(t *testing.T) {
	t.Parallel()
	with := func(validates, more string) (*config.Config, error) {
		text := strings.Replace(file, "handler: {exec: [/bin/cat]}", "handler: {exec: [/bin/cat]}"+validates, 1)
		return config.Parse([]byte(text+more), env(nil))
	}
	const judge = "\n    validates: {exec: [/bin/judge]}"
	c, err := with(judge, "validation: {answerer: v}\n")
	if err != nil || c.Capabilities[0].Validates.Memory != 512 || c.Validation.Daily != 24 {
		t.Fatalf("%+v %v", c, err)
	}
	for want, tt := range map[string][2]string{
		"validation.answerer":                     {judge, ""},
		"validation.answerer: and validates":      {"", "validation: {answerer: v}\n"},
		"capabilities.0.validates: names no work": {"\n    validates: {}", "validation: {answerer: v}\n"},
		"validation.daily: -1 is out of range":    {judge, "validation: {answerer: v, daily: -1}\n"},
	} {
		if _, err := with(tt[0], tt[1]); !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
