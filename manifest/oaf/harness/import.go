package harness

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"repute"
	"repute/manifest/oaf"
	"repute/manifest/oaf/frontmatter"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/skill"
	"repute/manifest/oaf/tree"
)

// Import is an agent that was read from a harness.
type Import struct {
	Agent    *oaf.Agent
	Problems []problem.Problem
}

// FromClaudeCode reads the agents of a project of Claude Code: .claude/agents, their skills, and .mcp.json. Without
// agents it reads each skill of .claude/skills as an agent. The order is that of the files' names.
func FromClaudeCode(fsys fs.FS) ([]Import, error) {
	list := &problem.List{}
	all := map[string]tree.File{}
	for _, f := range tree.Read(fsys, ".", tree.NewBudget(), list) {
		all[f.Path] = f
	}
	c := &claudeProject{files: all, list: list, servers: map[string]mcpEntry{}}
	if err := c.readServers(); err != nil {
		return nil, err
	}
	var out []Import
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if dir, base := path.Split(name); dir == ".claude/agents/" && path.Ext(base) == ".md" {
			out = append(out, c.agent(name))
		}
	}
	if len(out) == 0 {
		out = c.skillAgents()
	}
	if len(out) == 0 {
		return nil, repute.Invalid("directory", "has no .claude/agents/*.md and no .claude/skills/*/SKILL.md",
			"the directory of a project of Claude Code")
	}
	out[0].Problems = append(list.Problems(), out[0].Problems...)
	return out, nil
}

// claudeProject is what was read of a project of Claude Code.
type claudeProject struct {
	files   map[string]tree.File
	list    *problem.List
	servers map[string]mcpEntry
}

// readServers reads the MCP servers of the project, which agents name. Without the file there are none.
func (c *claudeProject) readServers() error {
	f, ok := c.files[".mcp.json"]
	if !ok {
		return nil
	}
	var file struct {
		Servers map[string]mcpEntry `json:"mcpServers"`
	}
	if err := json.Unmarshal(f.Data, &file); err != nil {
		return repute.Invalid(".mcp.json", fmt.Sprintf("%.200s", err.Error()), "an object with mcpServers")
	}
	c.servers = file.Servers
	return nil
}

// skillFiles returns the files of a skill's directory.
func (c *claudeProject) skillFiles(name string) []tree.File {
	var out []tree.File
	prefix := ".claude/skills/" + name + "/"
	for _, p := range slices.Sorted(maps.Keys(c.files)) {
		if below, ok := strings.CutPrefix(p, prefix); ok {
			f := c.files[p]
			f.Path = below
			out = append(out, f)
		}
	}
	return out
}

// skill reads one skill of the project.
func (c *claudeProject) skill(name string, l *problem.List) (skill.Skill, bool) {
	return skill.Parse(name, ".claude/skills/"+name, c.skillFiles(name), l)
}

// agent reads one agent of .claude/agents, and what a skill of its name says about it.
func (c *claudeProject) agent(file string) Import {
	list := &problem.List{}
	name := strings.TrimSuffix(path.Base(file), ".md")
	a := &oaf.Agent{Dir: ".", Name: name, AgentKey: kebab(name)}
	text, ok := frontmatter.Clean(c.files[file].Data, file, list)
	if !ok {
		return Import{a, list.Problems()}
	}
	parts := frontmatter.Split(text)
	a.Body = frontmatter.TrimBody(parts.Body)
	var head *frontmatter.Object
	if parts.HasHead {
		head = frontmatter.ParseYAML(parts.Head, file, parts.HeadLine, list)
	}
	if given := head.Text("name"); given != "" {
		name, a.Name, a.AgentKey = given, given, kebab(given)
	}
	a.Description = head.Text("description")
	a.Model = claudeModelOf(head.Text("model"))
	c.tools(a, head)
	for _, s := range head.Texts("skills") {
		if local, ok := c.skill(s, list); ok {
			a.LocalSkills = append(a.LocalSkills, local)
		}
	}
	a.Skills, a.MCPServers = plainSkills(a.LocalSkills), plainServers(a.Servers)
	if persona, ok := c.skill(name, &problem.List{}); ok && persona.Metadata[metaSlug] != "" {
		identify(a, persona)
	}
	return Import{a, list.Problems()}
}

// identify takes what the skill of an exported agent says about it.
func identify(a *oaf.Agent, s skill.Skill) {
	a.Slug = s.Metadata[metaSlug]
	if vendor, key, ok := strings.Cut(a.Slug, "/"); ok {
		a.VendorKey, a.AgentKey = vendor, key
	}
	a.Name = s.Metadata[metaName]
	a.Version, a.Author, a.License = s.Metadata[metaVersion], s.Metadata[metaAuthor], s.License
	a.Tags = splitList(s.Metadata[metaTags])
	a.Agents = parseAgents(s.Metadata[metaAgents])
}

// claudeModelOf returns the model of a name: a full name is Anthropic's, any other one is an alias of the harness.
func claudeModelOf(text string) oaf.Model {
	if strings.HasPrefix(text, "claude-") {
		return oaf.Model{Provider: "anthropic", Name: text}
	}
	return oaf.Model{Alias: text}
}

