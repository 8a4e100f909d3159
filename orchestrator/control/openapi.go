package control

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"repute/internal/httpapi"
)

// apiVersion is the version of the contract, not of the program: the golden file test
// demands a new one whenever the contract changes.
const apiVersion = "1.6.0"

const apiDescription = `Agents, tasks and runs of the orchestrator: tasks run only as far as indexed trust in their agents allows.

Reading is open; what changes something needs a bearer token. Amounts are decimal strings in wei. Statuses
are those of the OpenFi agent standard; a run that waits for a person says so in awaiting. Text from agents
and callers is theirs: never show it unescaped. Errors are RFC 9457 problem details.`

const bearer = "bearer"

func humaConfig() huma.Config {
	c := httpapi.Config("repute orchestrator", apiVersion, apiDescription)
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{bearer: {Type: "http", Scheme: "bearer"}}
	return c
}

// describeFile adds to the document what is no typed operation.
func (c *Control) describeFile(path, id, summary, contentType string, params ...*huma.Param) {
	o := c.huma.OpenAPI()
	o.AddOperation(&huma.Operation{Method: http.MethodGet, Path: path, OperationID: id, Summary: summary, Parameters: params,
		Responses: map[string]*huma.Response{
			"200":     {Description: "OK", Content: map[string]*huma.MediaType{contentType: {}}},
			"default": problemResponse(c.huma),
		}})
}

func textParam(name, in, doc string) *huma.Param {
	return &huma.Param{Name: name, In: in, Required: in == "path", Description: doc, Schema: &huma.Schema{Type: huma.TypeString}}
}
