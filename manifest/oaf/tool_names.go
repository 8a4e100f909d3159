package oaf

import (
	"slices"
	"strings"
	"unicode"

	"repute/manifest/oaf/frontmatter"
	"repute/manifest/oaf/problem"
)

// BuiltinTools returns the built-in tools of Claude Code, by whose names the format lists tools.
func BuiltinTools() []string {
	return []string{"Bash", "BashOutput", "KillShell", "KillBash", "Read", "Write", "Edit", "MultiEdit", "NotebookRead",
		"NotebookEdit", "Glob", "Grep", "LS", "WebFetch", "WebSearch", "TodoRead", "TodoWrite", "Task", "Agent",
		"Skill",
		"ExitPlanMode", "EnterPlanMode", "AskUserQuestion", "SlashCommand", "ToolSearch", "LSP"}
}

// RuntimeTools returns the tools that this project's runtime has itself.
func RuntimeTools() []string {
	return strings.Fields("skill skill_file skill_script memory_edit memory_search")
}

// checkToolNames reports names in the agent's lists of tools that no known tool has. Not all tools of servers are
// known. If the agent has servers, a name without a server is checked only when it begins with an upper-case letter, as
// built-in tools do.
func (a *Agent) checkToolNames(o *frontmatter.Object) {
	known := a.toolNames()
	hasServers := len(a.Servers)+len(a.MCPServers) > 0
	tools := o.Object("config").Object("tools")
	for _, list := range []struct {
		in        *frontmatter.Object
		key, code string
		names     []string
	}{{o, "tools", problem.CodeToolName, a.Tools}, {tools, "allowed", problem.CodeToolName, a.Config.Allowed},
		{tools, "denied", problem.CodeDeniedName, a.Config.Denied}} {
		for _, name := range list.names {
			base, _, _ := strings.Cut(name, "(")
			ofServer := strings.Contains(strings.TrimPrefix(base, mcpPrefix), mcpSeparator)
			if isKnownTool(base, known) || hasServers && !ofServer && strings.IndexFunc(base, unicode.IsUpper) != 0 {
				continue
			}
			hint := problem.Hint(list.code)
			if near := frontmatter.Nearest(base, known); near != "" {
				hint = "write " + near
			}
			list.in.Suggest(list.code, list.key, hint, "%.80q is the name of no known tool", name)
		}
	}
}

// toolNames returns the names of all tools that are known: built-in ones, servers, and the tools that selections name.
func (a *Agent) toolNames() []string {
	out := slices.Concat(BuiltinTools(), RuntimeTools())
	server := func(vendor, name string) {
		out = append(out, name, mcpPrefix+name, vendor+"/"+name, "@"+vendor+"/"+name)
	}
	for _, s := range a.Servers {
		server(s.Vendor, s.Name)
		for _, t := range s.Selection.Tools {
			out = append(out, t.Name)
		}
		out = append(out, s.Selection.Excluded...)
	}
	for _, r := range a.MCPServers {
		server(r.Vendor, r.Server)
	}
	return out
}

// mcpPrefix and mcpSeparator make Claude Code's names of tools of servers, which published agents use:
// mcp__server__tool.
const mcpPrefix, mcpSeparator = "mcp__", "__"

// isKnownTool reports whether a name or pattern matches a known tool or a tool of a known server. Case, "_" and "-" are
// ignored: web_search is WebSearch.
func isKnownTool(name string, known []string) bool {
	if server, tool, ok := strings.Cut(strings.TrimPrefix(name, mcpPrefix), mcpSeparator); ok && tool != "" {
		name = server
	}
	plain := strings.NewReplacer("_", "", "-", "").Replace
	return strings.HasPrefix(name, "agent_") || slices.ContainsFunc(known, func(k string) bool {
		return strings.EqualFold(plain(k), plain(name)) || matches(strings.ToLower(name), strings.ToLower(k))
	})
}
