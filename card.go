package repute

import "encoding/json"

// AgentCard is an A2A agent card, of protocol 0.x or 1.0 alike. Strings are as
// written, valid UTF-8 without NUL and bounded.
type AgentCard struct {
	Name             string
	Description      string
	Version          string   // of the agent
	ProtocolVersions []string // of A2A, each once: the card's and its interfaces'
	Provider         string   // organization
	DocumentationURL string
	IconURL          string
	Interfaces       []CardInterface // the preferred one first
	Skills           []CardSkill
	Capabilities     []string // names of those that are true, e.g. streaming
	Extensions       []string // URIs of protocol extensions
	SecuritySchemes  []string // names
	InputModes       []string // media types
	OutputModes      []string // media types
	// Signatures counts them. Nobody verified them.
	Signatures int
	Extra      map[string]json.RawMessage // unknown members, as written
}

// CardInterface is one way to talk to the agent.
type CardInterface struct {
	URL             string
	Binding         string // JSONRPC, GRPC, HTTP+JSON
	ProtocolVersion string
	Tenant          string
}

// CardSkill is one thing the agent can do.
type CardSkill struct {
	ID          string
	Name        string
	Description string
	Tags        []string
	Extra       map[string]json.RawMessage
}
