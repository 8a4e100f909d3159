package oaf

import (
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
		"deny":       {having("config: {tools: {deny: [Bash]}}"), "EO734", "/config/tools/deny", "write denied"},
		"confg":      {having("confg: {tools: {denied: [Bash]}}"), "EO734", "/confg", "write config"},
		"tool":       {having("config: {tool: {denied: [Bash]}}"), "EO734", "/config/tool", "write tools"},
		"readonly":   {server(http + "permissions: {readonly: true}\n"), "EO734", "/permissions/readonly", "write read_only"},
		"agent text": {having("agents: [acme/reviewer]"), "EO704", "/agents/0", "write {vendor: acme, agent: reviewer}"},
		"backslash": {having("mcpServers: [{server: s, configDir: 'mcp-configs\\s'}]"), "EO704", "/mcpServers/0/configDir",
			"write mcp-configs/s"},
		"directory": {having("mcpServers: [{server: s, configDir: mcp-config/s}]"), "WO763", "/mcpServers/0/configDir", "add"},
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
