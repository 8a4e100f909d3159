package api

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/danielgtaylor/huma/v2"
)

// apiVersion is the version of the REST contract, not of the program: the
// golden file test demands a new one whenever the contract changes.
const apiVersion = "1.6.0"

const apiDescription = `Agents of the ERC-8004 registries: identity, reputation and validation.

Ids are written eip155:{chainId}:{registry}:{tokenId} or {chainId}:{tokenId}. Amounts are exact: a
decimal integer value, its decimals, and the same number written out. Every answer carries asOf: the block it is true at, how
old that is, and how complete the index is. Text from the chain and from documents was written by
strangers; never show it unescaped. Errors are RFC 9457 problem details.`

// humaConfig turns the router's own documents off: they are served by
// mountPlain, without foreign hosts.
func humaConfig() huma.Config {
	c := huma.DefaultConfig("repute", apiVersion)
	c.Info.Description = apiDescription
	c.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", ""
	c.CreateHooks = nil
	c.Formats = map[string]huma.Format{"application/json": escapedJSON(), "json": escapedJSON()}
	return c
}

// escapedJSON writes <, > and & as escapes: an answer holds no markup, wherever it
// is put.
func escapedJSON() huma.Format {
	return huma.Format{Marshal: func(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }, Unmarshal: json.Unmarshal}
}

// describe writes the OpenAPI document. Arrays are never null on our wire and
// objects may gain fields, which the library's defaults deny.
func describe(o *huma.OpenAPI) ([]byte, error) {
	schemas := o.Components.Schemas.Map()
	delete(schemas, "ErrorModel")
	delete(schemas, "ErrorDetail")
	for _, s := range schemas {
		relax(s)
	}
	raw, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	return append(raw, '\n'), nil
}

func relax(s *huma.Schema) {
	if s == nil {
		return
	}
	if s.Type == huma.TypeArray {
		s.Nullable = false
	}
	if s.AdditionalProperties == false {
		s.AdditionalProperties = nil
	}
	relax(s.Items)
	for _, p := range s.Properties {
		relax(p)
	}
}
