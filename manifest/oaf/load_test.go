package oaf

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"repute"
	"repute/manifest/oaf/problem"
)

// codes returns the codes of problems in order, without repeats.
func codes(problems []problem.Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.Code)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// team loads the agent of testdata with its reviewer.
func team(t testing.TB) *Agent {
	t.Helper()
	a, problems := Load(os.DirFS("testdata/team"), "coordinator", problem.Lenient)
	if p, bad := repute.FirstError(problems); a == nil || bad {
		t.Fatalf("load: %+v", p)
	}
	return a
}

func TestLoadReadsEveryField(t *testing.T) {
	a, problems := Load(os.DirFS("testdata/team"), "coordinator", problem.Lenient)
	if a == nil {
		t.Fatalf("not loaded: %v", problems)
	}
	want := []string{"IO761", "WO770", "WO781"} // a plain skill that is not declared, and a denied tool of a skill
	if got := codes(problems); !slices.Equal(got, want) {
		t.Errorf("codes %v, want %v: %v", got, want, problems)
	}
	checks := map[string]bool{
		"identity": a.ID() == "north/coordinator" && a.Version == "1.1.0" && a.Name == "Change Coordinator",
		"tags":     slices.Equal(a.Tags, []string{"review", "coordination"}),
		"registry": a.Skills[0].Source == SourceRegistry && !a.Skills[0].IsLocal() &&
			a.Skills[0].Name == "web-search",
		"local skill": a.Skills[1].IsLocal() && a.Skills[1].Required && a.Skill("summarize") != nil,
		"packs":       a.Packs[0].Pack == "python-dev-tools",
		"weblets":     a.Weblets[0].Launch == "onDemand",
		"sub-agent": a.Agents[0].Local != nil && a.Agents[0].Local.Version == "1.2.0" &&
			a.Agents[0].Delegations[1] == "security-check",
		"registered": a.Agents[1].Local == nil && string(a.Agents[1].Extra["agentId"]) == `"8453:22"`,
		"orchestration": a.Orchestration.Entrypoint == "main" && a.Orchestration.Triggers[0] == Trigger{"code-change",
			"review"},
		"tools":   slices.Equal(a.Tools, []string{"Read", "Glob", "Grep"}),
		"config":  *a.Config.Temperature == 0.7 && a.Config.MaxTokens == 4096 && a.Config.RequireConfirmation,
		"denied":  a.Denies("bash") && a.Denies("delete_everything") && !a.Denies("Read"),
		"memory":  a.Memory.Blocks[0] == MemoryBlock{Label: "personality"} && a.Memory.Blocks[1].Limit == 2000,
		"model":   a.Model.Provider == "anthropic" && a.Model.Embedding == "voyage-2",
		"harness": string(a.Harness["repute"]) == `{"agentId":"8453:7","maxCostUsd":"0.50"}`,
		"body": a.IsStructured() && strings.Contains(a.Body, "{% if x %}") &&
			strings.Contains(a.Body, "\n---\n"),
		"versions":    len(a.Versions) == 1 && a.Versions[0].Version == "1.0.0",
		"files":       len(a.Files) == 3,
		"script":      len(a.Skill("summarize").Scripts()) == 1 && a.Skill("summarize").Scripts()[0].Executable,
		"skill tools": slices.Equal(a.Skill("summarize").AllowedTools, []string{"Read", "Bash(git log:*)"}),
		"skill body":  strings.HasSuffix(a.Skill("summarize").Body, "---\n\nWrite three lines."),
		"plain skill": a.Skill("plain-notes").Name == "plain-notes" && a.Skill("plain-notes").Description == "",
	}
	for what, ok := range checks {
		if !ok {
			t.Errorf("%s is wrong", what)
		}
	}
	s := a.Server(a.MCPServers[0])
	if s == nil || !s.Selection.Allows("read_file") || s.Selection.Allows("write_file") ||
		s.Selection.Allows("chmod") ||
		s.Selection.Allows("other") {
		t.Errorf("selection: %+v", s)
	}
	if s.Permissions.MaxFileSize != 10_000_000 || s.RateLimit != (RateLimit{60, 10}) || s.Connection.Timeout != 60 {
		t.Errorf("server: %+v", s)
	}
	if name, ok := s.Auth.TokenVar(); !ok || name != "FILES_TOKEN" {
		t.Errorf("token variable %q, %v", name, ok)
	}
}

