package httpapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"repute"
)

// checkValue validates the text of a parameter by its documented schema, so that the document and the
// behavior cannot differ. repute.ErrInvalid names the parameter and what is allowed. Patterns of text are left to the
// parsers of the handlers, whose errors name the wrong part.
func checkValue(p *huma.Param, text string) error {
	if p.Schema == nil || p.Schema.Pattern != "" {
		return nil
	}
	reason := invalid(nil, p.Schema, p.Name, valueOf(p.Schema, text))
	if reason == nil {
		return nil
	}
	return repute.Invalid(p.Name, notAllowed(p.Schema), allowedBy(p.Schema, p.Description))
}

// notAllowed says in what way a value does not match a schema.
func notAllowed(s *huma.Schema) string {
	switch s.Type {
	case huma.TypeInteger:
		return "is not an integer in the allowed range"
	case huma.TypeNumber:
		return "is not a number in the allowed range"
	case huma.TypeBoolean:
		return "is not a boolean"
	}
	return "is not an allowed value"
}

// missing is how the library's message about an absent member begins.
const missing = "expected required property "

// CheckBody validates the body of a request by a schema. repute.ErrInvalid names the first wrong member.
func CheckBody(r huma.Registry, s *huma.Schema, body []byte) error {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return repute.Invalid("body", "is not JSON", "a JSON object")
	}
	detail := invalid(r, s, "body", v)
	if detail == nil {
		return nil
	}
	field := strings.TrimPrefix(strings.TrimPrefix(detail.Location, "body"), ".")
	if name, found := strings.CutPrefix(detail.Message, missing); found {
		name, _, _ = strings.Cut(name, " ")
		return repute.Invalid(strings.TrimPrefix(field+"."+name, "."), "is missing", "it is required")
	}
	return repute.Invalid(cmp.Or(field, "body"), "has a value that is not allowed", detail.Message)
}

// invalid returns the first reason for which a value does not match a schema, and nil when it does.
func invalid(r huma.Registry, s *huma.Schema, at string, v any) *huma.ErrorDetail {
	path, found := huma.NewPathBuffer([]byte(at), len(at)), huma.ValidateResult{}
	huma.Validate(r, s, path, huma.ModeWriteToServer, v, &found)
	for _, err := range found.Errors {
		if detail, isDetail := errors.AsType[*huma.ErrorDetail](err); isDetail {
			return detail
		}
	}
	return nil
}

// valueOf converts the text of a parameter to the JSON value that it stands for. Text that is no number or boolean
// stays text, which does not match a schema of such values.
func valueOf(s *huma.Schema, text string) any {
	switch s.Type {
	case huma.TypeInteger, huma.TypeNumber:
		if number := json.Number(text); json.Valid([]byte(text)) {
			if f, err := number.Float64(); err == nil {
				return f
			}
		}
	case huma.TypeBoolean:
		if b, err := Flag(text).Bool(""); err == nil {
			return b
		}
	}
	return text
}

// allowedBy describes what a schema allows. doc is the description of the parameter.
func allowedBy(s *huma.Schema, doc string) string {
	switch {
	case len(s.Enum) > 0:
		names := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			names[i] = fmt.Sprint(v)
		}
		return strings.Join(slices.Compact(names), ", ")
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf("%v to %v", *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		return fmt.Sprintf("%v or more", *s.Minimum)
	case s.Type == huma.TypeBoolean:
		return "true or false"
	case doc != "":
		return doc
	}
	return "a value of the form that the OpenAPI document gives"
}
