package harness

import (
	"slices"
	"strings"

	"repute/manifest/oaf"
	"repute/manifest/oaf/frontmatter"
)

// goose writes AGENTS.md, .agents/skills and recipes/. Goose loads all three from the directory that it runs in; the
// directory of the format's text has no loader.
//
// AGENTS.md has the main agent alone: Goose reads it as the hints of the project, and recipes are what sub-agents are
// started by.
func (e *export) goose(a *oaf.Agent) error {
	for _, agent := range a.Graph() {
		e.common(agent, Goose)
		e.gooseLosses(agent)
		if e.options.Layout == LayoutText {
			e.gooseText(agent)
			continue
		}
		if err := e.personaSkill(agent, ".agents/skills/"+e.name(agent)); err != nil {
			return err
		}
		if _, err := e.localSkills(agent, ".agents/skills"); err != nil {
			return err
		}
		if err := e.recipe(agent); err != nil {
			return err
		}
	}
	if e.options.Layout != LayoutText {
		e.add("AGENTS.md", []byte(prompt(a)+"\n"))
	}
	return nil
}

// gooseText writes the layout of the format's text.
// Nothing in it is loaded, so that the whole layout is a loss of the identity.
func (e *export) gooseText(a *oaf.Agent) {
	dir := ".config/goose/extensions/" + kebab(a.VendorKey) + "/" + kebab(a.AgentKey)
	e.add(dir+"/AGENTS.md", []byte(prompt(a)+"\n"))
	e.lose(true, a, "identity", "the layout of the text has the instructions alone, and Goose loads no such file")
	e.lose(describe(a.Model) != describe(oaf.Model{}), a, "model", "the layout of the text has no model")
	e.lose(a.Tools != nil, a, "tools", "the layout of the text has no tools: Goose gives what its user enabled")
	e.lose(a.Config.Temperature != nil, a, "config.temperature", "the layout of the text has no settings")
	e.lose(len(a.Agents) > 0, a, "agents", "the layout of the text has no sub-agents")
	e.lose(len(a.LocalSkills) > 0, a, "skills", "the layout of the text has no skills")
	e.lose(len(a.Servers) > 0, a, "mcp-configs", "the layout of the text has no MCP servers")
}

// gooseLosses records what a recipe of Goose has no place for.
func (e *export) gooseLosses(a *oaf.Agent) {
	e.lose(a.Config.MaxTokens != 0, a, "config.max_tokens", "a recipe has no such setting")
	e.lose(a.Memory != nil, a, "memory", "Goose has no memory blocks")
	e.lose(len(a.Tools) > 0 && e.options.Layout != LayoutText, a, "tools",
		"Goose gives the tools of extensions: builtin developer stands for files and shell")
	e.lose(a.Config.Allowed != nil, a, "config.tools.allowed", "Goose gives the tools of extensions")
	e.lose(len(a.Config.Denied) > 0, a, "config.tools.denied", "they are denied in words only")
	e.lose(!isPlainAgents(a), a, "agents", "role, delegations, required and unknown members are not carried")
	for _, ref := range a.Agents {
		e.lose(ref.Local == nil, a, "agents", "%s has no directory, so that it has no recipe", ref.ID())
	}
}

// recipe writes recipes/{name}.yaml. A recipe is a template, so braces of texts are escaped; Goose ignores .yml.
func (e *export) recipe(a *oaf.Agent) error {
	m := frontmatter.NewMap().Text("version", "1.0.0").Always("title", escaped(a.Name)).Always("description",
		escaped(a.Description)).
		Always("instructions", escaped(prompt(a))).
		Maps("extensions", e.extensions(a)).Map("settings", e.gooseSettings(a))
	var subs []*frontmatter.Map
	for _, ref := range a.Agents {
		if ref.Local == nil {
			continue
		}
		name := e.name(ref.Local)
		subs = append(subs, frontmatter.NewMap().Text("name", strings.ReplaceAll(name, "-", "_")).Text("path",
			"./"+name+".yaml"))
	}
	text, err := m.Maps("sub_recipes", subs).YAML()
	if err != nil {
		return err
	}
	e.add("recipes/"+e.name(a)+".yaml", []byte(text))
	return nil
}