// body is a prompt without problems.
const body = "\n# Purpose\n\nI help.\n\n## Tasks\n\n- One\n"

// manifestOf returns an AGENTS.md with lines that replace or follow the usual ones; a line "-name" removes a field.
func manifestOf(lines ...string) string {
	fields := []string{`name: "Helper"`, `vendorKey: "acme"`, `agentKey: "helper"`, `version: "1.0.0"`,
		`slug: "acme/helper"`,
		`description: "Helps with one thing, and says so in more than fifty characters."`, `author: "@acme"`,
		`license: "MIT"`,
		`tags: ["help"]`}
	for _, line := range lines {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "-"), ":")
		at := slices.IndexFunc(fields, func(f string) bool { return strings.HasPrefix(f, name+":") })
		switch {
		case strings.HasPrefix(line, "-"):
			fields = slices.Delete(fields, at, at+1)
		case at >= 0:
			fields[at] = line
		default:
			fields = append(fields, line)
		}
	}
	return "---\n" + strings.Join(fields, "\n") + "\n---\n" + body
}

// dir makes a file system of paths and texts.
func dir(files ...string) fstest.MapFS {
	out := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		out[files[i]] = &fstest.MapFile{Data: []byte(files[i+1]), Mode: 0o644}
	}
	return out
}

