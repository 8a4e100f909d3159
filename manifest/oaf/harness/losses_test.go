package harness

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"repute"
	"repute/manifest/oaf"
)

// Claude Code reads frontmatter by lines: a colon in a description is no error there. The agent next to one that cannot
// be read is imported.
func TestClaudeCodeFrontmatterIsReadLeniently(t *testing.T) {
	in := claude(t, ".claude/agents/a.md",
		"---\nname: a\ndescription: Writes tests: unit and \"other\" ones\nmodel: inherit\n---\n\nWork.\n",
		".claude/agents/b.md", "---\nname: b\nskills: [\n---\n\nWork.\n")
	if got := in[0].Agent.Description; got != `Writes tests: unit and "other" ones` || len(in[0].Problems) > 0 {
		t.Errorf("%q, %v", got, in[0].Problems)
	}
	if in[0].Agent.Model.Alias != "" {
		t.Errorf("model %+v", in[0].Agent.Model)
	}
	has(t, in[0].Notes, "dropped a model: inherit is the model of the caller")
	if bad, has := repute.FirstError(in[1].Problems); !has || bad.Line == 0 || bad.Hint == "" {
		t.Errorf("the other agent: %+v", in[1].Problems)
	}
}

func TestNotesOfClaudeCodeTools(t *testing.T) {
	const agent = "\ndescription: d\nskills: [x]\ntools: Read, mcp__gone__read\n---\n\nWork.\n"
	in := claude(t, ".claude/agents/a.md", "---\nname: a"+agent, ".claude/agents/b.md", "---\nname: b"+agent,
		".claude/skills/x/SKILL.md", "---\nname: x\ndescription: d\nargument-hint: file\n---\n\nDo it.\n")
	has(t, in[0].Notes, "dropped a tools: mcp__gone__read: mcpServers does not name its server",
		"dropped  skills: .claude/skills/x: argument-hint is kept in metadata")
	if tools := in[0].Agent.Tools; !slices.Equal(tools, []string{"Read"}) {
		t.Errorf("tools %v", tools)
	}
	if all := strings.Join(append(noted(in[0].Notes), noted(in[1].Notes)...), "\n"); strings.Count(all,
		"argument-hint") != 1 ||
		len(in[0].Problems)+len(in[1].Problems) > 0 {
		t.Errorf("the member is not noted once:\n%s\n%v", all, in[0].Problems)
	}
}

// No harness enforces permissions, and the report says which ones.
func TestLostPermissions(t *testing.T) {
	a := restricted(nil, nil, nil)
	a.Servers[0].Permissions = oaf.Permissions{AllowPaths: []string{"/workspace"}, DenyPaths: []string{"/etc"},
		ReadOnly: true}
	for _, to := range []Target{ClaudeCode, Goose, DeepAgents, Letta} {
		has(t, exported(t, a, to, Options{}).Notes,
			"dropped acme/a mcp-configs.permissions: filesystem: lost: nothing limits it "+
				"to /workspace or to reading, nothing keeps it from /etc")
	}
}

func TestLostRolesAndIdentities(t *testing.T) {
	sub := &oaf.Agent{Dir: "b", Name: "B", VendorKey: "acme", AgentKey: "b", Slug: "acme/b", Version: "1.0.0",
		Body: "Work."}
	main := &oaf.Agent{Dir: ".", Name: "A", VendorKey: "acme", AgentKey: "a", Slug: "acme/a", Body: "Work.",
		Agents: []oaf.AgentRef{{Vendor: "acme", Agent: "b", Role: "reviewer", Delegations: []string{"review"},
			Local: sub}}}
	for _, to := range []Target{Goose, DeepAgents} {
		has(t, exported(t, main, to, Options{}).Notes, "dropped acme/a agents: ")
	}
	has(t, exported(t, main, DeepAgents, Options{}).Notes, "dropped acme/b identity: ")
	has(t, exported(t, main, Goose, Options{Layout: LayoutText}).Notes,
		"dropped acme/a identity: the layout of the text")
	has(t, exported(t, main, ClaudeCode, Options{Layout: LayoutText}).Notes,
		"dropped acme/a skills: Claude Code does not look")
	has(t, exported(t, main, DeepAgents, Options{Layout: LayoutText}).Notes,
		"dropped acme/a body: Deep Agents loads AGENTS.md")
}

