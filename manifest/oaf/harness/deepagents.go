package harness

import (
	"slices"

	"repute/manifest/oaf"
	"repute/manifest/oaf/frontmatter"
)

// deepAgents writes .deepagents/{agent}. AGENTS.md is what is loaded; agent.md is its older name, which the format's
// text has.
//
// The first agent of the graph is the main one, which is text alone; sub-agents have a frontmatter. All share the
// servers and the skills of the directory.
func (e *export) deepAgents(a *oaf.Agent) error {
	root := ".deepagents/" + e.name(a)
	if key := kebab(a.AgentKey); key != "" {
		root = ".deepagents/" + key
	}
	servers := map[string]mcpEntry{}
	for i, agent := range a.Graph() {
		e.common(agent, DeepAgents)
		e.deepLosses(agent)
		e.servers(agent, servers)
		for _, s := range agent.Servers {
			e.lose(s.Selection.Present, agent, "mcp-configs.selection", "%s: all of its tools are given", s.Name)
		}
		if _, err := e.localSkills(agent, root+"/skills"); err != nil {
			return err
		}
		if i > 0 {
			e.lose(true, agent, "identity", "name, version, slug, author, license and tags have no place")
			if err := e.deepSubAgent(agent, root); err != nil {
				return err
			}
			continue
		}
		text := []byte(prompt(agent) + "\n")
		if e.options.Layout != LayoutText {
			e.add(root+"/AGENTS.md", text)
		}
		e.add(root+"/agent.md", text)
		e.lose(e.options.Layout == LayoutText, agent, "body",
			"Deep Agents loads AGENTS.md, and agent.md in older versions only")
		e.lose(agent.Model.Alias != "" || agent.Model.Name != "", agent, "model",
			"the model of the main agent is chosen at its start")
		e.lose(true, agent, "identity", "name, version, slug, description, author, license and tags have no place")
	}
	return e.mcpFile(".deepagents/.mcp.json", servers)
}

// deepLosses records what Deep Agents has no place for.
// Versions count as well here, since a sub-agent is found by its directory's name alone.
func (e *export) deepLosses(a *oaf.Agent) {
	e.lose(a.Config.Temperature != nil, a, "config.temperature", "there is no such setting")
	e.lose(a.Config.MaxTokens != 0, a, "config.max_tokens", "there is no such setting")
	e.lose(a.Memory != nil, a, "memory", "memory is AGENTS.md itself")
	e.lose(a.Tools != nil, a, "tools", "all built-in tools are given")
	e.lose(a.Config.Allowed != nil, a, "config.tools.allowed", "all built-in tools are given")
	e.lose(len(a.Config.Denied) > 0, a, "config.tools.denied", "they are denied in words only")
	e.lose(len(a.Agents) > 0 && (!isPlainAgents(a) || slices.ContainsFunc(a.Agents, func(r oaf.AgentRef) bool {
		return r.Version != ""
	})), a, "agents", "version, role, delegations, required and unknown members are not carried")
	for _, ref := range a.Agents {
		e.lose(ref.Local == nil, a, "agents", "%s has no directory", ref.ID())
	}
}

// deepSubAgent writes agents/{name}/AGENTS.md, whose frontmatter MUST have name and description.
func (e *export) deepSubAgent(a *oaf.Agent, root string) error {
	name := e.name(a)
	m := frontmatter.NewMap().Text("name", name).Always("description", frontmatter.OneLine(a.Description))
	if provider, model, ok := e.model(a); ok {
		m.Text("model", provider+":"+model)
	} else if describe(a.Model) != describe(oaf.Model{}) {
		e.lostModel(a)
	}
	head, err := m.YAML()
	if err != nil {
		return err
	}
	e.add(root+"/agents/"+name+"/AGENTS.md", []byte(frontmatter.Join(head, prompt(a))))
	return nil
}