func TestCheckCodes(t *testing.T) {
	const ok = ""
	for _, tc := range []struct {
		name            string
		files           fs.FS
		lenient, strict string // codes with spaces between them
	}{
		{"good", dir("AGENTS.md", manifestOf()), ok, ok},
		{"no manifest", dir("README.md", "x"), "EO700", "EO700"},
		{"no frontmatter", dir("AGENTS.md", "# Rules\n"), "EO720", "EO720"},
		{"frontmatter without end", dir("AGENTS.md", "---\nname: x\n"), "EO720", "EO720"},
		{"duplicate key", dir("AGENTS.md", manifestOf("model: a", "config: {temperature: 0.5, temperature: 0.6}")),
			"EO723",
			"EO723"},
		{"tab", dir("AGENTS.md", manifestOf("config:\n\ttemperature: 1")), "EO722", "EO722"},
		{"CRLF", dir("AGENTS.md", strings.ReplaceAll(manifestOf(), "\n", "\r\n")), "IO727", "IO727"},
		{"BOM", dir("AGENTS.md", "\xef\xbb\xbf"+manifestOf()), "IO726", "IO726"},
		{"NUL", dir("AGENTS.md", manifestOf()+"\x00"), "EO728", "EO728"},
		{"alias bomb", dir("AGENTS.md", manifestOf(bomb())), "EO724", "EO724"},
		{"large frontmatter", dir("AGENTS.md", manifestOf("x: "+strings.Repeat("y", 1<<20-2000))), "EO721", "EO721"},
		{"large file", dir("AGENTS.md", manifestOf()+strings.Repeat("y", 1<<20)), "EO702", "EO702"},
		{"version that is a number", dir("AGENTS.md", manifestOf("version: 1.10")), "EO743 WO731", "EO731 EO743"},
		{"list for name", dir("AGENTS.md", manifestOf("name: [a]")), "EO740 WO729", "EO729 EO740"},
		{"missing field", dir("AGENTS.md", manifestOf("-license")), "EO740", "EO740"},
		{"short description", dir("AGENTS.md", manifestOf("description: short")), "WO746", "EO746"},
		{"bare slug", dir("AGENTS.md", manifestOf("slug: helper")), "WO744", "EO744"},
		{"other slug", dir("AGENTS.md", manifestOf("slug: acme/other")), "WO745", "EO745"},
		{"bare entrypoint", dir("AGENTS.md", manifestOf("entrypoint: structured")), "WO752", "EO752"},
		{"unknown entrypoint", dir("AGENTS.md", manifestOf("orchestration: {entrypoint: nobody}")), "WO753", "EO753"},
		{"trigger without action", dir("AGENTS.md", manifestOf("orchestration: {triggers: [{event: a}]}")), "WO757",
			"EO757"},
		{"weblet without name", dir("AGENTS.md", manifestOf("weblets: [{vendor: a}]")), "WO757", "EO757"},
		{"author without quotes", dir("AGENTS.md", manifestOf("author: @acme")), "WO733", "EO733"},
		{"no heading", dir("AGENTS.md", strings.Replace(manifestOf(), "## Tasks", "Tasks", 1)), "WO750", "EO750"},
		{"no body", dir("AGENTS.md", strings.Replace(manifestOf(), body, "", 1)), "EO751", "EO751"},
		{"simplified sub-agent", dir("AGENTS.md",
			"---\nname: r\ndescription: \"Reviews code for quality and best practices\"\n"+
				"tools: [\"Read\"]\nmodel: sonnet\n---\n\nYou review code.\n"), "WO741 WO746 WO750",
			"EO741 EO746 EO750"},
		{"no SPDX", dir("AGENTS.md", manifestOf("license: Mine")), "WO748", "EO748"},
		{"SPDX expression", dir("AGENTS.md", manifestOf("license: MIT OR Apache-2.0")), ok, ok},
		{"kebab", dir("AGENTS.md", manifestOf("agentKey: My Helper", "slug: acme/helper")), "EO742 WO745",
			"EO742 EO745"},
		{"unknown member", dir("AGENTS.md", manifestOf("colour: red")), "WO730", "EO730"},
		{"temperature", dir("AGENTS.md", manifestOf("config: {temperature: 2}")), "WO755", "EO755"},
		{"memory", dir("AGENTS.md", manifestOf("memory: {type: shared}")), "WO754", "EO754"},
		{"source", dir("AGENTS.md", manifestOf("skills: [{name: x, source: locl}]")), "WO754", "EO754"},
		{"skill of an index", dir("AGENTS.md",
			manifestOf("skills: [{name: x, source: \"https://a.example/.well-known/skills/index.json\"}]")), ok, ok},
		{"constraint", dir("AGENTS.md", manifestOf("packs: [{vendor: a, pack: b, version: latest}]")), "WO756",
			"EO756"},
		{"absent skill", dir("AGENTS.md", manifestOf("skills: [{name: x, source: local}]")), "EO760", "EO760"},
		{"skill outside", dir("AGENTS.md", manifestOf("skills: [{name: ../x, source: local}]")), "EO704", "EO704"},
		{"config outside", dir("AGENTS.md", manifestOf("mcpServers: [{server: x, configDir: ../../etc}]")), "EO704",
			"EO704"},
		{"agent outside", dir("AGENTS.md", manifestOf("agents: [{agent: ../x}]")), "EO704", "EO704"},
		{"required config", dir("AGENTS.md", manifestOf("mcpServers: [{server: x, required: true}]")), "EO762",
			"EO762"},
		{"optional config", dir("AGENTS.md", manifestOf("mcpServers: [{server: x}]")), "WO763", "EO763"},
		{"required agent", dir("AGENTS.md", manifestOf("agents: [{agent: x, required: true}]")), "WO765", "EO765"},
		{"optional agent", dir("AGENTS.md", manifestOf("agents: [{vendor: b, agent: x}]")), "IO766", "IO766"},
		{"itself", dir("AGENTS.md", manifestOf("agents: [{vendor: acme, agent: helper}]")), "EO769", "EO769"},
		{"version conflict", dir("AGENTS.md",
			manifestOf("packs: [{pack: b, version: 1.0.0}, {pack: b, version: 2.0.0}]")),
			"EO768", "EO768"},
		{"denied tool", dir("AGENTS.md", manifestOf("tools: [Bash]", "config: {tools: {denied: [bash]}}")), "WO770",
			"EO770"},
		{"no skill file", dir("AGENTS.md", manifestOf(), "skills/x/notes.txt", "y"), "WO780", "EO780"},
		{"version directory", dir("AGENTS.md", manifestOf(), "versions/1.0/AGENTS.md", manifestOf()), "WO810 WO811",
			"EO810 EO811"},
		{"server file", dir("AGENTS.md", manifestOf(), "mcp-configs/f.yaml",
			"connection: {type: http, url: \"http://a\"}"),
			"IO764 IO803", "IO764 IO803"},
		{"stdio without command", dir("AGENTS.md", manifestOf(), "mcp-configs/f/config.yaml",
			"connection: {type: stdio}"),
			"IO764 IO806 WO801", "EO801 IO764 IO806"},
		{"secret", dir("AGENTS.md", manifestOf(), "mcp-configs/f.yaml",
			"connection: {type: http, url: \"http://a\"}\nauth: {type: bearer, token: abc}"), "IO764 IO803 WO802",
			"EO802 IO764 IO803"},
		{"broken selection", dir("AGENTS.md", manifestOf(), "mcp-configs/f/ActiveMCP.json", "{"), "EO732 IO764 WO805",
			"EO732 EO805 IO764"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for profile, want := range map[problem.Profile]string{problem.Lenient: tc.lenient,
				problem.Strict: tc.strict} {
				_, problems := Load(tc.files, ".", profile)
				if got := strings.Join(codes(problems), " "); got != want {
					t.Errorf("profile %d: codes %q, want %q: %v", profile, got, want, problems)
				}
				for _, p := range problems {
					if problem.Hint(p.Code) == "" || p.Severity != repute.SeverityOf(p.Code) {
						t.Errorf("%s has no fix or another severity", p.Code)
					}
				}
			}
		})
	}
}

