package harness

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"repute/manifest/oaf"
	"repute/manifest/oaf/frontmatter"
	"repute/manifest/oaf/tree"
)

// agentFile is an Agent File of Letta. All lists are required, and ids are a prefix and a number.
// Members whose type is a list of nothing are always empty: Letta refuses a file without them.
type agentFile struct {
	Agents     []lettaAgent      `json:"agents"`
	Groups     []lettaGroup      `json:"groups"`
	Blocks     []lettaBlock      `json:"blocks"`
	Files      []struct{}        `json:"files"`
	Sources    []struct{}        `json:"sources"`
	Tools      []struct{}        `json:"tools"`
	MCPServers []lettaServer     `json:"mcp_servers"`
	Skills     []lettaSkill      `json:"skills"`
	Metadata   map[string]string `json:"metadata"`
}

// lettaAgent is an agent as an export writes it. An import reads lettaAgentInput, whose members may have other types.
type lettaAgent struct {
	ID               string          `json:"id"`
	Name             string          `json:"name"`
	Description      string          `json:"description"`
	AgentType        string          `json:"agent_type"`
	System           string          `json:"system"`
	LLM              *lettaLLM       `json:"llm_config,omitempty"`
	Embedding        *lettaEmbedding `json:"embedding_config,omitempty"`
	MemoryBlocks     []struct{}      `json:"memory_blocks"`
	Tools            []struct{}      `json:"tools"`
	ToolIDs          []string        `json:"tool_ids"`
	SourceIDs        []string        `json:"source_ids"`
	BlockIDs         []string        `json:"block_ids"`
	ToolRules        []struct{}      `json:"tool_rules"`
	Tags             []string        `json:"tags"`
	IncludeBaseTools bool            `json:"include_base_tools"`
	Metadata         lettaMetadata   `json:"metadata"`
	InContext        []string        `json:"in_context_message_ids"`
	Messages         []struct{}      `json:"messages"`
	FilesAgents      []struct{}      `json:"files_agents"`
	GroupIDs         []string        `json:"group_ids"`
}

// lettaMetadata carries what identifies the agent.
type lettaMetadata struct {
	OAF *lettaIdentity `json:"oaf,omitempty"`
}

// lettaIdentity is what identifies an agent, and which of the file's skills and servers are its own.
type lettaIdentity struct {
	Name      string   `json:"name,omitempty"`
	VendorKey string   `json:"vendorKey,omitempty"`
	AgentKey  string   `json:"agentKey,omitempty"`
	Slug      string   `json:"slug,omitempty"`
	Version   string   `json:"version,omitempty"`
	License   string   `json:"license,omitempty"`
	Author    string   `json:"author,omitempty"`
	Memory    string   `json:"memory,omitempty"`
	Skills    []string `json:"skills,omitempty"`
	Servers   []string `json:"mcpServers,omitempty"`
	Agents    string   `json:"agents,omitempty"`
}

// lettaLLM is the model of an agent. It is written for every agent, with contextWindow, since the format has no place
// for the size of a context.
type lettaLLM struct {
	Model         string   `json:"model"`
	EndpointType  string   `json:"model_endpoint_type"`
	Endpoint      string   `json:"model_endpoint,omitempty"`
	ContextWindow int      `json:"context_window"`
	Handle        string   `json:"handle"`
	Temperature   *float64 `json:"temperature,omitempty"`
	MaxTokens     int      `json:"max_tokens,omitempty"`
}

// lettaEmbedding is the embedding model of an agent. All members are comparable: an import compares it as a value, to
// see whether it says more than the name of a model.
type lettaEmbedding struct {
	EndpointType string `json:"embedding_endpoint_type"`
	Endpoint     string `json:"embedding_endpoint,omitempty"`
	Model        string `json:"embedding_model"`
	Dimensions   int    `json:"embedding_dim"`
	ChunkSize    int    `json:"embedding_chunk_size"`
	Handle       string `json:"handle"`
}

// lettaBlock is a block of memory, which agents name by its id.
type lettaBlock struct {
	ID          string `json:"id"`
	Label       string `json:"label"`
	Value       string `json:"value"`
	Limit       int    `json:"limit"`
	ReadOnly    bool   `json:"read_only"`
	Description string `json:"description,omitempty"`
}

