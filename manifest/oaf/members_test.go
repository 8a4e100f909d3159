package oaf

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"repute/manifest/oaf/problem"
)

// A member that no object of the format has is a warning for a reader and an error for a publisher, in its line, with
// the member that was meant.
func TestUnknownMembers(t *testing.T) {
	t.Parallel()
	const http = "connection: {type: http, url: \"http://a\"}\n"
	config := func(text string) judged { return server(http + text) }
	selection := func(text string) judged {
		return next("mcp-configs/s/config.yaml", http, "mcp-configs/s/ActiveMCP.json", text)
	}
	restricting := []string{"AGENTS.md:11 /tool", "AGENTS.md:13 /config/tools/deny",
		"mcp-configs/s/config.yaml:2 /permissions/readonly", "mcp-configs/s/config.yaml:3 /permissions/deny-path",
		"AGENTS.md:11 /harnessConfig/repute/maxtokens", "mcp-configs/s/ActiveMCP.json:1 /excludeTools",
		"mcp-configs/s/ActiveMCP.json:2 /selectedTool", "mcp-configs/s/config.yaml:2 /rate_limit/request_per_minute"}
	for at, from := range map[string]struct {
		judged
		hint string
	}{
		"AGENTS.md:11 /tool": {having("tool: [Read]"), "write tools"},
		"AGENTS.md:13 /config/tools/deny": {having("config:\n  tools:\n    deny: [Bash]"),
			"write denied"},
		"AGENTS.md:12 /config/maxTokens": {having("config:\n  maxTokens: 3"),
			"write max_tokens"},
		"AGENTS.md:12 /skills/0/requires": {having("skills:\n  - {vendor: a, skill: b, source: registry, requires: true}"), "write required"},
		"AGENTS.md:11 /packs/0/packs":     {having("packs: [{packs: b}]"), "write pack"},
		"AGENTS.md:11 /weblets/0/lunch": {having("weblets: [{weblet: w, lunch: onDemand}]"),
			"write launch"},
		"AGENTS.md:11 /mcpServers/0/configDirectory": {having("mcpServers: [{server: s, configDirectory: x}]"),
			"write configDir"},
		"AGENTS.md:11 /agents/0/delegation": {having("agents: [{agent: b, delegation: [x]}]"),
			"write delegations"},
		"AGENTS.md:12 /orchestration/fall_back": {having("orchestration:\n  fall_back: main"),
			"write fallback"},
		"AGENTS.md:11 /orchestration/triggers/0/actions": {having("orchestration: {triggers: [{event: a, actions: b}]}"), "write action"},
		"AGENTS.md:11 /memory/block": {having("memory: {block: {a: b}}"),
			"write blocks"},
		"AGENTS.md:11 /memory/blocks/me/limits": {having("memory: {blocks: {me: {value: a, limits: 3}}}"),
			"write limit"},
		"AGENTS.md:11 /model/providers": {having("model: {providers: openai, name: x}"),
			"write provider"},
		"AGENTS.md:11 /harnessConfig/repute/maxtokens": {having("harnessConfig: {repute: {maxtokens: 3}}"),
			"write maxTokens"},
		"AGENTS.md:12 /config/tools/disallowed": {having("config:\n  tools: {disallowed: [Bash]}"),
			"use one of allowed, denied"},
		"AGENTS.md:11 /colour": {having("colour: red"),
			problem.Hint(problem.CodeMember)},
		"mcp-configs/s/ActiveMCP.json:1 /excludeTools": {selection(`{"excludeTools": ["rm"]}`),
			"write excludedTools"},
		"mcp-configs/s/ActiveMCP.json:2 /selectedTool": {selection("{\n\"selectedTool\": []}"),
			"write selectedTools"},
		"mcp-configs/s/ActiveMCP.json:1 /selectedTools/0/x": {selection(`{"selectedTools": [{"name": "a", "x": 1}]}`),
			"use one of name, enabled, description, required"},
		"mcp-configs/s/config.yaml:2 /permissions/readonly": {config("permissions: {readonly: true}"),
			"write read_only"},
		"mcp-configs/s/config.yaml:3 /permissions/deny-path": {config("permissions:\n  deny-path: [/etc]"),
			"write deny_paths"},
		"mcp-configs/s/config.yaml:2 /rate_limit/request_per_minute": {config("rate_limit: {request_per_minute: 3}"),
			"write requests_per_minute"},
		"mcp-configs/s/config.yaml:2 /auth/tokens": {config("auth: {type: bearer, tokens: \"${A}\"}"),
			"write token"},
		"mcp-configs/s/config.yaml:2 /conection": {config("conection: {}"), "write connection"},
		"mcp-configs/s/config.yaml:1 /connection/uri": {server("connection: {type: http, url: \"http://a\", uri: x}\n"),
			"write url"},
		"PACKAGE.yaml:2 /agents/0/versions": {packaged("format: oaf-package\nagents: [{slug: acme/helper, versions: 1.0.0}]\n"), "write version"},
		"PACKAGE.yaml:3 /contents/modes":    {packaged("format: oaf-package\nagents: [{slug: acme/helper}]\ncontents: {modes: bundled}\n"), "write mode"},
	} {
		for profile, code := range map[problem.Profile]string{problem.Lenient: "WO730", problem.Strict: "EO730"} {
			var got []string
			for _, p := range from.judged(t, profile) {
				if p.Code == problem.CodeRestriction && slices.Contains(restricting, at) {
					p.Code = code // an error in both profiles
				}
				if p.Code == code {
					got = append(got, fmt.Sprintf("%s %s:%d %s (%s)", p.Code, p.File, p.Line, p.Path, p.Hint))
				}
			}
			if want := code + " " + at + " (" + from.hint + ")"; !slices.Equal(got, []string{want}) {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
}

// A tab in the indentation is the usual reason for a line that is no YAML, and the message says it.
func TestTabsAreNamed(t *testing.T) {
	t.Parallel()
	problems := having("config:\n  tools:\n  \tdenied: [Bash]")(t, problem.Lenient)
	if len(problems) != 1 || problems[0].Line != 13 || problems[0].Message != "the line is indented by a tab" {
		t.Errorf("%+v", problems)
	}
}

// What the format leaves to authors, to servers and to other harnesses has no unknown members.
func TestOpenMembers(t *testing.T) {
	t.Parallel()
	const http = "connection: {type: http, url: \"http://a\"}\n"
	for name, from := range map[string]judged{
		"other harnesses":  having("harnessConfig: {goose: {docker-image: x, environment: {maxtokens: 3}}, letta: {tool: 1}}"),
		"labels of blocks": having("memory: {blocks: {limits: default, tool: {value: a}}}"),
		"metadata":         skillOf("name: x\ndescription: d\nmetadata:\n  names: a\n  descriptions: b"),
		"variables":        server("connection: {command: a, env: {URI: a}, headers: {Types: b}}\n"),
		"permissions":      server(http + "permissions: {tables: [users], delete: false, allow_tables: [a]}\n"),
		"limits":           server(http + "rate_limit: {concurrency: 3}\nretry: {times: 3}\nhealth_check: {path: /}\n"),
		"settings of tools": next("mcp-configs/s/config.yaml", http, "mcp-configs/s/ActiveMCP.json",
			`{"name": "s", "enabled_tools": ["a"], "disabled_tools": ["admin.*"], "tool_config": {"a": {"names": 1}}}`),
		"registered agent": having("agents: [{agent: b, agentId: \"8453:22\", chain: 8453, registry: x}]"),
		"other dialect":    having("skills: [{name: b, source: \"https://a.example/skills/index.json\", version: 1.0.0, required: true}]"),
		"entrypoint":       having("entrypoint: structured"),
	} {
		for _, p := range from(t, problem.Strict) {
			if p.Code[1:] == "O730" || p.Code[1:] == "O786" {
				t.Errorf("%s: %+v", name, p)
			}
		}
	}
}

// Unknown members are named for those who write the agent for another harness, also those of its servers and below
// others.
func TestUnknownMembersAreNamed(t *testing.T) {
	t.Parallel()
	a, _ := Load(dir("AGENTS.md", manifestOf("colour: red", "config: {tools: {deny: [Bash]}, top_p: 1}",
		"skills: [{name: a, x: 1}]"),
		"mcp-configs/s/config.yaml", "connection: {type: http, url: \"http://a\", uri: x}\n",
		"mcp-configs/s/ActiveMCP.json", `{"excludeTools": []}`), ".", problem.Lenient)
	if got := strings.Join(a.Unknown, " "); got != "colour config.tools.deny config.top_p skills.0.x" {
		t.Errorf("the agent: %s", got)
	}
	if got := a.Servers[0].Unknown; !slices.Equal(slices.Sorted(slices.Values(got)),
		[]string{"connection.uri", "excludeTools"}) {
		t.Errorf("the server: %q", got)
	}
}
