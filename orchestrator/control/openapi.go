package control

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"repute/internal/httpapi"
)

// apiVersion is the version of the contract, not of the program: the golden file test
// demands a new one whenever the contract changes.
const apiVersion = "1.13.0"

const apiDescription = `Agents, tasks and runs of the orchestrator: tasks run only as far as indexed trust in their agents allows.

Reading is open; what changes something needs a bearer token. Amounts are decimal strings in wei. Statuses
are those of the OpenFi agent standard; a run that waits for a person says so in awaiting. Text from agents
and callers is theirs: never show it unescaped. Errors are RFC 9457 problem details.`

const bearer = "bearer"

// humaConfig is the head of the OpenAPI document.
func humaConfig() huma.Config {
	c := httpapi.Config("repute orchestrator", apiVersion, apiDescription)
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{bearer: {Type: "http", Scheme: "bearer"}}
	return c
}

// describeFile adds to the document what is no typed operation.
func (c *Control) describeFile(path, id, summary, contentType string, example any, params ...*huma.Param) {
	o := c.huma.OpenAPI()
	o.AddOperation(&huma.Operation{Method: http.MethodGet, Path: path, OperationID: id, Summary: summary,
		Parameters: params,
		Responses: map[string]*huma.Response{
			"200":     {Description: "OK", Content: map[string]*huma.MediaType{contentType: {Example: example}}},
			"default": problemResponse(c.huma),
		}})
}

// textParam describes a parameter that is text.
func textParam(name, in, doc string) *huma.Param {
	return &huma.Param{Name: name, In: in, Required: in == "path", Description: doc,
		Schema: &huma.Schema{Type: huma.TypeString}}
}

// describeStatuses adds what some operations answer beside 200: something new, or something
// that goes on by itself.
func (c *Control) describeStatuses() {
	for path, status := range map[string]string{"/tasks": "201", "/agents": "201", "/ingress/openclaw/task": "201",
		"/treasury/policies/{slug}": "202",
		"/treasury/calls":           "202", "/treasury/transfers": "202", "/identities": "202",
		"/agents/{slug}/wallet": "202",
		"/feedback":             "202"} {
		item := c.huma.OpenAPI().Paths[prefix+path]
		for _, op := range []*huma.Operation{item.Post, item.Put} {
			if op != nil {
				more := *op.Responses["200"]
				more.Description = map[string]string{"201": "Created", "202": "Accepted: it goes on by itself"}[status]
				op.Responses[status] = &more
			}
		}
	}
	c.huma.OpenAPI().Paths[prefix+
		"/runs/{id}/events"].Get.Responses["204"] = &huma.Response{Description: "The run is over and nothing follows."}
}

// countParam is a parameter that is a number within bounds.
func countParam(name, in string, least, most float64, doc string) *huma.Param {
	p := textParam(name, in, doc)
	p.Schema = &huma.Schema{Type: huma.TypeInteger, Minimum: &least, Maximum: &most}
	return p
}
