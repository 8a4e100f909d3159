package harness

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"repute"
	"repute/manifest/oaf"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/skill"
	"repute/manifest/oaf/tree"
)

// words returns texts that files carry: with everything that YAML, Jinja and Markdown could take for their own.
func words() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[A-Za-z][A-Za-z0-9 ,.:#'"{}%@!&*|>-]{0,40}[a-z]`),
		rapid.SampledFrom([]string{"yes", "1.10", "null", "- a", "{{ x }}", "{% if %}", "a: b", "é ü 漢", "🙂", "#x", "~",
			"0x1F",
			"2026-01-15", "<<", "=", "a\tb", "---", "'", `"`, `\n`}),
	)
}

func keys() *rapid.Generator[string] {
	return rapid.StringMatching(`[a-z][a-z0-9]{0,6}(-[a-z0-9]{1,5})?`)
}

func sometimes[V any](t *rapid.T, g *rapid.Generator[V], label string) (v V) {
	if rapid.Bool().Draw(t, "has "+label) {
		v = g.Draw(t, label)
	}
	return v
}

func some[V any](g *rapid.Generator[V]) *rapid.Generator[[]V] {
	return rapid.Map(rapid.SliceOfN(g, 0, 3), func(v []V) []V {
		if len(v) == 0 {
			return nil
		}
		return v
	})
}

// anAgent draws an agent as Load would return it.
func anAgent(t *rapid.T) *oaf.Agent {
	vendor, key := keys().Draw(t, "vendor"), keys().Draw(t, "key")
	a := &oaf.Agent{Dir: ".", Name: words().Draw(t, "name"), VendorKey: vendor, AgentKey: key,
		Version:     rapid.SampledFrom([]string{"1.0.0", "1.10.0", "0.1.0-rc.1"}).Draw(t, "version"),
		Slug:        vendor + "/" + key,
		Description: words().Draw(t, "description"), Author: sometimes(t, words(), "author"),
		License: sometimes(t, rapid.SampledFrom([]string{"MIT", "Apache-2.0 OR MIT"}), "license"),
		Tags:    some(words()).Draw(t, "tags"), Body: aBody(t)}
	a.Tools = some(rapid.SampledFrom([]string{"Read", "Bash(git:*)", "Grep"})).Draw(t, "tools")
	a.Config.Denied = some(rapid.SampledFrom([]string{"Bash", "web_fetch", "Write"})).Draw(t, "denied")
	a.Config.Allowed = some(rapid.SampledFrom([]string{"bash", "Read"})).Draw(t, "allowed")
	if rapid.Bool().Draw(t, "warm") {
		f := float64(rapid.IntRange(0, 10).Draw(t, "temperature")) / 10
		a.Config.Temperature = &f
	}
	a.Config.MaxTokens = sometimes(t, rapid.IntRange(1, 9999), "max_tokens")
	a.Config.RequireConfirmation = rapid.Bool().Draw(t, "confirm")
	a.Model = rapid.SampledFrom([]oaf.Model{{}, {Alias: "sonnet"}, {Alias: "gpt-5"}, {Provider: "anthropic",
		Name: "claude-x"},
		{Provider: "openai", Name: "o9", Embedding: "e"}}).Draw(t, "model")
	a.Orchestration = sometimes(t, rapid.Just(oaf.Orchestration{Entrypoint: "main", Triggers: []oaf.Trigger{{Event: "e",
		Action: "a"}}}), "orchestration")
	a.Harness = sometimes(t,
		rapid.Just(map[string]json.RawMessage{"goose": json.RawMessage(`{"n":1.10,"x":[true,null,"1.10"]}`)}),
		"harness")
	a.Packs = sometimes(t, rapid.Just([]oaf.PackRef{{Vendor: "v", Pack: "p", Version: "1.0.0", Required: true}}),
		"packs")
	a.Weblets = sometimes(t, rapid.Just([]oaf.WebletRef{{Vendor: "v", Weblet: "w", Version: "1.0.0",
		Launch: "onDemand"}}), "weblets")
	a.Extra = sometimes(t, extras(), "extra")
	a.Config.Extra = sometimes(t, extras(), "config extra")
	if a.Model.Alias == "" {
		a.Model.Extra = sometimes(t, extras(), "model extra")
	}
	a.Memory = aMemory(t)
	a.LocalSkills, a.Servers = someSkills(t), someServers(t)
	a.Skills, a.MCPServers = plainSkills(a.LocalSkills), plainServers(a.Servers)
	if len(a.Skills) > 0 && rapid.Bool().Draw(t, "required skill") {
		a.Skills[0].Required = true
	}
	for i := range sometimes(t, rapid.IntRange(0, 2), "sub-agents") {
		a.Agents = append(a.Agents, oaf.AgentRef{Vendor: sometimes(t, keys(), "vendor"), Agent: keys().Draw(t, "agent"),
			Version: sometimes(t, rapid.Just("1.0.0"), "version"), Role: sometimes(t, keys(), "role"), Required: i > 0,
			Delegations: some(words()).Draw(t, "delegations"),
			Extra: sometimes(t, rapid.Just(map[string]json.RawMessage{"agentId": json.RawMessage(`"8453:22"`)}),
				"agent extra")})
	}
	a.Files = sometimes(t, rapid.Just([]tree.File{{Path: "docs/a.md", Data: []byte("x")}}), "files")
	a.Versions = sometimes(t, rapid.Just([]oaf.PastVersion{{Version: "0.0.1",
		Text: []byte("---\nname: x\nversion: 0.0.1\n---\nx\n")}}), "versions")
	return a
}

