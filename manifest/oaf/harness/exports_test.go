package harness

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"repute"
	"repute/manifest/oaf"
	"repute/manifest/oaf/frontmatter"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/tree"
)

// aTeam draws an agent with local sub-agents, of which two may be one.
func aTeam(t *rapid.T) *oaf.Agent {
	main := anAgent(t)
	main.Agents = nil
	for i := range rapid.IntRange(0, 3).Draw(t, "locals") {
		sub := anAgent(t)
		sub.Dir = fmt.Sprint("sub", i)
		sub.Agents = nil
		if i > 0 && rapid.Bool().Draw(t, "shared") {
			sub = main.Agents[0].Local
		}
		main.Agents = append(main.Agents, oaf.AgentRef{Vendor: sub.VendorKey, Agent: sub.AgentKey, Local: sub})
	}
	return main
}

// Letta takes a file only if ids are a prefix and a number, no id is there twice, and every id that is named exists.
func TestLettaIDsAreUniqueAndExist(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^(agent|block|group|mcp_server)-\d+$`)
	rapid.Check(t, func(t *rapid.T) {
		a := aTeam(t)
		out, err := Export(a, Letta, Options{})
		if err != nil || len(out.Files) != 1 {
			t.Fatalf("%d files, %v", len(out.Files), err)
		}
		var file agentFile
		if err := json.Unmarshal(out.Files[0].Data, &file); err != nil {
			t.Fatal(err)
		}
		ids := map[string]bool{}
		add := func(id string) {
			if !form.MatchString(id) || ids[id] {
				t.Fatalf("id %q is of another form, or there twice", id)
			}
			ids[id] = true
		}
		for _, x := range file.Agents {
			add(x.ID)
		}
		for _, x := range file.Blocks {
			add(x.ID)
		}
		for _, x := range file.Groups {
			add(x.ID)
		}
		for _, x := range file.MCPServers {
			add(x.ID)
		}
		var named []string
		names := map[string]bool{}
		for _, x := range file.Agents {
			named = slices.Concat(named, x.BlockIDs, x.GroupIDs)
			if names[x.Name] {
				t.Fatalf("two agents are called %s", x.Name)
			}
			names[x.Name] = true
		}
		for _, x := range file.Groups {
			named = append(append(named, x.Manager.AgentID), x.AgentIDs...)
		}
		for _, id := range named {
			if !ids[id] {
				t.Fatalf("%s does not exist", id)
			}
		}
		if len(file.Agents) != len(a.Graph()) {
			t.Fatalf("%d agents of %d", len(file.Agents), len(a.Graph()))
		}
		checkLists(t, out.Files[0].Data)
	})
}

// checkLists fails where a list of an agent file is null: Letta demands all of them.
func checkLists(t *rapid.T, data []byte) {
	var file map[string]json.RawMessage
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"agents", "groups", "blocks", "files", "sources", "tools", "mcp_servers", "skills"} {
		if !strings.HasPrefix(string(file[name]), "[") {
			t.Fatalf("%s is %.40s", name, file[name])
		}
	}
}

// Every file of an export has a path of its own that stays in the project, also where agents and skills share names.
func TestExportsOfTeamsHaveDistinctFiles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := aTeam(t)
		for _, target := range targets() {
			for _, layout := range []Layout{LayoutLoaded, LayoutText} {
				out, err := Export(a, target, Options{Layout: layout})
				if err != nil {
					t.Fatal(err)
				}
				seen := map[string]bool{}
				for _, f := range out.Files {
					if !tree.IsSafe(f.Path) || seen[f.Path] {
						t.Fatalf("%s %s: %q is unsafe, or there twice", target, layout, f.Path)
					}
					seen[f.Path] = true
				}
				for _, l := range out.Notes {
					if l.Agent == "" || l.Field == "" || l.Reason == "" || strings.Contains(l.Reason, "%!") {
						t.Fatalf("%s: %+v", target, l)
					}
				}
			}
		}
	})
}

// recipeOf is a recipe as YAML readers see it.
type recipeOf struct {
	Title, Description, Instructions string
	Extensions                       []struct {
		Type, Name, Cmd, URI string
		Args                 []string
		Envs, Headers        map[string]string
		EnvKeys              []string `yaml:"env_keys"`
		Timeout              float64
		Tools                []string `yaml:"available_tools"`
	}
	Settings struct {
		Provider    string `yaml:"goose_provider"`
		Model       string `yaml:"goose_model"`
		Temperature *float64
	}
	SubRecipes []struct{ Name, Path string } `yaml:"sub_recipes"`
}

// recipe returns the recipe of an agent that has one server.
func recipe(t *testing.T, s oaf.Server, change func(*oaf.Agent)) (r recipeOf, lost []string) {
	t.Helper()
	s.Name, s.Dir = "srv", "mcp-configs/srv"
	a := &oaf.Agent{VendorKey: "acme", AgentKey: "a", Slug: "acme/a", Name: "A", Description: "d", Body: "x",
		Tools: []string{}, Servers: []oaf.Server{s}}
	if change != nil {
		change(a)
	}
	out := exported(t, a, Goose, Options{})
	if err := yaml.Unmarshal([]byte(find(t, out, "recipes/acme-a.yaml")), &r); err != nil {
		t.Fatal(err)
	}
	for _, l := range out.Notes {
		lost = append(lost, l.Field)
	}
	return r, lost
}

// Servers become extensions of Goose's own kinds: it has no sse, calls a URL uri, and takes variables by their names.
func TestGooseExtensions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server oaf.Server
		want   string
		lost   string // a field of the report
	}{
		"program": {oaf.Server{Connection: oaf.Connection{Type: "stdio", Command: "npx", Args: []string{"-y", "srv"},
			Env: map[string]string{"TOKEN": "${TOKEN}", "LEVEL": "debug", "KEY": "${KEY}"}, Timeout: 7}},
			"stdio npx [-y srv] map[LEVEL:debug] [KEY TOKEN] 7 []", ""},
		"program without arguments": {oaf.Server{Connection: oaf.Connection{Type: "stdio", Command: "srv"}},
			"stdio srv [] map[] [] 300 []", ""},
		"program with a token": {oaf.Server{Connection: oaf.Connection{Type: "stdio", Command: "srv"},
			Auth: oaf.Auth{Type: "bearer", Token: "${T}"}},
			"stdio srv [] map[] [] 300 []", "mcp-configs.auth"},
		"sse": {oaf.Server{Connection: oaf.Connection{Type: "sse", URL: "http://a/sse"}},
			"streamable_http http://a/sse map[] [] 300 []",
			"mcp-configs.connection"},
		"token": {oaf.Server{Connection: oaf.Connection{Type: "http", URL: "http://a"},
			Auth: oaf.Auth{Type: "bearer", Token: "${T}"}},
			"streamable_http http://a map[Authorization:Bearer ${T}] [T] 300 []", ""},
		"API key": {oaf.Server{Connection: oaf.Connection{Type: "http", URL: "http://a"},
			Auth: oaf.Auth{Type: "api-key", Token: "${T}"}},
			"streamable_http http://a map[X-API-Key:${T}] [T] 300 []", ""},
		"secret in the open": {oaf.Server{Connection: oaf.Connection{Type: "http", URL: "http://a"},
			Auth: oaf.Auth{Type: "bearer", Token: "abc"}},
			"streamable_http http://a map[] [] 300 []", "mcp-configs.auth"},
		"selection": {oaf.Server{Connection: oaf.Connection{Type: "http", URL: "http://a"},
			Selection: oaf.Selection{Present: true, Strategy: "subset",
				Tools:    []oaf.SelectedTool{{Name: "read", Enabled: true}, {Name: "rm", Enabled: true}, {Name: "off"}},
				Excluded: []string{"rm"}}},
			"streamable_http http://a map[] [] 300 [read]", ""},
		"patterns alone": {oaf.Server{Connection: oaf.Connection{Type: "http", URL: "http://a"},
			Selection: oaf.Selection{Present: true, Strategy: "subset",
				Tools: []oaf.SelectedTool{{Name: "read_*", Enabled: true}}}},
			"streamable_http http://a map[] [] 300 []",
			"mcp-configs.selection"},
		"unreachable": {oaf.Server{Connection: oaf.Connection{Type: "http"}}, "", "mcp-configs.connection"},
	} {
		r, lost := recipe(t, c.server, nil)
		got := ""
		for _, x := range r.Extensions {
			got = fmt.Sprint(x.Type, " ", x.Cmd+x.URI)
			if x.Type == "stdio" {
				got += fmt.Sprint(" ", x.Args, " ", x.Envs)
			} else {
				got += fmt.Sprint(" ", x.Headers)
			}
			got += fmt.Sprint(" ", x.EnvKeys, " ", x.Timeout, " ", x.Tools)
		}
		if got != c.want || c.lost != "" && !slices.Contains(lost, c.lost) ||
			c.lost == "" && slices.Contains(lost, "mcp-configs.connection") {
			t.Errorf("%s: %q, want %q; lost %v", name, got, c.want, lost)
		}
	}
}

// A tool that the agent denies is no available tool of an extension, and the table of models names what an alias means.
func TestGooseSettings(t *testing.T) {
	t.Parallel()
	server := oaf.Server{Connection: oaf.Connection{Type: "http", URL: "http://a"},
		Selection: oaf.Selection{Present: true, Strategy: "subset",
			Tools: []oaf.SelectedTool{{Name: "read", Enabled: true}, {Name: "rm", Enabled: true}}}}
	warm := 0.5
	r, lost := recipe(t, server, func(a *oaf.Agent) {
		a.Config.Denied, a.Config.Temperature, a.Model = []string{"RM"}, &warm, oaf.Model{Alias: "sonnet"}
		a.Tools = nil
	})
	if len(r.Extensions) != 2 || r.Extensions[0].Type != "builtin" ||
		!slices.Equal(r.Extensions[1].Tools, []string{"read"}) {
		t.Errorf("extensions %+v", r.Extensions)
	}
	if !strings.Contains(r.Instructions, "Never use these tools: RM.") || *r.Settings.Temperature != 0.5 ||
		r.Settings.Provider != "anthropic" ||
		r.Settings.Model == "" || slices.Contains(lost, "model") {
		t.Errorf("%+v, lost %v", r, lost)
	}
	for _, m := range []oaf.Model{{Alias: "grok"}, {Provider: "openai"}, {Name: "gpt"}} {
		if r, lost := recipe(t, server, func(a *oaf.Agent) { a.Model = m }); r.Settings.Model != "" ||
			!slices.Contains(lost, "model") {
			t.Errorf("%+v became %+v, lost %v", m, r.Settings, lost)
		}
	}
}

// Sub-agents of Deep Agents have a name, a description and a model as provider:model, whatever their texts are.
func TestDeepSubAgents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := aTeam(t)
		out, err := Export(a, DeepAgents, Options{})
		if err != nil {
			t.Fatal(err)
		}
		subs := 0
		for _, f := range out.Files {
			if !strings.Contains(f.Path, "/agents/") || !strings.HasSuffix(f.Path, "/AGENTS.md") {
				continue
			}
			subs++
			l := &problem.List{}
			parts := frontmatter.Split(string(f.Data))
			o := parts.Object(f.Path, l)
			name, model := o.Text("name"), o.Text("model")
			if l.Len() > 0 || name == "" || name != kebab(name) || !o.Has("description") ||
				strings.Contains(o.Text("description"), "\n") ||
				model != "" && strings.Count(model, ":") != 1 {
				t.Fatalf("%v: %s", l.Problems(), f.Data)
			}
		}
		if subs != len(a.Graph())-1 {
			t.Fatalf("%d sub-agents of %d", subs, len(a.Graph())-1)
		}
	})
}

// One file has the servers of all agents of a project: two that differ under one name are not mixed up.
func TestServersOfOneName(t *testing.T) {
	t.Parallel()
	a := team(t)
	other := a.Servers[0]
	other.Connection = oaf.Connection{Type: "stdio", Command: "evil"}
	other.Auth = oaf.Auth{}
	a.Agents[0].Local.Servers = []oaf.Server{other}
	for _, to := range []Target{ClaudeCode, DeepAgents} {
		out := exported(t, a, to, Options{})
		name := map[Target]string{ClaudeCode: ".mcp.json", DeepAgents: ".deepagents/.mcp.json"}[to]
		if text := find(t, out, name); strings.Contains(text, "evil") ||
			!slices.ContainsFunc(out.Notes, func(l Note) bool {
				return l.Agent == "north/reviewer" && l.Field == "mcp-configs.connection"
			}) {
			t.Errorf("%s: %s, lost %+v", to, text, out.Notes)
		}
	}
}

// checkImport checks an import of untrusted files: it makes agents that can be written below their directory, or an
// error of the caller's input.
func checkImport(t *testing.T, in []Import, err error) {
	t.Helper()
	if err != nil {
		if len(in) > 0 {
			t.Fatalf("%d agents and %v", len(in), err)
		}
		return
	}
	for _, one := range in {
		if _, bad := repute.FirstError(one.Problems); bad {
			continue
		}
		files, err := one.Agent.Write()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if !tree.IsSafe(f.Path) {
				t.Fatalf("%q of %s leaves its directory", f.Path, one.Agent.ID())
			}
		}
		for _, target := range targets() {
			if _, err := Export(one.Agent, target, Options{}); err != nil &&
				!strings.Contains(err.Error(), "has no vendorKey") {
				t.Fatalf("%s: %v", target, err)
			}
		}
	}
}

// FuzzFromLetta imports untrusted agent files.
func FuzzFromLetta(f *testing.F) {
	out, err := Export(team(f), Letta, Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(out.Files[0].Data)
	f.Add([]byte(`{"agents":[{"name":"../x","block_ids":["block-0","block-9"],"metadata":{"oaf":{"agentKey":"..","skills":["../s","s"],"mcpServers":["/m","m"]}}}],
		"blocks":[{"id":"block-0","label":"a: b","value":"\u0000"}],"skills":[{"name":"../s","files":{"SKILL.md":"x"}},{"name":"s","files":{"SKILL.md":"x","../y":"z"}}],
		"mcp_servers":[{"server_name":"/m"},{"server_name":"m","server_type":"stdio","stdio_config":null}]}`))
	f.Add([]byte(`{"agents":[{"system":"a\n\n## Tool Restrictions\n\nNever use these tools: ."}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := FromLetta(b)
		checkImport(t, in, err)
	})
}

