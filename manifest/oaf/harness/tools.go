package harness

import (
	"fmt"
	"slices"
	"strings"

	"repute/manifest/oaf"
)

// claudeTool returns Claude Code's name of a tool that the format's text names otherwise.
func claudeTool(name string) string {
	known := map[string]string{"bash": "Bash", "edit": "Edit", "read": "Read", "write": "Write", "glob": "Glob",
		"grep":      "Grep",
		"web_fetch": "WebFetch", "web-fetch": "WebFetch", "web_search": "WebSearch", "web-search": "WebSearch"}
	if to, ok := known[name]; ok {
		return to
	}
	return name
}

// isToolName reports whether a name can be one entry of a list that is divided at commas.
// The name of a tool of a server is none, since an import reads it as part of that server's selection.
func isToolName(name string) bool {
	return name != "" && !strings.ContainsAny(name, ", \t\n") && !strings.HasPrefix(name, mcpPrefix)
}

// mcp__server__tool is Claude Code's form of a tool of a server.
const (
	mcpPrefix    = "mcp__"
	mcpSeparator = "__"
)

// mcpTool returns Claude Code's name of a tool of an MCP server.
func mcpTool(server, tool string) string { return mcpPrefix + server + mcpSeparator + tool }

// parseMCPTool divides Claude Code's name of a tool of an MCP server.
func parseMCPTool(name string) (server, tool string, ok bool) {
	rest, ok := strings.CutPrefix(name, mcpPrefix)
	if !ok {
		return "", "", false
	}
	server, tool, ok = strings.Cut(rest, mcpSeparator)
	return server, tool, ok && server != "" && tool != ""
}

// allowed returns the tools of a server that a selection names one by one and allows.
func allowed(s oaf.Selection) []string {
	var out []string
	for _, t := range s.Tools {
		if t.Enabled && !strings.Contains(t.Name, "*") && s.Allows(t.Name) {
			out = append(out, t.Name)
		}
	}
	return out
}

// denied returns the tools of a server that a selection excludes or disables by name, without repeats.
func denied(s oaf.Selection) []string {
	out := slices.Clone(s.Excluded)
	for _, t := range s.Tools {
		if !t.Enabled {
			out = append(out, t.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// restrictions is the heading of what a harness without a list of denied tools is told in words.
const restrictions = "\n\n## Tool Restrictions\n\nNever use these tools: "

// prompt returns the body with the denied tools in words.
func prompt(a *oaf.Agent) string {
	if len(a.Config.Denied) == 0 {
		return a.Body
	}
	return a.Body + restrictions + strings.Join(a.Config.Denied, ", ") + "."
}

// divide takes the denied tools out of a body that prompt made.
// The last heading counts, because a body may quote the text. What does not end as prompt ends it is a body of its
// author.
func divide(body string) (plain string, denied []string) {
	at := strings.LastIndex(body, restrictions)
	if at < 0 {
		return body, nil
	}
	list, ok := strings.CutSuffix(body[at+len(restrictions):], ".")
	if !ok || strings.Contains(list, "\n") {
		return body, nil
	}
	return body[:at], strings.Split(list, ", ")
}

// model returns provider and name of the agent's model; ok is false where the agent names none, or one that the table
// of aliases does not have.
// An alias that the table does not have may be provider/name itself.
func (e *export) model(a *oaf.Agent) (provider, name string, ok bool) {
	m := a.Model
	if m.Alias == "" {
		return m.Provider, m.Name, m.Provider != "" && m.Name != ""
	}
	full, known := e.options.Models[m.Alias]
	if !known {
		full = m.Alias
	}
	provider, name, ok = strings.Cut(full, "/")
	return provider, name, ok && provider != "" && name != ""
}

// lostModel records a model that cannot be named.
func (e *export) lostModel(a *oaf.Agent) {
	e.lose(true, a, "model", "%s is no provider and name, and no known alias", describe(a.Model))
}

// describe returns a model for the report of losses.
func describe(m oaf.Model) string {
	if m.Alias != "" {
		return fmt.Sprintf("%.80q", m.Alias)
	}
	return fmt.Sprintf("%.80q", m.Provider+"/"+m.Name)
}
