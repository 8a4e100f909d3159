// Package graph serves GraphQL: the endpoint, the resolvers of the schema, and the budget that bounds what one query
// may read. Resolvers ask package answers, as REST does, and return the shapes of package wire, whose fields answer the
// fields of the schema by their names. Mount fails where schema and resolvers do not match.
//
// # Statements
//
// A query costs a number of statements that follows from its text and not from what is stored. Agents that were read
// together share a cohort: the first of them that is asked for its ratings, say, reads those of all with one statement,
// and the others take theirs from it. An agent that was asked for alone reads for itself, because then more is
// possible: another view than the newest, cursors and filters.
//
// # Bounds
//
// Each query has a budget (Options.Cost). A field charges it for the most rows that it may return, and for the read
// itself, before anything is read; a query that exceeds it has no data and the error TOO_COMPLEX. The text, the depth
// and the selections of a query are bounded by the library, and four resolvers of one query run at once, so that a
// query holds no more than four connections of the database.
//
// # Errors
//
// Errors come with status 200, as clients expect, and pass through the same table as those of REST: a code in the
// extensions, a hint, and no internal details.
//
// # Subscriptions
//
// A WebSocket (graphql-transport-ws) carries subscriptions, which follow the shared feed of the process. Nothing is
// buffered for a client: one that accepts no event for ten seconds is disconnected with a code that says so (package
// socket), and continues after the cursor of its last event.
package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	graphql "github.com/graph-gophers/graphql-go"
	gqlerrors "github.com/graph-gophers/graphql-go/errors"
	"github.com/labstack/echo/v4"

	"repute"
	"repute/api/answers"
	"repute/api/feed"
	"repute/api/wire"
	"repute/api/wire/provenance"
	"repute/internal/httpapi"
)

const (
	// maxQueryLength bounds the text of a query in bytes.
	maxQueryLength = 16 << 10
	// maxSelections bounds what fragments may expand to.
	maxSelections = 5_000
	// maxOverlaps bounds the comparisons of validating equal field names.
	maxOverlaps = 50_000
	// parallelism is how many resolvers of one query run at once, hence how many
	// database connections it can hold.
	parallelism = 4
	// eventTimeout bounds the resolving and sending of an event of a subscription. It is far longer than clients may
	// take: the library drops an event that is not sent within it.
	eventTimeout = 10 * time.Minute
)

// Options bound GraphQL queries.
type Options struct {
	// Depth is the deepest nesting of a query.
	Depth int
	// Cost is how many rows a query may ask for.
	Cost int
	// Feed is the change feed that subscriptions follow.
	Feed *feed.Feed
	// Streams counts the connections of subscriptions.
	Streams *httpapi.StreamLimit
	// Done ends connections when it is closed. Nil: never.
	Done <-chan struct{}
	// Work reads tasks and runs, and Treasury what they spend from. Nil: no orchestrator is served, and fields say so.
	Work     Work
	Treasury Treasurer
	// Files reads URLs whose files are checked. Nil: only content that is given can be checked.
	Files Fetcher
	// SlowAfter is how long a client may accept no event: 10 s.
	SlowAfter time.Duration

	log *slog.Logger
}

// Endpoint serves GraphQL over HTTP, and runs the documents of pages in the process. It does not change after Mount and
// is safe for concurrent use.
type Endpoint struct {
	server *httpapi.Server
	index  *answers.Index
	o      Options
	schema *graphql.Schema
}

// Mount adds GraphQL and its schema to the server. It fails where schema and resolvers do not
// match.
func Mount(server *httpapi.Server, x *answers.Index, o Options) (*Endpoint, error) {
	httpapi.Fill(&o.SlowAfter, slowAfter)
	o.log = server.Log
	schema, err := parseSchema(repute.Schema, server, x, o)
	if err != nil {
		return nil, fmt.Errorf("graphql schema: %w", err)
	}
	e := &Endpoint{server: server, index: x, o: o, schema: schema}
	e.mount()
	return e, nil
}

// parseSchema fails where schema and resolvers do not match.
func parseSchema(sdl string, server *httpapi.Server, x *answers.Index, o Options) (*graphql.Schema, error) {
	guard := panicGuard{server}
	attacks, err := provenance.ReadAttacks(repute.AttackReport)
	if err != nil {
		return nil, err
	}
	return graphql.ParseSchema(sdl, &queryResolver{x, o, attacks},
		graphql.UseStringDescriptions(), graphql.UseFieldResolvers(),
		graphql.MaxDepth(o.Depth), graphql.MaxQueryLength(maxQueryLength),
		graphql.MaxSelections(maxSelections), graphql.OverlapValidationLimit(maxOverlaps),
		graphql.MaxParallelism(parallelism), graphql.PanicHandler(guard), graphql.Logger(guard),
		graphql.SubscribeResolverTimeout(eventTimeout))
}

