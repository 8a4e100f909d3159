package oaf

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"repute"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/tree"
)

// configured reads mcp-configs/s/config.yaml, with the codes of its problems.
func configured(t *testing.T, text string) (Server, []string) {
	t.Helper()
	a, problems := Load(dir("AGENTS.md", manifestOf(`mcpServers: [{server: s, configDir: "mcp-configs/s"}]`),
		"mcp-configs/s/config.yaml",
		text, "mcp-configs/s/ActiveMCP.json", `{"excludedTools":["x"]}`), ".", problem.Lenient)
	if a == nil || len(a.Servers) != 1 {
		t.Fatalf("%q: %v", text, problems)
	}
	return a.Servers[0], codes(problems)
}

// Connections are understood in the words of all published files; what cannot be reached is said.
func TestConnections(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ kind, codes string }{
		"connection: {type: http, url: \"http://a\"}":            {"http", ""},
		"connection: {type: streamable-http, url: \"http://a\"}": {"http", ""},
		"connection: {type: streamable_http, url: \"http://a\"}": {"http", ""},
		"connection: {type: StreamableHTTP, url: \"http://a\"}":  {"http", ""},
		"connection: {type: SSE, url: \"http://a\"}":             {"sse", ""},
		"connection: {transport: stdio, command: a}":             {"stdio", ""},
		"connection: {command: a}":                               {"stdio", ""},
		"connection: {url: \"http://a/sse\"}":                    {"sse", ""},
		"connection: {url: \"http://a/mcp\"}":                    {"http", ""},
		"connection: {type: carrier-pigeon, url: x}":             {"carrier-pigeon", "WO754"},
		"connection: {type: http}":                               {"http", "WO801"},
		"connection: {type: sse, command: a}":                    {"sse", "WO801"},
		"connection: {type: stdio, url: \"http://a\"}":           {"stdio", "WO801"},
		"connection: {}":                          {"", "WO800"},
		"connection: stdio":                       {"", "WO729 WO800"},
		"server: {name: s, command: a}":           {"stdio", "IO804"},
		"connection: {command: a, timeout: 0}":    {"stdio", "WO755"},
		"connection: {command: a, timeout: .inf}": {"stdio", "WO729"},
		"connection: {command: a, timeout: 2.5}":  {"stdio", ""},
		"connection: {command: a, args: {b: c}}":  {"stdio", "WO729"},
		"connection: {command: a, env: [b]}":      {"stdio", "WO729"},
	} {
		s, got := configured(t, text)
		if s.Connection.Type != want.kind || strings.Join(got, " ") != want.codes {
			t.Errorf("%s: %q, codes %v, want %+v", text, s.Connection.Type, got, want)
		}
	}
}

// A secret is a reference to the environment, in every form of the file, or is reported.
func TestAuthentication(t *testing.T) {
	t.Parallel()
	const http = "connection: {type: http, url: \"http://a\"}\n"
	for text, want := range map[string]struct {
		auth     Auth
		variable string
		codes    string
	}{
		"auth: {type: bearer, token: \"${T}\"}": {Auth{Type: "bearer", Token: "${T}"}, "T", ""},
		"auth: {type: api-key, token: \"${T}\", header: X-K}": {Auth{Type: "api-key", Token: "${T}",
			Header: "X-K"}, "T", ""},
		"authentication: {type: api_key, env_var: T, header: X-K}": {Auth{Type: "api-key", Token: "${T}",
			Header: "X-K"}, "T", "IO804"},
		"auth: {type: bearer, token: secret}": {Auth{Type: "bearer", Token: "secret"}, "",
			"WO802"},
		"auth: {type: bearer, token: \"Bearer ${T}\"}": {Auth{Type: "bearer", Token: "Bearer ${T}"}, "",
			"WO802"},
		"auth: {type: bearer, token: \"${T}${U}\"}": {Auth{Type: "bearer", Token: "${T}${U}"}, "",
			"WO802"},
		"auth: {type: bearer, token: \"${1}\"}": {Auth{Type: "bearer", Token: "${1}"}, "", "WO802"},
		"auth: {type: basic, token: \"${T}\"}":  {Auth{Type: "basic", Token: "${T}"}, "T", "WO754"},
		"auth: ${T}":                            {Auth{}, "", "WO729"},
	} {
		s, got := configured(t, http+text)
		name, _ := s.Auth.TokenVar()
		if s.Auth != want.auth || name != want.variable || strings.Join(got, " ") != want.codes {
			t.Errorf("%s: %+v, variable %q, codes %v, want %+v", text, s.Auth, name, got, want)
		}
	}
}

