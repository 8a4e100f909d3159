package oafagent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"repute"
)

// schemaBase is the address that the schema of a tool is compiled under; a reference to any other is refused.
const schemaBase = "repute:///tool"

// toolSchema returns the schema of a tool in a form that every provider takes. Providers refuse a whole request
// because of one tool: what is no JSON Schema of an object, or what they do not know at its top, is refused here
// for the tool alone.
func toolSchema(from any) (json.RawMessage, error) {
	const hint = "a JSON Schema of type object with properties"
	wrong := func(reason string) error { return repute.Invalid("inputSchema", reason, hint) }
	raw, err := json.Marshal(from)
	var top map[string]any
	switch {
	case err != nil || json.Unmarshal(raw, &top) != nil || top == nil:
		return nil, wrong("is no object")
	case len(raw) > maxSchema:
		return nil, wrong(fmt.Sprintf("has %d bytes, at most %d are taken", len(raw), maxSchema))
	case top["type"] == nil:
		top["type"] = "object"
	case top["type"] != "object":
		return nil, wrong(fmt.Sprintf("is of type %.40q", fmt.Sprint(top["type"])))
	}
	for _, word := range []string{"oneOf", "anyOf", "allOf", "not", "enum"} {
		if _, has := top[word]; has {
			return nil, wrong("has " + word + " at the top, which models do not take")
		}
	}
	if properties, ok := top["properties"].(map[string]any); ok {
		for name := range properties {
			if !regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`).MatchString(name) {
				return nil, wrong(fmt.Sprintf("has a property %.80q, whose name models do not take", name))
			}
		}
	}
	if err := checkSchema(top); err != nil {
		return nil, wrong(fmt.Sprintf("is no JSON Schema: %.300s", err.Error()))
	}
	return mustJSON(top), nil
}

// anyPattern stands for patterns, whose dialect only the server needs to know.
type anyPattern string

// MatchString implements jsonschema.Regexp.
func (anyPattern) MatchString(string) bool { return true }

// String implements jsonschema.Regexp.
func (p anyPattern) String() string { return string(p) }

// checkSchema returns why a document is no JSON Schema.
func checkSchema(schema map[string]any) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(mustJSON(schema)))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // none: a reference to another file is an error
	c.UseRegexpEngine(func(p string) (jsonschema.Regexp, error) { return anyPattern(p), nil })
	if err := c.AddResource(schemaBase, doc); err != nil {
		return err
	}
	_, err = c.Compile(schemaBase)
	return err
}
