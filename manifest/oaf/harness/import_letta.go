package harness

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"repute"
	"repute/manifest/oaf"
	"repute/manifest/oaf/frontmatter"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/skill"
	"repute/manifest/oaf/tree"
)

// Bounds of an agent file.
const (
	maxAgentFile = 16 << 20 // bytes: it may carry a history of messages, which is not read
	// maxLetta bounds its agents, servers and skills, each: an agent that does not say which servers and skills are its
	// own has all of them.
	maxLetta = 256
)

// FromLetta reads an Agent File of Letta: all of its agents. Those of a group are the sub-agents of the one that
// manages it. The notes of the file as a whole are those of the first agent. repute.ErrInvalid for a file that is none,
// also for one of the older form.
//
// It reads all agents before it gives any its sub-agents, because groups name agents by id in any order, and keys may
// change in distinguish.
func FromLetta(b []byte) ([]Import, error) {
	if len(b) > maxAgentFile {
		return nil, repute.Invalid("agent file", "is larger than 16 MiB", "an .af file of Letta")
	}
	var file lettaInput
	if err := json.Unmarshal(b, &file); err != nil {
		return nil, repute.Invalid("agent file", fmt.Sprintf("%.200s", err.Error()), "an .af file of Letta")
	}
	switch {
	case len(file.Agents) == 0:
		return nil, repute.Invalid("agent file", "has no agents",
			"an .af file of Letta with agents, blocks and mcp_servers")
	case max(len(file.Agents), len(file.Servers), len(file.Skills)) > maxLetta:
		return nil, repute.Invalid("agent file", "has too many agents, mcp_servers or skills",
			fmt.Sprintf("at most %d of each", maxLetta))
	}
	file.Servers = slices.DeleteFunc(file.Servers, func(s lettaServerInput) bool { return s.raw == nil })
	var out []Import
	for i, raw := range file.Agents {
		var in lettaAgentInput
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil, repute.Invalid(fmt.Sprintf("agents.%d", i), fmt.Sprintf("%.200s", err.Error()),
				"an agent of Letta")
		}
		list, n := &problem.List{}, &notes{}
		a := file.agent(in, list, n)
		lettaRest(raw, in, n)
		out = append(out, importOf(a, list, n))
		file.ids = append(file.ids, in.ID)
	}
	distinguish(out)
	file.subAgents(out)
	var n notes
	file.rest(&n)
	for _, name := range unused(b, "agents", "blocks", "groups", "mcp_servers", "skills", "metadata", "tools") {
		n.drop(true, name, "the Open Agent Format has no place for it")
	}
	out[0].Notes = append(n.of(""), out[0].Notes...)
	return out, nil
}

// rest notes what the file says beside its agents and the format has no place for.
func (f *lettaInput) rest(n *notes) {
	var tools []string
	for _, t := range f.Tools {
		tools = append(tools, fmt.Sprintf("%.80s", t.Name))
	}
	n.drop(len(tools) > 0, "tools", "%s: the Open Agent Format has no place for their code", strings.Join(tools, ", "))
	for _, name := range slices.Sorted(maps.Keys(f.Metadata)) {
		n.drop(name != generatedBy, "metadata."+name, "the Open Agent Format has no place for it")
	}
	for _, g := range f.Groups {
		n.drop(g.Manager.Type != "" && g.Manager.Type != supervisor, "groups.manager_type",
			"%s: %.80s is how Letta manages the group", g.ID, g.Manager.Type)
		n.drop(g.Description != "" && !strings.HasPrefix(g.Description, groupText), "groups.description",
			"%s: %.200s", g.ID,
			g.Description)
	}
}

// lettaInput is the part of an agent file that is read.
type lettaInput struct {
	Agents  []json.RawMessage  `json:"agents"`
	Groups  []lettaGroup       `json:"groups"`
	Blocks  []lettaBlock       `json:"blocks"`
	Servers []lettaServerInput `json:"mcp_servers"`
	Skills  []lettaSkill       `json:"skills"`
	Tools   []struct {
		Name string `json:"name"`
	} `json:"tools"`
	Metadata map[string]json.RawMessage `json:"metadata"`

	ids []string // of the agents, in their order
}

// lettaServerInput is a server with its members as written.
type lettaServerInput struct {
	lettaServer
	raw json.RawMessage // nil for a server of another form, which is left out
}

// UnmarshalJSON implements json.Unmarshaler. It never fails, so that one wrong server does not hide the others.
// The clone is needed, because a decoder may use its buffer again.
func (s *lettaServerInput) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &s.lettaServer) == nil {
		s.raw = bytes.Clone(raw)
	}
	return nil
}