// mount adds the routes of GraphQL and of its schema.
func (e *Endpoint) mount() {
	s := e.server
	schemas := s.API.OpenAPI().Components.Schemas
	answer := schemas.Schema(reflect.TypeFor[GraphQLAnswer](), true, "")
	s.Get(httpapi.Route{Path: "/graphql", ID: "graphql", ContentType: echo.MIMEApplicationJSON, Schema: answer,
		Summary: "Runs a GraphQL query; the schema is at /schema.graphql",
		Params: []*huma.Param{
			requiredParam(httpapi.TextParam("query", "query", "a query; mutations only by POST")),
			httpapi.TextParam("variables", "query", "a JSON object"),
			httpapi.TextParam("operationName", "query", "which operation of the query to run"), minBlockParam()}},
		e.get)
	httpapi.Post[GraphQLRequest, GraphQLAnswer](s, httpapi.Route{Path: "/graphql", ID: "graphql-post",
		ContentType: echo.MIMEApplicationJSON, Params: []*huma.Param{minBlockParam()},
		Summary: "Runs a GraphQL query or mutation; the schema is at /schema.graphql"}, e.post)
	s.Echo.GET("/schema.graphql", e.sdl)
}

// minBlockParam is the parameter of the block that all fields of a query must know. It is no part of the query, because
// it holds for the whole answer.
func minBlockParam() *huma.Param {
	p := httpapi.TextParam("minBlock", "query",
		"block that the answer must know, with its chain as chainId:block where "+
			"several are indexed: the answer waits two seconds for it and then has the error UNAVAILABLE")
	p.Schema.Pattern = "^([1-9][0-9]{0,18}:)?[0-9]{1,18}$"
	return p
}

// requiredParam says that a parameter must be given.
func requiredParam(p *huma.Param) *huma.Param {
	p.Required = true
	return p
}

// GraphQLRequest is the body of a POST.
type GraphQLRequest struct {
	_             struct{}       `additionalProperties:"true"`
	Query         string         `json:"query" pattern:"\\S" doc:"a query or a mutation"`
	OperationName string         `json:"operationName,omitempty" doc:"which operation of the query to run"`
	Variables     map[string]any `json:"variables,omitempty"`
}

// GraphQLAnswer is the answer to a query, also to one that failed.
type GraphQLAnswer struct {
	Data   GraphQLData    `json:"data,omitempty" doc:"as the query asks; null where it failed"`
	Errors []GraphQLError `json:"errors,omitempty"`
}

// GraphQLData has the fields of a query.
type GraphQLData map[string]any

// Schema says that it may be null.
func (GraphQLData) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, Nullable: true, AdditionalProperties: true}
}

// GraphQLError is what went wrong in a query.
type GraphQLError struct {
	Message    string         `json:"message"`
	Path       []any          `json:"path,omitempty" doc:"of the field, names and places in lists"`
	Extensions map[string]any `json:"extensions,omitempty" doc:"code, hint, field, requestId, retryAfter"`
}

// post takes JSON whatever the content type says: reading is all one can
// do here, and no cookie makes a forged request worth anything.
func (e *Endpoint) post(c echo.Context) error {
	raw, err := io.ReadAll(c.Request().Body)
	if err != nil {
		return err // the body limit's, or the caller went away
	}
	var r GraphQLRequest
	if err := json.Unmarshal(raw, &r); err != nil {
		return repute.Invalid("body", "not a GraphQL request",
			`a JSON object with query, and variables and operationName where needed`)
	}
	c.SetRequest(c.Request().WithContext(context.WithValue(c.Request().Context(), postKey{}, true)))
	return e.answer(c, r)
}

// get serves GET /graphql, which caches and links can use. It refuses mutations. A WebSocket serves subscriptions.
func (e *Endpoint) get(c echo.Context) error {
	if isUpgrade(c.Request()) {
		ctx, err := e.index.Demand(c.Request().Context(), c.QueryParam("minBlock"))
		if err != nil {
			return err
		}
		c.SetRequest(c.Request().WithContext(ctx)) // for the queries that are sent over it
		return e.upgrade(c)
	}
	r := GraphQLRequest{Query: c.QueryParam("query"), OperationName: c.QueryParam("operationName")}
	if v := c.QueryParam("variables"); v != "" {
		if err := json.Unmarshal([]byte(v), &r.Variables); err != nil {
			return repute.Invalid("variables", "not a JSON object", `e.g. {"id":"8453:22"}`)
		}
	}
	return e.answer(c, r)
}

// answer runs one query. As GraphQL clients expect, its errors come with
// status 200 in the body.
func (e *Endpoint) answer(c echo.Context, r GraphQLRequest) error {
	if strings.TrimSpace(r.Query) == "" {
		return repute.Invalid("query", "missing", "a GraphQL query; /graphiql is a page to try one")
	}
	ctx, err := e.index.Demand(c.Request().Context(), c.QueryParam("minBlock"))
	if err != nil {
		return err
	}
	response, wait := e.exec(ctx, r)
	if wait != "" {
		c.Response().Header().Set(httpapi.RetryAfter, wait)
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusOK, response)
}

