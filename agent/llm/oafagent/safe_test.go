package oafagent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"repute"
	"repute/agent/capability"
	"repute/agent/handler"
	"repute/agent/llm"
	"repute/agent/llm/oafagent"
	"repute/internal/modeltest"
	"repute/manifest/oaf"
	"repute/manifest/oaf/problem"
	"repute/resolver"
	"repute/store/agentdb"
)

// echo is a server's configuration over HTTP with one tool that returns the headers and the text that it is called
// with.
func echo(t *testing.T, tool *sdk.Tool) oaf.Server {
	t.Helper()
	srv := sdk.NewServer(&sdk.Implementation{Name: "echo", Version: "1"}, nil)
	sdk.AddTool(srv, tool,
		func(_ context.Context, r *sdk.CallToolRequest, q map[string]any) (*sdk.CallToolResult, any, error) {
			text := fmt.Sprintf("called with %v and %s", q, r.Extra.Header.Get("X-Api-Key"))
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, nil
		})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return srv }, nil))
	t.Cleanup(web.CloseClientConnections)
	return oaf.Server{Name: "echo", Connection: oaf.Connection{Type: oaf.TransportHTTP, URL: web.URL}}
}

// Servers at internal addresses are not reached through the guard of outgoing requests, unless the operator opens them.
func TestGuardedServers(t *testing.T) {
	srv := served(t, oaf.TransportHTTP, "")
	def := &oaf.Agent{Slug: "acme/a", Body: "x", Servers: []oaf.Server{srv},
		MCPServers: []oaf.ServerRef{{Server: "files", Required: true}}}
	for _, open := range [][]string{nil, {strings.TrimPrefix(srv.Connection.URL, "http://")}} {
		s := modeltest.New(modeltest.Turn{Text: "end"})
		_, err := ask(t, s, def, func(o *oafagent.Options) {
			o.Client = resolver.NewGuard(resolver.GuardOptions{AllowHosts: open}).Client(time.Minute)
		})
		if (err == nil) != (open != nil) || err != nil && !errors.Is(err, repute.ErrUnavailable) {
			t.Errorf("open %v: %v", open, err)
		}
	}
}

