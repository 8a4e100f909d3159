package oaf

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"repute/manifest/oaf/frontmatter"
	"repute/manifest/oaf/tree"
)

// Write returns the files of the agent's directory, ordered by path, in the form of the format's text. Sub-agents are
// written by their own Write.
func (a *Agent) Write() ([]tree.File, error) {
	text, err := a.Manifest()
	if err != nil {
		return nil, err
	}
	files := append(slices.Clone(a.Files), tree.File{Path: ManifestName, Data: text})
	for _, s := range a.LocalSkills {
		own, err := s.Write()
		if err != nil {
			return nil, err
		}
		files = append(files, tree.Within(path.Join(skillsDir, s.Dir), own)...)
	}
	for _, s := range a.Servers {
		own, err := s.write()
		if err != nil {
			return nil, err
		}
		files = append(files, own...)
	}
	for _, v := range a.Versions {
		files = append(files, tree.File{Path: path.Join(versionsDir, "v"+v.Version, ManifestName), Data: v.Text})
	}
	slices.SortFunc(files, func(x, y tree.File) int { return strings.Compare(x.Path, y.Path) })
	return files, nil
}

// Manifest returns AGENTS.md: the frontmatter in the order of the format's text, and the body.
func (a *Agent) Manifest() ([]byte, error) {
	m := frontmatter.NewMap().
		Always("name", a.Name).Text("vendorKey", a.VendorKey).Text("agentKey", a.AgentKey).
		Text("version", a.Version).Text("slug", a.Slug).
		Always("description", a.Description).Text("author", a.Author).Text("license", a.License).Texts("tags", a.Tags)
	a.writeReferences(m)
	m.Map("orchestration", a.Orchestration.fields()).Texts("tools", a.Tools).
		Map("config", a.Config.fields())
	if a.Memory != nil {
		m.Map("memory", a.Memory.fields())
	}
	if a.Model.Alias != "" {
		m.Text("model", a.Model.Alias)
	} else {
		m.Map("model", frontmatter.NewMap().Text("provider", a.Model.Provider).Text("name", a.Model.Name).
			Text("embedding", a.Model.Embedding).Members(a.Model.Extra))
	}
	m.Map("harnessConfig", frontmatter.NewMap().Members(a.Harness)).Members(a.Extra)
	head, err := m.YAML()
	if err != nil {
		return nil, err
	}
	return []byte(frontmatter.Join(head, a.Body)), nil
}

// writeReferences writes the lists of skills, packs, weblets, servers and sub-agents, each in the dialect in which it
// was read: a skill with a vendor has other members than one without.
func (a *Agent) writeReferences(m *frontmatter.Map) {
	var skills, packs, weblets, servers, agents []*frontmatter.Map
	for _, r := range a.Skills {
		in := frontmatter.NewMap().Text("vendor", r.Vendor)
		if r.Vendor == "" {
			in.Text("name", r.Name).Text("source", r.Source).Text("version", r.Version)
		} else {
			in.Text("skill", r.Name).Text("version", r.Version).Text("source", r.Source)
		}
		skills = append(skills, in.Bool("required", r.Required))
	}
	for _, r := range a.Packs {
		packs = append(packs, frontmatter.NewMap().Text("vendor", r.Vendor).Text("pack", r.Pack).Text("version",
			r.Version).
			Bool("required", r.Required))
	}
	for _, r := range a.Weblets {
		weblets = append(weblets, frontmatter.NewMap().Text("vendor", r.Vendor).Text("weblet", r.Weblet).
			Text("version", r.Version).Text("launch", r.Launch))
	}
	for _, r := range a.MCPServers {
		servers = append(servers, frontmatter.NewMap().Text("vendor", r.Vendor).Text("server", r.Server).
			Text("version", r.Version).Text("configDir", r.ConfigDir).Bool("required", r.Required))
	}
	for _, r := range a.Agents {
		agents = append(agents, frontmatter.NewMap().Text("vendor", r.Vendor).Text("agent", r.Agent).Text("version",
			r.Version).
			Text("role", r.Role).Texts("delegations", r.Delegations).Bool("required", r.Required).Members(r.Extra))
	}
	m.Maps("skills", skills).Maps("packs", packs).Maps("weblets", weblets).Maps("mcpServers", servers).Maps("agents",
		agents)
}

