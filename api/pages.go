package api

import (
	"net/http"

	"repute/web"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// pagePolicy lets a page run its own script and ask this server, nothing else:
// no inline script, no foreign host.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// mountPlain adds what is not in the OpenAPI document.
func (a *API) mountPlain() {
	e := a.echo
	e.GET("/healthz", a.healthz)
	e.GET("/readyz", a.readyz)
	e.GET("/metrics", echo.WrapHandler(promhttp.HandlerFor(a.registry,
		promhttp.HandlerOpts{Registry: a.registry, DisableCompression: true})))
	e.GET("/graphql", a.graphqlGet)
	e.POST("/graphql", a.graphqlPost)
	e.GET("/schema.graphql", a.graphqlSchema)
	e.GET("/openapi.json", func(c echo.Context) error {
		return c.Blob(http.StatusOK, "application/openapi+json", a.openapi)
	})
	e.GET("/", page("index.html"))
	e.GET("/docs", page("docs.html"))
	e.GET("/graphiql", page("graphiql.html"))
	for _, name := range web.Assets() {
		e.GET("/assets/"+name, page(name))
	}
}

// page serves one embedded file.
func page(name string) echo.HandlerFunc {
	return func(c echo.Context) error {
		body, contentType, err := web.File(name)
		if err != nil {
			return err
		}
		c.Response().Header().Set("Content-Security-Policy", pagePolicy)
		c.Response().Header().Set("Cache-Control", "public, max-age=300")
		return c.Blob(http.StatusOK, contentType, body)
	}
}