// bomb returns members whose aliases expand to 10^9 values.
func bomb() string {
	lines := []string{"a0: &a0 [x,x,x,x,x,x,x,x,x,x]"}
	for i := 1; i < 9; i++ {
		last := "*a" + strconv.Itoa(i-1)
		lines = append(lines, "a"+strconv.Itoa(i)+": &a"+strconv.Itoa(i)+" ["+strings.Repeat(last+",", 9)+last+"]")
	}
	return strings.Join(lines, "\n")
}

func TestProblemsHaveLines(t *testing.T) {
	text := manifestOf("config:\n  temperature: 7", "agents:\n  - agent: x\n    required: true")
	_, problems := Load(dir("AGENTS.md", text), ".", problem.Lenient)
	lines := strings.Split(text, "\n")
	for code, want := range map[string]string{"WO755": "config:", "WO765": "- agent: x"} {
		at := slices.IndexFunc(problems, func(p problem.Problem) bool { return p.Code == code })
		if at < 0 {
			t.Fatalf("no %s among %v", code, problems)
		}
		line := problems[at].Line
		if line < 1 || line+1 > len(lines) || !strings.Contains(lines[line-1]+lines[line-2], strings.TrimSpace(want)) {
			t.Errorf("%s is at line %d", code, line)
		}
	}
}

func TestVersionKeepsItsCharacters(t *testing.T) {
	for _, written := range []string{"1.10", "0x10", "1_0", "1e3", "'1.10.0'"} {
		a, _ := ParseManifest([]byte(manifestOf("version: "+written)), problem.Lenient)
		if a == nil || a.Version != strings.Trim(written, "'") {
			t.Errorf("version %s is read as %q", written, a.Version)
		}
	}
}