// Sizes and rates of all published files are bytes and calls a minute.
func TestUnits(t *testing.T) {
	t.Parallel()
	const head = "connection: {command: a}\n"
	for size, want := range map[string]int64{"5": 5, "5B": 5, "5k": 5_000, "5KB": 5_000, "5KiB": 5 << 10,
		"10MB": 10_000_000, "10 mb": 10_000_000,
		"2MiB": 2 << 20, "1GB": 1_000_000_000, "1GiB": 1 << 30, "\"\"": 0, "10TB": -1, "-5": -1, "1.5MB": -1,
		"9999999999": -1, "MB": -1} {
		s, got := configured(t, head+"permissions: {max_file_size: "+size+"}")
		if s.Permissions.MaxFileSize != max(want, 0) || slices.Contains(got, problem.CodeRestriction) != (want < 0) {
			t.Errorf("%s is %d bytes, codes %v, want %d", size, s.Permissions.MaxFileSize, got, want)
		}
	}
	for rate, want := range map[string]RateLimit{
		"rate_limit: {requests_per_minute: 60, burst: 5}":          {60, 5},
		"rate_limiting: {requests_per_second: 2, burst_size: 3}":   {120, 3},
		"rate_limit: {requests_per_hour: 30}":                      {0.5, 0},
		"rate_limit: {requests_per_minute: 0}":                     {},
		"rate_limit: {requests_per_minute: -1}":                    {},
		"rate_limit: {requests_per_minute: x}":                     {},
		"rate_limit: {burst: -1}":                                  {},
		"rate_limit: 60":                                           {},
		"rate_limit: {requests_per_minute: 1e400}":                 {},
		"rate_limit: {requests_per_minute: 10, burst: 3000000000}": {10, 0},
	} {
		s, got := configured(t, head+rate)
		if bad := want == (RateLimit{}) || strings.Contains(rate, "3000000000"); s.RateLimit != want ||
			bad != (slices.Contains(got, problem.CodeRange) || slices.Contains(got, problem.CodeType)) {
			t.Errorf("%s: %+v, codes %v", rate, s.RateLimit, got)
		}
	}
}

// A member that restricts an agent and has another type is an error in both profiles, at its place: the agent would be
// allowed more than its file says.
func TestRestrictionsOfAnotherType(t *testing.T) {
	t.Parallel()
	const http = "connection: {type: http, url: \"http://a\"}\n"
	selection := func(text string) judged {
		return next("mcp-configs/s/config.yaml", http, "mcp-configs/s/ActiveMCP.json", text)
	}
	for at, from := range map[string][]judged{
		"/config/tools/denied": {having("config: {tools: {denied: [{name: Bash}]}}"),
			having("config: {tools: {denied: {Bash: true}}}"),
			having("config: {tools: {denied: true}}"), having("config: {tools: {denied: [[Bash]]}}")},
		"/config/tools/allowed": {having("config: {tools: {allowed: [{name: Bash}]}}"),
			having("config: {tools: {allowed: {Bash: false}}}")},
		"/config/tools": {having("config: {tools: [Bash]}")},
		"/config":       {having("config: [{tools: {denied: [Bash]}}]"), having("config: strict")},
		"/config/require_confirmation": {having("config: {require_confirmation: always}"),
			having("config: {require_confirmation: [true]}")},
		"/tools": {having("tools: {Bash: false}"), having("tools: [{name: Read}]"),
			having("tools: false")},
		"/permissions": {server(http + "permissions: [read]"), server(http + "permissions: none")},
		"/permissions/allow_paths": {server(http + "permissions: {allow_paths: {a: b}}"),
			server(http + "permissions: {allow_paths: true}")},
		"/permissions/deny_paths": {server(http + "permissions: {deny_paths: [{path: /etc}]}")},
		"/permissions/write":      {server(http + "permissions: {write: {a: b}}")},
		"/permissions/read_only":  {server(http + "permissions: {read_only: always}")},
		"/permissions/max_file_size": {server(http + "permissions: {max_file_size: small}"),
			server(http + "permissions: {max_file_size: [1]}")},
		"/excludedTools": {selection(`{"excludedTools": {"delete": true}}`),
			selection(`{"excludedTools": [["delete"]]}`),
			selection(`{"excludedTools": [{"tool": "delete"}]}`), selection(`{"excludedTools": [true, null]}`)},
		"/disabled_tools":          {selection(`{"disabled_tools": {"delete": true}}`)},
		"/enabled_tools":           {selection(`{"enabled_tools": {"delete": false}}`)},
		"/selectedTools":           {selection(`{"selectedTools": {"delete": false}, "contextStrategy": "all"}`)},
		"/selectedTools/0/enabled": {selection(`{"selectedTools": [{"name": "delete", "enabled": "nein"}]}`)},
		"/selectedTools/0/name":    {selection(`{"selectedTools": [{"name": ["delete"], "enabled": false}], "contextStrategy": "all"}`)},
		"/contextStrategy":         {selection(`{"contextStrategy": ["subset"]}`)},
	} {
		for i, judge := range from {
			for _, profile := range []problem.Profile{problem.Lenient, problem.Strict} {
				problems := judge(t, profile)
				if !slices.ContainsFunc(problems, func(p problem.Problem) bool {
					return p.Code == problem.CodeRestriction && p.Severity == repute.SeverityError && p.Path == at &&
						p.Line > 0 && p.File != ""
				}) {
					t.Errorf("%s, %d, profile %d: %v", at, i, profile, problems)
				}
			}
		}
	}
}

