package api

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// apiVersion is the version of the REST contract, not of the program: the
// golden file test demands a new one whenever the contract changes.
const apiVersion = "1.20.0"

const apiDescription = `Agents of the ERC-8004 registries: identity, reputation and validation.

Ids are written eip155:{chainId}:{registry}:{tokenId} or {chainId}:{tokenId}. Amounts are exact: a
decimal integer value, its decimals, and the same number written out. Every answer carries asOf: the block it is true at, how
old that is, and how complete the index is. Text from the chain and from documents was written by
strangers; never show it unescaped. Errors are RFC 9457 problem details.`

// describePlain adds what is no typed operation to the document.
func (a *API) describePlain() {
	o := a.huma.OpenAPI()
	text := &huma.Schema{Type: huma.TypeString}
	for _, r := range []struct {
		path, id, summary, contentType string
		params                         []*huma.Param
	}{
		{"/graphql", "graphql", "GraphQL; the schema is at /schema.graphql", "application/json", []*huma.Param{
			{Name: "query", In: "query", Required: true, Schema: text, Description: "a query; mutations only by POST"},
			{Name: "variables", In: "query", Schema: text, Description: "a JSON object"},
			{Name: "operationName", In: "query", Schema: text, Description: "which operation of the query to run"}}},
		{"/ipfs/{cid}", "get-ipfs", "A trustless ipfs gateway over the documents that are kept, also below paths: raw blocks and CARs", "application/vnd.ipld.raw", []*huma.Param{
			{Name: "cid", In: "path", Required: true, Schema: text, Description: "any CID"},
			{Name: "format", In: "query", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"raw", "car"}}, Description: "or the Accept header"}}},
		{keysPath, "get-keys", "The keys that sign final scores, which repute verify-snapshot --keys reads", "application/json", nil},
		{"/metrics", "metrics", "Metrics for Prometheus", "text/plain", nil},
		{"/healthz", "health", "The process is alive", "application/json", nil},
		{"/readyz", "ready", "The process can answer; 503 with reasons where not", "application/json", nil},
	} {
		o.AddOperation(&huma.Operation{Method: http.MethodGet, Path: r.path, OperationID: r.id, Summary: r.summary, Parameters: r.params,
			Responses: a.answers(r.contentType, nil)})
	}
	schemas := o.Components.Schemas
	answer := schemas.Schema(reflect.TypeFor[GraphQLAnswer](), true, "")
	o.Paths["/graphql"].Get.Responses = a.answers("application/json", answer)
	o.AddOperation(&huma.Operation{Method: http.MethodPost, Path: "/graphql", OperationID: "graphql-post", Summary: "GraphQL, mutations too; the schema is at /schema.graphql",
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(reflect.TypeFor[GraphQLRequest](), true, "")}}},
		Responses:   a.answers("application/json", answer)})
}

// answers are the answers of an operation that is not typed; a nil schema says nothing.
func (a *API) answers(contentType string, schema *huma.Schema) map[string]*huma.Response {
	return map[string]*huma.Response{
		"200":     {Description: "OK", Content: map[string]*huma.MediaType{contentType: {Schema: schema}}},
		"default": problemResponse(a.huma),
	}
}