// lettaGroup is an agent with those that it manages.
type lettaGroup struct {
	ID          string       `json:"id"`
	AgentIDs    []string     `json:"agent_ids"`
	Description string       `json:"description"`
	Manager     lettaManager `json:"manager_config"`
}

// lettaManager says who manages a group. Type is supervisor where this package wrote the group.
type lettaManager struct {
	Type    string `json:"manager_type"`
	AgentID string `json:"manager_agent_id"`
}

// lettaServer is an MCP server. The file has no place for the headers and secrets by which it is reached.
type lettaServer struct {
	ID    string      `json:"id"`
	Type  string      `json:"server_type"`
	Name  string      `json:"server_name"`
	URL   string      `json:"server_url,omitempty"`
	Stdio *lettaStdio `json:"stdio_config,omitempty"`
}

// lettaStdio is how a server on standard input and output is started. Type is always stdio.
type lettaStdio struct {
	ServerName string   `json:"server_name"`
	Type       string   `json:"type"`
	Command    string   `json:"command"`
	Args       []string `json:"args"`
	// Env is only read, to say that it is not carried: it may have secrets.
	Env map[string]json.RawMessage `json:"env,omitempty"`
}

// lettaSkill is a skill with its text files by their paths below its directory.
type lettaSkill struct {
	Name  string            `json:"name"`
	Files map[string]string `json:"files"`
}

// Texts that an export writes, which say nothing when it is imported.
const (
	lettaType   = "letta_v1_agent"
	generatedBy = "generated_by"
	supervisor  = "supervisor"
	groupText   = "Sub-agents of "
)

// Values of Letta where the agent has none of its own.
const (
	blockLimit    = 20_000
	contextWindow = 90_000
)

// letta writes {agent}.af.
//
// The number of an agent in the graph is its id, which groups name. The root is the first.
func (e *export) letta(a *oaf.Agent) error {
	all := a.Graph()
	file := agentFile{Agents: []lettaAgent{}, Groups: []lettaGroup{}, Blocks: []lettaBlock{}, Files: []struct{}{},
		Sources: []struct{}{}, Tools: []struct{}{}, MCPServers: []lettaServer{}, Skills: []lettaSkill{},
		Metadata: map[string]string{generatedBy: "repute"}}
	for i, agent := range all {
		e.common(agent, Letta)
		e.lettaLosses(agent)
		out := e.lettaAgent(agent, i)
		out.Metadata.OAF.Servers = e.lettaServers(agent, &file)
		skills, err := e.lettaSkills(agent, &file)
		if err != nil {
			return err
		}
		out.Metadata.OAF.Skills = skills
		out.BlockIDs = e.lettaBlocks(agent, &file)
		e.lettaGroup(agent, all, &out, &file)
		file.Agents = append(file.Agents, out)
	}
	data, err := frontmatter.JSON(file)
	if err != nil {
		return err
	}
	name := kebab(a.AgentKey)
	if name == "" {
		name = e.name(a)
	}
	e.add(name+".af", data)
	return nil
}

// lettaLosses records what an agent file of Letta has no place for, and what the text of the prompt cannot give back.
func (e *export) lettaLosses(a *oaf.Agent) {
	e.lose(a.Tools != nil, a, "tools", "Letta has tools of its own, whose code the file would have to carry")
	e.lose(a.Config.Allowed != nil, a, "config.tools.allowed", "Letta has tools of its own")
	_, back := divide(prompt(a))
	e.lose(a.Config.Denied != nil, a, "config.tools.denied", "they are denied in words only")
	e.lose(!slices.Equal(back, a.Config.Denied), a, "body", "a name of a denied tool has commas or line ends")
	e.lose(!isPlainAgents(a), a, "agents", "role, delegations, required and unknown members are not carried")
	e.lose(a.Tags == nil, a, "tags", "a missing list is written as an empty one")
	for _, s := range a.Servers {
		e.lose(s.Selection.Present, a, "mcp-configs.selection", "%s: Letta gives all tools of a server", s.Name)
	}
}

