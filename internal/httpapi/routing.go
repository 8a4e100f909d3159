package httpapi

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"
)

// literal is a router in which a colon in a path is no parameter.
type literal struct{ huma.Adapter }

// Handle implements huma.Adapter.
func (l literal) Handle(op *huma.Operation, handle func(huma.Context)) {
	escaped := *op
	escaped.Path = strings.ReplaceAll(op.Path, ":", escapedColon)
	l.Adapter.Handle(&escaped, handle)
}

// escapedColon is a colon in a route that is no parameter.
const escapedColon = `\:`

// routeOf returns the template of a route of the router in OpenAPI's form, and "unmatched" without a
// route, so that paths that callers choose do not create metrics.
func routeOf(path string) string {
	if path == "" {
		return "unmatched"
	}
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if name, isParam := strings.CutPrefix(s, ":"); isParam {
			segments[i] = "{" + name + "}"
		}
	}
	return strings.ReplaceAll(strings.Join(segments, "/"), escapedColon, ":")
}

// routed refuses a wrong method of a path before the caller, parameters or body are checked.
func routed(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Get(echo.ContextKeyHeaderAllow) != nil && c.Request().Method != http.MethodOptions {
			return c.Handler()(c)
		}
		return next(c)
	}
}