func TestSubAgents(t *testing.T) {
	agent := func(vendor, key, more string) string {
		return manifestOf("vendorKey: "+vendor, "agentKey: "+key, "slug: "+vendor+"/"+key, more)
	}
	ref := func(vendor, key string) string {
		return "agents: [{vendor: " + vendor + ", agent: " + key + ", version: 1.0.0}]"
	}
	t.Run("places", func(t *testing.T) {
		for _, place := range []string{"w/a/agents/b", "w/a/agents/n/b", "w/b", "w/n/b", "n/b"} {
			a, problems := Load(dir("w/a/AGENTS.md", agent("n", "a", ref("n", "b")), place+"/AGENTS.md", agent("n", "b",
				"model: x")),
				"w/a", problem.Strict)
			if len(problems) > 0 || a.Agents[0].Local == nil || a.Agents[0].Local.Dir != place {
				t.Errorf("%s: %v, %v", place, a.Agents[0].Local, problems)
			}
		}
	})
	t.Run("another vendor's agent", func(t *testing.T) {
		a, _ := Load(dir("a/AGENTS.md", agent("n", "a", ref("n", "b")), "b/AGENTS.md", agent("other", "b", "model: x")),
			"a", problem.Lenient)
		if a.Agents[0].Local != nil {
			t.Error("the agent of another vendor was taken")
		}
	})
	t.Run("cycle", func(t *testing.T) {
		a, problems := Load(dir("a/AGENTS.md", agent("n", "a", ref("n", "b")), "b/AGENTS.md",
			agent("n", "b", ref("n", "c")),
			"c/AGENTS.md", agent("n", "c", ref("n", "a"))), "a", problem.Lenient)
		if !slices.Equal(codes(problems), []string{"EO767"}) ||
			a.Agents[0].Local.Agents[0].Local.Agents[0].Local != nil {
			t.Errorf("problems %v", problems)
		}
		if at := problems[0].File; at != "../c/AGENTS.md" {
			t.Errorf("the cycle is reported in %s", at)
		}
	})
	t.Run("shared", func(t *testing.T) {
		both := "agents: [{agent: b}, {agent: c}]"
		a, problems := Load(dir("a/AGENTS.md", agent("n", "a", both), "b/AGENTS.md", agent("n", "b", ref("n", "c")),
			"c/AGENTS.md", agent("n", "c", "model: x")), "a", problem.Lenient)
		if len(problems) > 0 || a.Agents[1].Local == nil || a.Agents[0].Local.Agents[0].Local != a.Agents[1].Local {
			t.Errorf("the shared sub-agent is not one: %v", problems)
		}
	})
	t.Run("version conflict", func(t *testing.T) {
		_, problems := Load(dir("a/AGENTS.md", agent("n", "a", ref("n", "b")),
			"b/AGENTS.md", strings.Replace(agent("n", "b", "model: x"), "1.0.0", "2.0.0", 1)), "a", problem.Lenient)
		if !slices.Equal(codes(problems), []string{"EO768"}) {
			t.Errorf("problems %v", problems)
		}
	})
	t.Run("too deep", func(t *testing.T) {
		files := fstest.MapFS{}
		for i := range 12 {
			files["a"+strconv.Itoa(i)+"/AGENTS.md"] = &fstest.MapFile{Data: []byte(agent("n", "a"+strconv.Itoa(i),
				ref("n", "a"+strconv.Itoa(i+1))))}
		}
		_, problems := Load(files, "a0", problem.Lenient)
		if !slices.Contains(codes(problems), "EO775") {
			t.Errorf("problems %v", problems)
		}
	})
}

