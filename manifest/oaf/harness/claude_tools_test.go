package harness

import (
	"strings"
	"testing"

	"repute/manifest/oaf"
)

// restricted is an agent with a server and lists of tools.
func restricted(tools, allowed, denied []string) *oaf.Agent {
	return &oaf.Agent{Dir: ".", Name: "A", VendorKey: "acme", AgentKey: "a", Slug: "acme/a", Body: "Work.",
		Tools:  tools,
		Config: oaf.Config{Allowed: allowed, Denied: denied}, Servers: []oaf.Server{{Dir: "mcp-configs/filesystem",
			Name: "filesystem", Connection: oaf.Connection{Type: "stdio", Command: "fs"},
			Selection: oaf.Selection{Present: true,
				Strategy: oaf.StrategySubset, Tools: []oaf.SelectedTool{{Name: "read_file", Enabled: true},
					{Name: "write_file", Enabled: true}}}}}}
}

// What an agent denies is denied in Claude Code, and what it does not allow is not among the tools there.
func TestClaudeToolLists(t *testing.T) {
	for name, tc := range map[string]struct {
		tools, allowed, denied []string
		want, wantDenied       string
	}{
		"tool of a server": {tools: []string{"Read"}, denied: []string{"filesystem__read_file"},
			want: "Read, mcp__filesystem__write_file", wantDenied: "mcp__filesystem__read_file"},
		"tool alone": {tools: []string{"Read"}, denied: []string{"read_file"},
			want: "Read, mcp__filesystem__write_file", wantDenied: "mcp__filesystem__read_file"},
		"tool that is not selected": {tools: []string{"Read"}, denied: []string{"mcp__filesystem__move"},
			want: "Read, mcp__filesystem__read_file, mcp__filesystem__write_file", wantDenied: "mcp__filesystem__move"},
		"all of a server": {tools: []string{"Read"}, denied: []string{"filesystem__*"}, want: "Read",
			wantDenied: "mcp__filesystem"},
		"server": {tools: []string{"Read"}, denied: []string{"filesystem"}, want: "Read",
			wantDenied: "mcp__filesystem"},
		"pattern": {tools: []string{"Read"}, denied: []string{"filesystem__write_*"},
			want: "Read, mcp__filesystem__read_file", wantDenied: "mcp__filesystem__write_file"},
		"scripts": {tools: []string{"Read", "Bash", "Bash(git:*)"}, denied: []string{"skill_script"},
			want: "Read, mcp__filesystem__read_file, mcp__filesystem__write_file", wantDenied: "Bash"},
		"intersection": {tools: []string{"Read", "Bash"}, allowed: []string{"Bash", "filesystem__read_file"},
			want: "Bash, mcp__filesystem__read_file"},
		"server allowed": {allowed: []string{"filesystem", "grep"},
			want: "Grep, mcp__filesystem__read_file, mcp__filesystem__write_file"},
	} {
		a := restricted(tc.tools, tc.allowed, tc.denied)
		text := find(t, exported(t, a, ClaudeCode, Options{}), ".claude/agents/acme-a.md")
		for _, line := range [][2]string{{"tools: ", tc.want}, {"disallowedTools: ", tc.wantDenied}} {
			if line[1] != "" && !hasLine(text, line[0]+line[1]) {
				t.Errorf("%s: no %s%s in\n%s", name, line[0], line[1], text)
			}
		}
	}
	out := exported(t, restricted([]string{"Read"}, nil, []string{"filesystem__write_*"}), ClaudeCode, Options{})
	has(t, out.Notes, "dropped acme/a config.tools.denied: filesystem__write_*: Claude Code takes no such patterns")
}

// hasLine reports whether a text has a line, in quotes or not.
func hasLine(text, line string) bool {
	name, value, _ := strings.Cut(line, ": ")
	for _, l := range strings.Split(text, "\n") {
		if l == line || l == name+": \""+value+"\"" || l == name+": '"+value+"'" {
			return true
		}
	}
	return false
}
