// Package oaf reads, checks and writes agents of the Open Agent Format (OAF 1.2.0 and the later 0.8.0): directories
// with an AGENTS.md, skills, configurations of MCP servers and earlier versions, and archives of them.
//
// Load reads a directory with its sub-agents, ParseManifest one AGENTS.md, and LoadZip an archive. They return an Agent
// and its problems, and no error: what cannot be read is absent, and a problem says why (package problem). Published
// agents use two dialects of the format; both are read into the same fields, and Write writes the format's own. New
// makes an agent to begin with, Generate the files that follow from AGENTS.md, NextVersion a new version, and Pack an
// archive. CheckTools asks servers, through the caller, whether they have the selected tools.
//
// The package is pure: bytes and file systems in, agents and problems out. Everything that it reads comes from
// strangers and is bounded (package tree), no path leaves the file system, and graphs of sub-agents have no cycles.
//
// A member that restricts an agent is read so that a mistake never permits more: a selection that cannot be read
// selects no tool, and a misspelled restriction is an error.
package oaf

import (
	"encoding/json"
	"slices"
	"strings"

	"repute/manifest/oaf/skill"
	"repute/manifest/oaf/tree"
)

// Agent is one OAF agent. Strings are as written; absent fields are zero. The order of lists is the order of the file,
// and lists that come from directories are ordered by path.
type Agent struct {
	Dir string // the directory that the agent was read from, within the file system; "." for its root

	// Identity. Versions and slugs are the characters of the file, never a number that YAML made of them.
	Name      string
	VendorKey string
	AgentKey  string
	Version   string
	Slug      string // vendorKey/agentKey; a bare name in many published files, see ID

	// Metadata.
	Description string
	Author      string
	License     string // SPDX
	Tags        []string

	// Composition: references, whether or not they resolve.
	Skills     []SkillRef
	Packs      []PackRef
	Weblets    []WebletRef
	MCPServers []ServerRef
	Agents     []AgentRef

	Orchestration Orchestration
	// Tools are the tools that the agent may use, by the names of Claude Code. Nil means that the file does not say;
	// empty and not nil means none.
	Tools  []string
	Config Config
	Memory *Memory // nil for an agent without memory
	Model  Model
	// Harness has the free-form section of each harness, by its name ("claude-code", "goose", "repute"), as JSON.
	Harness map[string]json.RawMessage
	// Extra has unknown members of the frontmatter as JSON.
	Extra map[string]json.RawMessage
	// Unknown names the members of all objects of the frontmatter that the format does not know, such as
	// config.tools.deny. Those of objects with an Extra are kept in it, the others are not. Load sets it.
	Unknown []string

	// Body is the Markdown after the frontmatter, with LF line ends and without blank lines around it.
	Body string

	// Contents of the directory.
	LocalSkills []skill.Skill // below skills/
	Servers     []Server      // below mcp-configs/
	Versions    []PastVersion // below versions/
	Files       []tree.File   // every other file: README.md, LICENSE, examples/, tests/, docs/, assets/
}

// ID returns the unique identifier: the slug, or vendorKey/agentKey where the slug is a bare name or absent.
func (a *Agent) ID() string {
	if !strings.Contains(a.Slug, "/") && a.VendorKey != "" && a.AgentKey != "" {
		return a.VendorKey + "/" + a.AgentKey
	}
	return a.Slug
}

// Graph returns the agent and all its local sub-agents, each once, with the agent first.
func (a *Agent) Graph() []*Agent {
	out := []*Agent{a}
	for i := 0; i < len(out); i++ {
		for _, ref := range out[i].Agents {
			if ref.Local != nil && !slices.Contains(out, ref.Local) {
				out = append(out, ref.Local)
			}
		}
	}
	return out
}

// IsStructured reports whether the body is a document of sections. Otherwise it is a direct system prompt. Both are
// given to a model as they are.
func (a *Agent) IsStructured() bool { return strings.HasPrefix(strings.TrimLeft(a.Body, " \t\n"), "#") }

// Skill returns the local skill of a name, by its directory or by its SKILL.md; nil if there is none.
func (a *Agent) Skill(name string) *skill.Skill {
	return find(a.LocalSkills, func(s *skill.Skill) bool { return s.Dir == name || s.Name == name })
}

