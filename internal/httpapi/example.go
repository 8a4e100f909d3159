package httpapi

import (
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// addExamples adds an example to every JSON answer that has a schema and no example. Answers with
// the same schema share it.
func addExamples(o *huma.OpenAPI) {
	if o.Components.Examples == nil {
		o.Components.Examples = map[string]*huma.Example{}
	}
	for op := range operations(o) {
		for _, response := range op.Responses {
			for kind, media := range response.Content {
				if strings.HasSuffix(kind, "json") && media.Example == nil && media.Schema != nil {
					addExample(o, media)
				}
			}
		}
	}
}

// addExample adds an example that follows from the schema of a body.
func addExample(o *huma.OpenAPI, media *huma.MediaType) {
	e := sampler{o.Components.Schemas, nil}
	name, named := strings.CutPrefix(media.Schema.Ref, schemaPrefix)
	if !named {
		media.Example = e.of("", media.Schema)
		return
	}
	if o.Components.Examples[name] == nil {
		o.Components.Examples[name] = &huma.Example{Summary: "made from the schema", Value: e.of("", media.Schema)}
	}
	media.Examples = map[string]*huma.Example{name: {Ref: "#/components/examples/" + name}}
}

// sampler creates values that satisfy a schema. above are the enclosing schemas, in which recursion
// stops. The examples are for readers of the document; no check depends on them.
type sampler struct {
	schemas huma.Registry
	above   []string
}

// of returns a value for a field.
func (e sampler) of(field string, s *huma.Schema) any {
	switch {
	case s.Ref != "":
		return sampler{e.schemas, append(slices.Clone(e.above), s.Ref)}.of(field, e.schemas.SchemaFromRef(s.Ref))
	case len(s.Examples) > 0:
		return s.Examples[0]
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.AnyOf) > 0:
		if e.recurs(s.AnyOf[0]) {
			return nil
		}
		return e.of(field, s.AnyOf[0])
	}
	switch s.Type {
	case huma.TypeObject:
		return e.object(s)
	case huma.TypeArray:
		if s.Items == nil || e.recurs(s.Items) {
			return []any{}
		}
		return []any{e.of(singular(field), s.Items)}
	case huma.TypeString:
		return sampleText(field, s)
	case huma.TypeInteger, huma.TypeNumber:
		return sampleNumber(field, s)
	case huma.TypeBoolean:
		return true
	}
	return map[string]any{}
}

// recurs reports whether a schema refers to an enclosing one.
func (e sampler) recurs(s *huma.Schema) bool { return s.Ref != "" && slices.Contains(e.above, s.Ref) }

// object returns an example of a successful answer: members about failures are omitted or null.
func (e sampler) object(s *huma.Schema) any {
	out := map[string]any{}
	for name, p := range s.Properties {
		switch {
		case e.recurs(p):
		case !isFailure(name) || p.Type != huma.TypeString || len(p.Enum) > 0:
			out[name] = e.of(name, p)
		case !slices.Contains(s.Required, name):
		case p.Nullable:
			out[name] = nil
		default:
			out[name] = ""
		}
	}
	return out
}

// isFailure reports whether a field describes a failure, which an example does not have.
func isFailure(field string) bool {
	return slices.Contains([]string{"reason", "error", "lastError", "undecoded", "notCompared", "differs", "why",
		"awaiting", "cancel"}, field)
}

// singular returns the name of one entry of a list.
func singular(list string) string {
	if list == "path" || list == "without" {
		return "rater"
	}
	return strings.TrimSuffix(list, "s")
}

// sampleNumber returns a number within the bounds of its schema.
func sampleNumber(field string, s *huma.Schema) any {
	n := 1.0
	switch strings.ToLower(field) {
	case "chainid":
		n = 8453
	case "block", "head", "safe", "finalized", "fromblock", "toblock", "startblock", "verifiedtoblock":
		n = 41663783
	case "status":
		n = 404
	case "score", "low", "high":
		n = 52.5
	case "confidence", "weight", "opinion":
		n = 0.5
	}
	if s.Maximum != nil {
		n = min(n, *s.Maximum)
	}
	if s.Minimum != nil {
		n = max(n, *s.Minimum)
	}
	if s.Type == huma.TypeInteger {
		return int64(n)
	}
	return n
}