// A restriction whose value cannot be told restricts, and an excluded tool may be an object with a name.
func TestRestrictionsFailClosed(t *testing.T) {
	t.Parallel()
	a, _ := ParseManifest([]byte(manifestOf("config: {require_confirmation: always}")), problem.Lenient)
	if !a.Config.RequireConfirmation {
		t.Error("require_confirmation: always asks for nothing")
	}
	sel, _ := parseSelection([]byte(`{"selectedTools": [{"name": "delete", "enabled": "nein"}], "contextStrategy": "all"}`), problem.Lenient)
	if sel.Allows("delete") {
		t.Error("enabled: nein enables the tool")
	}
	sel, problems := parseSelection([]byte(`{"excludedTools": [{"name": "delete"}, "drop_*"], "disabled_tools": "wipe"}`), problem.Strict)
	if _, bad := repute.FirstError(problems); bad || sel.Allows("delete") || sel.Allows("drop_all") ||
		sel.Allows("wipe") || !sel.Allows("read") {
		t.Errorf("%+v, %v", sel, problems)
	}
	s, got := configured(t, "connection: {command: a}\npermissions: {write: /tmp, read: true, read_only: \"yes\"}")
	if len(got) > 0 || !slices.Equal(s.Permissions.WritePaths, []string{"/tmp"}) || !s.Permissions.ReadOnly ||
		s.Permissions.Extra["read"] == nil {
		t.Errorf("%+v, codes %v", s.Permissions, got)
	}
}

// Versions that a reference wants are compared as ranges; what is no version has a problem of its own and excludes
// nothing.
func TestVersionsOfReferences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want, have string
		ok         bool
	}{
		{"1.0.0", "1.0.0", true}, {"1.0.0", "1.0.1", false}, {">=1.0.0", "1.5.0", true}, {">=1.0.0", "0.9.0", false},
		{"^1.2", "1.9.9", true}, {"^1.2", "2.0.0", false}, {"~1.2.3", "1.2.9", true}, {"~1.2.3", "1.3.0", false},
		{"1.x", "1.7.0", true},
		{">=1.0.0 <2.0.0", "2.0.0", false}, {"", "1.0.0", true}, {"1.0.0", "", true}, {"latest", "1.0.0", true},
		{"1.0.0", "one", true},
		{">=1.0.0", "2.0.0-rc.1", false}, {strings.Repeat("1", 200), "1.0.0", true},
	} {
		if got := satisfies(c.want, c.have); got != c.ok {
			t.Errorf("%s satisfies %s: %v", c.have, c.want, got)
		}
		agent := manifestOf("agents: [{agent: b, version: \"" + c.want + "\"}]")
		sub := manifestOf("agentKey: b", "slug: acme/b", "version: \""+c.have+"\"")
		_, problems := Load(dir("a/AGENTS.md", agent, "b/AGENTS.md", sub), "a", problem.Lenient)
		if slices.Contains(codes(problems), problem.CodeConflict) == c.ok {
			t.Errorf("%s and %s: %v", c.want, c.have, problems)
		}
	}
}