// tools reads tools, disallowedTools and mcpServers. Tools of MCP servers become the selection of their server.
func (c *claudeProject) tools(a *oaf.Agent, head *frontmatter.Object) {
	selections := map[string]*oaf.Selection{}
	names := sortedUnique(head.Texts("mcpServers"))
	for _, name := range names {
		selections[name] = &oaf.Selection{}
	}
	if head.Has("tools") {
		a.Tools = []string{}
	}
	for _, tool := range toolList(head, "tools") {
		if server, name, ok := parseMCPTool(tool); ok && selections[server] != nil {
			sel := selections[server]
			sel.Present, sel.Strategy = true, oaf.StrategySubset
			sel.Tools = append(sel.Tools, oaf.SelectedTool{Name: name, Enabled: true})
			continue
		}
		a.Tools = append(a.Tools, tool)
	}
	for _, tool := range toolList(head, "disallowedTools") {
		if server, name, ok := parseMCPTool(tool); ok && selections[server] != nil {
			sel := selections[server]
			if !sel.Present {
				sel.Present, sel.Strategy = true, oaf.StrategyAll
			}
			sel.Excluded = append(sel.Excluded, name)
			continue
		}
		a.Config.Denied = append(a.Config.Denied, tool)
	}
	for _, name := range names {
		a.Servers = append(a.Servers, serverOf(name, c.servers[name], *selections[name]))
	}
}

// sortedUnique returns names in order, each once, in a list of its own: the order of an import must not depend on maps.
func sortedUnique(names []string) []string {
	out := slices.Clone(names)
	slices.Sort(out)
	return slices.Compact(out)
}

// toolList reads a list of tools: one text with commas, or a list.
func toolList(head *frontmatter.Object, key string) []string {
	head = head.Restricting()
	if head.IsText(key) {
		return skill.Tools(head.Text(key))
	}
	return head.Texts(key)
}

// serverOf makes a server of an entry of .mcp.json. Headers with a secret of the environment become authentication.
func serverOf(name string, entry mcpEntry, sel oaf.Selection) oaf.Server {
	s := oaf.Server{Dir: "mcp-configs/" + kebabOrSame(name), Name: name, Selection: sel,
		Connection: oaf.Connection{Type: entry.Type, URL: entry.URL, Command: entry.Command, Args: entry.Args,
			Env: entry.Env}}
	if s.Connection.Type == "" && entry.Command != "" {
		s.Connection.Type = oaf.TransportStdio
	}
	headers := maps.Clone(entry.Headers)
	if token, ok := strings.CutPrefix(headers["Authorization"], "Bearer "); ok && isSecret(token) {
		s.Auth = oaf.Auth{Type: "bearer", Token: token}
		delete(headers, "Authorization")
	} else if isSecret(headers[apiKeyHeader]) {
		s.Auth = oaf.Auth{Type: "api-key", Token: headers[apiKeyHeader], Header: apiKeyHeader}
		delete(headers, apiKeyHeader)
	}
	if len(headers) > 0 {
		s.Connection.Headers = headers
	}
	return s
}

// kebabOrSame returns a name that can be a directory.
func kebabOrSame(name string) string {
	if tree.IsSafe(name) && !strings.Contains(name, "/") {
		return name
	}
	return kebab(name)
}

// skillAgents reads each skill of a project without agents as an agent of its own.
func (c *claudeProject) skillAgents() []Import {
	var out []Import
	seen := ""
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		rest, ok := strings.CutPrefix(name, ".claude/skills/")
		dir, _, below := strings.Cut(rest, "/")
		if !ok || !below || dir == seen {
			continue
		}
		seen = dir
		list := &problem.List{}
		s, ok := c.skill(dir, list)
		if !ok {
			continue
		}
		a := &oaf.Agent{Dir: ".", Name: s.Name, AgentKey: kebab(s.Name), Description: s.Description, License: s.License,
			Body: s.Body}
		if len(s.AllowedTools) > 0 {
			a.Tools = s.AllowedTools
		}
		if s.Metadata[metaSlug] != "" {
			identify(a, s)
		}
		out = append(out, Import{a, list.Problems()})
	}
	return out
}

// maxAgentFile bounds an agent file, in bytes: it may carry a history of messages, which is not read.
const maxAgentFile = 16 << 20

// FromLetta reads an Agent File of Letta: its first agent, and the other ones as sub-agents where a group says so.
// repute.ErrInvalid for a file that is none, also for one of the older form.
func FromLetta(b []byte) ([]Import, error) {
	if len(b) > maxAgentFile {
		return nil, repute.Invalid("agent file", "is larger than 16 MiB", "an .af file of Letta")
	}
	var file lettaInput
	if err := json.Unmarshal(b, &file); err != nil {
		return nil, repute.Invalid("agent file", fmt.Sprintf("%.200s", err.Error()), "an .af file of Letta")
	}
	if len(file.Agents) == 0 {
		return nil, repute.Invalid("agent file", "has no agents", "an .af file of Letta with agents, blocks and mcp_servers")
	}
	var out []Import
	for _, in := range file.Agents {
		list := &problem.List{}
		out = append(out, Import{file.agent(in, list), list.Problems()})
	}
	return out, nil
}

