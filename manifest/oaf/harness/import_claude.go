package harness

import (
	"cmp"
	"encoding/json"
	"errors"
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

// Places of a project of Claude Code.
const (
	claudeDir    = ".claude"
	claudeAgents = claudeDir + "/agents/"
	claudeSkills = claudeDir + "/skills/"
	claudeMCP    = ".mcp.json"
)

// FromClaudeCode reads the agents of a project of Claude Code: .claude/agents, their skills, and .mcp.json. Without
// agents it reads each skill of .claude/skills as an agent. The order is that of the files' names. The notes of the
// project as a whole are those of the first agent.
//
// The error is repute.ErrInvalid where there is nothing to read, or .mcp.json is no such file. Everything that is in
// .claude and in no agent is in the notes.
func FromClaudeCode(fsys fs.FS) ([]Import, error) {
	c := &claudeProject{files: map[string]tree.File{}, servers: map[string]json.RawMessage{}, used: map[string]bool{}}
	list := &problem.List{}
	for _, f := range tree.Within(claudeDir, tree.Read(fsys, claudeDir, tree.NewBudget(), list)) {
		if path.Ext(f.Path) == ".md" {
			f.Data = mended(f.Data)
		}
		c.files[f.Path] = f
	}
	if err := c.readServers(fsys); err != nil {
		return nil, err
	}
	var out []Import
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		if dir, base := path.Split(name); dir == claudeAgents && path.Ext(base) == ".md" {
			out = append(out, c.agent(name))
		}
	}
	if len(out) == 0 {
		out = c.skillAgents()
	}
	if len(out) == 0 {
		return nil, repute.Invalid("directory", "has no .claude/agents/*.md and no .claude/skills/*/SKILL.md",
			"the directory that .claude is in")
	}
	distinguish(out)
	for _, p := range list.Problems() {
		c.project.drop(true, "files", "%s: %s", path.Join(claudeDir, p.File), p.Message)
	}
	c.leftOver()
	out[0].Notes = append(c.project.of(""), out[0].Notes...)
	return out, nil
}

// claudeProject is what was read of a project of Claude Code.
type claudeProject struct {
	files   map[string]tree.File
	servers map[string]json.RawMessage // of .mcp.json
	// Keys of used are paths, "mcp " and the name of a server, and the path of a skill's member that was noted.
	used    map[string]bool // files and servers that an agent has
	project notes
}