// The license file has the text of short licenses, a reference for others, and nothing that others could read as one.
func TestLicenseTexts(t *testing.T) {
	t.Parallel()
	for license, want := range map[string]string{
		"MIT":  "Permission is hereby granted, free of charge",
		"ISC":  "copyright notice and this permission notice appear",
		"0BSD": "BSD Zero Clause License", "Apache-2.0": "https://spdx.org/licenses/Apache-2.0.html",
		"GPL-2.0+": "licenses/GPL-2.0.html",
		"":         "All rights reserved", "MIT OR Apache-2.0": "licensed under: MIT OR Apache-2.0",
		"Mine, all mine": "licensed under: Mine, all mine",
		"../../x":        "licensed under: ../../x",
	} {
		a := &Agent{VendorKey: "acme", AgentKey: "a", License: license}
		if got := a.licenseText(); !strings.Contains(got, want) || !strings.Contains(got, "the authors of acme/a") {
			t.Errorf("%q: %.80q", license, got)
		}
		if a.Author = "Ann\nand others"; !strings.Contains(a.licenseText(), "Copyright (c) Ann and others\n") {
			t.Errorf("%q: author over two lines", license)
		}
	}
	if isLicense(strings.Repeat("(", 150) + "MIT" + strings.Repeat(")", 150)) {
		t.Error("an expression that is nested for ever")
	}
}

// A text of the manifest cannot become a row or a heading of README.md.
func TestReadmeIsOneTable(t *testing.T) {
	t.Parallel()
	a, err := New(TemplateFull, "acme", "helper")
	if err != nil {
		t.Fatal(err)
	}
	a.Author, a.Name = "a | b\n| c | d |", "x\n## y"
	text := a.readme()
	rows, headings := 0, 0
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "| ") {
			rows++
			if strings.Count(strings.ReplaceAll(line, "\\|", ""), "|") != 3 {
				t.Errorf("row %q", line)
			}
		}
		if strings.HasPrefix(line, "## ") && line != "## Skills" && line != "## MCP servers" &&
			line != "## Sub-agents" {
			headings++
		}
	}
	if rows < 5 || headings > 0 {
		t.Errorf("%d rows, %d foreign headings:\n%s", rows, headings, text)
	}
}

// Names that make no directory, unknown templates and agents without a key are refused before anything is written.
func TestWrongMakesAreRefused(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", "A", "a b", "a--b", "-a", "../a", "a/b", strings.Repeat("a", 101), "ä"} {
		if _, err := New(TemplateMinimal, "acme", key); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("key %q: %v", key, err)
		}
		if _, err := New(TemplateMinimal, key, "helper"); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("vendor %q: %v", key, err)
		}
		if _, err := Pack([]*Agent{{AgentKey: key}}, nil); err == nil {
			t.Errorf("key %q was packed", key)
		}
	}
	if _, err := New("huge", "acme", "helper"); !errors.Is(err, repute.ErrInvalid) ||
		!strings.Contains(err.Error(), `"huge" is unknown (one of minimal, sub-agent, full)`) {
		t.Errorf("template: %v", err)
	}
	a, err := New(TemplateMinimal, "acme", "helper")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Pack([]*Agent{a}, map[string][]tree.File{"helper": {{Path: "../x"}}}); err == nil {
		t.Error("an unsafe path was packed")
	}
	for text, part := range map[string]string{
		"---\nname: x\n---\n":            "no version",
		"---\n\"version\": 1.0.0\n---\n": "no version on a line",
		"---\nversion: &v 1.0.0\n---\n":  "",
	} {
		b := &Agent{Version: "1.0.0"}
		files, _, err := NextVersion(b, []byte(text), "1.1.0")
		if part != "" && (err == nil || !strings.Contains(err.Error(), part)) {
			t.Errorf("%q: %v, %v", text, files, err)
		}
	}
	if _, _, err := NextVersion(&Agent{Version: "one"}, nil, "1.1.0"); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("an agent without a version: %v", err)
	}
}

