package manifest

import (
	"encoding/json"
	"strings"
)

// kind reports objects that are something else than a registration. Anything that
// carries one of a registration's own members is taken for one.
func (r *reader) kind(o *object) {
	if isRegistration(o) {
		return
	}
	switch {
	case o.has("ciphertext") && o.has("iv"):
		r.add(CodeEncrypted, "", "the document is encrypted")
	case o.has("@context") || o.has("@type"):
		r.add(CodeJSONLD, "", "the document is JSON-LD")
	case isCard(o):
		r.add(CodeA2ACard, "", "the document is an A2A agent card")
	case isErrorBody(o):
		r.add(CodeErrorBody, "", "the document is an error message")
	case o.has("attributes") && o.has("image"):
		r.add(CodeNFT, "", "the document is NFT metadata")
	case !o.has("name") && !o.has("description"):
		r.add(CodeUnknown, "", "nothing of a registration in it")
	}
}

func (o *object) has(name string) bool { return o.find(name) != nil }

func isRegistration(o *object) bool {
	for _, name := range []string{
		"services", "endpoints", "registrations", "supportedTrust", "supportedTrusts",
		"x402Support", "x402support", "8004Support",
	} {
		if o.has(name) {
			return true
		}
	}
	m := o.find("type")
	var text string
	return m != nil && json.Unmarshal(m.raw, &text) == nil && strings.Contains(text, "8004")
}

// isCard: the card's skills are objects, and it says how to talk to the agent.
func isCard(o *object) bool {
	m := o.find("skills")
	if m == nil || jsonType(m.raw) != "an array" {
		return false
	}
	return o.has("protocolVersion") || o.has("capabilities") || o.has("defaultInputModes") || o.has("supportedInterfaces")
}

func isErrorBody(o *object) bool {
	if o.has("name") {
		return false
	}
	return o.has("detail") || o.has("error") || o.has("errors") || o.has("message") && (o.has("code") || o.has("status") || o.has("statusCode"))
}