// Secrets that stand in the files are refused, whatever member they are in, and the error does not repeat them.
func TestLiteralSecrets(t *testing.T) {
	const key = "sk-live-abcdef0123456789"
	long := strings.Repeat("a1B2", 10)
	program := func(change func(*oaf.Connection)) oaf.Connection {
		c := oaf.Connection{Type: oaf.TransportStdio, Command: "sh"}
		change(&c)
		return c
	}
	web := func(url string, headers map[string]string) oaf.Connection {
		return oaf.Connection{Type: oaf.TransportHTTP, URL: url, Headers: headers}
	}
	for name, c := range map[string]struct {
		connection oaf.Connection
		field      string // empty: it is accepted
	}{
		"header by its name": {web("https://a.example", map[string]string{"X-Api-Key": "hunter22"}),
			"connection.headers.X-Api-Key"},
		"header by its value": {web("https://a.example", map[string]string{"X-Tenant": key}),
			"connection.headers.X-Tenant"},
		"header of scheme": {web("https://a.example", map[string]string{"Authorization": "Bearer hunter22"}),
			"connection.headers.Authorization"},
		"header of variable": {web("https://a.example", map[string]string{"Authorization": "Bearer ${TOKEN}"}), ""},
		"plain header":       {web("https://a.example", map[string]string{"X-Client": "repute"}), ""},
		"query":              {web("https://a.example/?api_key=hunter22", nil), "connection.url"},
		"query of variable":  {web("https://a.example/?api_key=${TOKEN}", nil), ""},
		"path":               {web("https://a.example/"+long+"/sse", nil), "connection.url"},
		"user":               {web("https://ann:hunter22@a.example/", nil), "connection.url"},
		"plain url":          {web("https://mcp-of-a-long-name-version-2-of-things.example/sse", nil), ""},
		"whole url":          {web("${URL}", nil), ""},
		"environment":        {program(func(c *oaf.Connection) { c.Env = map[string]string{"DB_PASSWORD": "hunter22"} }), "connection.env.DB_PASSWORD"},
		"environment by form": {program(func(c *oaf.Connection) { c.Env = map[string]string{"X": long} }),
			"connection.env.X"},
		"plain environment": {program(func(c *oaf.Connection) { c.Env = map[string]string{"MAX_TOKENS": "100", "LEVEL": "debug"} }), ""},
		"argument": {program(func(c *oaf.Connection) { c.Args = []string{"--token=hunter22"} }),
			"connection.args.0"},
		"next argument": {program(func(c *oaf.Connection) { c.Args = []string{"--api-key", "hunter22"} }),
			"connection.args.1"},
		"argument by form": {program(func(c *oaf.Connection) { c.Args = []string{"-c", "X=" + key + " run"} }),
			"connection.args.1"},
		"argument of variable": {program(func(c *oaf.Connection) { c.Args = []string{"${TOKEN}"} }),
			"connection.args.0"},
		"digest of an image": {program(func(c *oaf.Connection) { c.Args = []string{"run", "mcp/x@sha256:" + strings.Repeat("0a1b", 16)} }), ""},
		"commit": {program(func(c *oaf.Connection) {
			c.Args = []string{"--from", "git+https://a.example/x@" + strings.Repeat("0a1b", 10), "x"}
		}), ""},
		"option in an option":   {program(func(c *oaf.Connection) { c.Args = []string{"-e", "NODE_OPTIONS=--max-old-space-size=4096"} }), ""},
		"id in a path":          {web("https://a.example/"+strings.Repeat("0a1b", 8)+"/mcp", nil), ""},
		"digits of a query":     {web("https://a.example/?x="+strings.Repeat("0a1b", 8), nil), "connection.url"},
		"digest of odd length":  {web("https://a.example/"+strings.Repeat("0a1b", 9), nil), "connection.url"},
		"digest as an argument": {program(func(c *oaf.Connection) { c.Args = []string{"X=" + strings.Repeat("0a1b", 8)} }), "connection.args.0"},
		"names of several meanings": {program(func(c *oaf.Connection) {
			c.Env = map[string]string{"PARTITION_KEY": "tenant", "SECRETS_MANAGER_REGION": "us-east-1",
				"MAX_TOKENS": "1000000"}
		}), ""},
		"key of a service": {program(func(c *oaf.Connection) { c.Env = map[string]string{"SHOP_KEY": "hunter22"} }),
			"connection.env.SHOP_KEY"},
		"tokens": {program(func(c *oaf.Connection) { c.Env = map[string]string{"TOKENS": "hunter22"} }),
			"connection.env.TOKENS"},
		"secrets": {program(func(c *oaf.Connection) { c.Env = map[string]string{"SECRETS": "hunter22"} }),
			"connection.env.SECRETS"},
		"plain arguments": {program(func(c *oaf.Connection) { c.Args = []string{"-y", "@scope/server-filesystem", "/data"} }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			def := &oaf.Agent{Slug: "acme/a", Body: "x", Servers: []oaf.Server{{Name: "s", Connection: c.connection}},
				MCPServers: []oaf.ServerRef{{Server: "s", Required: true}}}
			set := map[string]string{"TOKEN": "t0p-secret", "URL": "https://b.example", "PATH": os.Getenv("PATH")}
			_, err := prepare(t, modeltest.New(modeltest.Turn{}), def, func(o *oafagent.Options) {
				o.Programs, o.Env, o.Getenv = true, []string{"TOKEN",
					"URL"}, func(name string) string { return set[name] }
			})
			if c.field == "" {
				ok(t, err)
				return
			}
			if !errors.Is(err, repute.ErrInvalid) ||
				!strings.Contains(err.Error(), c.field+":") && !strings.Contains(err.Error(), c.field+" ") {
				t.Fatalf("%v, want %s", err, c.field)
			}
			for _, secret := range []string{"hunter22", key, long, "t0p-secret"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error has the secret: %v", err)
				}
			}
		})
	}
}

// A value of the environment is shown by its name, whatever a server does with it, and in errors about its address.
func TestHiddenValues(t *testing.T) {
	const value = "v4lue/with space"
	srv := echo(t, &sdk.Tool{Name: "say", Description: "knows " + value})
	srv.Connection.Headers = map[string]string{"X-Api-Key": "${KEY}"}
	gone := oaf.Server{Name: "gone", Connection: oaf.Connection{Type: oaf.TransportHTTP,
		URL: "http://127.0.0.1:1/${KEY}"}}
	with := func(o *oafagent.Options) {
		o.Env, o.Getenv = []string{"KEY"}, func(string) string { return value }
	}
	s := modeltest.New(call("echo__say", `{}`), modeltest.Turn{Text: "end"})
	_, err := ask(t, s, &oaf.Agent{Slug: "acme/a", Body: "x", Servers: []oaf.Server{srv}}, with)
	ok(t, err)
	if told := last(s.Seen()[1]); told != "called with map[] and ${KEY}" {
		t.Errorf("told %q", told)
	}
	if tools := string(s.Seen()[0].Body["tools"]); strings.Contains(tools, "v4lue") ||
		!strings.Contains(tools, "knows ${KEY}") {
		t.Errorf("tools %s", tools)
	}
	_, err = ask(t, s, &oaf.Agent{Slug: "acme/a", Body: "x", Servers: []oaf.Server{gone},
		MCPServers: []oaf.ServerRef{{Server: "gone", Required: true}}}, with)
	if !errors.Is(err, repute.ErrUnavailable) || strings.Contains(err.Error(), "v4lue") {
		t.Error(err)
	}
}