// readServers reads the MCP servers of the project, which agents name. Without the file there are none.
// A file that cannot be read as JSON is an error and no note: agents without their servers would be other agents.
func (c *claudeProject) readServers(fsys fs.FS) error {
	f, err := tree.ReadFile(fsys, claudeMCP, tree.MaxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var file struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	if err == nil {
		err = json.Unmarshal(f.Data, &file)
	}
	if err != nil {
		return repute.Invalid(claudeMCP, fmt.Sprintf("%.200s", err.Error()), "an object with mcpServers")
	}
	c.servers = file.Servers
	return nil
}

// leftOver notes the servers and the files of the project that no agent has, each directory once.
func (c *claudeProject) leftOver() {
	for _, name := range slices.Sorted(maps.Keys(c.servers)) {
		c.project.drop(!c.used["mcp "+name], "mcpServers", "%s of %s is named by no agent", name, claudeMCP)
	}
	count := map[string]int{}
	for name := range c.files {
		if c.used[name] {
			continue
		}
		at := strings.SplitN(name, "/", 4)
		count[strings.Join(at[:min(len(at), 3)], "/")]++
	}
	for _, at := range slices.Sorted(maps.Keys(count)) {
		c.project.drop(true, "files", "%s is part of no agent (files: %d)", at, count[at])
	}
}

// skillFiles returns the files of a skill's directory.
func (c *claudeProject) skillFiles(name string) []tree.File {
	var out []tree.File
	prefix := claudeSkills + name + "/"
	for _, p := range slices.Sorted(maps.Keys(c.files)) {
		if below, ok := strings.CutPrefix(p, prefix); ok {
			f := c.files[p]
			f.Path = below
			out = append(out, f)
		}
	}
	return out
}

// skill reads one skill of the project. ok is false where the project has none of the name.
// Members that Claude Code adds to a skill are a note and no problem, once per skill: they are in its files on
// purpose.
func (c *claudeProject) skill(name string, l *problem.List) (s skill.Skill, ok bool) {
	files, own := c.skillFiles(name), &problem.List{}
	s, ok = skill.Parse(name, claudeSkills+name, files, own)
	for _, p := range own.Problems() {
		if p.Code != problem.CodeSkillMember {
			l.Append([]problem.Problem{p})
			continue
		}
		member := claudeSkills + name + p.Path
		c.project.drop(!c.used[member], "skills", "%s: %s is kept in metadata, where it has no effect",
			claudeSkills+name,
			strings.TrimPrefix(p.Path, "/"))
		c.used[member] = true
	}
	if ok {
		for _, f := range files {
			c.used[claudeSkills+name+"/"+f.Path] = true
		}
	}
	return s, ok
}

// agent reads one agent of .claude/agents, and what a skill of its name says about it.
//
// The body and the servers come from the agent's own file, and its identity from the skill of its name, which
// personaSkill has written.
func (c *claudeProject) agent(file string) Import {
	list, n := &problem.List{}, &notes{}
	c.used[file] = true
	base := strings.TrimSuffix(path.Base(file), ".md")
	a := &oaf.Agent{Dir: "."}
	text, ok := frontmatter.Clean(c.files[file].Data, file, list)
	if !ok {
		derive(a, n, base)
		return importOf(a, list, n)
	}
	parts := frontmatter.Split(text)
	a.Body = frontmatter.TrimBody(parts.Body)
	var head *frontmatter.Object
	if parts.HasHead {
		head = parts.Object(file, list)
	}
	read := []string{"name", "description", "tools", "disallowedTools", "model", "skills", "mcpServers"}
	for _, key := range head.Keys() {
		n.drop(!slices.Contains(read, key), key, "the Open Agent Format has no place for it")
	}
	a.Name, a.Description = head.Text("name"), head.Text("description")
	a.Model = claudeModelOf(head.Text("model"))
	if a.Model.Alias == inherit {
		a.Model = oaf.Model{}
		n.drop(true, "model", "inherit is the model of the caller, which the Open Agent Format does not name")
	}
	c.tools(a, head, n)
	for _, name := range head.Texts("skills") {
		if _, exists := c.files[claudeSkills+name+"/"+skill.FileName]; !exists {
			n.drop(true, "skills", "%.80q is no skill of %s", name, claudeSkills)
		} else if local, ok := c.skill(name, list); ok {
			a.LocalSkills = append(a.LocalSkills, local)
		}
	}
	a.Skills, a.MCPServers = plainSkills(a.LocalSkills), plainServers(a.Servers)
	c.identify(a, cmp.Or(a.Name, base), n)
	derive(a, n, base)
	return importOf(a, list, n)
}

// identify takes what the skill of the agent's name says about it, if the skill is one of an exported agent.
func (c *claudeProject) identify(a *oaf.Agent, name string, n *notes) {
	s, ok := skill.Parse(name, claudeSkills+name, c.skillFiles(name), &problem.List{})
	if ok && s.Metadata[metaSlug] != "" {
		c.used[claudeSkills+name+"/"+skill.FileName] = true
		identify(a, s, n)
	}
}

// identify takes what the skill of an exported agent says about it.
func identify(a *oaf.Agent, s skill.Skill, n *notes) {
	a.Slug = s.Metadata[metaSlug]
	if vendor, key, ok := strings.Cut(a.Slug, "/"); ok {
		a.VendorKey, a.AgentKey = vendor, key
	}
	if name := s.Metadata[metaName]; name != "" {
		a.Name = name
	} else {
		n.guess(a.Name != "", "name", "%s is the name in Claude Code", a.Name)
	}
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
//
// An agent that names tools has only those: an empty list stays empty, and MUST NOT become nil. A tool of a server
// that the agent does not name is left out, as it could not be called.
func (c *claudeProject) tools(a *oaf.Agent, head *frontmatter.Object, n *notes) {
	selections := map[string]*oaf.Selection{}
	for _, name := range head.Texts("mcpServers") {
		selections[name] = &oaf.Selection{}
	}
	if head.Has("tools") {
		a.Tools = []string{}
	}
	for _, tool := range toolList(head, "tools") {
		if selections[strings.TrimPrefix(tool, mcpPrefix)] != nil && strings.HasPrefix(tool, mcpPrefix) {
			continue // all tools of the server, which it has without a selection
		}
		if server, name, ok := parseMCPTool(tool); ok && selections[server] != nil {
			sel := selections[server]
			sel.Present, sel.Strategy = true, oaf.StrategySubset
			sel.Tools = append(sel.Tools, oaf.SelectedTool{Name: name, Enabled: true})
			continue
		}
		if strings.HasPrefix(tool, mcpPrefix) {
			n.drop(true, "tools", "%.120s: mcpServers does not name its server", tool)
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
	for _, name := range slices.Sorted(maps.Keys(selections)) {
		a.Servers = append(a.Servers, serverOf(name, c.entry(name, n), *selections[name], a.Servers))
	}
}

// entry returns a server of .mcp.json.
func (c *claudeProject) entry(name string, n *notes) (entry mcpEntry) {
	raw, ok := c.servers[name]
	if !ok {
		n.drop(true, "mcp-configs.connection", "%.80s: it is not in %s", name, claudeMCP)
		return mcpEntry{}
	}
	c.used["mcp "+name] = true
	if err := json.Unmarshal(raw, &entry); err != nil {
		n.drop(true, "mcp-configs.connection", "%.80s: %.200s", name, err.Error())
		return mcpEntry{}
	}
	for _, key := range unused(raw, "type", "url", "headers", "command", "args", "env") {
		n.drop(true, "mcp-configs."+key, "%.80s: the Open Agent Format has no place for it", name)
	}
	entry, parts := withhold(entry)
	n.drop(len(parts) > 0, "mcp-configs.connection", "%s", withheld(name, parts))
	return entry
}

// toolList reads a list of tools: one text with commas, or a list.
// A value of another type is an error and not ignored, because an agent without the list may do more.
func toolList(head *frontmatter.Object, key string) []string {
	head = head.Restricting()
	if head.IsText(key) {
		return skill.Tools(head.Text(key))
	}
	return head.Texts(key)
}

// serverOf makes a server of an entry of .mcp.json. Headers with a secret of the environment become authentication.
// Other headers are kept as they are: withhold has taken secrets in the open out before. The server has a directory that
// none of the others has.
func serverOf(name string, entry mcpEntry, sel oaf.Selection, others []oaf.Server) oaf.Server {
	s := oaf.Server{Dir: freeDir("mcp-configs/"+cmp.Or(kebabOrSame(name), "server"), others), Name: name, Selection: sel,
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

// freeDir returns a directory, with a number behind it where another server has it.
func freeDir(dir string, others []oaf.Server) string {
	free := dir
	for n := 2; slices.ContainsFunc(others, func(s oaf.Server) bool { return s.Dir == free }); n++ {
		free = fmt.Sprintf("%s-%d", dir, n)
	}
	return free
}

// kebabOrSame returns a name that can be a directory, empty where nothing of it can.
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
		rest, ok := strings.CutPrefix(name, claudeSkills)
		dir, _, below := strings.Cut(rest, "/")
		if !ok || !below || dir == seen {
			continue
		}
		seen = dir
		list, n := &problem.List{}, &notes{}
		s, ok := c.skill(dir, list)
		if !ok {
			continue
		}
		a := &oaf.Agent{Dir: ".", Name: s.Name, Description: s.Description, License: s.License, Body: s.Body}
		if len(s.AllowedTools) > 0 {
			a.Tools = s.AllowedTools
		}
		if s.Metadata[metaSlug] != "" {
			identify(a, s, n)
		}
		n.drop(len(s.Files) > 0, "files", "%d files next to %s are not copied", len(s.Files), skill.FileName)
		n.drop(s.Compatibility != "", "compatibility", "the Open Agent Format has it for skills only")
		for _, key := range slices.Sorted(maps.Keys(s.Metadata)) {
			n.drop(!strings.HasPrefix(key, metaPrefix), "metadata."+key, "the Open Agent Format has it for skills only")
		}
		derive(a, n, dir)
		out = append(out, importOf(a, list, n))
	}
	return out
}
