package api

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// apiVersion is the version of the REST contract, not of the program: the
// golden file test demands a new one whenever the contract changes.
const apiVersion = "1.21.0"

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
		example                        any
	}{
		{"/graphql", "graphql", "Runs a GraphQL query; the schema is at /schema.graphql", "application/json", []*huma.Param{
			{Name: "query", In: "query", Required: true, Schema: text, Description: "a query; mutations only by POST"},
			{Name: "variables", In: "query", Schema: text, Description: "a JSON object"},
			{Name: "operationName", In: "query", Schema: text, Description: "which operation of the query to run"}}, nil},
		{"/ipfs/{cid}", "get-ipfs",
			"Serves stored documents to IPFS clients as raw blocks or CAR files (trustless gateway)",
			"application/vnd.ipld.raw", []*huma.Param{
				{Name: "cid", In: "path", Required: true, Schema: text, Description: "any CID"},
				{Name: "format", In: "query", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"raw", "car"}},
					Description: "or the Accept header"}}, "the bytes of one block"},
		{keysPath, "get-keys", "Lists the keys that sign final scores; repute verify-snapshot --keys reads them",
			"application/json", nil,
			map[string]any{"keys": []any{map[string]any{"address": "0x8004A169FB4a3325136EB29fA0ceB6D2e539a432", "from": nil,
				"to": nil}}}},
		{"/metrics", "metrics", "Metrics of this process in the text format of Prometheus", "text/plain", nil,
			"repute_redis_up 1\n"},
		{"/healthz", "health", "Reports that the process runs; it asks nothing of the database", "application/json", nil,
			health{Status: "ok"}},
		{"/readyz", "ready",
			"Reports whether the process can answer questions now; 503 with the checks that failed where not",
			"application/json", nil,
			health{Status: "ok", Checks: []check{{Name: "database", OK: true}, {Name: "chains", OK: true}}}},
	} {
		o.AddOperation(&huma.Operation{Method: http.MethodGet, Path: r.path, OperationID: r.id, Summary: r.summary,
			Parameters: r.params,
			Responses:  a.answers(r.contentType, nil)})
		o.Paths[r.path].Get.Responses["200"].Content[r.contentType].Example = r.example
	}
	schemas := o.Components.Schemas
	answer := schemas.Schema(reflect.TypeFor[GraphQLAnswer](), true, "")
	o.Paths["/graphql"].Get.Responses = a.answers("application/json", answer)
	o.AddOperation(&huma.Operation{Method: http.MethodPost, Path: "/graphql", OperationID: "graphql-post",
		Summary: "Runs a GraphQL query or mutation; the schema is at /schema.graphql",
		RequestBody: &huma.RequestBody{Required: true,
			Content: map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(reflect.TypeFor[GraphQLRequest](),
				true, "")}}},
		Responses: a.answers("application/json", answer)})
}

// answers are the answers of an operation that is not typed; a nil schema says nothing.
func (a *API) answers(contentType string, schema *huma.Schema) map[string]*huma.Response {
	return map[string]*huma.Response{
		"200":     {Description: "OK", Content: map[string]*huma.MediaType{contentType: {Schema: schema}}},
		"default": problemResponse(a.huma),
	}
}