// extras returns members that the format does not know.
func extras() *rapid.Generator[map[string]json.RawMessage] {
	return rapid.Just(map[string]json.RawMessage{"x-colour": json.RawMessage(`{"a":[1.10,null,"yes"]}`)})
}

func aBody(t *rapid.T) string {
	lines := rapid.SliceOfN(rapid.OneOf(words(), rapid.Just(""), rapid.Just("---"), rapid.Just("## Tool Restrictions")),
		1, 6).Draw(t, "body")
	body := strings.Trim(strings.Join(lines, "\n"), " \t\n")
	if body == "" {
		return "x"
	}
	return body
}

func aMemory(t *rapid.T) *oaf.Memory {
	if !rapid.Bool().Draw(t, "memory") {
		return nil
	}
	m := &oaf.Memory{Type: rapid.SampledFrom([]string{"editable", "read-only"}).Draw(t, "type")}
	labels := rapid.SliceOfNDistinct(keys(), 0, 3, rapid.ID).Draw(t, "labels")
	for _, label := range labels {
		m.Blocks = append(m.Blocks, oaf.MemoryBlock{Label: label, Value: sometimes(t, words(), "value"),
			Limit:       sometimes(t, rapid.IntRange(1, 30_000), "limit"),
			Description: sometimes(t, words(), "block description")})
	}
	return m
}

func someSkills(t *rapid.T) []skill.Skill {
	var out []skill.Skill
	names := rapid.SliceOfNDistinct(keys(), 0, 2, rapid.ID).Draw(t, "skills")
	slices.Sort(names)
	for _, name := range names {
		s := skill.Skill{Dir: name, Name: name, Description: words().Draw(t, "skill description"), Body: aBody(t),
			AllowedTools: some(rapid.SampledFrom([]string{"Read", "Bash(git add:*)"})).Draw(t, "skill tools"),
			Metadata: sometimes(t, rapid.Just(map[string]string{"version": "1.10", "author": "me: you"}),
				"metadata"),
			License:       sometimes(t, words(), "skill license"),
			Compatibility: sometimes(t, words(), "compatibility")}
		if rapid.Bool().Draw(t, "script") {
			s.Files = []tree.File{{Path: "references/r.md", Data: []byte("r\n")},
				{Path: "scripts/s.sh", Data: []byte("s\n"), Executable: rapid.Bool().Draw(t, "executable")}}
		}
		out = append(out, s)
	}
	return out
}