// find returns the first entry of a list that is wanted; nil for none.
func find[T any](list []T, wanted func(*T) bool) *T {
	for i := range list {
		if wanted(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// Server returns the configuration that a reference names by its configDir, else by the server's name; nil if none.
func (a *Agent) Server(ref ServerRef) *Server {
	return find(a.Servers, func(s *Server) bool {
		if ref.ConfigDir == "" {
			return s.Name == ref.Server
		}
		return s.Dir == cleaned(ref.ConfigDir)
	})
}

// SkillRef names a skill that the agent uses. OAF 1.2.0 writes vendor and skill, 0.8.0 writes name.
type SkillRef struct {
	Vendor   string // "" in 0.8.0; "local" for local skills in 1.2.0
	Name     string
	Version  string // a version or a constraint
	Source   string // SourceLocal, SourceRegistry, or the URL of a skills index
	Required bool

	line int // of the reference, from 1
}

// Sources of skills.
const (
	SourceLocal    = "local"
	SourceRegistry = "registry"
)

// IsLocal reports whether the skill is one of skills/.
func (r SkillRef) IsLocal() bool {
	return r.Source == SourceLocal || r.Source == "" && (r.Vendor == "" || r.Vendor == SourceLocal)
}

// PackRef names a collection of skills.
type PackRef struct {
	Vendor, Pack, Version string
	Required              bool
}

// WebletRef names a web tool.
type WebletRef struct {
	Vendor, Weblet, Version string
	Launch                  string // onDemand, background, foreground
}

// ServerRef names an MCP server and the directory with its configuration.
type ServerRef struct {
	Vendor, Server, Version string
	ConfigDir               string // below the agent's directory, e.g. mcp-configs/filesystem; also a file
	Required                bool

	line int // of the reference, from 1
}

// AgentRef names a sub-agent.
type AgentRef struct {
	Vendor, Agent, Version string
	Role                   string
	Delegations            []string // tasks that are delegated to it
	Required               bool
	// Extra has unknown members as JSON, for example the agentId and the chain of a registered agent.
	Extra map[string]json.RawMessage
	// Local is the sub-agent where its directory was found; nil otherwise. The graph that it makes has no cycle.
	Local *Agent

	line int // of the reference, from 1
}

// ID returns vendor/agent, or agent alone where the file names no vendor.
func (r AgentRef) ID() string { return joined(r.Vendor, r.Agent) }

// Orchestration says which agent answers first and which one after a failure. Names are those of agents[] (agent or
// vendor/agent) or "main" for the agent itself.
type Orchestration struct {
	Entrypoint string // also read from the top level, where published files have it
	Fallback   string
	Triggers   []Trigger
}

// Trigger maps an event to an action.
type Trigger struct {
	Event, Action string
}

// EntrypointMain is the entrypoint that names the agent itself.
const EntrypointMain = "main"

// Config has settings of the run.
type Config struct {
	Temperature         *float64 // nil where the file does not say
	MaxTokens           int      // of one answer; 0 where the file does not say
	RequireConfirmation bool
	// Allowed and Denied are tools. Denied wins over Allowed and over Agent.Tools. Nil means that the file does not
	// say.
	Allowed, Denied []string
	Extra           map[string]json.RawMessage // unknown members, as JSON
}

// Kinds of memory.
const (
	MemoryEditable = "editable"
	MemoryReadOnly = "read-only"
)

// Memory is what a stateful agent remembers.
type Memory struct {
	Type   string // MemoryEditable or MemoryReadOnly; editable where the file does not say
	Blocks []MemoryBlock
}

// MemoryBlock is one labeled text.
type MemoryBlock struct {
	Label       string
	Value       string // the first text; "" where the file writes "default"
	Description string
	Limit       int // in characters, 0 for none
}

// Model names the model: by an alias, or by provider and name.
type Model struct {
	Alias     string // sonnet, opus, haiku, or any other text that stands in place of the object
	Provider  string // anthropic, openai, google, …
	Name      string
	Embedding string
	Extra     map[string]json.RawMessage // unknown members, as JSON
}

// PastVersion is one directory of versions/.
type PastVersion struct {
	Version string // without the leading v of the directory
	Text    []byte // its AGENTS.md
}

// Equal reports whether two references say the same, wherever they are written.
func (r SkillRef) Equal(o SkillRef) bool {
	r.line, o.line = 0, 0
	return r == o
}

// Equal reports whether two references say the same, wherever they are written.
func (r ServerRef) Equal(o ServerRef) bool {
	r.line, o.line = 0, 0
	return r == o
}