// lettaAgentInput is what is read of an agent. Other members are noted by lettaRest.
type lettaAgentInput struct {
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	System      string          `json:"system"`
	LLM         *lettaLLM       `json:"llm_config"`
	Model       string          `json:"model"` // provider/name, of later files
	Embedding   *lettaEmbedding `json:"embedding_config"`
	BlockIDs    []string        `json:"block_ids"`
	Tags        []string        `json:"tags"`
	Metadata    json.RawMessage `json:"metadata"`
	Type        string          `json:"agent_type"`
	BaseTools   bool            `json:"include_base_tools"`
}

// agent returns an agent of the file. One that repute exported has its identity in the metadata; of any other one all
// servers and skills of the file are its own.
//
// An agent with a key in its metadata names its servers and skills, even none; for any other one, no list in the file
// says whose they are.
func (f *lettaInput) agent(in lettaAgentInput, list *problem.List, n *notes) *oaf.Agent {
	var meta lettaMetadata
	_ = json.Unmarshal(in.Metadata, &meta) // metadata of another form identifies no agent
	id := meta.OAF
	if id == nil {
		id = &lettaIdentity{}
	}
	if id.AgentKey == "" {
		id.Servers, id.Skills = f.names()
		if vendor, key, ok := strings.Cut(id.Slug, "/"); ok {
			id.VendorKey, id.AgentKey = cmp.Or(id.VendorKey, vendor), key
		}
	}
	a := &oaf.Agent{Dir: ".", Name: cmp.Or(id.Name, in.Name), VendorKey: id.VendorKey, AgentKey: id.AgentKey,
		Slug: id.Slug, Version: id.Version, Description: in.Description, Author: id.Author, License: id.License,
		Tags: in.Tags, Agents: parseAgents(id.Agents)}
	n.guess(id.Name == "" && in.Name != "" && id.Slug != "", "name", "%.80s is the name in Letta", in.Name)
	a.Body, a.Config.Denied = divide(frontmatter.TrimBody(in.System))
	lettaModelOf(a, in, meta.OAF != nil, n)
	n.drop(in.Type != "" && in.Type != lettaType, "agent_type", "%.80s is a kind of Letta's own", in.Type)
	n.drop(in.BaseTools && meta.OAF == nil, "include_base_tools",
		"tools of Letta are not those of the Open Agent Format")
	a.Memory = f.memory(in.BlockIDs, n)
	a.LocalSkills = f.skills(id.Skills, list, n)
	a.Servers = f.servers(id.Servers, n)
	a.Skills, a.MCPServers = plainSkills(a.LocalSkills), plainServers(a.Servers)
	derive(a, n, in.ID)
	return a
}

// lettaModelOf reads the model and its settings. isOurs says that an export of this package wrote the agent.
func lettaModelOf(a *oaf.Agent, in lettaAgentInput, isOurs bool, n *notes) {
	if llm := in.LLM; llm != nil {
		a.Model = oaf.Model{Provider: llm.EndpointType, Name: llm.Model}
		a.Config.Temperature, a.Config.MaxTokens = llm.Temperature, llm.MaxTokens
		n.drop(llm.Endpoint != "" && llm.Endpoint != endpoint(llm.EndpointType), "llm_config.model_endpoint",
			"the address of a model is a setting of the harness")
		n.drop(llm.ContextWindow != 0 && llm.ContextWindow != contextWindow, "llm_config.context_window",
			"the Open Agent Format has no place for it")
	} else if provider, name, ok := strings.Cut(in.Model, "/"); ok {
		a.Model = oaf.Model{Provider: provider, Name: name}
	}
	// The embedding that an export writes for every agent says nothing.
	if e := in.Embedding; e != nil && (!isOurs || e.Model != defaultEmbedding().Model) {
		a.Model.Embedding = e.Model
		n.drop(*e != lettaEmbedding{Model: e.Model}, "embedding_config", "only the name of the model %.80s is carried",
			e.Model)
	}
}

// lettaUsual returns the members of an agent of Letta that are read, and those that its exports always have and that
// say nothing about the agent.
// Whatever else has a value is noted, so that a member which a later version of Letta adds is not lost in silence.
func lettaUsual() []string {
	return []string{"id", "name", "description", "system", "llm_config", "model", "embedding_config", "block_ids",
		"tags",
		"metadata", "agent_type", "group_ids", "in_context_message_ids", "created_at", "include_base_tools",
		"include_multi_agent_tools", "include_base_tool_rules", "include_default_source", "timezone", "max_files_open",
		"per_file_view_window_char_limit"}
}