// A tool whose schema models cannot take is left out and recorded; the others of its server work.
func TestBadSchemas(t *testing.T) {
	srv := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "1"}, nil)
	run := func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "ran"}}}, nil
	}
	for name, schema := range map[string]string{"good": `{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!x)"}}}`,
		"bare": `{"type":"object"}`, "wrong": `{"type":"object","properties":{"a":{"type":"text"}}}`,
		"odd": `{"type":"object","properties":{"a b":{}}}`, "union": `{"type":"object","oneOf":[{}]}`,
		"away": `{"type":"object","properties":{"a":{"$ref":"https://a.example/schema"}}}`} {
		srv.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(schema)}, run)
	}
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return srv }, nil))
	t.Cleanup(web.CloseClientConnections)
	def := &oaf.Agent{Slug: "acme/a", Body: "x", Servers: []oaf.Server{{Name: "s",
		Connection: oaf.Connection{Type: oaf.TransportHTTP, URL: web.URL}}}}
	s := modeltest.New(call("s__bare", `{}`), modeltest.Turn{Text: "end"})
	a, err := prepare(t, s, def, nil)
	ok(t, err)
	ledger := &kept{lists: map[string]string{}}
	_, err = a.Run(t.Context(), oafagent.Session{ID: "s", Ledger: ledger}, "go")
	ok(t, err)
	if got := s.Seen()[0].Tools; !slices.Equal(got, []string{"s__bare", "s__good"}) || last(s.Seen()[1]) != "ran" {
		t.Errorf("tools %v, told %q", got, last(s.Seen()[1]))
	}
	record := ledger.lists[`{"server":"s"}`]
	for _, tool := range []string{"wrong", "odd", "union", "away"} {
		if !strings.Contains(record, fmt.Sprintf(`{"tool":%q,"why":"inputSchema`, tool)) {
			t.Errorf("%s is not recorded as refused: %s", tool, record)
		}
	}
}

// A list of tools that the journal could not take is taken in part, and the rest is recorded as refused.
func TestLongLists(t *testing.T) {
	srv := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "1"}, nil)
	run := func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{}, nil
	}
	long := strings.Repeat("<", 2000) // each is 7 bytes in the journal
	for n := range 100 {
		srv.AddTool(&sdk.Tool{Name: fmt.Sprintf("t%03d", n), InputSchema: json.RawMessage(fmt.Sprintf(
			`{"type":"object","properties":{"a":{"type":"string","description":%q}}}`, long))}, run)
	}
	srv.AddTool(&sdk.Tool{Name: strings.Repeat("n", 129), InputSchema: json.RawMessage(`{"type":"object"}`)}, run)
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return srv }, nil))
	t.Cleanup(web.CloseClientConnections)
	def := &oaf.Agent{Slug: "acme/a", Body: "x", Servers: []oaf.Server{{Name: "s",
		Connection: oaf.Connection{Type: oaf.TransportHTTP, URL: web.URL}}}}
	s := modeltest.New(modeltest.Turn{Text: "end"})
	a, err := prepare(t, s, def, nil)
	ok(t, err)
	ledger := &kept{lists: map[string]string{}}
	_, err = a.Run(t.Context(), oafagent.Session{ID: "s", Ledger: ledger}, "go")
	ok(t, err)
	var list struct{ Tools, Refused []struct{ Tool, Why string } }
	record := ledger.lists[`{"server":"s"}`]
	ok(t, json.Unmarshal([]byte(record), &list))
	stored, err := json.Marshal(record)
	ok(t, err)
	if len(stored) > 600<<10 || len(list.Tools) == 0 || len(list.Tools)+len(list.Refused) != 101 {
		t.Errorf("%d bytes, %d tools, %d refused", len(stored), len(list.Tools), len(list.Refused))
	}
	for _, r := range list.Refused {
		if !strings.Contains(r.Why, "bytes") {
			t.Errorf("%s is refused: %s", r.Tool, r.Why)
		}
	}
}

