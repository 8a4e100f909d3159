package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"repute"
	"repute/manifest/oaf"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/tree"
)

// noted returns notes as texts, in order.
func noted(list []Note) []string {
	var out []string
	for _, n := range list {
		out = append(out, fmt.Sprintf("%s %s %s: %s", n.Kind, n.Agent, n.Field, n.Reason))
	}
	slices.Sort(out)
	return out
}

// has fails for each wanted note that no note begins with.
func has(t *testing.T, list []Note, want ...string) {
	t.Helper()
	all := noted(list)
	for _, w := range want {
		if !slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, w) }) {
			t.Errorf("no note %q among\n%s", w, strings.Join(all, "\n"))
		}
	}
}

// claude imports a project of paths and texts.
func claude(t *testing.T, files ...string) []Import {
	t.Helper()
	var list []tree.File
	for i := 0; i < len(files); i += 2 {
		list = append(list, tree.File{Path: files[i], Data: []byte(files[i+1])})
	}
	fsys, err := tree.FS(list)
	if err != nil {
		t.Fatal(err)
	}
	in, err := FromClaudeCode(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// letta imports an agent file.
func letta(t *testing.T, text string) []Import {
	t.Helper()
	in, err := FromLetta([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// Exports of other programs identify their agents by the slug alone: name and key follow from it.
func TestReferenceExportsHaveNamesAndKeys(t *testing.T) {
	dir := dataDir(t)
	in, err := FromClaudeCode(os.DirFS(filepath.Join(dir, "exports-reference/claude-code")))
	if err != nil {
		t.Fatal(err)
	}
	if a := in[0].Agent; a.Name != "acme-code-reviewer" || a.AgentKey != "code-reviewer" || a.VendorKey != "acme" {
		t.Errorf("claude-code: %q, %s/%s", a.Name, a.VendorKey, a.AgentKey)
	}
	has(t, in[0].Notes, "guessed acme/code-reviewer name: acme-code-reviewer", "dropped  mcpServers: filesystem")
	b, err := os.ReadFile(filepath.Join(dir, "exports-reference/letta/code-reviewer.af"))
	if err != nil {
		t.Fatal(err)
	}
	in = letta(t, string(b))
	if a := in[0].Agent; a.Name != "code-reviewer" || a.AgentKey != "code-reviewer" || a.VendorKey != "acme" {
		t.Errorf("letta: %q, %s/%s", a.Name, a.VendorKey, a.AgentKey)
	}
	has(t, in[0].Notes, "guessed acme/code-reviewer name: code-reviewer")
}

// What an agent of Claude Code has and the format has not is noted, and so is what the project has beside its agents.
func TestClaudeCodeNotes(t *testing.T) {
	in := claude(t, ".claude/agents/Deploy Bot.md",
		"---\ndescription: Deploys.\ncolor: red\npermissionMode: plan\nskills: [roll, gone]\nmcpServers: [kube, gone]\n---\n\nDeploy it.\n",
		".claude/agents/deploy-bot.md", "---\nname: deploy bot\ndescription: Deploys.\n---\n\nDeploy it.\n",
		".claude/skills/roll/SKILL.md", "---\nname: roll\ndescription: Rolls.\n---\nRoll.\n",
		".claude/skills/other/SKILL.md", "---\nname: other\ndescription: Other.\n---\nOther.\n",
		".claude/commands/a.md", "x", ".claude/commands/b/c.md", "x", "src/main.go", "x",
		".mcp.json", `{"mcpServers":{"kube":{"command":"kube-mcp","cwd":"/x"},"unused":{"command":"x"}}}`)
	if len(in) != 2 || in[0].Agent.AgentKey != "deploy-bot" || in[1].Agent.AgentKey != "deploy-bot-2" ||
		in[0].Agent.Name != "deploy-bot" {
		t.Fatalf("%+v", in)
	}
	has(t, in[0].Notes, `guessed deploy-bot agentKey: deploy-bot is made of "Deploy Bot"`,
		"guessed deploy-bot name: deploy-bot is the key",
		"dropped deploy-bot color", "dropped deploy-bot permissionMode",
		`dropped deploy-bot skills: "gone" is no skill`,
		"dropped deploy-bot mcp-configs.connection: gone: ", "dropped deploy-bot mcp-configs.cwd: kube: ",
		"dropped  mcpServers: unused of .mcp.json",
		"dropped  files: .claude/skills/other is part of no agent (files: 1)",
		"dropped  files: .claude/commands/a.md", "dropped  files: .claude/commands/b")
	has(t, in[1].Notes, "guessed deploy-bot-2 agentKey: another agent has the key: this one becomes deploy-bot-2")
	if len(in[0].Problems) != 0 {
		t.Errorf("what is noted is a problem as well: %+v", in[0].Problems)
	}
	for _, n := range noted(slices.Concat(in[0].Notes, in[1].Notes)) {
		if strings.Contains(n, "roll") || strings.Contains(n, "src") {
			t.Errorf("a note on what is carried, or on no file of Claude Code: %s", n)
		}
	}
}

// A project is larger than an agent may be, and its skills are often symbolic links: neither keeps it from being read.
func TestClaudeCodeReadsItsOwnFilesOnly(t *testing.T) {
	dir := t.TempDir()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(dir, ".claude/agents"), 0o755))
	must(os.MkdirAll(filepath.Join(dir, "src"), 0o755))
	must(os.WriteFile(filepath.Join(dir, ".claude/agents/a.md"),
		[]byte("---\nname: a\ndescription: A.\n---\n\nDo it.\n"), 0o600))
	must(os.Symlink("../src", filepath.Join(dir, ".claude/skills")))
	for i := range 2_000 + 1 {
		must(os.WriteFile(filepath.Join(dir, "src", fmt.Sprint(i)), nil, 0o600))
	}
	in, err := FromClaudeCode(os.DirFS(dir))
	if err != nil || len(in) != 1 || len(in[0].Problems) != 0 {
		t.Fatalf("%+v, %v", in, err)
	}
	has(t, in[0].Notes, "dropped  files: .claude/skills: is a symbolic link")
}

// A skill that becomes an agent has parts that only skills have.
func TestSkillAgentNotes(t *testing.T) {
	in := claude(t, ".claude/skills/roll/SKILL.md",
		"---\nname: roll\ndescription: Rolls.\ncompatibility: Linux\nmetadata:\n  author: me\n---\nRoll.\n",
		".claude/skills/roll/scripts/a.sh", "x")
	has(t, in[0].Notes, "dropped roll files: 1 files next to SKILL.md", "dropped roll compatibility",
		"dropped roll metadata.author",
		"guessed roll agentKey")
}

// Agents of Letta get a key from what identifies them: the metadata's slug, the name, or the id.
func TestLettaKeys(t *testing.T) {
	for text, want := range map[string]string{
		`{"id":"agent-0","name":"Loop","metadata":null}`: "Loop loop",
		`{"id":"agent-0","name":"Lööp Ω","metadata":{}}`: "Lööp Ω l-p",
		`{"id":"agent-7","name":"漢"}`:                    "漢 agent-7",
		`{"id":"agent-7"}`:                               "agent-7 agent-7",
		`{}`:                                             "agent agent",
		`{"name":"x","metadata":{"oaf":{"slug":"acme/helper"}}}`:                                            "x helper acme",
		`{"name":"x","metadata":{"oaf":{"slug":"helper"}}}`:                                                 "x x",
		`{"name":"x","metadata":{"oaf":"y"}}`:                                                               "x x",
		`{"name":"x","metadata":{"oaf":{"name":"X","agentKey":"k","vendorKey":"v","slug":"v/k"}}}`:          "X k v",
		`{"name":"x","model":"openai/gpt-5","embedding_config":{"embedding_model":"e"},"metadata":{"a":1}}`: "x x",
	} {
		a := letta(t, `{"agents":[`+text+`]}`)[0].Agent
		if got := strings.TrimSpace(a.Name + " " + a.AgentKey + " " + a.VendorKey); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// What an agent file of Letta has and the format has not is noted; what every export of Letta has is not.
func TestLettaNotes(t *testing.T) {
	in := letta(t, `{"agents":[
		{"id":"agent-0","name":"main","agent_type":"letta_v1_agent","timezone":"UTC","include_base_tools":true,"tool_ids":["tool-0"],
			"messages":[{"role":"user"}],"tool_rules":[],"secrets":null,"enable_sleeptime":false,"block_ids":["block-0","block-1","block-9"],
			"metadata":{"team":"x"},"llm_config":{"model":"m","model_endpoint_type":"openai","model_endpoint":"http://10.0.0.1","context_window":5,
			"handle":"openai/m","enable_reasoner":true,"verbosity":null}},
		{"id":"agent-1","name":"sub"},{"id":"agent-2","name":"sub"}],
		"groups":[{"id":"group-0","agent_ids":["agent-1","agent-2","agent-9"],"manager_config":{"manager_agent_id":"agent-0"}}],
		"blocks":[{"id":"block-0","label":"a","read_only":true},{"id":"block-1","label":"b"}],
		"mcp_servers":[{"id":"mcp_server-0","server_name":"s","server_type":"stdio","token":"t","stdio_config":{"command":"c","args":[],"env":{"A":"b"}}}],
		"skills":[{"name":"../x","files":{}},{"name":"y","files":{"SKILL.md":"Do it.","../z":"q"}}],
		"tools":[{"id":"tool-0","name":"t"}],"files":[],"metadata":{"generated_by":"x"},"created_at":"2026-01-01"}`)
	main := in[0].Agent
	if len(in) != 3 || len(main.Agents) != 2 || main.Agents[0].Agent != "sub" || main.Agents[1].Agent != "sub-2" ||
		!main.Agents[0].Required {
		t.Fatalf("sub-agents %+v", main.Agents)
	}
	want := []string{"dropped  tools: ", "dropped main tool_ids: ", "dropped main messages: ",
		"dropped main metadata.team: ", `dropped main memory: the file has no "block-9"`,
		"dropped main memory.type: a is read-only", "dropped main llm_config: enable_reasoner are",
		"dropped main llm_config.model_endpoint: ",
		"dropped main llm_config.context_window: ", "dropped main mcp-configs.token: s: ",
		"dropped main mcp-configs.connection.env: s: ",
		`dropped main skills: "../x"`, `dropped main skills: "y" has files`, "guessed main agentKey: main",
		"dropped  created_at: ", "dropped main include_base_tools: "}
	has(t, in[0].Notes, want...)
	if len(in[0].Notes) != len(want) {
		t.Errorf("%d notes, want %d:\n%s", len(in[0].Notes), len(want), strings.Join(noted(in[0].Notes), "\n"))
	}
}

// Members that the format does not know are lost, and named, in every export.
func TestUnknownMembersAreLost(t *testing.T) {
	text := "---\nname: a\nvendorKey: acme\nagentKey: a\ndescription: d\ncolour: red\nconfig: {tools: {deny: [Bash]}, top_p: 1}\n---\n\nDo it.\n"
	a, _ := oaf.ParseManifest([]byte(text), problem.Lenient)
	for _, to := range targets() {
		has(t, exported(t, a, to, Options{}).Notes, "dropped acme/a colour: ", "dropped acme/a config.tools.deny: ",
			"dropped acme/a config.top_p: ")
	}
	made := &oaf.Agent{VendorKey: "acme", AgentKey: "a", Body: "x",
		Extra: map[string]json.RawMessage{"colour": json.RawMessage("1")}}
	has(t, exported(t, made, Letta, Options{}).Notes, "dropped acme/a colour: ")
}

// Two imports of one export are alike, and every agent of them has a name, and a key of its own.
func TestImportsAreStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := aTeam(t)
		for _, target := range []Target{ClaudeCode, Letta} {
			out, err := Export(a, target, Options{})
			if err != nil {
				t.Fatal(err)
			}
			first, second := imports(t, target, out), imports(t, target, out)
			keys := map[string]bool{}
			for i := range first {
				if one := first[i].Agent; keys[one.AgentKey] || one.AgentKey == "" || one.Name == "" {
					t.Fatalf("%s: the key %q is empty or taken", target, one.AgentKey)
				}
				keys[first[i].Agent.AgentKey] = true
				if !slices.Equal(first[i].Notes, second[i].Notes) {
					t.Fatalf("%s: other notes the second time: %v, %v", target, first[i].Notes, second[i].Notes)
				}
			}
		}
	})
}

// imports reads the agents of an export.
func imports(t *rapid.T, target Target, out Result) []Import {
	if target == Letta {
		in, err := FromLetta(out.Files[0].Data)
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	fsys, err := tree.FS(out.Files)
	if err != nil {
		t.Fatal(err)
	}
	in, err := FromClaudeCode(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// An agent that does not say which servers and skills are its own has all of the file's: their numbers are bounded, so
// that a small file does not become a large import.
func TestLettaIsBounded(t *testing.T) {
	t.Parallel()
	many := func(entry string, n int) string { return "[" + strings.Repeat(entry+",", n-1) + entry + "]" }
	for name, text := range map[string]string{
		"agents":  `{"agents":` + many(`{}`, maxLetta+1) + `}`,
		"servers": `{"agents":[{}],"mcp_servers":` + many(`{"server_name":"a"}`, maxLetta+1) + `}`,
		"skills":  `{"agents":[{}],"skills":` + many(`{"name":"a"}`, maxLetta+1) + `}`,
	} {
		if _, err := FromLetta([]byte(text)); !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), "256") {
			t.Errorf("too many %s: %v", name, err)
		}
	}
	in := letta(t, `{"agents":`+many(`{}`, maxLetta)+`,"mcp_servers":[1,{"server_name":"a","server_type":"sse",`+
		`"server_url":"https://a.example"}]}`)
	keys := map[string]bool{}
	for _, i := range in {
		keys[i.Agent.AgentKey] = true
		if len(i.Agent.Servers) != 1 || i.Agent.Servers[0].Connection.URL != "https://a.example" {
			t.Fatalf("servers %+v", i.Agent.Servers)
		}
	}
	if len(keys) != maxLetta {
		t.Errorf("%d keys of %d agents", len(keys), maxLetta)
	}
}
