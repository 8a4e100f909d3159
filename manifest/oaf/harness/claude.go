package harness

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"repute/manifest/oaf"
	"repute/manifest/oaf/frontmatter"
	"repute/manifest/oaf/skill"
	"repute/manifest/oaf/tree"
)

// Members of a skill's metadata that carry what Claude Code has no place for. Values of metadata are texts.
const (
	// identify reads them back. An agent counts as exported where metaSlug is there.
	metaPrefix  = "oaf-"
	metaSlug    = "oaf-slug"
	metaVersion = "oaf-version"
	metaName    = "oaf-name"
	metaAuthor  = "oaf-author"
	metaTags    = "oaf-tags"
	metaAgents  = "oaf-agents"
)

// claudeCode writes .claude/agents, .claude/skills and .mcp.json. Only directories directly below .claude/skills are
// loaded, so skills lie flat; the layout of the text has vendor and agent as directories, which Claude Code ignores.
//
// Local skills come before the agent, which names them by the names that they got. The servers of all agents share
// one file, and are collected until its end.
func (e *export) claudeCode(a *oaf.Agent) error {
	servers := map[string]mcpEntry{}
	for _, agent := range a.Graph() {
		e.common(agent, ClaudeCode)
		e.claudeLosses(agent)
		if err := e.personaSkill(agent, e.claudeSkillDir(agent)); err != nil {
			return err
		}
		names, err := e.localSkills(agent, e.claudeLocalDir(agent))
		if err != nil {
			return err
		}
		e.servers(agent, servers)
		if err := e.claudeAgent(agent, names); err != nil {
			return err
		}
	}
	return e.mcpFile(".mcp.json", servers)
}

// claudeSkillDir returns the directory of the skill that the agent itself becomes. Claude Code does not look below
// vendors, although the text of the format puts it there.
func (e *export) claudeSkillDir(a *oaf.Agent) string {
	if e.options.Layout == LayoutText {
		return ".claude/skills/" + kebab(a.VendorKey) + "/" + kebab(a.AgentKey)
	}
	return ".claude/skills/" + e.name(a)
}

// claudeLocalDir returns the directory of the agent's own skills, which all agents of the project share where the
// harness looks.
func (e *export) claudeLocalDir(a *oaf.Agent) string {
	if e.options.Layout == LayoutText {
		return e.claudeSkillDir(a) + "/skills"
	}
	return ".claude/skills"
}

// claudeLosses records what Claude Code has no place for.
func (e *export) claudeLosses(a *oaf.Agent) {
	e.lose(a.Config.Temperature != nil, a, "config.temperature", "Claude Code has no such setting")
	e.lose(a.Config.MaxTokens != 0, a, "config.max_tokens", "Claude Code has no such setting")
	e.lose(a.Memory != nil, a, "memory", "Claude Code has no memory blocks")
	e.lose(e.options.Layout == LayoutText, a, "skills", "Claude Code does not look for skills below %s",
		e.claudeSkillDir(a))
	e.lose(!isPlainAgents(a), a, "agents", "role, delegations, required and unknown members are not carried")
	e.lose(!isTagList(a.Tags), a, "tags", "a tag has a comma or spaces at its end, or the list is empty")
	e.lose(a.Description != frontmatter.OneLine(a.Description) || len([]rune(a.Description)) > skill.MaxDescription, a,
		"description",
		"it is written in one line of at most %d characters", skill.MaxDescription)
	e.lose(a.Slug != a.VendorKey+"/"+a.AgentKey || strings.Count(a.Slug, "/") != 1, a, "slug",
		"the slug is written as vendorKey/agentKey")
	e.claudeToolLosses(a)
}

