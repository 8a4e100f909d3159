package api

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"repute/internal/httpapi"
	"repute/web"
)

// mountPlain adds what is no typed operation, and the pages, which are in no document.
func (a *API) mountPlain() {
	s, e := a.server, a.server.Echo
	s.Get(httpapi.Route{Path: "/healthz", ID: "health", ContentType: jsonType, Example: health{Status: "ok"},
		Summary: "Reports that the process runs; it asks nothing of the database"}, a.healthz)
	s.Get(httpapi.Route{Path: "/readyz", ID: "ready", ContentType: jsonType,
		Example: health{Status: "ok", Checks: []check{{Name: "database", OK: true}, {Name: "chains", OK: true}}},
		Summary: "Reports whether the process can answer questions now; 503 with the checks that failed where not"}, a.readyz)
	s.Get(httpapi.Route{Path: "/metrics", ID: "metrics", ContentType: "text/plain", Example: "repute_redis_up 1\n",
		Summary: "Metrics of this process in the text format of Prometheus"},
		echo.WrapHandler(promhttp.HandlerFor(s.Registry,
			promhttp.HandlerOpts{Registry: s.Registry, DisableCompression: true})))
	a.mountGraphQL()
	for path, name := range map[string]string{"/": "index.html", "/docs": "docs.html", "/graphiql": "graphiql.html"} {
		e.GET(path, page(name))
	}
	for _, name := range web.Assets() {
		e.GET("/assets/"+name, page(name))
	}
}

// mountGraphQL serves GraphQL and its schema.
func (a *API) mountGraphQL() {
	s := a.server
	schemas := s.API.OpenAPI().Components.Schemas
	answer := schemas.Schema(reflect.TypeFor[GraphQLAnswer](), true, "")
	s.Get(httpapi.Route{Path: "/graphql", ID: "graphql", ContentType: jsonType, Schema: answer,
		Summary: "Runs a GraphQL query; the schema is at /schema.graphql",
		Params: []*huma.Param{
			requiredParam(httpapi.TextParam("query", "query", "a query; mutations only by POST")),
			httpapi.TextParam("variables", "query", "a JSON object"),
			httpapi.TextParam("operationName", "query", "which operation of the query to run")}}, a.graphqlGet)
	post := s.Describe(http.MethodPost, httpapi.Route{Path: "/graphql", ID: "graphql-post", ContentType: jsonType,
		Schema: answer, Summary: "Runs a GraphQL query or mutation; the schema is at /schema.graphql"})
	post.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		jsonType: {Schema: schemas.Schema(reflect.TypeFor[GraphQLRequest](), true, "")}}}
	s.Echo.POST("/graphql", a.graphqlPost)
	s.Echo.GET("/schema.graphql", a.graphqlSchema)
}

// requiredParam says that a parameter must be given.
func requiredParam(p *huma.Param) *huma.Param {
	p.Required = true
	return p
}