// fields returns the members of orchestration. Triggers keep empty members, because an event without an action is a
// problem that a check must find again.
func (o Orchestration) fields() *frontmatter.Map {
	var triggers []*frontmatter.Map
	for _, t := range o.Triggers {
		triggers = append(triggers, frontmatter.NewMap().Always("event", t.Event).Always("action", t.Action))
	}
	return frontmatter.NewMap().Text("entrypoint", o.Entrypoint).Text("fallback", o.Fallback).Maps("triggers", triggers)
}

// fields returns the members of config, and the unknown ones as they were read.
func (c Config) fields() *frontmatter.Map {
	return frontmatter.NewMap().Float("temperature", c.Temperature).Number("max_tokens", float64(c.MaxTokens)).
		Bool("require_confirmation", c.RequireConfirmation).
		Map("tools", frontmatter.NewMap().Texts("allowed", c.Allowed).Texts("denied", c.Denied)).Members(c.Extra)
}

// fields returns the members of memory. A block without a value is written with the placeholder of the format, which is
// read as none.
func (m *Memory) fields() *frontmatter.Map {
	blocks := frontmatter.NewMap()
	for _, b := range m.Blocks {
		value := b.Value
		if value == "" {
			value = defaultValue
		}
		if b.Description == "" && b.Limit == 0 {
			blocks.Text(b.Label, value)
			continue
		}
		blocks.Map(b.Label, frontmatter.NewMap().Text("value", value).Text("description", b.Description).
			Number("limit", float64(b.Limit)))
	}
	return frontmatter.NewMap().Text("type", m.Type).Map("blocks", blocks)
}

// write returns the files of a server's directory, with paths below the agent's. A server of one file becomes a
// directory.
func (s Server) write() ([]tree.File, error) {
	dir := s.Dir
	if isYAML(dir) {
		dir = strings.TrimSuffix(dir, path.Ext(dir))
	}
	files := tree.Within(dir, s.Files)
	config, err := s.config().YAML()
	if err != nil {
		return nil, err
	}
	files = append(files, tree.File{Path: path.Join(dir, "config.yaml"), Data: []byte(config)})
	if s.Selection.Present {
		selection, err := s.selection()
		if err != nil {
			return nil, err
		}
		files = append(files, tree.File{Path: path.Join(dir, selectionName), Data: selection})
	}
	return files, nil
}

// config returns config.yaml.
func (s Server) config() *frontmatter.Map {
	c, p := s.Connection, s.Permissions
	connection := frontmatter.NewMap().Text("type", c.Type).Text("url", c.URL).Text("command", c.Command).Texts("args",
		c.Args).
		TextMap("env", c.Env).TextMap("headers", c.Headers).Number("timeout", c.Timeout)
	permissions := frontmatter.NewMap().Texts("allow_paths", p.AllowPaths).Texts("deny_paths", p.DenyPaths).
		Texts("read", p.ReadPaths).Texts("write", p.WritePaths).JSON("max_file_size", sized(p.MaxFileSize)).
		Bool("read_only", p.ReadOnly).Members(p.Extra)
	return frontmatter.NewMap().Text("vendor", s.Vendor).Always("server", s.Name).Text("version", s.Version).
		Map("connection", connection).
		Map("auth", frontmatter.NewMap().Text("type", s.Auth.Type).Text("token", s.Auth.Token).Text("header",
			s.Auth.Header)).
		Map("permissions", permissions).
		Map("rate_limit", frontmatter.NewMap().Number("requests_per_minute", s.RateLimit.PerMinute).
			Number("burst", float64(s.RateLimit.Burst))).
		Members(s.Extra)
}

// selectionFile is ActiveMCP.json.
type selectionFile struct {
	Vendor   string          `json:"vendor,omitempty"`
	Server   string          `json:"server"`
	Version  string          `json:"version,omitempty"`
	Selected []selectedTool  `json:"selectedTools"`
	Excluded []string        `json:"excludedTools,omitempty"`
	Strategy string          `json:"contextStrategy"`
	Settings json.RawMessage `json:"tool_config,omitempty"`
}

type selectedTool struct {
	Name        string `json:"name"`
	Enabled     bool   `json:"enabled"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required"`
}

// selection returns ActiveMCP.json.
func (s Server) selection() ([]byte, error) {
	out := selectionFile{Vendor: s.Vendor, Server: s.Name, Version: s.Version, Selected: []selectedTool{},
		Excluded: s.Selection.Excluded, Strategy: s.Selection.Strategy, Settings: s.Selection.Settings}
	for _, t := range s.Selection.Tools {
		out.Selected = append(out.Selected, selectedTool{t.Name, t.Enabled, t.Description, t.Required})
	}
	return frontmatter.JSON(out)
}