// lettaInput is the part of an agent file that is read.
type lettaInput struct {
	Agents  []lettaAgentInput `json:"agents"`
	Blocks  []lettaBlock      `json:"blocks"`
	Servers []lettaServer     `json:"mcp_servers"`
	Skills  []lettaSkill      `json:"skills"`
}

type lettaAgentInput struct {
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	System      string          `json:"system"`
	LLM         *lettaLLM       `json:"llm_config"`
	BlockIDs    []string        `json:"block_ids"`
	Tags        []string        `json:"tags"`
	Metadata    json.RawMessage `json:"metadata"`
}

// agent returns an agent of the file. One that repute exported has its identity in the metadata; of any other one the name
// is all that there is, and all servers and skills of the file are its own.
func (f lettaInput) agent(in lettaAgentInput, list *problem.List) *oaf.Agent {
	var meta lettaMetadata
	_ = json.Unmarshal(in.Metadata, &meta) // metadata of another form identifies no agent
	id := meta.OAF
	if id == nil {
		id = &lettaIdentity{Name: in.Name, AgentKey: kebab(in.Name), Servers: f.serverNames(), Skills: f.skillNames()}
	}
	a := &oaf.Agent{Dir: ".", Name: id.Name, VendorKey: id.VendorKey, AgentKey: id.AgentKey, Slug: id.Slug,
		Version:     id.Version,
		Description: in.Description, Author: id.Author, License: id.License, Tags: in.Tags, Agents: parseAgents(id.Agents)}
	a.Body, a.Config.Denied = divide(frontmatter.TrimBody(in.System))
	if llm := in.LLM; llm != nil {
		a.Model = oaf.Model{Provider: llm.EndpointType, Name: llm.Model}
		a.Config.Temperature, a.Config.MaxTokens = llm.Temperature, llm.MaxTokens
	}
	a.Memory = f.memory(in.BlockIDs)
	a.LocalSkills = f.skills(id.Skills, list)
	a.Servers = f.servers(id.Servers)
	a.Skills, a.MCPServers = plainSkills(a.LocalSkills), plainServers(a.Servers)
	return a
}

// serverNames returns the servers of the file, for an agent that does not say which are its own.
func (f lettaInput) serverNames() (names []string) {
	for _, s := range f.Servers {
		names = append(names, s.Name)
	}
	return names
}

// skillNames returns the skills of the file, for an agent that does not say which are its own.
func (f lettaInput) skillNames() (names []string) {
	for _, s := range f.Skills {
		names = append(names, s.Name)
	}
	return names
}

// memory reads the blocks of an agent; nil without any.
func (f lettaInput) memory(ids []string) *oaf.Memory {
	m := &oaf.Memory{Type: oaf.MemoryReadOnly}
	for _, id := range ids {
		at := slices.IndexFunc(f.Blocks, func(b lettaBlock) bool { return b.ID == id })
		if at < 0 {
			continue
		}
		b := f.Blocks[at]
		if b.Limit == blockLimit {
			b.Limit = 0
		}
		if !b.ReadOnly {
			m.Type = oaf.MemoryEditable
		}
		m.Blocks = append(m.Blocks, oaf.MemoryBlock{Label: b.Label, Value: b.Value, Description: b.Description,
			Limit: b.Limit})
	}
	if len(m.Blocks) == 0 {
		return nil
	}
	return m
}

// skills returns the named skills. A name that cannot be one directory is left out: it would leave the agent's own.
func (f lettaInput) skills(names []string, list *problem.List) []skill.Skill {
	var out []skill.Skill
	for _, name := range names {
		at := slices.IndexFunc(f.Skills, func(s lettaSkill) bool { return s.Name == name })
		if at < 0 || !tree.IsSafe(name) || strings.Contains(name, "/") {
			continue
		}
		if s, ok := skill.Parse(name, "skills/"+name, f.Skills[at].parse(), list); ok {
			out = append(out, s)
		}
	}
	return out
}

// servers returns the named servers in the form of the format. Letta calls streamable HTTP by another name.
func (f lettaInput) servers(names []string) []oaf.Server {
	var out []oaf.Server
	for _, name := range names {
		at := slices.IndexFunc(f.Servers, func(s lettaServer) bool { return s.Name == name })
		if at < 0 {
			continue
		}
		in := f.Servers[at]
		entry := mcpEntry{Type: in.Type, URL: in.URL}
		if in.Type == "streamable_http" {
			entry.Type = oaf.TransportHTTP
		}
		if in.Stdio != nil {
			entry.Command, entry.Args = in.Stdio.Command, orNil(in.Stdio.Args)
		}
		out = append(out, serverOf(name, entry, oaf.Selection{}))
	}
	return out
}
