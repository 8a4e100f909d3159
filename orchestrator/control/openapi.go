package control

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// apiVersion is the version of the contract, not of the program: the golden file test
// demands a new one whenever the contract changes.
const apiVersion = "1.0.0"

const apiDescription = `Agents, tasks and runs of the orchestrator: tasks run only as far as indexed trust in their agents allows.

Reading is open; what changes something needs a bearer token. Amounts are decimal strings in wei. Statuses
are those of the OpenFi agent standard; a run that waits for a person says so in awaiting. Text from agents
and callers is theirs: never show it unescaped. Errors are RFC 9457 problem details.`

const bearer = "bearer"

func humaConfig() huma.Config {
	c := huma.DefaultConfig("repute orchestrator", apiVersion)
	c.Info.Description = apiDescription
	c.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", ""
	c.CreateHooks = nil
	c.Formats = map[string]huma.Format{"application/json": escapedJSON(), "json": escapedJSON()}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{bearer: {Type: "http", Scheme: "bearer"}}
	return c
}

// escapedJSON writes <, > and & as escapes: an answer holds no markup, wherever it is put.
func escapedJSON() huma.Format {
	return huma.Format{Marshal: func(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }, Unmarshal: json.Unmarshal}
}

// describe writes the OpenAPI document. Arrays are never null on our wire and objects
// may gain fields, which the library's defaults deny.
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

// describeFile adds to the document what is no typed operation.
func (c *Control) describeFile(path, id, summary, contentType string, params ...*huma.Param) {
	o := c.huma.OpenAPI()
	o.AddOperation(&huma.Operation{Method: http.MethodGet, Path: path, OperationID: id, Summary: summary, Parameters: params,
		Responses: map[string]*huma.Response{
			"200":     {Description: "OK", Content: map[string]*huma.MediaType{contentType: {}}},
			"default": problemResponse(o.Components.Schemas),
		}})
}

func textParam(name, in, doc string) *huma.Param {
	return &huma.Param{Name: name, In: in, Required: in == "path", Description: doc, Schema: &huma.Schema{Type: huma.TypeString}}
}