func someServers(t *rapid.T) []oaf.Server {
	var out []oaf.Server
	names := rapid.SliceOfNDistinct(keys(), 0, 2, rapid.ID).Draw(t, "servers")
	slices.Sort(names)
	for _, name := range names {
		s := oaf.Server{Dir: "mcp-configs/" + name, Name: name, Connection: rapid.SampledFrom([]oaf.Connection{
			{Type: "http", URL: "http://127.0.0.1/mcp"}, {Type: "sse", URL: "http://127.0.0.1/sse", Timeout: 3},
			{Type: "stdio", Command: "npx", Args: []string{"-y", "server"}, Env: map[string]string{"A": "${A}"}}, {},
			{Type: "http", URL: "http://127.0.0.1/mcp", Headers: map[string]string{"X": "${B}"}},
		}).Draw(t, "connection"), Auth: rapid.SampledFrom([]oaf.Auth{{}, {Type: "bearer", Token: "${T}"},
			{Type: "api-key", Token: "${K}", Header: "X-API-Key"}, {Type: "oauth", Token: "${O}"}, {Type: "bearer",
				Token: "open"}}).Draw(t, "auth"),
			Selection: rapid.SampledFrom([]oaf.Selection{{}, {Present: true, Strategy: "subset",
				Tools: []oaf.SelectedTool{{Name: "read", Enabled: true}}},
				{Present: true, Strategy: "all", Excluded: []string{"rm"}}, {Present: true, Strategy: "subset",
					Tools: []oaf.SelectedTool{{Name: "w", Required: true}, {Name: "a.*", Enabled: true}},
					Excluded: []string{"b",
						"c"}}}).Draw(t, "selection")}
		s.RateLimit = sometimes(t, rapid.Just(oaf.RateLimit{PerMinute: 6, Burst: 1}), "limit")
		s.Permissions = sometimes(t, rapid.SampledFrom([]oaf.Permissions{{AllowPaths: []string{"/w"}, MaxFileSize: 5},
			{DenyPaths: []string{"/e"}, ReadOnly: true},
			{ReadPaths: []string{"/r"}, WritePaths: []string{"/t"}, Extra: extras().Draw(t, "x")}}),
			"permissions")
		s.Vendor, s.Version = sometimes(t, keys(), "server vendor"), sometimes(t, rapid.Just("1.10.0"),
			"server version")
		s.Extra = sometimes(t, rapid.Just(map[string]json.RawMessage{"retry": json.RawMessage(`{"times":3}`)}),
			"server extra")
		s.Files = sometimes(t, rapid.Just([]tree.File{{Path: "notes.md", Data: []byte("n")}}), "server files")
		out = append(out, s)
	}
	return out
}

// neutral returns an agent without what a report names, and without the lines of references.
func neutral(a *oaf.Agent, lost []Note) *oaf.Agent {
	out := *a
	out.Dir, out.Unknown = "", nil
	out.Skills = slices.Clone(a.Skills)
	out.Servers = slices.Clone(a.Servers)
	out.LocalSkills = slices.Clone(a.LocalSkills)
	for i := range out.LocalSkills {
		out.LocalSkills[i].ToolsLine = 0
	}
	for i := range out.Servers {
		out.Servers[i].Unknown = nil
		out.Servers[i].Selection.Tools = slices.Clone(out.Servers[i].Selection.Tools)
		for j, tool := range out.Servers[i].Selection.Tools {
			out.Servers[i].Selection.Tools[j] = oaf.SelectedTool{Name: tool.Name, Enabled: tool.Enabled,
				Description: tool.Description, Required: tool.Required}
		}
	}
	for _, l := range lost {
		clearField(&out, l.Field)
	}
	for i := range out.Skills {
		r := out.Skills[i]
		out.Skills[i] = oaf.SkillRef{Vendor: r.Vendor, Name: r.Name, Version: r.Version, Source: r.Source,
			Required: r.Required}
	}
	servers := slices.Clone(out.MCPServers)
	for i, r := range servers {
		servers[i] = oaf.ServerRef{Vendor: r.Vendor, Server: r.Server, Version: r.Version, ConfigDir: r.ConfigDir,
			Required: r.Required}
	}
	out.MCPServers = servers
	agents := slices.Clone(out.Agents)
	for i, r := range agents {
		agents[i] = oaf.AgentRef{Vendor: r.Vendor, Agent: r.Agent, Version: r.Version, Role: r.Role,
			Delegations: r.Delegations,
			Required:    r.Required, Extra: r.Extra}
	}
	out.Agents = agents
	return &out
}

// clearField empties what a report names. It fails for a field that it does not know.
func clearField(a *oaf.Agent, field string) {
	part, isServers := strings.CutPrefix(field, "mcp-configs")
	if isServers {
		for i := range a.Servers {
			clearServer(&a.Servers[i], part)
		}
		if part == ".connection" || part == ".identity" || part == "" {
			a.Servers, a.MCPServers = nil, nil // a server that cannot be reached, or has another name, is another one
		}
		return
	}
	switch field {
	case "packs":
		a.Packs = nil
	case "weblets":
		a.Weblets = nil
	case "x-colour":
		a.Extra = nil
	case "config.x-colour":
		a.Config.Extra = nil
	case "model.x-colour":
		a.Model.Extra = nil
	case "orchestration":
		a.Orchestration = oaf.Orchestration{}
	case "versions":
		a.Versions = nil
	case "files":
		a.Files = nil
	case "harnessConfig":
		a.Harness = nil
	case "config.require_confirmation":
		a.Config.RequireConfirmation = false
	case "config.temperature":
		a.Config.Temperature = nil
	case "config.max_tokens":
		a.Config.MaxTokens = 0
	case "config.tools.denied":
		a.Config.Denied = nil
	case "config.tools.allowed":
		a.Config.Allowed = nil
	case "tools":
		a.Tools = nil
	case "memory":
		a.Memory = nil
	case "model":
		a.Model = oaf.Model{}
	case "skills":
		a.Skills, a.LocalSkills = nil, nil
	case "mcpServers":
		a.MCPServers = nil
	case "agents":
		a.Agents = nil
	case "tags":
		a.Tags = nil
	case "description":
		a.Description = ""
	case "body":
		a.Body = ""
	default:
		panic("unknown field " + field)
	}
}