func TestSymbolicLinksAreNotFollowed(t *testing.T) {
	outside, inside := t.TempDir(), filepath.Join(t.TempDir(), "a")
	for name, text := range map[string]string{filepath.Join(outside, "secret"): "secret",
		filepath.Join(outside, "AGENTS.md"): manifestOf("agentKey: b", "slug: acme/b"),
		filepath.Join(inside, "AGENTS.md"):  manifestOf("agents: [{agent: b}]")} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{filepath.Join(inside, "leak"): filepath.Join(outside, "secret"),
		filepath.Join(filepath.Dir(inside), "b"): outside, filepath.Join(inside, "loop"): inside} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	a, problems := Load(os.DirFS(filepath.Dir(inside)), "a", problem.Lenient)
	if !slices.Equal(codes(problems), []string{"EO705", "IO766", "IO778"}) {
		t.Errorf("problems %v", problems)
	}
	if a == nil || a.Agents[0].Local != nil || len(a.Files) > 0 {
		t.Error("a symbolic link was followed")
	}
}

// The text of the format contradicts itself. What its own examples do is no error for a reader, whose agents follow
// them, and is one for a publisher where the text forbids it.
func TestContradictionsOfTheText(t *testing.T) {
	const short = `description: "A simple helpful assistant"` // 26 characters, of 50 to 500
	direct := "\nYou are a code reviewer. Analyze the code.\n"
	with := func(text string, lines ...string) string { return strings.Replace(manifestOf(lines...), body, text, 1) }
	for name, tc := range map[string]struct {
		files  fs.FS
		strict string
	}{
		"minimal agent": {dir("AGENTS.md", manifestOf(short)), "EO746"},
		"sub-agent": {dir("AGENTS.md", with(direct, short, `tools: ["Read"]`, `model: "sonnet"`)),
			"EO746 EO750"},
		"simplified format": {dir("AGENTS.md", "---\nname: r\n"+short+"\ntools: [\"Read\"]\n---\n"+direct),
			"EO741 EO746 EO750"},
		"bare slug":       {dir("AGENTS.md", manifestOf("slug: helper")), "EO744"},
		"bare entrypoint": {dir("AGENTS.md", manifestOf("entrypoint: structured")), "EO752"},
		"one file": {dir("AGENTS.md", manifestOf(), "mcp-configs/filesystem.yaml",
			"connection: {type: sse, url: \"http://a/sse\"}"), ""},
		"stdio with command": {dir("AGENTS.md", manifestOf(), "mcp-configs/f/config.yaml",
			"connection: {type: stdio, command: npx, args: [-y, s]}"), ""},
		"tools in brackets": {dir("AGENTS.md", manifestOf(), "skills/x/SKILL.md",
			"---\nname: x\ndescription: d\nallowed-tools: [\"bash\", \"python\"]\n---\n\nDo it.\n"), "EO788"},
		"1.2.0 skill": {dir("AGENTS.md",
			manifestOf("skills: [{vendor: anthropic, skill: web-search, version: 1.2.0, source: registry, required: true}]")), ""},
		"0.8.0 skill": {dir("AGENTS.md",
			manifestOf("skills: [{name: web-search, source: registry, version: 1.2.0, required: true}]")), ""},
		"undeclared local skill": {dir("AGENTS.md", manifestOf(), "skills/x/SKILL.md",
			"---\nname: x\ndescription: d\n---\n\nDo it.\n"), ""},
		"skill without head": {dir("AGENTS.md", manifestOf(), "skills/x/SKILL.md", "Do it.\n"), "EO781"},
	} {
		_, lenient := Load(tc.files, ".", problem.Lenient)
		if p, bad := repute.FirstError(lenient); bad {
			t.Errorf("%s: an error for a reader: %+v", name, p)
		}
		_, strict := Load(tc.files, ".", problem.Strict)
		errs := slices.DeleteFunc(codes(strict), func(code string) bool { return code[0] != 'E' })
		if got := strings.Join(errs, " "); got != tc.strict {
			t.Errorf("%s: errors %q for a publisher, want %q: %+v", name, got, tc.strict, strict)
		}
	}
}
