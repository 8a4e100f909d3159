package oaf

import (
	"slices"
	"strings"
	"testing"

	"repute/manifest/oaf/problem"
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