const (
	sampleAddress = "0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"
	sampleHash    = "0x9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
)

// sampleText returns a typical text of a field with this name.
func sampleText(field string, s *huma.Schema) string {
	if s.Format == "date-time" {
		return "2026-01-31T12:00:00Z"
	}
	if s.Format == "date" {
		return "2026-01-31"
	}
	for _, known := range samples() {
		if strings.Contains(known.fields, " "+field+" ") || strings.HasPrefix(s.Pattern, known.pattern) &&
			known.pattern != "" {
			return known.text
		}
	}
	switch {
	case strings.HasSuffix(field, "Hex"):
		return "0x77656174686572"
	case strings.HasSuffix(field, "Wei"):
		return "10000000000000000"
	case strings.HasSuffix(field, "Slug"):
		return "my-agent"
	}
	return "text"
}

// sample is a text for fields with these names, separated by spaces, and with a pattern.
type sample struct{ text, fields, pattern string }

// samples returns typical texts by field names and pattern.
func samples() []sample {
	return []sample{
		{sampleAddress,
			" owner wallet approved registry address rater raters client responder validator contract token target from to operator ownerWallet " +
				"operatorWallet pendingOwner treasury fromAddress identity reputation validations holder root signer ",
			"^0x[0-9a-fA-F]{40}$"},
		{sampleHash,
			" hash txHash tx transaction blockHash sha256 keccak256 requestHash feedbackHash scorer params tags evidence links result agentKey runKey " +
				"taskKey manifestSha256 snapshot head previous policy subject record ", "^0x[0-9a-fA-F]{64}$"},
		{"eip155:8453:" + sampleAddress + ":22", " agent agentId payee ", ""},
		{"task_06h0dtnoafk9oolgfc60k5q484", " id taskId task ", ""},
		{"/services/0/endpoint", " path ", ""},
		{"service", " gate ", ""},
		{"translation", " skill capability ", ""},
		{"Not found", " title ", ""},
		{"urn:repute:problem:not_found", " type ", ""},
		{"OWERLKC3CK3EFGO6K5774B5LAJ", " requestId ", ""},
		{"GET /agents lists the agents that are indexed", " hint ", ""},
		{"USDC", " symbol ", ""},
		{"8453:22", " shortId ", ""},
		{"not_found", " code ", ""},
		{"agent 8453:22 does not exist", " detail message ", ""},
		{"0xa9059cbb", " selector ", "^0x[0-9a-fA-F]{8}$"},
		{"0x", " data signature ", "^0x([0-9a-fA-F]{2})*$"},
		{"2.5", " maxPaymentUsd maxCostUsd ", "^[0-9]{1,9}([.][0-9]{1,6})?$"},
		{"1000000", " value amount units usd balance decimal perTxCap windowCap valueAtRisk ", "^[0-9]{1,78}$"},
		{"22", " tokenId ", ""},
		{"https://agent.example/agent.json", " uri url endpoint image agentURI feedbackURI requestUri ", "^https?://"},
		{"my-agent", " slug coordinatorSlug agentSlug ", "^[a-z0-9]+"},
		{"run_06h0dtnoafk9oolgfc60k5q484", " runId rootRunId parentRunId run ", ""},
		{"Atlas Translator", " name ", ""},
		{"Translates documents between forty languages.", " description goal text ", ""},
		{"quality", " tag tag1 channel ", ""},
		{"latest", " finality ", ""},
		{"weather.example", " domain domains host ", ""},
		{"eyJwIjoxfQ", " next nextCursor ", ""},
		{"1.0.0", " version ", ""},
	}
}
