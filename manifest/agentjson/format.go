package agentjson

import (
	"bytes"
	"encoding/json"

	"repute/internal/jsonwalk"
)

// Format is a format of documents that are served at /.well-known/agent.json.
type Format string

// Formats.
const (
	// The values are stored and shown in answers, and MUST NOT change.
	FormatAgentJSON   Format = "agent-json"
	FormatA2ACard     Format = "a2a-card"
	FormatAWP         Format = "agent-web-protocol"
	FormatIdentityKit Format = "agent-identity-kit"
	FormatAMS         Format = "agent-manifest-specification"
	FormatACP         Format = "acp-registry"
	FormatQuality     Format = "agent-router"
	FormatFacts       Format = "agent-json-facts"
	FormatUnknown     Format = "unknown"
)

// Title describes a format with its article.
func (f Format) Title() string {
	switch f {
	case FormatAgentJSON:
		return "an agent.json manifest"
	case FormatA2ACard:
		return "an A2A agent card"
	case FormatAWP:
		return "an agent.json of the Agent Web Protocol"
	case FormatIdentityKit:
		return "an agent card of the Agent Identity Kit (foragents.dev)"
	case FormatAMS:
		return "a manifest of the Agent Manifest Specification (AMS)"
	case FormatACP:
		return "an entry of the registry of the Agent Client Protocol"
	case FormatQuality:
		return "an agent.json of the universal agent manifest (agent-router.dev)"
	case FormatFacts:
		return "an agent.json of facts about a subject (agent-json/spec)"
	}
	return "a document of no known format"
}

// Detect returns the format of a document by its members, whatever it was published as.
//
// It is more tolerant than Parse about the format and less about the text: what is no JSON is of no known format.
func Detect(b []byte) Format {
	b = bytes.TrimSpace(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")))
	r := &reader{}
	r.borrow()
	defer r.giveBack()
	if len(b) > MaxBytes || r.index.Scan(b).Depth > maxJSONDepth || !json.Valid(b) || b[0] != '{' {
		return FormatUnknown
	}
	return r.open(member{raw: b}, nil, "", -1).format()
}

// format judges by members that no other format has. What carries a member of agent.json's own is taken for one, so
// that its author learns what is missing.
//
// The order decides for documents that have members of several formats: the members that only one format has come
// first, and the generic ones, such as name and description, last.
func (o *object) format() Format {
	switch {
	case o.has("origin") && o.has("payout_address"):
		return FormatAgentJSON
	case o.has("awp_version"):
		return FormatAWP
	case o.has("$agent"):
		return FormatAMS
	case o.hasList("facts") && o.hasObject("subject"):
		return FormatFacts
	case o.hasObject("distribution") && o.has("id") && o.has("name"):
		return FormatACP
	case o.hasObject("agent") && (o.hasObject("owner") || o.hasObject("platform") || o.has("$schema")):
		return FormatIdentityKit
	case o.isCard():
		return FormatA2ACard
	case o.has("name") && o.has("description") && (o.hasList("protocols") || o.hasObject("tests")):
		return FormatQuality
	case o.has("payout_address") || o.has("origin") && o.has("version") || o.hasList("intents"):
		return FormatAgentJSON
	}
	return FormatUnknown
}

// isCard reports whether an object is an agent card of A2A: it has skills, and says how to talk to the agent.
func (o *object) isCard() bool {
	if o.hasList("supportedInterfaces") {
		return true
	}
	return o.hasList("skills") && o.has("url") && (o.hasObject("capabilities") || o.has("protocolVersion"))
}

// hasList reports whether the object has an array of that name.
func (o *object) hasList(name string) bool { return o.hasType(name, "an array") }

// hasObject reports whether the object has an object of that name.
func (o *object) hasObject(name string) bool { return o.hasType(name, "an object") }

// hasType reports whether the object has a member of a JSON type.
func (o *object) hasType(name, want string) bool {
	m := o.find(name)
	return m != nil && jsonwalk.Type(m.raw) == want
}
