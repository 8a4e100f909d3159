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
	// Signatures is their number; they are not verified.
	Signatures int
	Extra      map[string]json.RawMessage // unknown members, as written
}

// CardInterface is one endpoint of the agent with its protocol.
type CardInterface struct {
	URL             string
	Binding         string // JSONRPC, GRPC, HTTP+JSON
	ProtocolVersion string
	Tenant          string
}

// CardSkill is one skill of the agent.
type CardSkill struct {
	ID          string
	Name        string
	Description string
	Tags        []string
	Extra       map[string]json.RawMessage
}