// escaped writes the openings of Jinja's expressions, statements and comments as expressions that give them.
// One pass replaces all three, so that braces which the first replacement writes are not escaped again.
func escaped(text string) string {
	return strings.NewReplacer("{{", "{{ '{{' }}", "{%", "{{ '{%' }}", "{#", "{{ '{#' }}").Replace(text)
}

// gooseSettings returns the model and its temperature. An alias that nobody maps to a provider is lost: Goose has none.
func (e *export) gooseSettings(a *oaf.Agent) *frontmatter.Map {
	m := frontmatter.NewMap()
	if provider, name, ok := e.model(a); ok {
		m.Text("goose_provider", provider).Text("goose_model", name)
	} else if describe(a.Model) != describe(oaf.Model{}) {
		e.lostModel(a)
	}
	return m.Float("temperature", a.Config.Temperature)
}

// extensions returns the MCP servers of an agent, and the builtin tools unless it has none.
func (e *export) extensions(a *oaf.Agent) []*frontmatter.Map {
	var out []*frontmatter.Map
	if a.Tools == nil || len(a.Tools) > 0 {
		out = append(out, frontmatter.NewMap().Text("type", "builtin").Text("name", "developer").Number("timeout", 300).
			Bool("bundled", true))
	}
	for _, s := range a.Servers {
		e.serverLosses(a, s)
		entry, ok := e.entry(a, s)
		if !ok {
			continue
		}
		out = append(out, e.extension(a, s, entry))
	}
	return out
}

// extension returns one MCP server. Goose has no transport sse, and gives variables of the environment by their names.
//
// A variable that refers to the environment is named in env_keys, which Goose takes from its keyring or asks for, and
// its value is not written. Names of secrets in headers are listed there as well.
func (e *export) extension(a *oaf.Agent, s oaf.Server, entry mcpEntry) *frontmatter.Map {
	m := frontmatter.NewMap()
	var keys []string
	if entry.Type == oaf.TransportStdio {
		m.Text("type", "stdio").Text("name", serverName(s)).Text("cmd", entry.Command).Texts("args",
			orEmpty(entry.Args))
		plain := map[string]string{}
		for name, value := range entry.Env {
			if isSecret(value) {
				keys = append(keys, name)
			} else {
				plain[name] = value
			}
		}
		m.TextMap("envs", plain)
	} else {
		e.lose(entry.Type == oaf.TransportSSE, a, "mcp-configs.connection", "%s: sse is written as streamable_http",
			s.Name)
		m.Text("type", "streamable_http").Text("name", serverName(s)).Text("uri", entry.URL).TextMap("headers",
			entry.Headers)
		for _, value := range entry.Headers {
			if name, ok := oaf.Variable(strings.TrimPrefix(value, "Bearer ")); ok {
				keys = append(keys, name)
			}
		}
	}
	slices.Sort(keys)
	m.Texts("env_keys", orNil(slices.Compact(keys)))
	timeout := s.Connection.Timeout
	// Seconds. The format has no default of its own, and a recipe has to name a timeout.
	if timeout == 0 {
		timeout = 300
	}
	m.Number("timeout", timeout)
	e.availableTools(a, s, m)
	return m
}

// isSecret reports whether a value refers to the environment.
func isSecret(value string) bool {
	_, ok := oaf.Variable(value)
	return ok
}

// availableTools adds the tools that the agent may use of a server. Goose takes a missing list for all of them.
func (e *export) availableTools(a *oaf.Agent, s oaf.Server, m *frontmatter.Map) {
	sel := s.Selection
	names := slices.DeleteFunc(allowed(sel), a.Denies)
	if sel.Present && sel.Strategy == oaf.StrategySubset && len(names) > 0 {
		m.Texts("available_tools", names)
		return
	}
	e.lose(sel.Present, a, "mcp-configs.selection",
		"%s: Goose takes a list of allowed tools only, so that it gives all of them", s.Name)
}

// orEmpty returns a list that is written as [] and not as null.
func orEmpty(list []string) []string { return append([]string{}, list...) }

// orNil returns nil for an empty list, which is the form of a member that the file does not have.
func orNil(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}