// lettaAgent returns an agent in the form of Letta's export. Letta refuses files in which a list is missing, so that
// empty ones are written. Its metadata carries the identity that Letta has no fields for.
func (e *export) lettaAgent(a *oaf.Agent, number int) lettaAgent {
	return lettaAgent{
		ID: fmt.Sprintf("agent-%d", number), Name: e.name(a), Description: a.Description, AgentType: lettaType,
		System: prompt(a), LLM: e.lettaModel(a), Embedding: e.lettaEmbedding(a),
		MemoryBlocks: []struct{}{}, Tools: []struct{}{}, ToolIDs: []string{}, SourceIDs: []string{},
		ToolRules: []struct{}{},
		Tags:      orEmpty(a.Tags), IncludeBaseTools: true, InContext: []string{}, Messages: []struct{}{},
		FilesAgents: []struct{}{},
		GroupIDs:    []string{},
		Metadata: lettaMetadata{OAF: &lettaIdentity{Name: a.Name, VendorKey: a.VendorKey, AgentKey: a.AgentKey,
			Slug:    a.Slug,
			Version: a.Version, License: a.License, Author: a.Author, Agents: joinAgents(a.Agents)}},
	}
}

// lettaModel returns the settings of the model, which Letta wants for every agent.
func (e *export) lettaModel(a *oaf.Agent) *lettaLLM {
	provider, name, ok := e.model(a)
	if !ok {
		if describe(a.Model) != describe(oaf.Model{}) {
			e.lostModel(a)
		}
		full := e.options.Models["sonnet"]
		provider, name, _ = strings.Cut(full, "/")
		e.lose(true, a, "model", "Letta needs one; %s is written", full)
	} else {
		e.lose(a.Model.Alias != "", a, "model", "the alias is written as %s/%s", provider, name)
	}
	return &lettaLLM{Model: name, EndpointType: provider, Endpoint: endpoint(provider), ContextWindow: contextWindow,
		Handle: provider + "/" + name, Temperature: a.Config.Temperature, MaxTokens: a.Config.MaxTokens}
}

// endpoint returns the usual address of a provider, "" where the server knows it.
func endpoint(provider string) string {
	switch provider {
	case "anthropic":
		return "https://api.anthropic.com/v1"
	case "openai":
		return "https://api.openai.com/v1"
	}
	return ""
}

// defaultEmbedding returns the embedding that Letta needs for every agent and the format does not name.
func defaultEmbedding() *lettaEmbedding {
	return &lettaEmbedding{EndpointType: "openai", Endpoint: "https://api.openai.com/v1",
		Model:      "text-embedding-3-small",
		Dimensions: 1536, ChunkSize: 300, Handle: "openai/text-embedding-3-small"}
}

// lettaEmbedding returns the embedding of an agent. Letta wants the number of its dimensions, which the format does not
// have: a model whose number is not known is lost.
func (e *export) lettaEmbedding(a *oaf.Agent) *lettaEmbedding {
	out := defaultEmbedding()
	name := strings.TrimPrefix(a.Model.Embedding, "openai/")
	dimensions := map[string]int{"": out.Dimensions, out.Model: out.Dimensions, "text-embedding-3-large": 3072,
		"text-embedding-ada-002": 1536}[name]
	switch {
	case dimensions == 0:
		e.lose(true, a, "model",
			"Letta wants the number of dimensions of the embedding %.80q, which is not known: %s is written",
			a.Model.Embedding, out.Model)
	case name != "":
		e.lose(name != a.Model.Embedding || name == out.Model, a, "model", "the embedding is written as %s", name)
		out.Model, out.Dimensions, out.Handle = name, dimensions, "openai/"+name
	}
	return out
}

// lettaBlocks adds the memory blocks, and returns their ids.
// A limit of Letta's own is read back as none (memory), which is why it is a loss where the agent has written it.
func (e *export) lettaBlocks(a *oaf.Agent, file *agentFile) []string {
	ids := []string{}
	if a.Memory == nil {
		return ids
	}
	e.lose(len(a.Memory.Blocks) == 0, a, "memory", "memory without blocks is none")
	e.lose(a.Memory.Type != oaf.MemoryEditable && a.Memory.Type != oaf.MemoryReadOnly, a, "memory",
		"the type is unknown")
	for _, b := range a.Memory.Blocks {
		id := fmt.Sprintf("block-%d", len(file.Blocks))
		limit := b.Limit
		if limit == 0 {
			limit = max(blockLimit, utf8.RuneCountInString(b.Value))
		}
		e.lose(b.Limit == limit && limit == blockLimit || b.Limit == 0 && limit > blockLimit, a, "memory",
			"the limit of %s is Letta's own", b.Label)
		file.Blocks = append(file.Blocks, lettaBlock{ID: id, Label: b.Label, Value: b.Value, Limit: limit,
			ReadOnly: a.Memory.Type == oaf.MemoryReadOnly, Description: b.Description})
		ids = append(ids, id)
	}
	return ids
}

