package manifest

import (
	"encoding/json"
	"slices"
	"strings"

	"repute"
	"repute/internal/jsonwalk"
)

// Detect returns the kind of a document by its members, whatever it was published as. A document
// that is no JSON object is unknown.
func Detect(b []byte) repute.DocumentKind {
	r := &reader{area: areaAgent}
	b = r.trim(b)
	if !r.isObject(b) {
		return repute.UnknownDocument
	}
	kind, _ := (&object{members: membersOf(b)}).kind()
	return kind
}

// expect reports a document that is something else than it was read as. Anything
// that carries a member of the wanted kind's own is taken for one.
func (r *reader) expect(o *object, want repute.DocumentKind) {
	kind, code := o.kind()
	switch {
	case kind == want:
		if kind == repute.RegistrationDocument && isNFT(o) {
			r.add(CodeNFT, "", "%s", explain(CodeNFT).meaning)
		}
	case kind == repute.UnknownDocument:
		if code == CodeUnknown && o.resembles(want) {
			return
		}
		r.add(code, "", "%s", explain(code).meaning)
	case kind == repute.RegistrationDocument && !isRegistration(o):
		// It has a name, which is little for a registration and nothing for others.
		if !o.resembles(want) {
			r.add(CodeUnknown, "", "%s", explain(CodeUnknown).meaning)
		}
	default:
		r.add(otherKind(kind), "", "the document is %s", kindName(kind))
	}
}

// otherKind returns the code of the problem that a file is of this kind instead of the expected
// one.
func otherKind(kind repute.DocumentKind) string {
	switch kind {
	case repute.CardDocument:
		return CodeA2ACard
	case repute.FeedbackDocument:
		return CodeIsFeedback
	case repute.ValidationDocument:
		return CodeIsValidation
	}
	return CodeIsRegistration
}

// kindName returns the kind with its article, for texts of problems.
func kindName(kind repute.DocumentKind) string {
	switch kind {
	case repute.CardDocument:
		return "an A2A agent card"
	case repute.FeedbackDocument:
		return "a feedback file"
	case repute.ValidationDocument:
		return "a validation file"
	}
	return "a registration file"
}

// kind returns the kind of an object; for an unknown one also the code that reports it.
func (o *object) kind() (repute.DocumentKind, string) {
	switch {
	case isFeedback(o):
		return repute.FeedbackDocument, ""
	case isRegistration(o):
		return repute.RegistrationDocument, ""
	case o.has("ciphertext") && o.has("iv"):
		return repute.UnknownDocument, CodeEncrypted
	case o.has("@context") || o.has("@type"):
		return repute.UnknownDocument, CodeJSONLD
	case isCard(o):
		return repute.CardDocument, ""
	case o.has("requestHash") || o.has("validatorAddress") || o.has("responseHash"):
		return repute.ValidationDocument, ""
	case isErrorBody(o):
		return repute.UnknownDocument, CodeErrorBody
	case !o.has("name") && !o.has("description"):
		return repute.UnknownDocument, CodeUnknown
	}
	return repute.RegistrationDocument, ""
}

// has reports whether the object has a member, whatever its value.
func (o *object) has(name string) bool { return o.find(name) != nil }

// hasAny reports whether the object has one of the members.
func (o *object) hasAny(names ...string) bool {
	return slices.ContainsFunc(names, o.has)
}

// resembles is the weaker evidence that is enough where a kind is expected.
func (o *object) resembles(want repute.DocumentKind) bool {
	switch want {
	case repute.FeedbackDocument:
		return o.hasAny("value", "score", "rating", "stars", "text", "comment", "review", "feedback", "tag1", "tag2",
			"agentId")
	case repute.CardDocument:
		return o.has("name") && o.hasAny("url", "skills", "capabilities", "protocolVersion", "supportedInterfaces",
			"defaultInputModes")
	}
	return false
}

// isRegistration reports whether an object is meant as a registration file, judged by members that
// no other kind has. A name alone decides nothing.
func isRegistration(o *object) bool {
	if o.hasAny("services", "endpoints", "registrations", "supportedTrust", "supportedTrusts",
		"x402Support", "x402support", "8004Support") {
		return true
	}
	m := o.find("type")
	var text string
	return m != nil && json.Unmarshal(m.raw, &text) == nil && strings.Contains(text, "8004")
}

// isNFT reports whether a file has what marketplaces show of a token and nothing that
// is an agent's own. It is read as a registration file anyway, because its name and image are the agent's.
func isNFT(o *object) bool { return o.has("attributes") && o.has("image") && !isRegistration(o) }

// isFeedback: it says who rated, or it rates an agent, or it rates in words as well.
func isFeedback(o *object) bool {
	if o.hasAny("services", "endpoints", "registrations") {
		return false
	}
	return o.hasAny("clientAddress", "feedbackAuth", "valueDecimals", "proofOfPayment", "proof_of_payment") ||
		o.hasAny("value", "score", "rating") && o.hasAny("agentId", "agentRegistry", "tag1", "tag2", "text", "comment",
			"review")
}

// isCard: the card's skills are objects, and it says how to talk to the agent.
func isCard(o *object) bool {
	if o.has("supportedInterfaces") {
		return true
	}
	m := o.find("skills")
	if m == nil || jsonwalk.Type(m.raw) != "an array" {
		return false
	}
	return o.hasAny("protocolVersion", "capabilities", "defaultInputModes")
}

// isErrorBody reports whether an object looks like a server's error answer, which some servers
// send with status 200. A file with a name is never taken for one.
func isErrorBody(o *object) bool {
	if o.has("name") {
		return false
	}
	return o.hasAny("detail", "error", "errors") || o.has("message") && o.hasAny("code", "status", "statusCode")
}
