package subgraph

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"repute"
	"repute/internal/httpapi"
	"repute/store"
	"repute/store/subgraphdb"
)

// path is the route of the endpoint of a chain. It is that of the document; echo writes parameters in another form.
const path = "/subgraphs/{chainId}"

// endpoint serves the subgraph of each indexed chain. It is shared by all requests and does not change.
type endpoint struct {
	db     *store.DB
	schema *schema
}

// SubgraphRequest is the body of a request.
type SubgraphRequest struct {
	_             struct{}       `additionalProperties:"true"`
	Query         string         `json:"query" doc:"one query in the schema of the agent0 subgraph"`
	OperationName string         `json:"operationName,omitempty" doc:"ignored: a document has one operation"`
	Variables     map[string]any `json:"variables,omitempty"`
}

// SubgraphAnswer is the answer to a query: data, or errors of the query.
type SubgraphAnswer struct {
	Data   map[string]any  `json:"data,omitempty" doc:"as the query asks; absent where it failed"`
	Errors []SubgraphError `json:"errors,omitempty"`
}

// Mount adds the subgraph of each chain to the server. The route is not one of huma's, because huma would validate the
// body and answer its own errors. So it is described by hand.
func Mount(server *httpapi.Server, db *store.DB) error {
	s, err := newSchema()
	if err != nil {
		return err
	}
	e := &endpoint{db: db, schema: s}
	schemas := server.API.OpenAPI().Components.Schemas
	post := server.Describe(http.MethodPost, httpapi.Route{Path: path, ID: "subgraph",
		ContentType: echo.MIMEApplicationJSON, Schema: schemas.Schema(reflect.TypeFor[SubgraphAnswer](), true, ""),
		Summary: "Runs a GraphQL query in the schema of the agent0 subgraph on one chain",
		Params:  []*huma.Param{httpapi.TextParam("chainId", "path", "a chain that is indexed")}})
	post.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		echo.MIMEApplicationJSON: {Schema: schemas.Schema(reflect.TypeFor[SubgraphRequest](), true, "")}}}
	server.Echo.POST("/subgraphs/:chainId", e.post)
	return nil
}

// post answers a query. Errors of the query come with status 200 in the body, as from graph-node.
func (e *endpoint) post(c echo.Context) error {
	chain, err := repute.ParseChainID(c.Param("chainId"))
	if err != nil {
		return err
	}
	body, err := io.ReadAll(c.Request().Body)
	if err != nil {
		return err // the body limit's, or the caller went away
	}
	r, err := readRequest(body)
	if err != nil {
		return repute.Invalid("body", "not a GraphQL request", "a JSON object with query, and variables where needed")
	}
	answer, err := e.answer(c.Request().Context(), chain, r)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSONBlob(http.StatusOK, answer)
}

// answer returns the body of the answer to a request. Everything that can be refused without the database is refused
// before the snapshot is opened. An error is a fault of the server or a chain that is not indexed; errors of the query
// are in the answer.
func (e *endpoint) answer(ctx context.Context, chain uint64, r request) ([]byte, error) {
	o, f := e.schema.parse(r)
	if f != nil {
		return failures(f), nil
	}
	plans := o.plans()
	if len(o.failures) > 0 {
		return failures(o.failures...), nil
	}
	var out []byte
	err := subgraphdb.View(ctx, e.db, e.schema.table, chain, func(ctx context.Context, s *subgraphdb.Snapshot) error {
		x := &execution{operation: o, snapshot: s, left: maxRows}
		data, err := x.run(ctx, plans)
		if err != nil {
			return err
		}
		out = body(data, hasErrors(s, plans))
		return nil
	})
	if f := failureOf(err); f != nil {
		return failures(f), nil
	}
	return out, err
}

// indexing says how an answer treats errors of the index. It follows subgraphError of each field.
type indexing int

// Treatments of errors of the index.
const (
	noErrors indexing = iota
	shown
	denied
)

// hasErrors returns how an answer treats that the index stopped because a final block was replaced. Questions about the
// index alone are always answered. One field that denies withholds the data of all, as in graph-node.
func hasErrors(s *subgraphdb.Snapshot, plans []plan) indexing {
	state := noErrors
	for _, p := range plans {
		switch {
		case p.set == nil || !s.Chain.Halted:
		case !p.allow:
			return denied
		default:
			state = shown
		}
	}
	return state
}

// body returns the body of an answer with data. The place of errors in it is after data; there is no other error beside
// data.
func body(data *object, state indexing) []byte {
	out := &object{}
	if state != denied {
		out.set("data", data)
	}
	if state != noErrors {
		failure := &object{}
		failure.set("message", "indexing_error")
		out.set("errors", []*object{failure})
	}
	return out.append(nil)
}

// failures returns the body of an answer to a query that failed.
func failures(list ...*SubgraphError) []byte {
	out, _ := json.Marshal(map[string]any{"errors": list}) // texts are always JSON
	return out
}