// exec runs one query within its budget. wait is the pause before a retry in seconds, "" where none helps. The order
// matters: a wait for minBlock comes before the fields, errors are settled before they are counted, and a query that
// cost too much has no data, because some of its fields may be missing without an error of their own.
func (e *Endpoint) exec(ctx context.Context, r GraphQLRequest) (response *graphql.Response, wait string) {
	ctx, spent := withBudget(withWork(ctx, e.o.Work), e.o.Cost)
	// Once for all fields, which would wait one after the other.
	if err := e.index.Await(ctx); err != nil {
		response = &graphql.Response{Errors: []*gqlerrors.QueryError{{Err: err, ResolverError: err}}}
	} else {
		response = e.schema.Exec(ctx, r.Query, r.OperationName, r.Variables)
	}
	for _, q := range response.Errors {
		if b := e.settleError(ctx, q); b != nil && b.Retry > 0 {
			wait = b.GetHeaders().Get(httpapi.RetryAfter)
			q.Extensions["retryAfter"] = json.Number(wait)
		}
	}
	if spent.exceeded() {
		return &graphql.Response{Errors: []*gqlerrors.QueryError{costError(spent.limit)}}, ""
	}
	return response, wait
}

// Run answers a document of this process as POST /graphql answers a request, as JSON. It refuses mutations.
func (e *Endpoint) Run(ctx context.Context, document string, variables map[string]any) ([]byte, error) {
	response, _ := e.exec(ctx, GraphQLRequest{Query: document, Variables: variables})
	return json.Marshal(response)
}

// sdl serves GET /schema.graphql.
func (e *Endpoint) sdl(c echo.Context) error {
	return c.Blob(http.StatusOK, "text/plain; charset=utf-8", []byte(repute.Schema))
}

// settleError puts an error through the same table as REST's: a stable code in
// the extensions, no internal details. Errors that are nobody's but the query's (syntax, validation) keep their text
// and have no problem. b is nil for them, and so is a wait.
func (e *Endpoint) settleError(ctx context.Context, q *gqlerrors.QueryError) *httpapi.ErrorBody {
	cause := q.ResolverError
	if cause == nil && (errors.Is(q.Err, context.DeadlineExceeded) || errors.Is(q.Err, context.Canceled)) {
		cause = q.Err
	}
	if cause == nil {
		if q.Extensions == nil {
			q.Extensions = map[string]any{"code": "BAD_QUERY"}
		}
		if plain, found := wrongType(q.Message); found {
			q.Message, q.Extensions["hint"] = plain,
				"/schema.graphql has the types; roots is one text, addresses divided by commas"
		}
		q.Message = wire.BriefText(q.Message)
		return nil
	}
	b := e.server.Fail(ctx, cause)
	q.Message = b.Detail
	q.Extensions = map[string]any{"code": strings.ToUpper(b.Code), "requestId": b.RequestID}
	if b.Hint != "" {
		q.Extensions["hint"] = b.Hint
	}
	if len(b.Errors) > 0 {
		q.Extensions["field"] = b.Errors[0].Field
	}
	return b
}

// wrongType says without Go's types what the library says of a variable that does not fit.
func wrongType(message string) (plain string, found bool) {
	before, wanted, found := cutLast(message, ") into ")
	_, given, ok := cutLast(before, " (")
	if !found || !ok || !strings.HasPrefix(message, "could not unmarshal ") {
		return "", false
	}
	wanted, _, _ = strings.Cut(wanted, ":")
	kind := func(goType string) string {
		switch goType {
		case "[]interface {}":
			return "a list"
		case "map[string]interface {}":
			return "an object"
		case "bool":
			return "true or false"
		case "string":
			return "a text"
		case "int32", "float64", "int":
			return "a number"
		}
		return "a value of another kind"
	}
	return fmt.Sprintf("a variable is %s where %s belongs", kind(given), kind(wanted)), true
}

// cutLast is strings.Cut at the last separator.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// costError refuses a query before more rows are read than a query may cost.
func costError(limit int) *gqlerrors.QueryError {
	e := gqlerrors.Errorf("the query may cost more than %d", limit)
	e.Extensions = map[string]any{
		"code": "TOO_COMPLEX", "limit": limit,
		"hint": "ask for smaller pages (first) or fewer lists within lists; cost counts every row a list may return, and " +
			strconv.Itoa(readCost) + " for every single read",
	}
	return e
}

// panicGuard logs a resolver's panic and answers it like any failure of ours.
type panicGuard struct{ server *httpapi.Server }

// MakePanicError hides what happened, except where the library panics for a
// number in the query that fits no integer.
func (g panicGuard) MakePanicError(ctx context.Context, value any) *gqlerrors.QueryError {
	if _, isNumber := value.(*strconv.NumError); isNumber {
		return gqlerrors.Errorf("a number in the query is out of range")
	}
	b := g.server.Fail(ctx, fmt.Errorf("panic: %v\n%s", value, debug.Stack()))
	e := gqlerrors.Errorf("%s", b.Detail)
	e.Extensions = map[string]any{"code": strings.ToUpper(b.Code), "requestId": b.RequestID}
	return e
}

// LogPanic does nothing: MakePanicError has logged it.
func (panicGuard) LogPanic(context.Context, any) {}