// What config.tools and tools allow is offered, and nothing else: by the names of this runtime, of servers, and of
// Claude Code.
func TestAllowedTools(t *testing.T) {
	db := memory(t)
	for name, c := range map[string]struct {
		tools   []string // of the frontmatter
		config  oaf.Config
		offered []string
	}{
		"no lists": {nil, oaf.Config{},
			[]string{"files__delete_file", "files__read_file", "files__write_file", "memory_edit", "memory_search",
				"skill", "skill_file", "skill_script"}},
		"nothing": {nil, oaf.Config{Allowed: []string{}}, nil},
		"a server": {nil, oaf.Config{Allowed: []string{"files"}},
			[]string{"files__delete_file", "files__read_file", "files__write_file"}},
		"tools": {nil, oaf.Config{Allowed: []string{"mcp__files__read_file", "Skill", "memory_*"}},
			[]string{"files__read_file", "memory_edit", "memory_search", "skill"}},
		"denied as well": {nil, oaf.Config{Allowed: []string{"files"}, Denied: []string{"mcp__files__delete_file"}},
			[]string{"files__read_file", "files__write_file"}},
		"no Bash": {nil, oaf.Config{Denied: []string{"Bash", "files", "memory*"}},
			[]string{"skill", "skill_file"}},
		"a part of Bash": {nil, oaf.Config{Denied: []string{"Bash(rm:*)", "files", "memory*"}},
			[]string{"skill", "skill_file"}},
		"part is not all":  {nil, oaf.Config{Allowed: []string{"Bash(git:*)"}}, nil},
		"Bash among tools": {[]string{"Read", "Bash"}, oaf.Config{Allowed: []string{"Bash"}}, []string{"skill_script"}},
		"no Bash in tools": {[]string{"Read"}, oaf.Config{Allowed: []string{"Bash", "Read"}}, []string{"skill_file"}},
	} {
		t.Run(name, func(t *testing.T) {
			def := withSkill()
			def.Servers = []oaf.Server{served(t, oaf.TransportHTTP, "")}
			def.Memory = &oaf.Memory{Type: oaf.MemoryEditable, Blocks: []oaf.MemoryBlock{{Label: "user"}}}
			def.Tools, def.Config = c.tools, c.config
			s := modeltest.New(modeltest.Turn{Text: "end"})
			_, err := ask(t, s, def, func(o *oafagent.Options) { o.Programs, o.DB = true, db })
			ok(t, err)
			got := slices.Clone(s.Seen()[0].Tools)
			slices.Sort(got)
			if !slices.Equal(got, c.offered) {
				t.Errorf("tools %v, want %v", got, c.offered)
			}
		})
	}
}

// An edit of the memory is confirmed like every other action.
func TestConfirmedMemory(t *testing.T) {
	def := &oaf.Agent{Slug: "acme/a", Body: "x", Config: oaf.Config{RequireConfirmation: true},
		Memory: &oaf.Memory{Type: oaf.MemoryEditable, Blocks: []oaf.MemoryBlock{{Label: "user"}}}}
	s, db := modeltest.New(call("memory_edit", `{"label":"user","text":"Ann"}`), modeltest.Turn{Text: "end"}), memory(t)
	_, err := ask(t, s, def, func(o *oafagent.Options) { o.DB = db })
	ok(t, err)
	stored, err := agentdb.Memory(t.Context(), db, def.ID(), "s")
	ok(t, err)
	if len(stored) != 0 || !strings.Contains(last(s.Seen()[1]), "nobody can be asked") {
		t.Errorf("memory %v, told %q", stored, last(s.Seen()[1]))
	}
}

// The time of a conversation includes what servers take before the model is asked.
func TestWallOfServers(t *testing.T) {
	self, err := os.Executable()
	ok(t, err)
	def := &oaf.Agent{Slug: "acme/a", Body: "x", MCPServers: []oaf.ServerRef{{Server: "bad", Required: true}},
		Servers: []oaf.Server{{Name: "bad", Connection: oaf.Connection{Type: oaf.TransportStdio, Command: self,
			Env: map[string]string{"BAD_SERVER": "silent"}}}}}
	s := modeltest.New(modeltest.Turn{Text: "end"})
	_, err = ask(t, s, def,
		func(o *oafagent.Options) { o.Programs, o.Bounds = true, llm.Bounds{Wall: 300 * time.Millisecond} })
	if !errors.Is(err, repute.ErrLimited) || len(s.Seen()) != 0 {
		t.Errorf("%v after %d requests", err, len(s.Seen()))
	}
}