// An embedding whose dimensions are known reaches Letta, and another one is named as lost.
func TestExportedEmbedding(t *testing.T) {
	for embedding, want := range map[string]struct {
		model      string
		dimensions int
		note       string
	}{"": {"text-embedding-3-small", 1536, ""}, "text-embedding-3-large": {"text-embedding-3-large", 3072, ""},
		"openai/text-embedding-ada-002": {"text-embedding-ada-002", 1536,
			"dropped acme/a model: the embedding is written as"},
		"nomic-embed-text": {"text-embedding-3-small", 1536,
			"dropped acme/a model: Letta wants the number of dimensions"}} {
		a := restricted(nil, nil, nil)
		a.Model = oaf.Model{Provider: "openai", Name: "gpt-5", Embedding: embedding}
		out := exported(t, a, Letta, Options{})
		var file agentFile
		if err := json.Unmarshal(out.Files[0].Data, &file); err != nil {
			t.Fatal(err)
		}
		if e := file.Agents[0].Embedding; e.Model != want.model || e.Dimensions != want.dimensions {
			t.Errorf("%s: %+v", embedding, e)
		}
		if all := strings.Join(noted(out.Notes), "\n"); !strings.Contains(all, want.note) || want.note == "" &&
			strings.Contains(all, "embedding") {
			t.Errorf("%s: %s", embedding, all)
		}
	}
}

// The layout of the format's text for Goose has no tools, also where the agent has none.
func TestGooseTextNamesLostTools(t *testing.T) {
	for _, tools := range [][]string{{}, {"Read"}} {
		has(t, exported(t, restricted(tools, nil, nil), Goose, Options{Layout: LayoutText}).Notes,
			"dropped acme/a tools: the layout of the text has no tools")
	}
}

func TestLettaEmbeddingAndGroup(t *testing.T) {
	in := letta(t, `{"agents": [{"id": "agent-0", "name": "a", "agent_type": "memgpt_agent", "include_base_tools": true,
		"embedding_config": {"embedding_model": "letta-free", "embedding_dim": 1536}}], "created_at": "2026-01-01",
		"metadata": {"team": "blue"}, "tools": [{"name": "roll_dice"}],
		"groups": [{"id": "group-0", "agent_ids": [], "description": "Round table", "manager_config": {"manager_type": "round_robin"}}]}`)
	if got := in[0].Agent.Model.Embedding; got != "letta-free" {
		t.Errorf("embedding %q", got)
	}
	has(t, in[0].Notes, "dropped a agent_type: memgpt_agent", "dropped a include_base_tools: ",
		"dropped a embedding_config: ",
		"dropped  created_at: ", "dropped  metadata.team: ", "dropped  tools: roll_dice",
		"dropped  groups.manager_type: group-0: round_robin",
		"dropped  groups.description: group-0: Round table")
}

// A server has a directory of its own whatever its name is, and of two servers of one name an export says which is lost.
func TestNamesOfServers(t *testing.T) {
	in := letta(t, `{"agents": [{"id": "agent-0", "name": "a",
		"metadata": {"oaf": {"mcpServers": ["a/b", "a-b", "日/本", "server"]}}}],
		"mcp_servers": [{"server_name": "a/b"}, {"server_name": "a-b"}, {"server_name": "日/本"}, {"server_name": "server"}]}`)
	dirs := map[string]bool{}
	for _, s := range in[0].Agent.Servers {
		if dirs[s.Dir] || strings.HasSuffix(s.Dir, "/") {
			t.Errorf("%s is in %s", s.Name, s.Dir)
		}
		dirs[s.Dir] = true
	}
	if len(dirs) != 4 {
		t.Errorf("%v", dirs)
	}
	server := func(url string) []oaf.Server {
		return []oaf.Server{{Dir: "mcp-configs/db", Name: "db", Connection: oaf.Connection{Type: "http", URL: url}}}
	}
	for other, notes := range map[string]bool{"https://one.example/mcp": false, "https://two.example/mcp": true} {
		sub := &oaf.Agent{Dir: "b", Name: "B", VendorKey: "acme", AgentKey: "b", Slug: "acme/b", Version: "1.0.0",
			Body: "Work.", Servers: server(other)}
		main := &oaf.Agent{Dir: ".", Name: "A", VendorKey: "acme", AgentKey: "a", Slug: "acme/a", Version: "1.0.0",
			Body: "Work.", Servers: server("https://one.example/mcp"),
			Agents: []oaf.AgentRef{{Vendor: "acme", Agent: "b", Local: sub}}}
		out := exported(t, main, Letta, Options{})
		var file agentFile
		if err := json.Unmarshal(out.Files[0].Data, &file); err != nil {
			t.Fatal(err)
		}
		said := strings.Contains(strings.Join(noted(out.Notes), "\n"), "db: another server has its name")
		if len(file.Agents) != 2 || len(file.MCPServers) != 1 || said != notes {
			t.Errorf("%s: %d servers, %v", other, len(file.MCPServers), noted(out.Notes))
		}
	}
}
