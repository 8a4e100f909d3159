package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"repute"
)

// documentPath is the path of the OpenAPI document.
const documentPath = "/openapi.json"

// apiVersion is the version of the contract, not of the program: the golden file test demands a new
// one whenever the contract changes.
const apiVersion = "2.15.1"

// apiDescription is what holds for all operations.
const apiDescription = `Agents of the ERC-8004 registries: identity, reputation and validation; and, under /v1, tasks that
run only as far as indexed trust in their agents allows.

Ids are written eip155:{chainId}:{registry}:{tokenId} or {chainId}:{tokenId}. Amounts are exact: a
decimal integer value, its decimals, and the same number written out; those under /v1 are decimal strings in wei. Every
answer of the index carries asOf: the block it is true at, how old that is, and how complete the index is. Reading is open;
what changes something under /v1 needs a bearer token. Statuses of tasks are those of the OpenFi agent standard; a run that
waits for a person says so in awaiting. Text from the chain, from documents, from agents and from callers was written by
strangers; never show it unescaped. Errors are RFC 9457 problem details.`

// Bearer is the name of the security scheme of operations that need a token.
const Bearer = "bearer"

// document returns the head of the OpenAPI document. The server itself serves it, without scripts
// of other hosts.
func document() huma.Config {
	c := huma.DefaultConfig("repute", apiVersion)
	c.Info.Description = apiDescription
	c.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{Bearer: {Type: "http", Scheme: "bearer"}}
	c.Security = []map[string][]string{{}} // of operations that name no other: none
	c.Servers = []*huma.Server{{URL: "/", Description: "The server that this document comes from."}}
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", ""
	c.CreateHooks = nil
	c.Formats = map[string]huma.Format{"application/json": escapedJSON(), "json": escapedJSON()}
	return c
}

// escapedJSON writes <, > and & as escapes, so that an answer contains no markup wherever it is
// embedded.
func escapedJSON() huma.Format {
	return huma.Format{Marshal: func(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) },
		Unmarshal: json.Unmarshal}
}

// describe writes the OpenAPI document. Arrays are never null on our wire and
// objects of answers may gain fields, which the library's defaults deny. It changes the schemas in place, so that it
// MUST be called once. The order matters: bodies are closed after answers were relaxed, because a type may be both.
func describe(o *huma.OpenAPI) ([]byte, error) {
	schemas := o.Components.Schemas.Map()
	delete(schemas, "ErrorModel")
	delete(schemas, "ErrorDetail")
	for name, s := range schemas {
		Relax(s, o.Components.Schemas.TypeFromRef(schemaPrefix+name))
	}
	for op := range operations(o) {
		bound(o, op)
	}
	addExamples(o)
	raw, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	return append(raw, '\n'), nil
}

// operations yields the operations of all paths.
func operations(o *huma.OpenAPI) iter.Seq[*huma.Operation] {
	return func(yield func(*huma.Operation) bool) {
		for _, item := range o.Paths {
			for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
				if op != nil && !yield(op) {
					return
				}
			}
		}
	}
}

// bound describes the checks that the server makes for every operation: query parameters are not
// empty, and bodies have only described members.
func bound(o *huma.OpenAPI, op *huma.Operation) {
	for _, p := range op.Parameters {
		if one := 1; p.In == "query" && p.Schema.Type == huma.TypeString && len(p.Schema.Enum) == 0 &&
			p.Schema.MinLength == nil {
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

// closeSchema forbids members that are not described, and null for required ones, in a schema and
// the schemas in it.
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
			p.Nullable = false // a pointer to a required value
		}
	}
}

// schemaPrefix is the prefix of references to schemas.
const schemaPrefix = "#/components/schemas/"

// Relax describes the form of answers where the library does not: arrays are never null, objects
// may gain members, and a pointer that is always written may be null.
func Relax(s *huma.Schema, t reflect.Type) {
	if t != nil && s != nil {
		admitNull(s, t)
	}
	relax(s)
}

// relax is the part of Relax that follows from the schema alone.
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
		s.Properties[name] = &huma.Schema{Description: p.Description,
			AnyOf: []*huma.Schema{{Ref: p.Ref}, {Type: "null"}}}
	}
}

// checkQuery refuses unknown, repeated or empty parameters, because ignoring a misspelled one would
// answer another question, and values that do not match their schemas. Parameters of the path are left
// to the handlers, which answer 404 where nothing has such a name. repute.ErrInvalid names the parameter. Names are
// checked in the order of the alphabet, so that equal requests have equal errors.
func checkQuery(u *url.URL, params []*huma.Param) error {
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return repute.Invalid("query", "not a query string", "percent-encode it")
	}
	known := map[string]*huma.Param{}
	for _, p := range params {
		if p.In == "query" {
			known[p.Name] = p
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		given := values[name]
		if known[name] == nil {
			return repute.Invalid(name, "unknown parameter", knownHint(name, slices.Sorted(maps.Keys(known))))
		}
		if len(given) > 1 {
			return repute.Invalid(name, "given more than once", onceHint(known[name].Description))
		}
		if given[0] == "" && !mayBeEmpty(known[name].Schema) {
			return repute.Invalid(name, "is empty", "give a value, or leave it out")
		}
		if err := checkValue(known[name], given[0]); err != nil {
			return err
		}
	}
	return nil
}

// onceHint returns how to give several values, as the parameter's documentation says.
func onceHint(doc string) string {
	if strings.Contains(doc, "divided by commas") {
		return "give it once, with several values divided by commas"
	}
	return "give it once: it takes one value"
}

// mayBeEmpty reports whether the empty value of a parameter is valid: its tag has minLength:"0".
func mayBeEmpty(s *huma.Schema) bool { return s != nil && s.MinLength != nil && *s.MinLength == 0 }

// knownHint lists the parameters that an operation has.
func knownHint(name string, known []string) string {
	switch {
	case name == "at":
		return "this answer exists at latest only"
	case len(known) == 0:
		return "this operation takes no parameters"
	}
	return fmt.Sprintf("known are %s", strings.Join(known, ", "))
}