// FuzzFromClaudeCode imports untrusted projects: one agent, the skill that it names, and the servers of the project.
func FuzzFromClaudeCode(f *testing.F) {
	f.Add("deploy",
		[]byte("---\nname: ../../x\ndescription: d\ntools: Read, mcp__a__b\ndisallowedTools: [mcp__a__c, Bash]\nmcpServers: [a, ../b]\nskills: [s, ../../etc]\n---\n\nx"),
		[]byte("---\nname: s\ndescription: d\nmetadata:\n  oaf-slug: a/../b\n  oaf-agents: x/y@1, /z\n---\nx"),
		[]byte(`{"mcpServers":{"a":{"command":"x","env":{"A":"${A}"}},"../b":{"url":"http://b","headers":{"Authorization":"Bearer ${T}"}}}}`))
	f.Add("", []byte("no frontmatter"), []byte("\xff"), []byte("[]"))
	f.Fuzz(func(t *testing.T, name string, agent, own, servers []byte) {
		files := map[string][]byte{".claude/skills/s/SKILL.md": own, ".mcp.json": servers}
		if path := ".claude/agents/" + name + ".md"; tree.IsSafe(path) {
			files[path] = agent
		}
		var list []tree.File
		for _, path := range slices.Sorted(maps.Keys(files)) {
			list = append(list, tree.File{Path: path, Data: files[path]})
		}
		fsys, err := tree.FS(list)
		if err != nil {
			return
		}
		in, err := FromClaudeCode(fsys)
		checkImport(t, in, err)
	})
}
