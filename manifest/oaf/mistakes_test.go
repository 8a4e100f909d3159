package oaf

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/tree"
)

// Mistakes that people make have one problem each, at the member that is at fault, with what to write.
func TestCommonMistakes(t *testing.T) {
	t.Parallel()
	const http = "connection: {type: http, url: \"http://a\"}\n"
	for name, tc := range map[string]struct {
		from             judged
		code, path, hint string
	}{
		"deny":  {having("config: {tools: {deny: [Bash]}}"), "EO734", "/config/tools/deny", "write denied"},
		"confg": {having("confg: {tools: {denied: [Bash]}}"), "EO734", "/confg", "write config"},
		"tool":  {having("config: {tool: {denied: [Bash]}}"), "EO734", "/config/tool", "write tools"},
		"excludeTools": {next("mcp-configs/s/ActiveMCP.json", `{"selectedTools":["a"],"excludeTools":["b"]}`,
			"mcp-configs/s/config.yaml", http), "EO734", "/excludeTools", "write excludedTools"},
		"permission": {server(http + "permission: {read_only: true}\n"), "EO734", "/permission", "write permissions"},
		"maxTokes": {having("harnessConfig: {repute: {maxTokes: 5}}"), "EO734", "/harnessConfig/repute/maxTokes",
			"write maxTokens"},
		"tool name": {having("tools: [Bsah]"), "IO776", "/tools", "write Bash"},
		"denied name": {having("config: {tools: {denied: [WebFtech]}}"), "WO777", "/config/tools/denied",
			"write WebFetch"},
		"readonly": {server(http + "permissions: {readonly: true}\n"), "EO734", "/permissions/readonly",
			"write read_only"},
		"agent text": {having("agents: [acme/reviewer]"), "EO704", "/agents/0",
			"write {vendor: acme, agent: reviewer}"},
		"backslash": {having("mcpServers: [{server: s, configDir: 'mcp-configs\\s'}]"), "EO704",
			"/mcpServers/0/configDir",
			"write mcp-configs/s"},
		"directory": {having("mcpServers: [{server: s, configDir: mcp-config/s}]"), "WO763", "/mcpServers/0/configDir",
			"add"},
	} {
		problems := tc.from(t, problem.Lenient)
		if !slices.ContainsFunc(problems, func(p problem.Problem) bool {
			return p.Code == tc.code && p.Path == tc.path && strings.HasPrefix(p.Hint, tc.hint)
		}) {
			t.Errorf("%s: %+v", name, problems)
		}
	}
	for _, line := range []string{"agents: [{vendor: acme, agnet: x}]", "mcpServers: [{servr: s}]"} {
		got := codes(having(line)(t, problem.Lenient))
		if slices.Contains(got, "EO704") || slices.Contains(got, "WO763") || !slices.Contains(got, "WO757") {
			t.Errorf("%s: %v", line, got)
		}
	}
}

// A LICENSE that nobody edited follows the agent's license and author; an edited one is left.
func TestLicenseFollowsTheAgent(t *testing.T) {
	t.Parallel()
	old := &Agent{VendorKey: "acme", AgentKey: "a", Slug: "acme/a", Author: "@acme", License: "MIT"}
	for _, license := range []string{"ISC", "Apache-2.0", "MIT"} {
		text := old.licenseText()
		now := &Agent{VendorKey: "acme", AgentKey: "a", Slug: "acme/a", Author: "@other", License: license,
			Files: []tree.File{{Path: licenseName, Data: []byte(text)}}}
		if files, edited := now.regenerate(); len(files) != 1 || len(edited) != 0 {
			t.Errorf("%s: %d files, edited %v", license, len(files), edited)
		}
		now.Files[0].Data = []byte(text + "Edited.\n")
		if files, edited := now.regenerate(); len(files) != 0 || len(edited) != 1 {
			t.Errorf("%s, edited: %d files, edited %v", license, len(files), edited)
		}
		old = &Agent{VendorKey: "acme", AgentKey: "a", Slug: "acme/a", Author: "@other", License: license}
	}
}