// claudeToolLosses records what becomes of the lists of tools.
//
// Where it can, it compares with what an import would read back: what is equal is no loss, however it was written.
func (e *export) claudeToolLosses(a *oaf.Agent) {
	denied, patterns := disallowed(a)
	e.lose(!slices.Equal(denied, a.Config.Denied), a, "config.tools.denied",
		"tools are written by the names of Claude Code")
	e.lose(len(patterns) > 0, a, "config.tools.denied",
		"%s: Claude Code takes no such patterns, only the tools that are "+
			"known here are denied", strings.Join(patterns, ", "))
	e.lose(a.Config.Denied != nil && len(a.Config.Denied) == 0 || !areWords(a.Config.Denied), a, "config.tools.denied",
		"a list without names, or with names that have commas or spaces")
	ofServers := slices.ContainsFunc(denied, func(name string) bool { return strings.HasPrefix(name, mcpPrefix) })
	for _, part := range []string{"config.tools.denied", "mcp-configs.selection"} {
		e.lose(ofServers, a, part,
			"denied tools of servers stand in disallowedTools, which an import reads as the selection "+
				"of their server")
	}
	e.lose(a.Config.Allowed != nil, a, "config.tools.allowed", "it is written as tools, by the names of Claude Code")
	e.lose(a.Config.Allowed != nil && len(a.Servers) > 0, a, "mcp-configs.selection",
		"tools has those that config.tools.allowed names")
	tools := slices.DeleteFunc(permitted(a, denied),
		func(name string) bool { return strings.HasPrefix(name, mcpPrefix) })
	e.lose(a.Tools != nil && !slices.Equal(tools, a.Tools), a, "tools",
		"only those are written that config.tools.allowed and config.tools.denied permit, each once")
	e.lose(a.Tools != nil && len(a.Tools) == 0 || a.Tools == nil && a.Config.Allowed != nil ||
		!areToolNames(a.Tools), a,
		"tools",
		"a list without names, with other names, or of config.tools.allowed is not the same in Claude Code")
}

// areWords reports whether no name has commas or spaces, at which Claude Code divides a list.
func areWords(names []string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return n == "" || strings.ContainsAny(n, ", \t\n") })
}

// areToolNames reports whether a list survives being one text with commas.
func areToolNames(names []string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return !isToolName(n) })
}

// isTagList reports whether tags survive being one text.
func isTagList(tags []string) bool {
	return len(tags) > 0 && slices.Equal(splitList(strings.Join(tags, ", ")), tags) || tags == nil
}

// isPlainAgents reports whether references to sub-agents say nothing but vendor, agent and version.
// It writes the references and reads them again, so that a part which the short form cannot say makes the difference.
func isPlainAgents(a *oaf.Agent) bool {
	refs := parseAgents(joinAgents(a.Agents))
	return slices.EqualFunc(a.Agents, refs, func(x, y oaf.AgentRef) bool {
		return x.Vendor == y.Vendor && x.Agent == y.Agent && x.Version == y.Version && x.Role == "" &&
			x.Delegations == nil &&
			!x.Required && x.Extra == nil
	})
}