// An archive's agents are found in whatever directories they are, up to a number, and none within another.
func TestAgentsOfAnArchive(t *testing.T) {
	t.Parallel()
	named := func(key string) string { return manifestOf("agentKey: "+key, "slug: acme/"+key) }
	entries := []entry{{name: "PACKAGE.yaml", text: "format: oaf-package\n"}, {name: "a/AGENTS.md", text: named("a")},
		{name: "a/agents/b/AGENTS.md", text: named("b")}, {name: "deep/er/c/AGENTS.md", text: named("c")}}
	pack, problems := LoadZip(archive(t, entries...), problem.Lenient)
	var ids []string
	for _, a := range pack.Agents {
		ids = append(ids, a.ID()+" in "+a.Dir)
	}
	if !slices.Equal(ids, []string{"acme/a in a", "acme/c in deep/er/c"}) || len(codes(problems)) > 0 {
		t.Errorf("agents %q, %v", ids, problems)
	}
	many := []entry{{name: "PACKAGE.yaml", text: "format: oaf-package\n"}}
	for i := range maxAgents + 10 {
		key := fmt.Sprint("a", i)
		many = append(many, entry{name: key + "/AGENTS.md", text: named(key)})
	}
	if pack, _ := LoadZip(archive(t, many...), problem.Lenient); len(pack.Agents) != maxAgents {
		t.Errorf("%d agents are read", len(pack.Agents))
	}
	for _, text := range []string{"- a\n", "a: &a [*a]\n", "agents: {a: b}\n", "agents: [{path: /etc}]\n",
		"agents: [{path: ../../x}]\n", "\x00",
		strings.Repeat("a", 65<<10)} {
		pack, problems := LoadZip(archive(t, entry{name: "PACKAGE.yaml", text: text}, entries[1]), problem.Lenient)
		if len(problems) == 0 || len(pack.Agents) != 1 {
			t.Errorf("%.40q: %d agents, %v", text, len(pack.Agents), problems)
		}
	}
}

// The agent with the most sub-agents that is read: a tree of them is bounded like a chain.
func TestWideAgentsAreBounded(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{}
	var refs []string
	for i := range 2 * maxAgents {
		key := fmt.Sprint("b", i)
		refs = append(refs, "{agent: "+key+"}")
		files[key+"/AGENTS.md"] = &fstest.MapFile{Data: []byte(manifestOf("agentKey: "+key, "slug: acme/"+key))}
	}
	files["a/AGENTS.md"] = &fstest.MapFile{Data: []byte(manifestOf("agents: [" + strings.Join(refs, ", ") + "]"))}
	a, problems := Load(files, "a", problem.Lenient)
	if n := len(a.Graph()); n > maxAgents || !slices.Contains(codes(problems), problem.CodeTooDeep) {
		t.Errorf("%d agents, %v", n, codes(problems))
	}
}

// Names of orchestration mean an agent by its key, its id or its role, the first two before the last.
func TestMembersOfOrchestration(t *testing.T) {
	t.Parallel()
	a := &Agent{VendorKey: "acme", AgentKey: "a",
		Agents: []AgentRef{{Vendor: "x", Agent: "one", Role: "two"}, {Vendor: "x", Agent: "two"}}}
	for name, want := range map[string]string{"one": "x/one", "x/one": "x/one", "two": "x/two", "three": ""} {
		got := ""
		if ref := a.SubAgent(name); ref != nil {
			got = ref.ID()
		}
		if got != want || a.hasMember(name) != (want != "") {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"main", "a", "acme/a"} {
		if !a.hasMember(name) {
			t.Errorf("%s is not the agent itself", name)
		}
	}
}

// Denied tools are denied by their names, in any case and with any arguments, and no other ones.
func TestDenies(t *testing.T) {
	t.Parallel()
	a := &Agent{Config: Config{Denied: []string{"Bash", "delete_*", "Edit(src/**)"}}}
	for tool, want := range map[string]bool{"bash": true, "BASH": true, "Bash(git:*)": true, "Bashful": false,
		"delete_all": true, "delete": false,
		"Edit(src/**)": true, "Edit": false, "Edit(docs/**)": false, "": false} {
		if a.Denies(tool) != want {
			t.Errorf("%q is denied: %v", tool, !want)
		}
	}
}

// A skill is looked for in the directory only where its reference says so, in both dialects.
func TestLocalSkillReferences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		local bool
		codes string
	}{
		"{name: x, source: local}":                  {true, "EO760"},
		"{vendor: local, skill: x, version: 1.0.0}": {true, "EO760"},
		"{name: x}":                   {true, "EO760"},
		"x":                           {true, "EO760"},
		"{vendor: acme, skill: x}":    {false, ""},
		"{name: x, source: registry}": {false, ""},
		"{name: x, source: \"https://a.example/.well-known/skills/index.json\"}": {false, ""},
	} {
		a, problems := Load(dir("AGENTS.md", manifestOf("skills: ["+text+"]")), ".", problem.Lenient)
		if got := strings.Join(codes(problems), " "); a.Skills[0].IsLocal() != want.local || a.Skills[0].Name != "x" ||
			got != want.codes {
			t.Errorf("%s: %+v, codes %q, want %+v", text, a.Skills[0], got, want)
		}
	}
}