func clearServer(s *oaf.Server, part string) {
	switch part {
	case ".permissions":
		s.Permissions = oaf.Permissions{}
	case ".rate_limit":
		s.RateLimit = oaf.RateLimit{}
	case ".extra":
		s.Extra, s.Files = nil, nil
	case ".timeout":
		s.Connection.Timeout = 0
	case ".selection":
		s.Selection = oaf.Selection{}
	case ".auth":
		s.Auth, s.Connection.Headers = oaf.Auth{}, nil
	}
}

func same(t *rapid.T, want, got *oaf.Agent, lost []Note) {
	a, b := neutral(want, lost), neutral(got, lost)
	x, y := reflect.ValueOf(*a), reflect.ValueOf(*b)
	for i := range x.NumField() {
		name := x.Type().Field(i).Name
		if !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) && !isEmpty(x.Field(i), y.Field(i)) {
			t.Errorf("%s: %#v became %#v; the report: %+v", name, x.Field(i), y.Field(i), lost)
		}
	}
}

// isEmpty reports whether both values are lists or maps without entries: nil and empty are told apart by tools only.
func isEmpty(x, y reflect.Value) bool {
	return (x.Kind() == reflect.Slice || x.Kind() == reflect.Map) && x.Len() == 0 && y.Len() == 0
}

func TestWriteThenLoadIsTheSameAgent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := anAgent(t)
		files, err := a.Write()
		if err != nil {
			t.Fatal(err)
		}
		fsys, err := tree.FS(files)
		if err != nil {
			t.Fatal(err)
		}
		got, problems := oaf.Load(fsys, ".", problem.Lenient)
		if got == nil {
			t.Fatalf("not loaded: %v", problems)
		}
		for i := range a.Servers {
			slices.SortFunc(a.Servers[i].Files, func(x, y tree.File) int { return strings.Compare(x.Path, y.Path) })
		}
		same(t, a, got, nil)
	})
}

func TestExportThenImportIsTheSameAgent(t *testing.T) {
	for _, target := range []Target{ClaudeCode, Letta} {
		t.Run(string(target), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				a := anAgent(t)
				out, err := Export(a, target, Options{})
				if err != nil {
					t.Fatal(err)
				}
				got := imported(t, target, out)
				same(t, a, got, out.Notes)
			})
		})
	}
}

// fataler is what rapid and testing have in common.
type fataler interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// imported reads the first agent of an export.
func imported(t fataler, target Target, out Result) *oaf.Agent {
	var in []Import
	var err error
	if target == Letta {
		in, err = FromLetta(out.Files[0].Data)
	} else {
		fsys, fsErr := tree.FS(out.Files)
		if fsErr != nil {
			t.Fatal(fsErr)
		}
		in, err = FromClaudeCode(fsys)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range in[0].Problems {
		if p.Severity == repute.SeverityError {
			t.Fatalf("the export has a problem: %+v", p)
		}
	}
	return in[0].Agent
}

// Every target must write files whose skills have no problem at all in the strict profile, and the same bytes again.
func TestExportsAreStrictAndStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := anAgent(t)
		for _, target := range targets() {
			out, err := Export(a, target, Options{})
			if err != nil {
				t.Fatal(err)
			}
			again, err := Export(a, target, Options{})
			if err != nil || !reflect.DeepEqual(out, again) {
				t.Fatalf("%s: a second export differs: %v", target, err)
			}
			checkSkills(t, out.Files)
		}
	})
}

func checkSkills(t *rapid.T, files []tree.File) {
	dirs := map[string][]tree.File{}
	for _, f := range files {
		if !tree.IsSafe(f.Path) {
			t.Errorf("unsafe path %q", f.Path)
		}
		_, rest, ok := strings.Cut(f.Path, "skills/")
		name, below, nested := strings.Cut(rest, "/")
		if ok && nested {
			f.Path = below
			dirs[name] = append(dirs[name], f)
		}
	}
	for name, own := range dirs {
		list := &problem.List{Profile: problem.Strict}
		if _, ok := skill.Parse(name, name, own, list); !ok || list.Len() > 0 {
			t.Errorf("skill %s: %v", name, list.Problems())
		}
	}
}