// lettaRest notes what an agent of Letta says and the format has no place for.
func lettaRest(raw json.RawMessage, in lettaAgentInput, n *notes) {
	for _, name := range unused(raw, lettaUsual()...) {
		n.drop(true, name, "the Open Agent Format has no place for it")
	}
	var agent struct {
		LLM      json.RawMessage            `json:"llm_config"`
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	if json.Unmarshal(raw, &agent) != nil {
		return
	}
	settings := unused(agent.LLM, "model", "model_endpoint_type", "model_endpoint", "context_window", "handle",
		"temperature", "max_tokens", "provider_name", "provider_category")
	n.drop(len(settings) > 0, "llm_config", "%s are settings of Letta", strings.Join(settings, ", "))
	for _, name := range unused(in.Metadata, "oaf") {
		n.drop(true, "metadata."+name, "the Open Agent Format has no place for it")
	}
}

// subAgents gives agents that manage a group the other ones as sub-agents, unless they name their own.
func (f *lettaInput) subAgents(all []Import) {
	for _, g := range f.Groups {
		at := slices.Index(f.ids, g.Manager.AgentID)
		if at < 0 || len(all[at].Agent.Agents) > 0 {
			continue
		}
		for _, id := range g.AgentIDs {
			if sub := slices.Index(f.ids, id); sub >= 0 && sub != at {
				all[at].Agent.Agents = append(all[at].Agent.Agents, oaf.AgentRef{Vendor: all[sub].Agent.VendorKey,
					Agent: all[sub].Agent.AgentKey, Required: true})
			}
		}
	}
}

// names returns the servers and the skills of the file, for an agent that does not say which are its own.
func (f *lettaInput) names() (servers, skills []string) {
	for _, s := range f.Servers {
		servers = append(servers, s.Name)
	}
	for _, s := range f.Skills {
		skills = append(skills, s.Name)
	}
	return servers, skills
}

// memory reads the blocks of an agent; nil without any. The format has one type for all blocks.
// One block that can be edited makes all of them editable, since a block that cannot be written would break an agent
// that writes it.
func (f *lettaInput) memory(ids []string, n *notes) *oaf.Memory {
	m := &oaf.Memory{Type: oaf.MemoryReadOnly}
	for _, id := range ids {
		at := slices.IndexFunc(f.Blocks, func(b lettaBlock) bool { return b.ID == id })
		if at < 0 {
			n.drop(true, "memory", "the file has no %.80q", id)
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
	for _, b := range f.Blocks {
		n.drop(b.ReadOnly && m.Type == oaf.MemoryEditable && slices.Contains(ids, b.ID), "memory.type",
			"%.80s is read-only in Letta: all blocks of an agent are of one type", b.Label)
	}
	return m
}

// skills returns the named skills. A name that cannot be one directory is left out: it would leave the agent's own.
func (f *lettaInput) skills(names []string, list *problem.List, n *notes) []skill.Skill {
	var out []skill.Skill
	for _, name := range names {
		at := slices.IndexFunc(f.Skills, func(s lettaSkill) bool { return s.Name == name })
		if at < 0 || !tree.IsSafe(name) || strings.Contains(name, "/") {
			n.drop(true, "skills", "%.80q is not in the file, or cannot be the name of a directory", name)
			continue
		}
		files := f.Skills[at].parse()
		n.drop(len(files) < len(f.Skills[at].Files), "skills", "%.80q has files whose paths leave its directory", name)
		if s, ok := skill.Parse(name, "skills/"+name, files, list); ok {
			out = append(out, s)
		}
	}
	return out
}

// servers returns the named servers in the form of the format. Letta calls streamable HTTP by another name.
// Of two servers of one name the first counts.
func (f *lettaInput) servers(names []string, n *notes) []oaf.Server {
	var out []oaf.Server
	for _, name := range names {
		at := slices.IndexFunc(f.Servers, func(s lettaServerInput) bool { return s.Name == name })
		if at < 0 {
			n.drop(true, "mcpServers", "%.80q is not in the file", name)
			continue
		}
		in := f.Servers[at]
		for _, key := range unused(in.raw, "id", "server_name", "server_type", "server_url", "stdio_config",
			"organization_id") {
			n.drop(true, "mcp-configs."+key, "%.80s: it is not carried, as it may have a secret", name)
		}
		entry := mcpEntry{Type: in.Type, URL: in.URL}
		if in.Type == "streamable_http" {
			entry.Type = oaf.TransportHTTP
		}
		if in.Stdio != nil {
			entry.Command, entry.Args = in.Stdio.Command, orNil(in.Stdio.Args)
			n.drop(len(in.Stdio.Env) > 0, "mcp-configs.connection.env",
				"%.80s: variables are not carried, as they may have secrets", name)
		}
		entry, parts := withhold(entry)
		n.drop(len(parts) > 0, "mcp-configs.connection", "%s", withheld(name, parts))
		out = append(out, serverOf(name, entry, oaf.Selection{}, out))
	}
	return out
}
