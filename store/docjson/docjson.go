// Package docjson turns parsed files into the JSON that table parses stores, and back.
//
// Files are written by strangers. Unknown members are kept as text, because jsonb reorders
// members and refuses numbers and nesting that are valid JSON. NUL, which Postgres cannot
// store, is escaped. The package reads no table: docdb writes the parses, and packages that
// read them decode them here.
//
// The names of members are part of statements too: those of registrations in packages query and subgraphdb, those of
// feedback files, which are the names of Go fields, in subgraphdb. A renamed field needs both and a new version of the
// parser, by which stored parses are made again.
package docjson

import (
	"encoding/json"
	"slices"

	"repute"
	"repute/store/column"
)

// registrationJSON is the stored form of a parsed registration file. Unknown members are stored as
// text, because jsonb would reorder them and refuses huge numbers and deep nesting.
type registrationJSON struct {
	Type           string                    `json:"type,omitempty"`
	Name           string                    `json:"name,omitempty"`
	Description    string                    `json:"description,omitempty"`
	Image          string                    `json:"image,omitempty"`
	Services       []serviceJSON             `json:"services,omitempty"`
	X402           *bool                     `json:"x402,omitempty"`
	Active         *bool                     `json:"active,omitempty"`
	Registrations  []repute.RegistrationLink `json:"registrations,omitempty"`
	SupportedTrust []string                  `json:"supportedTrust,omitempty"`
	Extra          map[string]string         `json:"extra,omitempty"`
	Partial        bool                      `json:"partial,omitempty"` // set by package query alone, in SQL
}

// serviceJSON is the stored form of one service, with unknown members as text.
type serviceJSON struct {
	Name      string            `json:"name,omitempty"`
	Endpoint  string            `json:"endpoint,omitempty"`
	Version   string            `json:"version,omitempty"`
	Skills    []string          `json:"skills,omitempty"`
	Domains   []string          `json:"domains,omitempty"`
	Tools     []string          `json:"tools,omitempty"`
	Prompts   []string          `json:"prompts,omitempty"`
	Resources []string          `json:"resources,omitempty"`
	Extra     map[string]string `json:"extra,omitempty"`
}

// EncodeRegistration returns the stored form; null for nil.
func EncodeRegistration(r *repute.Registration) ([]byte, error) {
	if r == nil {
		return []byte("null"), nil
	}
	out := registrationJSON{
		Type: r.Type, Name: r.Name, Description: r.Description, Image: r.Image, X402: r.X402, Active: r.Active,
		Registrations: r.Registrations, SupportedTrust: r.SupportedTrust, Extra: extraText(r.Extra),
	}
	for _, s := range r.Services {
		out.Services = append(out.Services, serviceJSON{
			s.Name, s.Endpoint, s.Version, s.Skills, s.Domains, s.Tools, s.Prompts, s.Resources, extraText(s.Extra)})
	}
	b, err := json.Marshal(out)
	return column.EscapeNUL(b), err
}

// DecodeRegistration decodes a stored registration file; nil for null.
func DecodeRegistration(b []byte) (*repute.Registration, error) {
	var in *registrationJSON
	if err := json.Unmarshal(b, &in); err != nil || in == nil {
		return nil, err
	}
	r := &repute.Registration{
		Type: in.Type, Name: in.Name, Description: in.Description, Image: in.Image, X402: in.X402, Active: in.Active,
		Registrations: in.Registrations, SupportedTrust: in.SupportedTrust, Extra: extraRaw(in.Extra),
		Partial: in.Partial,
	}
	for _, s := range in.Services {
		r.Services = append(r.Services, repute.Service{
			Name: s.Name, Endpoint: s.Endpoint, Version: s.Version, Skills: s.Skills, Domains: s.Domains,
			Tools: s.Tools, Prompts: s.Prompts, Resources: s.Resources, Extra: extraRaw(s.Extra),
		})
	}
	return r, nil
}

// feedbackJSON is the stored form of a feedback file, with unknown members as text.
type feedbackJSON struct {
	repute.FeedbackFile
	Extra map[string]string `json:",omitempty"`
}

// cardJSON is the stored form of an agent card, with unknown members as text. Unknown members of
// its skills are not stored.
type cardJSON struct {
	repute.AgentCard
	Extra map[string]string `json:",omitempty"`
}

// EncodeFeedback returns the stored form of a feedback file; null for nil.
func EncodeFeedback(f *repute.FeedbackFile) ([]byte, error) {
	if f == nil {
		return []byte("null"), nil
	}
	b, err := json.Marshal(feedbackJSON{*f, extraText(f.Extra)})
	return column.EscapeNUL(b), err
}

// EncodeCard returns the stored form of an agent card; null for nil. The card is not changed.
func EncodeCard(c *repute.AgentCard) ([]byte, error) {
	if c == nil {
		return []byte("null"), nil
	}
	card := *c
	card.Skills = slices.Clone(card.Skills)
	for i := range card.Skills {
		card.Skills[i].Extra = nil
	}
	b, err := json.Marshal(cardJSON{card, extraText(c.Extra)})
	return column.EscapeNUL(b), err
}

// DecodeFeedback reads a stored feedback file; nil for null.
func DecodeFeedback(b []byte) (*repute.FeedbackFile, error) {
	var in *feedbackJSON
	if err := json.Unmarshal(b, &in); err != nil || in == nil {
		return nil, err
	}
	in.FeedbackFile.Extra = extraRaw(in.Extra)
	return &in.FeedbackFile, nil
}

// extraText returns unknown members as texts; nil for none.
func extraText(in map[string]json.RawMessage) map[string]string {
	if in == nil {
		return nil
	}
	out := make(map[string]string, len(in))
	for k, v := range in {
		out[k] = string(v)
	}
	return out
}

// extraRaw returns unknown members as JSON again; nil for none.
func extraRaw(in map[string]string) map[string]json.RawMessage {
	if in == nil {
		return nil
	}
	out := make(map[string]json.RawMessage, len(in))
	for k, v := range in {
		out[k] = json.RawMessage(v)
	}
	return out
}

// EncodeProblems returns the stored form of problems; an empty list for none.
func EncodeProblems(problems []repute.Problem) ([]byte, error) {
	if problems == nil {
		return []byte("[]"), nil
	}
	b, err := json.Marshal(problems)
	return column.EscapeNUL(b), err
}