// A file that cannot be read, or whose name has another letter case, is reported once, with the true reason.
func TestAbsentFilesHaveOneReason(t *testing.T) {
	t.Parallel()
	files := dir("AGENTS.md", manifestOf("skills: [{name: x, source: local}]"), "skills/x/SKILL.md", "x")
	for name, tc := range map[string]struct {
		from       judged
		code, file string
	}{
		"closed": {loaded(locked{files, "skills/x/SKILL.md"}), "EO701", "skills/x/SKILL.md"},
		"broken": {of("AGENTS.md", manifestOf("skills: [{name: x, source: local}]"), "skills/x/SKILL.md",
			"---\na: [\n---\nx"),
			"EO722", "skills/x/SKILL.md"},
		"agents.md":    {of("agents.md", manifestOf()), "EO700", "agents.md"},
		"closed agent": {loaded(locked{dir("AGENTS.md", manifestOf()), "AGENTS.md"}), "EO701", "AGENTS.md"},
		"skill.md":     {next("skills/x/Skill.md", "x"), "WO780", "skills/x/Skill.md"},
	} {
		got := tc.from(t, problem.Lenient)
		got = slices.DeleteFunc(got, func(p problem.Problem) bool { return p.Code[0] == 'I' })
		if len(got) != 1 || got[0].Code != tc.code || got[0].File != tc.file {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A selection that cannot be found by its name, or read, selects no tool.
func TestMisnamedSelectionSelectsNothing(t *testing.T) {
	t.Parallel()
	const config, selection = "mcp-configs/s/config.yaml", "mcp-configs/s/ActiveMCP.json"
	files := dir("AGENTS.md", manifestOf(), config, "connection: {type: http, url: \"http://a\"}\n", selection, "{}")
	for name, tc := range map[string]struct {
		files fs.FS
		code  string
	}{
		"case": {dir("AGENTS.md", manifestOf(), config, "connection: {type: http, url: \"http://a\"}\n",
			"mcp-configs/s/activemcp.json", "{}"), "EO734"},
		"closed": {locked{files, selection}, "EO701"},
	} {
		a, problems := Load(tc.files, ".", problem.Lenient)
		if a.Servers[0].Selection.Allows("any") || !slices.Contains(codes(problems), tc.code) ||
			slices.Contains(codes(problems), "IO806") {
			t.Errorf("%s: %+v, %v", name, a.Servers[0].Selection, problems)
		}
	}
}

// The family of a LICENSE is compared with the field; a license that is not known is not judged.
func TestLicenseFileIsCompared(t *testing.T) {
	t.Parallel()
	const gpl = "GNU GENERAL PUBLIC LICENSE\nVersion 3\n ... the GNU Affero General Public License ..."
	for _, tc := range []struct {
		field, text string
		other       bool
	}{
		{"MIT", "MIT License\n\n" + mit, false}, {"MIT", gpl, true}, {"GPL-3.0-only", gpl, false},
		{"AGPL-3.0-only", gpl, true}, {"MIT OR Apache-2.0", "Apache License\n", false}, {"ISC", noWarranty, false},
		{"Zlib", gpl, false}, {"Mine", gpl, false},
		{"GPL-2.0-only WITH Classpath-exception-2.0", "Apache License", false},
		{"MIT", (&Agent{License: "Apache-2.0"}).licenseText(), true}, {"0BSD", isc, false}, {"BSD-3-Clause", isc, true},
	} {
		got := codes(of("AGENTS.md", manifestOf("license: "+tc.field), "LICENSE", tc.text)(t, problem.Lenient))
		if slices.Contains(got, problem.CodeLicenseFile) != tc.other {
			t.Errorf("%s with %.40q: %v", tc.field, tc.text, got)
		}
	}
}

// Names of tools are known by their forms; a tool of a server whose tools are not listed is not judged.
func TestToolNames(t *testing.T) {
	t.Parallel()
	const server = "connection: {type: http, url: \"http://a\"}\n"
	unknown := func(name string, files ...string) bool {
		got := codes(of(append([]string{"AGENTS.md", manifestOf("config: {tools: {denied: ['" + name + "']}}")},
			files...)...)(t,
			problem.Lenient))
		return slices.Contains(got, problem.CodeDeniedName)
	}
	for _, name := range []string{"Bash", "bash", "web_fetch", "Bash(git:*)", "B*", "skill_file", "agent_acme_x"} {
		if unknown(name) {
			t.Errorf("%s is not known", name)
		}
	}
	for _, name := range []string{"files__read", "mcp__files__*", "files", "@acme/files", "delete_all"} {
		if unknown(name, "mcp-configs/files/config.yaml", "server: files\nvendor: acme\n"+server) || !unknown(name) {
			t.Errorf("%s: known without the server, or unknown with it", name)
		}
	}
	for _, name := range []string{"Bsah", "other__read"} {
		if !unknown(name, "mcp-configs/files/config.yaml", server) {
			t.Errorf("%s is known", name)
		}
	}
}
