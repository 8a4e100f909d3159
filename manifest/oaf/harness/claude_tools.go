package harness

import (
	"slices"
	"strings"

	"repute/manifest/oaf"
)

// knownTool is a tool, or a server with all of its tools, by its name in Claude Code and by the names that the lists of
// an agent may give it.
type knownTool struct {
	claude string
	server string // the name of its server in Claude Code; "" for a built-in tool
	names  []string
}

// isServer reports whether it is a server with all of its tools.
func (k knownTool) isServer() bool { return k.server != "" && k.claude == mcpPrefix+k.server }

// named reports whether a list names the tool, by the rules of config.tools.denied.
func (k knownTool) named(list ...string) bool {
	return slices.ContainsFunc(k.names, func(name string) bool { return oaf.Lists(list, name) })
}

// knownTools returns the built-in tools of Claude Code, the agent's servers, and the tools that their selections name.
//
// The names of built-in tools are those of the format's text and of common spellings. oaf.Lists compares without
// regard to letter case, and takes patterns.
func knownTools(a *oaf.Agent) []knownTool {
	out := []knownTool{{claude: "Bash", names: []string{"bash", "skill_script"}},
		{claude: "Edit", names: []string{"edit"}},
		{claude: "Read", names: []string{"read", "skill_file"}}, {claude: "Write", names: []string{"write"}},
		{claude: "Glob", names: []string{"glob"}}, {claude: "Grep", names: []string{"grep"}},
		{claude: "WebFetch", names: []string{"webfetch", "web_fetch", "web-fetch"}},
		{claude: "WebSearch", names: []string{"websearch", "web_search", "web-search"}},
		{claude: "NotebookEdit", names: []string{"notebookedit"}}, {claude: "TodoWrite", names: []string{"todowrite"}},
		{claude: "Skill", names: []string{"skill"}}, {claude: "Task", names: []string{"task"}}}
	for _, s := range a.Servers {
		name := serverName(s)
		all := knownTool{claude: mcpPrefix + name, server: name, names: []string{s.Vendor + "/" + s.Name,
			"@" + s.Vendor + "/" + s.Name}}
		for _, n := range []string{s.Name, name} { // a pattern such as server__* matches the empty name of a tool
			all.names = append(all.names, n, mcpPrefix+n, n+mcpSeparator, mcpPrefix+n+mcpSeparator)
		}
		out = append(out, all)
		for _, t := range s.Selection.Tools {
			if !strings.Contains(t.Name, "*") {
				out = append(out, toolOf(s, t.Name))
			}
		}
	}
	return out
}

// toolOf returns one tool of a server.
func toolOf(s oaf.Server, tool string) knownTool {
	k := knownTool{claude: mcpTool(serverName(s), tool), server: serverName(s), names: []string{tool}}
	for _, n := range []string{s.Name, serverName(s)} {
		k.names = append(k.names, n+mcpSeparator+tool, mcpTool(n, tool))
	}
	return k
}

// serverTool returns the tool that a name with its server means, such as filesystem__read_file, whether or not the
// selection has it.
// ok is false for a pattern, and where the agent has no such server. The name is divided at the first double
// underscore: the name of a tool may have another one, that of a server may not.
func serverTool(a *oaf.Agent, name string) (k knownTool, s oaf.Server, ok bool) {
	server, tool, ok := strings.Cut(strings.TrimPrefix(name, mcpPrefix), mcpSeparator)
	at := slices.IndexFunc(a.Servers, func(s oaf.Server) bool {
		return strings.EqualFold(s.Name, server) || strings.EqualFold(serverName(s), server)
	})
	if !ok || at < 0 || tool == "" || strings.Contains(tool, "*") {
		return knownTool{}, oaf.Server{}, false
	}
	return toolOf(a.Servers[at], tool), a.Servers[at], true
}