// lettaServers adds the MCP servers, and returns their names. Letta strips secrets and variables on import.
func (e *export) lettaServers(a *oaf.Agent, file *agentFile) []string {
	var names []string
	for _, s := range a.Servers {
		e.serverLosses(a, s)
		e.lostTimeout(a, s)
		c := s.Connection
		entry, parts := withhold(mcpEntry{URL: c.URL, Args: c.Args})
		e.lose(len(parts) > 0, a, "mcp-configs.connection", "%s", withheld(s.Name, parts))
		c.URL, c.Args = entry.URL, entry.Args
		out := lettaServer{ID: fmt.Sprintf("mcp_server-%d", len(file.MCPServers)), Type: c.Type, Name: serverName(s)}
		switch {
		case c.Type == oaf.TransportStdio && c.Command != "":
			out.Stdio = &lettaStdio{ServerName: out.Name, Type: "stdio", Command: c.Command, Args: orEmpty(c.Args)}
			e.lose(c.Env != nil || c.URL != "" || c.Headers != nil || c.Args != nil && len(c.Args) == 0, a,
				"mcp-configs.connection",
				"%s: variables are not carried", s.Name)
		case c.Type == oaf.TransportSSE && c.URL != "" || c.Type == oaf.TransportHTTP && c.URL != "":
			out.URL = c.URL
			if c.Type == oaf.TransportHTTP {
				out.Type = "streamable_http"
			}
			e.lose(c.Headers != nil || c.Command != "" || c.Args != nil || c.Env != nil, a, "mcp-configs.connection",
				"%s: headers are not carried", s.Name)
		default:
			e.lose(true, a, "mcp-configs.connection", "%s: it cannot be reached without a type and a url or command",
				s.Name)
			continue
		}
		e.lose(s.Auth != (oaf.Auth{}), a, "mcp-configs.auth", "%s: Letta never imports authentication", s.Name)
		names = append(names, out.Name)
		if other := slices.IndexFunc(file.MCPServers, func(s lettaServer) bool { return s.Name == out.Name }); other >= 0 {
			out.ID = file.MCPServers[other].ID
			e.lose(!reflect.DeepEqual(file.MCPServers[other], out), a, "mcp-configs.connection",
				"%s: another server has its name", s.Name)
			continue
		}
		file.MCPServers = append(file.MCPServers, out)
	}
	return names
}

// lettaSkills adds the local skills with their text files, and returns their names.
func (e *export) lettaSkills(a *oaf.Agent, file *agentFile) ([]string, error) {
	var names []string
	for _, s := range a.LocalSkills {
		name, files, done, err := e.skill(a, s)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
		if done {
			continue
		}
		out := lettaSkill{Name: name, Files: map[string]string{}}
		for _, f := range files {
			isText := utf8.Valid(f.Data) && !slices.Contains(f.Data, 0)
			e.lose(!isText || f.Executable, a, "skills", "%s of %s: only texts without permissions are carried", f.Path,
				s.Name)
			if isText {
				out.Files[f.Path] = string(f.Data)
			}
		}
		file.Skills = append(file.Skills, out)
	}
	return names, nil
}

// lettaGroup adds the group of an agent and its local sub-agents.
func (e *export) lettaGroup(a *oaf.Agent, all []*oaf.Agent, out *lettaAgent, file *agentFile) {
	var ids []string
	for _, ref := range a.Agents {
		if at := slices.Index(all, ref.Local); ref.Local != nil && at >= 0 {
			ids = append(ids, fmt.Sprintf("agent-%d", at))
		}
	}
	if len(ids) == 0 {
		return
	}
	id := fmt.Sprintf("group-%d", len(file.Groups))
	file.Groups = append(file.Groups, lettaGroup{ID: id, AgentIDs: ids, Description: groupText + out.Name,
		Manager: lettaManager{Type: supervisor, AgentID: out.ID}})
	out.GroupIDs = []string{id}
}

// parse returns the files of a skill of an agent file whose paths stay in its directory.
// The order is that of the paths, since a map of JSON has none.
func (s lettaSkill) parse() []tree.File {
	var files []tree.File
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		if tree.IsSafe(name) {
			files = append(files, tree.File{Path: name, Data: []byte(s.Files[name])})
		}
	}
	return files
}
