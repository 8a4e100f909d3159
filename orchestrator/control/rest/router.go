// Package rest mounts the operations of the control plane: typed handlers under /v1 with strict decoding of bodies,
// one form of answers and errors, cursors of lists, and the checks of callers that routes and MCP tools share. It
// knows nothing of tasks, runs or treasuries.
//
// Read mounts a handler of a GET, Write one that changes something: it takes the name of the caller's token, decodes
// the body, refuses unknown fields by name, and validates it by the schema that the OpenAPI document shows. A handler
// returns an Answer or an error, whose kind decides the status. What routes return tools return too: Body unwraps an
// answer, Caller checks the roles of a tool's caller, and Private those of a tool that reads.
//
// A List gives the cursors of a list that is ordered by time and id (Cut, ReadCursor). A cursor of another list, or
// of the same one with other filters, is refused; ids that no entity can have are refused before the database is
// asked (Known).
package rest

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"repute"
	"repute/internal/httpapi"
)

// Prefix is the path of all operations.
const Prefix = "/v1"

// Router mounts operations on a server. Make one with New.
type Router struct {
	server       *httpapi.Server
	privateReads bool
}

// New returns a router for the operations of a server. With privateReads, tools that read tasks, runs
// and operator actions need a token with the role read.
func New(server *httpapi.Server, privateReads bool) *Router {
	return &Router{server: server, privateReads: privateReads}
}

// AddStatus adds a success status to the description of operations that change something, such as
// 201 for a new entity and 202 for work that continues after the answer.
func (r *Router) AddStatus(status, description string, paths ...string) {
	for _, path := range paths {
		item := r.server.API.OpenAPI().Paths[Prefix+path]
		for _, op := range []*huma.Operation{item.Post, item.Put} {
			if op != nil {
				more := *op.Responses["200"]
				more.Description = description
				op.Responses[status] = &more
			}
		}
	}
}

// Protect adds to the description of operations that read that they need a token. The server checks it: see roleOf.
func (r *Router) Protect(paths ...string) {
	for _, path := range paths {
		r.server.API.OpenAPI().Paths[Prefix+path].Get.Security = []map[string][]string{{httpapi.Bearer: {}}}
	}
}

// Answer is the response of an operation.
type Answer[B any] struct {
	Status       int
	Location     string `header:"Location"`
	CacheControl string `header:"Cache-Control"`
	Body         *B
}

// Say returns a response with status 200 that MUST NOT be cached.
func Say[B any](body *B) *Answer[B] {
	return &Answer[B]{Status: http.StatusOK, CacheControl: "no-store", Body: body}
}

// None is the body of a request without body.
type None struct{}

// operation returns the entry of a route in the OpenAPI document.
func (r *Router) operation(method, path, id, summary string) huma.Operation {
	return huma.Operation{OperationID: id, Method: method, Path: Prefix + path, Summary: summary,
		SkipValidateParams: true, // httpapi.Server does, with other error texts
		Responses:          map[string]*huma.Response{"default": r.server.Problems()}}
}

// Read mounts an operation that changes nothing. It needs no token, unless the server protects its path.
func Read[I, B any](r *Router, path, id, summary string, handle func(context.Context, *I) (*Answer[B], error)) {
	huma.Register(r.server.API, r.operation(http.MethodGet, path, id, summary),
		func(ctx context.Context, in *I) (*Answer[B], error) {
			out, err := handle(ctx, in)
			if err != nil {
				return nil, r.Fail(ctx, err)
			}
			return out, nil
		})
}

// Write mounts an operation that changes something. R is the type of the body. handle receives the name of the
// caller's token in by.
func Write[R, I, B any](r *Router, method, path, id, summary string,
	handle func(ctx context.Context, by string, in *I, body R) (*Answer[B], error)) {
	op := r.operation(method, path, id, summary)
	op.Security = []map[string][]string{{httpapi.Bearer: {}}}
	check := checkBody[R](r)
	huma.Register(r.server.API, op, func(ctx context.Context, in *I) (*Answer[B], error) {
		out, err := written(ctx, in, check, handle)
		if err != nil {
			return nil, r.Fail(ctx, err)
		}
		return out, nil
	})
	describeBody[R](r, &op)
}

// checkBody returns the function that validates a body by the schema of R.
func checkBody[R any](r *Router) func([]byte) error {
	if reflect.TypeFor[R]() == reflect.TypeFor[None]() {
		return func([]byte) error { return nil }
	}
	schemas := r.server.API.OpenAPI().Components.Schemas
	schema := schemas.Schema(reflect.TypeFor[R](), true, "")
	return func(body []byte) error { return httpapi.CheckBody(schemas, schema, body) }
}

// describeBody adds the body of a request to the document. The operation that huma routes has no
// body, because huma would then decode it itself, with other error texts.
func describeBody[R any](r *Router, op *huma.Operation) {
	t := reflect.TypeFor[R]()
	item := r.server.API.OpenAPI().Paths[op.Path]
	if t == reflect.TypeFor[None]() || item == nil {
		return
	}
	at := &item.Post
	if op.Method == http.MethodPut {
		at = &item.Put
	}
	if *at == nil {
		return
	}
	described := **at
	schemas := r.server.API.OpenAPI().Components.Schemas
	schema := schemas.Schema(t, true, "")
	described.RequestBody = &huma.RequestBody{Required: len(schemas.SchemaFromRef(schema.Ref).Required) > 0,
		Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}
	*at = &described
}

// written decodes the body of a request that changes something and calls its handler with the name
// of the caller.
func written[R, I, B any](ctx context.Context, in *I, check func([]byte) error,
	handle func(context.Context, string, *I, R) (*Answer[B], error)) (*Answer[B], error) {
	name, err := httpapi.By(ctx)
	if err != nil {
		return nil, err
	}
	var body R
	text := httpapi.RequestBody(ctx)
	if err := decode(text, &body); err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(text)) > 0 {
		if err := check(text); err != nil {
			return nil, err
		}
	}
	return handle(ctx, name, in, body)
}

// maxID bounds ids and slugs in paths, in bytes.
const maxID = 64

// Fail converts an error to its response. An unknown entity gets a hint to the route that lists the known ones.
func (r *Router) Fail(ctx context.Context, err error) *httpapi.ErrorBody {
	var missing *repute.MissingError
	if errors.As(err, &missing) && missing.Hint == "" {
		kind, _, _ := strings.Cut(missing.What, " ")
		listed := *missing
		listed.Hint = map[string]string{"task": "GET /v1/tasks lists tasks", "agent": "GET /v1/agents lists agents",
			"run": "GET /v1/runs lists runs, and GET /v1/tasks/{id} those of a task"}[kind]
		err = &listed
	}
	return r.server.Fail(ctx, err)
}

// Known refuses a text that cannot be the id or slug of anything, before a database query: repute.ErrNotFound.
func Known(what, id string) error {
	if len(id) > maxID || httpapi.Clean(id) != id {
		return repute.Unknown("%s %.64q", what, id)
	}
	return nil
}