// disallowed returns the denied tools by the names of Claude Code, and the patterns that it has no names for: those are
// written as the tools that are known.
//
// A denied name that is a pattern, or that several servers may have, is written for each known tool. Denying too much
// is a loss that a note tells; denying too little would be a danger.
func disallowed(a *oaf.Agent) (out, patterns []string) {
	known := knownTools(a)
	for _, name := range a.Config.Denied {
		// An entry such as Bash(git:*) limits one tool by its arguments, which no other entry stands for.
		if base, arguments, has := strings.Cut(name, "("); has {
			out = append(out, claudeTool(base)+"("+arguments)
			continue
		}
		before, whole := len(out), false
		for _, k := range known {
			if k.named(name) && !slices.Contains(out, mcpPrefix+k.server) {
				out, whole = append(out, k.claude), whole || k.isServer()
			}
		}
		tool, _, isTool := serverTool(a, name)
		switch {
		case strings.Contains(name, "*"):
			if !whole || !strings.HasSuffix(name, mcpSeparator+"*") {
				patterns = append(patterns, name)
			}
		case len(out) > before:
		case isTool:
			out = append(out, tool.claude)
		default:
			out = append(out, name)
			for _, s := range a.Servers { // a name without a server is that of a tool of any
				out = append(out, mcpTool(serverName(s), name))
			}
		}
	}
	return distinct(out), patterns
}

// distinct returns names in their order, each once.
func distinct(names []string) (out []string) {
	for _, n := range names {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// permitted returns the tools that an agent may use, by the names of Claude Code: those of tools that
// config.tools.allowed names as well, those of the servers, and none that is denied. It is nil where the agent has
// every tool.
//
// An empty list means no tool at all, and MUST NOT become nil, which means every tool.
func permitted(a *oaf.Agent, denied []string) []string {
	if a.Tools == nil && a.Config.Allowed == nil {
		return nil
	}
	out := permittedBuiltins(a)
	for _, s := range a.Servers {
		out = append(out, permittedOf(a, s)...)
	}
	out = slices.DeleteFunc(distinct(out), func(name string) bool {
		server, _, isMCP := parseMCPTool(name)
		return oaf.Lists(denied, name) || isMCP && oaf.Lists(denied, mcpPrefix+server)
	})
	return append([]string{}, out...)
}

// permittedBuiltins returns the built-in tools that an agent may use.
func permittedBuiltins(a *oaf.Agent) (out []string) {
	known := knownTools(a)
	for _, name := range a.Tools {
		k := knownTool{claude: name, names: []string{name}}
		if at := slices.IndexFunc(known, func(k knownTool) bool { return k.server == "" && k.named(name) }); at >= 0 {
			k.names = append(k.names, known[at].names...)
		}
		if a.Config.Allowed == nil || k.named(a.Config.Allowed...) {
			out = append(out, name)
		}
	}
	if a.Tools != nil {
		return out
	}
	for _, name := range a.Config.Allowed {
		before, ofServer := len(out), false
		for _, k := range known {
			if ofServer = ofServer || k.server != "" && k.named(name); k.server == "" && k.named(name) {
				out = append(out, k.claude)
			}
		}
		_, _, isTool := serverTool(a, name)
		base, arguments, has := strings.Cut(name, "(")
		if has {
			name = claudeTool(base) + "(" + arguments
		}
		if len(out) == before && !ofServer && !isTool && (has || !strings.Contains(name, "*")) {
			out = append(out, name)
		}
	}
	return out
}

// permittedOf returns the tools of a server that an agent may use: the server itself for all of them.
//
// A selection and config.tools.allowed limit each other: a tool is permitted where both permit it.
func permittedOf(a *oaf.Agent, s oaf.Server) (out []string) {
	list := a.Config.Allowed
	isSubset := s.Selection.Present && s.Selection.Strategy == oaf.StrategySubset
	for _, k := range knownTools(a) {
		if k.isServer() && k.server == serverName(s) && !isSubset && (list == nil || k.named(list...)) {
			return []string{k.claude}
		}
	}
	names := allowed(s.Selection)
	for _, name := range list {
		if k, of, ok := serverTool(a, name); ok && of.Name == s.Name && s.Selection.Allows(k.names[0]) {
			names = append(names, k.names[0])
		}
	}
	for _, name := range names {
		k := toolOf(s, name)
		k.names = append(k.names, s.Name, mcpPrefix+s.Name, s.Vendor+"/"+s.Name, "@"+s.Vendor+"/"+s.Name)
		if list == nil || k.named(list...) {
			out = append(out, k.claude)
		}
	}
	return out
}
