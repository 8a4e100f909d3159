package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"repute"
)

// Config is that of a router whose documents the handler serves itself, without foreign
// hosts. version is that of the contract.
func Config(title, version, description string) huma.Config {
	c := huma.DefaultConfig(title, version)
	c.Info.Description = description
	c.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", ""
	c.CreateHooks = nil
	c.Formats = map[string]huma.Format{"application/json": escapedJSON(), "json": escapedJSON()}
	return c
}

// escapedJSON writes <, > and & as escapes: an answer holds no markup, wherever it
// is put.
func escapedJSON() huma.Format {
	return huma.Format{Marshal: func(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) },
		Unmarshal: json.Unmarshal}
}

// Describe writes the OpenAPI document. Arrays are never null on our wire and
// objects of answers may gain fields, which the library's defaults deny.
func Describe(o *huma.OpenAPI) ([]byte, error) {
	schemas := o.Components.Schemas.Map()
	delete(schemas, "ErrorModel")
	delete(schemas, "ErrorDetail")
	for name, s := range schemas {
		Relax(s, o.Components.Schemas.TypeFromRef(schemaPrefix+name))
	}
	for _, item := range o.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op != nil {
				bound(o, op)
			}
		}
	}
	addExamples(o)
	raw, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	return append(raw, '\n'), nil
}

// bound says of an operation what the server checks everywhere: parameters of a query are not
// empty, and bodies have no other members than those described.
func bound(o *huma.OpenAPI, op *huma.Operation) {
	for _, p := range op.Parameters {
		if one := 1; p.In == "query" && p.Schema.Type == huma.TypeString && len(p.Schema.Enum) == 0 &&
			p.Schema.MinLength == nil && !mayBeEmpty(p.Description) {
			schema := *p.Schema
			schema.MinLength = &one
			p.Schema = &schema
		}
	}
	if op.RequestBody != nil {
		for _, media := range op.RequestBody.Content {
			closeSchema(o.Components.Schemas, media.Schema)
		}
	}
}

// closeSchema admits no members that are not described, and no null for one that is required,
// here and below.
func closeSchema(r huma.Registry, s *huma.Schema) {
	if s == nil {
		return
	}
	if s.Ref != "" {
		s = r.SchemaFromRef(s.Ref)
	}
	closeSchema(r, s.Items)
	if s.Type != huma.TypeObject || len(s.Properties) == 0 {
		return
	}
	if s.AdditionalProperties == nil {
		s.AdditionalProperties = false
	}
	for name, p := range s.Properties {
		if closeSchema(r, p); slices.Contains(s.Required, name) {
			p.Nullable = false // a pointer to what must be given
		}
	}
}

// schemaPrefix is where documents keep their schemas.
const schemaPrefix = "#/components/schemas/"

// Relax says of the schema of t what holds on our wire and the library does not know:
// arrays are never null, objects may gain fields, and a pointer that is always written may
// be null, whatever it points to.
func Relax(s *huma.Schema, t reflect.Type) {
	if t != nil && s != nil {
		admitNull(s, t)
	}
	relax(s)
}

func relax(s *huma.Schema) {
	if s == nil {
		return
	}
	if s.Type == huma.TypeArray {
		s.Nullable = false
	}
	if s.Nullable && len(s.Enum) > 0 && !slices.Contains(s.Enum, nil) {
		s.Enum = append(s.Enum, nil)
	}
	if s.AdditionalProperties == false {
		s.AdditionalProperties = nil
	}
	relax(s.Items)
	for _, p := range s.Properties {
		relax(p)
	}
}

// admitNull finds the fields of t that are pointers. The library admits null for basic types
// alone, not for objects and types with a schema of their own.
func admitNull(s *huma.Schema, t reflect.Type) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			admitNull(s, f.Type)
			continue
		}
		p := s.Properties[name]
		if p == nil || f.Type.Kind() != reflect.Pointer || strings.Contains(options, "omit") {
			continue
		}
		if p.Ref == "" {
			p.Nullable = true
			continue
		}
		s.Properties[name] = &huma.Schema{Description: p.Description, AnyOf: []*huma.Schema{{Ref: p.Ref}, {Type: "null"}}}
	}
}

// CheckQuery refuses parameters that are unknown, repeated or empty: ignoring a mistyped or
// forgotten one would answer another question. repute.ErrInvalid names the parameter.
func CheckQuery(values url.Values, params []*huma.Param) error {
	var known []string
	docs := map[string]string{}
	for _, p := range params {
		if p.In == "query" {
			known, docs[p.Name] = append(known, p.Name), p.Description
		}
	}
	sort.Strings(known)
	for name, given := range values {
		if i := sort.SearchStrings(known, name); i == len(known) || known[i] != name {
			return repute.Invalid(name, "unknown parameter", knownHint(name, known))
		}
		if len(given) > 1 {
			return repute.Invalid(name, "given more than once", onceHint(docs[name]))
		}
		if given[0] == "" && !mayBeEmpty(docs[name]) {
			return repute.Invalid(name, "is empty", "give a value, or leave it out")
		}
	}
	return nil
}

// onceHint says how to give several values: as the parameter's documentation does.
func onceHint(doc string) string {
	if strings.Contains(doc, "divided by commas") {
		return "give it once, with several values divided by commas"
	}
	return "give it once: it takes one value"
}

// mayBeEmpty tells parameters whose empty value is one, as their documentation says.
func mayBeEmpty(doc string) bool { return strings.Contains(doc, "the empty tag is one too") }

func knownHint(name string, known []string) string {
	switch {
	case name == "at":
		return "this answer exists at latest only"
	case len(known) == 0:
		return "this operation takes no parameters"
	}
	return fmt.Sprintf("known are %s", strings.Join(known, ", "))
}
