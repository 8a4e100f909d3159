package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"repute"
	"repute/internal/httpapi"
)

// shape is the JSON Schema of a type with all referenced schemas inlined. Types are documented by
// the tags doc and enum, like those of the REST routes. registry and root have references and check arguments; raw is
// what is listed.
type shape struct {
	registry huma.Registry
	root     *huma.Schema
	raw      json.RawMessage
}

// definitions is the prefix of references of a schema before they are inlined.
const definitions = "#/$defs/"

// shapeOf describes a struct. open: objects may have fields that are not described, and raw is
// the outline. Inputs stay closed, because an unknown argument is a mistake of the model. Answers are open, because
// they may gain members.
func shapeOf(t reflect.Type, open bool) (s shape, err error) {
	s.registry = huma.NewMapRegistry(definitions, huma.DefaultSchemaNamer)
	s.registry.RegisterTypeAlias(reflect.TypeFor[json.Number](), reflect.TypeFor[number]())
	s.root = s.registry.Schema(t, false, "")
	for name, d := range s.registry.Map() { // the root is among them
		closed := d.AdditionalProperties
		if httpapi.Relax(d, s.registry.TypeFromRef(definitions+name)); !open {
			d.AdditionalProperties = closed
		}
	}
	var all map[string]any
	if err := remarshal(s.root, &all); err != nil {
		return s, err
	}
	var defs map[string]any
	if err := remarshal(s.registry.Map(), &defs); err != nil {
		return s, err
	}
	inline(all, defs)
	if open {
		all = outline(all)
	}
	plain(all)
	s.raw, err = json.Marshal(all)
	if all["type"] != huma.TypeObject {
		return s, fmt.Errorf("%s is no object", t)
	}
	return s, err
}

// plain simplifies a schema for models: without the bit widths of Go's numbers, and with one list
// of types instead of alternatives that are a single type each. It changes the value in place.
func plain(v any) {
	switch v := v.(type) {
	case map[string]any:
		if kinds := kindsOf(v["anyOf"]); kinds != nil {
			delete(v, "anyOf")
			v["type"] = kinds
		}
		if _, listed := v["enum"].([]any); listed {
			delete(v, "type")
		}
		if f, _ := v["format"].(string); slices.Contains([]string{"int32", "int64", "float", "double"}, f) {
			delete(v, "format")
		}
		for _, below := range v {
			plain(below)
		}
	case []any:
		for _, below := range v {
			plain(below)
		}
	}
}

// inline replaces references by the referenced schemas, with the description of the reference.
// Types MUST NOT refer to themselves.
func inline(v any, defs map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			delete(v, "$ref")
			whole, _ := defs[strings.TrimPrefix(ref, definitions)].(map[string]any)
			for key, value := range whole {
				if _, own := v[key]; !own {
					v[key] = value
				}
			}
		}
		for _, below := range v {
			inline(below, defs)
		}
	case []any:
		for _, below := range v {
			inline(below, defs)
		}
	}
}

// kindsOf returns the types of alternatives that consist of nothing but a type; otherwise nil.
func kindsOf(alternatives any) (kinds []any) {
	list, _ := alternatives.([]any)
	for _, v := range list {
		one, _ := v.(map[string]any)
		kind, ok := one["type"].(string)
		if !ok || len(one) > 1 {
			return nil
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

// remarshal converts a value by way of JSON.
func remarshal(from, into any) error {
	raw, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// read decodes valid arguments. repute.ErrInvalid names the first wrong field. The order matters: the text is checked
// before it is decoded, and the schema before the struct is filled, so that the error has the words of the schema.
func (s *shape) read(raw json.RawMessage, into any) error {
	if err := repute.CheckJSON("arguments", raw); err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return repute.Invalid("arguments", "are no JSON", "one object")
	}
	if err := s.check(v); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return repute.Invalid("arguments", fmt.Sprintf("cannot be read: %.200s", err), "see the tool's inputSchema")
	}
	return nil
}

// check returns the first mistake in the arguments, with its field. The choice does not depend on the order of map
// keys.
func (s *shape) check(v any) error {
	var found huma.ValidateResult
	huma.Validate(s.registry, s.root, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, v, &found)
	var wrong []*huma.ErrorDetail
	for _, err := range found.Errors {
		if d, isDetail := errors.AsType[*huma.ErrorDetail](err); isDetail {
			wrong = append(wrong, d)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return s.tell(slices.MinFunc(wrong, func(a, b *huma.ErrorDetail) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a.Location, b.Location), strings.Compare(a.Message, b.Message))
	}))
}

// unexpected is the library's text about an unknown field.
const unexpected = "unexpected property"

// rank puts unknown fields first: a misspelled name explains a missing one.
func rank(d *huma.ErrorDetail) int {
	if d.Message == unexpected {
		return 0
	}
	return 1
}

// tell converts an error of the library to repute.InputError.
func (s *shape) tell(d *huma.ErrorDetail) error {
	field, reason := d.Location, d.Message
	if name, ok := strings.CutPrefix(reason, "expected required property "); ok {
		name, _, _ = strings.Cut(name, " ")
		field, reason = strings.TrimPrefix(field+"."+name, "."), "is missing"
	} else if reason == unexpected {
		known := slices.Sorted(maps.Keys(s.root.Properties))
		return repute.Invalid(brief(field), "is no field of this tool", "known are "+strings.Join(known, ", "))
	}
	if strings.Contains(reason, "at least one schema") { // Text
		reason = "must be text or a whole number"
	}
	top, _, _ := strings.Cut(field, ".")
	hint := "see the tool's inputSchema"
	if p := s.root.Properties[top]; p != nil && p.Description != "" {
		hint = p.Description
	}
	reason = strings.Replace(reason, "expected value to ", "must ", 1)
	return repute.Invalid(brief(field), strings.Replace(reason, "expected ", "must be ", 1), hint)
}

// brief shortens the path of a field for an error.
func brief(field string) string {
	if field == "" {
		return "arguments"
	}
	return fmt.Sprintf("%.100s", field)
}