// joinAgents writes references as vendor/agent@version.
func joinAgents(refs []oaf.AgentRef) string {
	var out []string
	for _, r := range refs {
		text := r.ID()
		if r.Version != "" {
			text += "@" + r.Version
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// parseAgents reads references of joinAgents.
func parseAgents(text string) []oaf.AgentRef {
	var out []oaf.AgentRef
	for _, entry := range splitList(text) {
		id, version, _ := strings.Cut(entry, "@")
		r := oaf.AgentRef{Agent: id, Version: version}
		if vendor, agent, ok := strings.Cut(id, "/"); ok {
			r.Vendor, r.Agent = vendor, agent
		}
		out = append(out, r)
	}
	return out
}

// splitList divides a text at commas.
func splitList(text string) []string {
	var out []string
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// personaSkill writes the agent as a skill as well: other harnesses load it, and its metadata identifies the agent.
//
// It takes no name of its own from free: it has the name of its agent, which Export has reserved before all skills.
func (e *export) personaSkill(a *oaf.Agent, dir string) error {
	denied, _ := disallowed(a)
	var tools []string
	for _, name := range a.Tools {
		if name = claudeTool(name); isToolName(name) && !oaf.Lists(denied, name) {
			tools = append(tools, name)
		}
	}
	s := skill.Skill{Name: e.name(a), Description: a.Description, License: a.License, Body: a.Body,
		AllowedTools: tools, Metadata: map[string]string{}}
	for key, value := range map[string]string{metaSlug: a.ID(), metaVersion: a.Version, metaName: a.Name,
		metaAuthor: a.Author,
		metaTags:   strings.Join(a.Tags, ", "), metaAgents: joinAgents(a.Agents)} {
		if value != "" {
			s.Metadata[key] = value
		}
	}
	out, _ := s.Conform(s.Name)
	files, err := out.Write()
	e.files = append(e.files, tree.Within(dir, files)...)
	return err
}

// claudeAgent writes .claude/agents/{name}.md.
func (e *export) claudeAgent(a *oaf.Agent, skills []string) error {
	m := frontmatter.NewMap().Text("name", e.name(a)).Always("description", frontmatter.OneLine(a.Description))
	tools, denied := e.claudeToolLists(a)
	if tools != nil {
		m.Always("tools", strings.Join(tools, ", "))
	}
	m.Text("disallowedTools", strings.Join(denied, ", ")).Text("model", e.claudeModel(a)).Texts("skills", skills)
	var servers []string
	for _, s := range a.Servers {
		servers = append(servers, serverName(s))
	}
	head, err := m.Texts("mcpServers", servers).YAML()
	if err != nil {
		return err
	}
	e.add(".claude/agents/"+e.name(a)+".md", []byte(frontmatter.Join(head, a.Body)))
	return nil
}

// claudeToolLists returns the tools and the disallowed tools, with those of MCP servers. tools is nil where the agent
// has every tool.
func (e *export) claudeToolLists(a *oaf.Agent) (tools, out []string) {
	out, _ = disallowed(a)
	tools = permitted(a, out)
	for _, s := range a.Servers {
		for _, tool := range denied(s.Selection) {
			if !strings.Contains(tool, "*") {
				out = append(out, mcpTool(serverName(s), tool))
			}
		}
		e.lose(!isPlainSelection(s.Selection, tools != nil), a, "mcp-configs.selection",
			"%s: Claude Code takes names of tools, without patterns, descriptions, required and settings; "+
				"a selection needs tools in the frontmatter", s.Name)
	}
	return tools, distinct(out)
}

// isPlainSelection reports whether an import makes the same selection of the lists of tools.
//
// Without tools in the frontmatter Claude Code gives every tool of the server, and a list of single ones has no
// effect.
func isPlainSelection(s oaf.Selection, hasTools bool) bool {
	names := allowed(s)
	for _, t := range s.Tools {
		if !t.Enabled || t.Description != "" || t.Required || !isToolName(t.Name) {
			return false
		}
	}
	for _, name := range s.Excluded {
		if strings.Contains(name, "*") || !isToolName(name) {
			return false
		}
	}
	return s.Settings == nil && hasTools && s.Present && s.Strategy == oaf.StrategySubset &&
		len(names) == len(s.Tools) &&
		len(names) > 0 && (s.Excluded == nil || len(s.Excluded) > 0) && slices.IsSorted(s.Excluded) &&
		len(slices.Compact(slices.Clone(s.Excluded))) == len(s.Excluded)
}

// inherit is Claude Code's word for the model of the caller.
const inherit = "inherit"

// claudeModel returns the model as Claude Code names it, "" for none.
func (e *export) claudeModel(a *oaf.Agent) string {
	m := a.Model
	switch {
	case m.Alias == "" && m.Name == "" && m.Provider == "":
		return ""
	case slices.Contains([]string{"sonnet", "opus", "haiku", inherit}, m.Alias):
		e.lose(m.Alias == inherit, a, "model", "an import reads it as no model: it is that of the caller")
		return m.Alias
	case m.Alias == "" && m.Provider == "anthropic" && strings.HasPrefix(m.Name, "claude-"):
		return m.Name
	}
	e.lose(true, a, "model", "%s is no model of Claude Code", describe(m))
	return ""
}

// mcpEntry is one server of .mcp.json.
// The members are those of Claude Code, and Goose and Deep Agents are written from the same form. Empty ones are left
// out.
type mcpEntry struct {
	Type    string            `json:"type"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
}

// mcpFile writes the servers in the form of Claude Code, unless there are none.
func (e *export) mcpFile(name string, servers map[string]mcpEntry) error {
	if len(servers) == 0 {
		return nil
	}
	data, err := frontmatter.JSON(map[string]any{"mcpServers": servers})
	e.add(name, data)
	return err
}

// serverName returns the name of a server as harnesses allow it.
func serverName(s oaf.Server) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, s.Name)
}

// servers adds the servers of an agent in the form of Claude Code, and records what that does not carry.
// The first agent that names a server configures it; a later one with another configuration loses its own.
func (e *export) servers(a *oaf.Agent, into map[string]mcpEntry) {
	for _, s := range a.Servers {
		e.serverLosses(a, s)
		e.lostTimeout(a, s)
		entry, ok := e.entry(a, s)
		if !ok {
			continue
		}
		name := serverName(s)
		if before, taken := into[name]; taken && !sameEntry(before, entry) {
			e.lose(true, a, "mcp-configs.connection", "%s: another server has its name", s.Name)
			continue
		}
		into[name] = entry
	}
}

// sameEntry reports whether two agents configure a server alike: the project has one file for all of them.
func sameEntry(a, b mcpEntry) bool {
	return a.Type == b.Type && a.URL == b.URL && a.Command == b.Command && slices.Equal(a.Args, b.Args) &&
		maps.Equal(a.Env, b.Env) && maps.Equal(a.Headers, b.Headers)
}

// serverLosses records what no harness has a place for in the configuration of a server.
// Permissions are no limit where nothing enforces them, so that the note says what the server may do now.
func (e *export) serverLosses(a *oaf.Agent, s oaf.Server) {
	p := s.Permissions
	e.lose(len(p.AllowPaths)+len(p.DenyPaths)+len(p.ReadPaths)+len(p.WritePaths)+len(p.Extra) > 0 || p.ReadOnly ||
		p.MaxFileSize > 0 ||
		p.AllowPaths != nil || p.DenyPaths != nil || p.ReadPaths != nil || p.WritePaths != nil,
		a, "mcp-configs.permissions", "%s: lost: %s", s.Name, lostLimits(p))
	e.lose(s.RateLimit != (oaf.RateLimit{}), a, "mcp-configs.rate_limit", "%s: there is no such limit", s.Name)
	e.lose(s.Vendor != "" || s.Version != "", a, "mcp-configs.identity", "%s: vendor and version are not carried",
		s.Name)
	rest := remainder(s)
	e.lose(len(rest) > 0, a, "mcp-configs.extra", "%s: there is no place for %s", s.Name, strings.Join(rest, ", "))
	e.lose(s.Dir != "mcp-configs/"+s.Name || serverName(s) != s.Name, a, "mcp-configs.identity",
		"%s: name and directory are written as %s", s.Name, serverName(s))
}

// lostLimits says what a server may do where nothing enforces its permissions.
func lostLimits(p oaf.Permissions) string {
	var limits []string
	if paths := distinct(slices.Concat(p.AllowPaths, p.ReadPaths, p.WritePaths)); len(paths) > 0 {
		limits = append(limits, "to "+strings.Join(paths, ", "))
	}
	if p.ReadOnly {
		limits = append(limits, "to reading")
	}
	if p.MaxFileSize > 0 {
		limits = append(limits, fmt.Sprintf("to files of %d bytes", p.MaxFileSize))
	}
	if len(p.Extra) > 0 {
		limits = append(limits, "by "+strings.Join(slices.Sorted(maps.Keys(p.Extra)), ", "))
	}
	var out []string
	if len(limits) > 0 {
		out = append(out, "nothing limits it "+strings.Join(limits, " or "))
	}
	if len(p.DenyPaths) > 0 {
		out = append(out, "nothing keeps it from "+strings.Join(p.DenyPaths, ", "))
	}
	return cmp.Or(strings.Join(out, ", "), "nothing limits it")
}

// remainder names the members and files of a server that only its directory has, in order.
func remainder(s oaf.Server) []string {
	out := slices.AppendSeq(slices.Clone(s.Unknown), maps.Keys(s.Extra))
	for _, f := range s.Files {
		out = append(out, f.Path)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// lostTimeout records the timeout of a server for the harnesses that have their own.
func (e *export) lostTimeout(a *oaf.Agent, s oaf.Server) {
	e.lose(s.Connection.Timeout != 0, a, "mcp-configs.timeout", "%s: the timeout is the harness's", s.Name)
}

// entry returns the connection of a server. A secret in the open is never carried on.
func (e *export) entry(a *oaf.Agent, s oaf.Server) (mcpEntry, bool) {
	c := s.Connection
	entry, parts := withhold(mcpEntry{Type: c.Type, URL: c.URL, Headers: c.Headers, Command: c.Command, Args: c.Args,
		Env: c.Env})
	e.lose(len(parts) > 0, a, "mcp-configs.connection", "%s", withheld(s.Name, parts))
	switch {
	case c.Type == oaf.TransportStdio && c.Command != "":
		e.lose(c.URL != "" || c.Headers != nil, a, "mcp-configs.connection",
			"%s: url and headers are not those of stdio",
			s.Name)
		entry.URL, entry.Headers = "", nil
	case (c.Type == oaf.TransportSSE || c.Type == oaf.TransportHTTP) && entry.URL != "":
		e.lose(c.Command != "" || c.Args != nil || c.Env != nil, a, "mcp-configs.connection",
			"%s: command, args and env are those of stdio", s.Name)
		entry.Command, entry.Args, entry.Env = "", nil, nil
	default:
		e.lose(true, a, "mcp-configs.connection", "%s: it cannot be reached without a type and a url or command",
			s.Name)
		return mcpEntry{}, false
	}
	e.lose(c.Args != nil && len(c.Args) == 0 || c.Env != nil && len(c.Env) == 0 || c.Headers != nil &&
		len(c.Headers) == 0, a,
		"mcp-configs.connection", "%s: empty lists are left out", s.Name)
	e.authenticate(a, s, &entry)
	return entry, true
}

// authenticate adds the header of the agent's secret, which stays a reference to the environment.
//
// Only a reference to a variable becomes a header: a token in the open is a secret, which no file of the export may
// have.
func (e *export) authenticate(a *oaf.Agent, s oaf.Server, entry *mcpEntry) {
	auth := s.Auth
	if auth == (oaf.Auth{}) {
		_, hasBearer := entry.Headers["Authorization"]
		e.lose(hasBearer || entry.Headers[apiKeyHeader] != "", a, "mcp-configs.auth",
			"%s: a header is read as authentication", s.Name)
		return
	}
	_, isVariable := auth.TokenVar()
	name, value := "", ""
	switch {
	case !isVariable || entry.Type == oaf.TransportStdio:
	case auth.Type == "bearer":
		name, value = "Authorization", "Bearer "+auth.Token
	case auth.Type == "api-key":
		name, value = auth.Header, auth.Token
		if name == "" {
			name = apiKeyHeader
		}
	}
	if name == "" || entry.Headers[name] != "" {
		e.lose(true, a, "mcp-configs.auth",
			"%s: only a bearer token or an API key of the environment is carried, over HTTP", s.Name)
		return
	}
	if entry.Headers == nil {
		entry.Headers = map[string]string{}
	}
	entry.Headers[name] = value
	_, hasBearer := s.Connection.Headers["Authorization"]
	isRead := auth.Type == "bearer" && auth.Header == "" || auth.Type == "api-key" && auth.Header == apiKeyHeader
	e.lose(!isRead || hasBearer || s.Connection.Headers[apiKeyHeader] != "", a, "mcp-configs.auth",
		"%s: it becomes the header %s", s.Name, name)
}

// apiKeyHeader is the header of an API key where the configuration names none.
const apiKeyHeader = "X-API-Key"
