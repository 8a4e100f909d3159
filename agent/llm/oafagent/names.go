package oafagent

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"repute"
	"repute/agent/llm"
	"repute/manifest/oaf"
)

// tool is a tool of the conversation with the names that the agent's lists may give it: the tool's own, and that of the
// tool of Claude Code which does the same.
type tool struct {
	llm.Tool
	names   []string // in lists that deny
	granted []string // in lists that allow
}

// own is a tool of this runtime with the name of the tool of Claude Code which does the same, empty for none.
func own(t llm.Tool, claude string) tool {
	names := []string{t.Name}
	if claude != "" {
		names = append(names, claude)
	}
	return tool{t, names, names}
}

// names are the names that lists may give a tool of a server: first the tool's own, and the server's, because the name
// that the model sees has other characters and can be shortened, and that of Claude Code.
func (s *server) names(tool string) []string {
	names := []string{tool, s.toolName(tool)}
	for _, srv := range []string{s.def.Name, s.name} {
		names = append(names, srv, srv+separator+tool, "mcp__"+srv, "mcp__"+srv+separator+tool)
	}
	if s.def.Vendor != "" {
		vendor := "@" + strings.TrimPrefix(s.def.Vendor, "@")
		names = append(names, vendor+"/"+s.def.Name, vendor[1:]+"/"+s.def.Name)
	}
	return names
}

// granted are the names by which lists that allow something may mean a tool of a server. A server chooses the names of
// its tools: one that can be the name of another server, of a tool of it, or of a tool that no server has, is not among
// them.
func (a *Agent) granted(s *server, tool string) []string {
	names := s.names(tool)
	if strings.ContainsAny(tool, "/(") || strings.Contains(tool, separator) || isBuiltin(tool) ||
		slices.ContainsFunc(a.def.Servers, func(o oaf.Server) bool {
			return strings.EqualFold(o.Name, tool) || strings.EqualFold(safeName(o.Name), tool)
		}) {
		return names[1:]
	}
	return names
}

// isBuiltin reports whether a name is that of a tool of this runtime or of Claude Code.
func isBuiltin(name string) bool {
	return strings.HasPrefix(strings.ToLower(name), "agent_") || strings.EqualFold(name, "mcp") ||
		slices.ContainsFunc(slices.Concat(oaf.BuiltinTools(), oaf.RuntimeTools()),
			func(known string) bool { return strings.EqualFold(known, name) })
}

// listed reports whether a list names one of the names, by the rules of config.tools.denied.
func listed(list, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return oaf.Lists(list, name) })
}

// permits reports whether the agent's file lets the model use a tool: config.tools.allowed names it, where there is
// such a list, and config.tools.denied does not. A part of a tool, such as Bash(git:*), cannot be told from the
// rest of it here: denied, it denies the tool, and allowed, it allows nothing.
func (a *Agent) permits(t tool) bool {
	denied := make([]string, len(a.def.Config.Denied))
	for i, d := range a.def.Config.Denied {
		denied[i], _, _ = strings.Cut(d, "(")
	}
	return !listed(denied, t.names) && (a.def.Config.Allowed == nil || listed(a.def.Config.Allowed, t.granted))
}

// mayRunScripts reports whether the agent's file lets the model run programs. Scripts are what Bash is in tools, the
// list of built-in tools of Claude Code.
func (a *Agent) mayRunScripts() bool { return a.def.Tools == nil || listed(a.def.Tools, scriptNames()) }

// maxShown bounds an input that a person confirms, in bytes, because all of it MUST fit in the reason of a decision.
const maxShown = 2000

// confirm makes a tool ask a person before each call, where the agent's file requires it. The name of the action has a
// digest of the input, so that an approval is never found for another input.
func (r *run) confirm(t llm.Tool) llm.Tool {
	if !r.def.Config.RequireConfirmation {
		return t
	}
	t.Before = func(ctx context.Context, input json.RawMessage) error {
		if r.s.Confirm == nil {
			return fmt.Errorf("the agent's file requires a confirmation, and nobody can be asked here: %w",
				repute.ErrInvalid)
		}
		if len(input) > maxShown {
			return repute.Invalid("input",
				fmt.Sprintf("has %d bytes, and a person who confirms the call is shown at most %d",
					len(input), maxShown), "a shorter input, or several calls")
		}
		r.acted++
		sum := sha256.Sum256(input)
		return r.s.Confirm(ctx, fmt.Sprintf("%d-%s-%x", r.acted, t.Name, sum[:8]),
			fmt.Sprintf("call %s with %s", t.Name, input))
	}
	return t
}

// schema is a JSON Schema of an object with these texts.
func schema(names ...string) json.RawMessage {
	properties := map[string]any{}
	for _, n := range names {
		properties[n] = map[string]any{"type": "string"}
	}
	return mustJSON(map[string]any{"type": "object", "properties": properties, "required": names,
		"additionalProperties": false})
}
