package harness

import (
	"strings"
	"testing"

	"repute/manifest/oaf"
)

// open is an agent whose servers have secrets in the open.
func open() *oaf.Agent {
	servers := []oaf.Server{
		{Connection: oaf.Connection{Type: "http", URL: "http://a/mcp",
			Headers: map[string]string{"Authorization": "Bearer ghp_hunter2hunter2hunter2", "X-Team": "blue"}}},
		{Connection: oaf.Connection{Type: "http", URL: "http://bob:hunter2hunter2@a/mcp"}},
		{Connection: oaf.Connection{Type: "http", URL: "http://a/mcp?api_key=hunter2hunter2"}},
		{Connection: oaf.Connection{Type: "stdio", Command: "npx", Args: []string{"-y", "--password", "hunter2hunter2"},
			Env: map[string]string{"API_KEY": "hunter2hunter2", "LEVEL": "debug"}}},
	}
	for i := range servers {
		servers[i].Name = string(rune('a' + i))
		servers[i].Dir = "mcp-configs/" + servers[i].Name
	}
	return &oaf.Agent{Dir: ".", Name: "A", VendorKey: "acme", AgentKey: "a", Slug: "acme/a", Body: "Work.",
		Servers: servers}
}

func TestExportWithholdsSecrets(t *testing.T) {
	for _, to := range []Target{ClaudeCode, Goose, DeepAgents, Letta} {
		out := exported(t, open(), to, Options{})
		for _, f := range out.Files {
			if strings.Contains(string(f.Data), "hunter2") {
				t.Errorf("%s: %s has a secret:\n%s", to, f.Path, f.Data)
			}
		}
		for _, server := range []string{"b", "c", "d"} {
			has(t, out.Notes, "dropped acme/a mcp-configs.connection: "+server+": ")
		}
		for _, n := range noted(out.Notes) {
			if strings.Contains(n, "hunter2") {
				t.Errorf("%s: a note shows a secret: %s", to, n)
			}
		}
	}
	text := find(t, exported(t, open(), ClaudeCode, Options{}), ".mcp.json")
	for _, want := range []string{`"${API_KEY}"`, `"${PASSWORD}"`, `"blue"`, `"debug"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing:\n%s", want, text)
		}
	}
}

func TestImportWithholdsSecrets(t *testing.T) {
	in := claude(t, ".claude/agents/a.md", "---\nname: a\ndescription: d\nmcpServers: [s]\n---\n\nWork.\n",
		".mcp.json",
		`{"mcpServers": {"s": {"command": "npx", "args": ["--token=hunter2hunter2"], "env": {"API_KEY": "hunter2hunter2"}}}}`)
	has(t, in[0].Notes, "dropped a mcp-configs.connection: s: the variable API_KEY, argument 1 is withheld")
	files, err := in[0].Agent.Write()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.Contains(string(f.Data), "hunter2") {
			t.Errorf("%s has a secret:\n%s", f.Path, f.Data)
		}
	}
}