// Agents that are made of one directory share the rate limit of its server, which counts calls and not the list of
// tools.
func TestSharedRate(t *testing.T) {
	srv := served(t, oaf.TransportHTTP, "")
	srv.RateLimit = oaf.RateLimit{PerMinute: 0.001, Burst: 1}
	srv.Connection.Timeout = 0.5
	def, rates := &oaf.Agent{Slug: "acme/a", Body: "x", Servers: []oaf.Server{srv}}, &oafagent.Rates{}
	told := func() string {
		s := modeltest.New(call("files__read_file", `{"path":"/a"}`), modeltest.Turn{Text: "end"})
		_, err := ask(t, s, def, func(o *oafagent.Options) { o.Rates = rates })
		ok(t, err)
		return last(s.Seen()[1])
	}
	if got := told(); got != "read_file of /a" {
		t.Errorf("the first agent is told %q", got)
	}
	if got := told(); !strings.Contains(got, "the rate limit of the server allows no call now") {
		t.Errorf("the second agent is told %q", got)
	}
}

// Unknown and malformed members of the section are refused, with their names.
func TestSettings(t *testing.T) {
	for section, field := range map[string]string{`{"maxTurn": 3}`: "harnessConfig.repute/maxTurn",
		`{"maxTurns": "3"}`: "harnessConfig.repute/maxTurns",
		`{"maxTurns": -1}`:  "harnessConfig.repute", `{"chain": 1}`: "harnessConfig.repute.agentId",
		`{"agentId": "x"}`: "harnessConfig.repute.agentId",
		`{"agentId": 7, "registry": "0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"}`: "harnessConfig.repute.chain",
		`true`: "harnessConfig.repute",
		`{"agentId": 7, "chain": 1, "maxCostUsd": 0.1, "readOnlyTools": ["a"], "idempotentTools": []}`: ""} {
		_, err := oafagent.SettingsOf(&oaf.Agent{Harness: map[string]json.RawMessage{"repute": json.RawMessage(section)}})
		if field == "" {
			ok(t, err)
		} else if !errors.Is(err, repute.ErrInvalid) || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("%s: %v, want %s", section, err, field)
		}
	}
}

// The check of agents knows every member of the section.
func TestKnownSettings(t *testing.T) {
	section := map[string]any{}
	for f := range reflect.TypeFor[oafagent.Settings]().Fields() {
		section[f.Tag.Get("json")] = 1
	}
	raw, err := json.Marshal(section)
	ok(t, err)
	text := strings.Replace(reviewer, `{agentId: 7, chain: 1, maxCostUsd: 0.25}`, string(raw), 1)
	a, _ := oaf.Load(os.DirFS(write(t, map[string]string{"AGENTS.md": text})), ".", problem.Lenient)
	if a == nil || len(section) < 8 || len(a.Unknown) != 0 {
		t.Errorf("%s: not known: %v", raw, a.Unknown)
	}
}

// An answer that was cut is no answer of a capability.
func TestCutAnswer(t *testing.T) {
	a, err := prepare(t, modeltest.New(modeltest.Turn{Text: `{"grade":1`, Length: true}),
		&oaf.Agent{Slug: "a/b", Body: "x"}, nil)
	ok(t, err)
	got, err := (&oafagent.Capability{Agent: a}).Run(t.Context(), capability.Call{Input: json.RawMessage(`{}`)})
	if !errors.Is(err, handler.ErrFailed) || !strings.Contains(err.Error(), "not complete") {
		t.Errorf("%s, %v", got, err)
	}
}

// An agent that is run has the sub-agents that the check of agents finds, also in its vendor's directory.
func TestSubAgentsOfRun(t *testing.T) {
	text := func(key, vendor, agents string) string {
		return strings.NewReplacer(`agentKey: "reviewer"`, fmt.Sprintf("agentKey: %q", key), `vendorKey: "acme"`,
			fmt.Sprintf("vendorKey: %q", vendor),
			"acme/reviewer", vendor+"/"+key, "  - {vendor: acme, agent: helper, version: \"1.0.0\"}",
			agents).Replace(reviewer)
	}
	dir := write(t, map[string]string{"acme/reviewer/AGENTS.md": text("reviewer", "acme",
		"  - {vendor: other, agent: far, version: \"1.0.0\"}"),
		"other/far/AGENTS.md": text("far", "other", "  []")})
	a, err := oafagent.Read(filepath.Join(dir, "acme", "reviewer"))
	ok(t, err)
	if graph := a.Graph(); len(graph) != 2 || graph[1].ID() != "other/far" {
		t.Errorf("%d agents", len(graph))
	}
}
