package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// use sets up what every request passes, outermost first.
func (a *API) use() {
	e := a.echo
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = a.writeError
	e.IPExtractor = callerAddress(a.limits.TrustedProxies)
	e.Use(
		identify,
		a.observe,
		a.recover,
		secure,
		middleware.CORSWithConfig(middleware.CORSConfig{
			AllowOrigins:  []string{"*"}, // public and read-only, no cookies
			AllowMethods:  []string{http.MethodGet, http.MethodHead, http.MethodPost},
			ExposeHeaders: []string{"ETag", "Retry-After", requestIDHeader},
			MaxAge:        3600,
		}),
		a.limit,
		middleware.BodyLimit(fmt.Sprintf("%dB", a.limits.Body)),
		a.deadline,
		middleware.GzipWithConfig(middleware.GzipConfig{MinLength: 1024, Skipper: isGateway}),
	)
}

const requestIDHeader = "X-Request-Id"

// idKey is the context key of the request id.
type idKey struct{}

// requestID is the id of the request ctx belongs to, "" outside of one.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(idKey{}).(string)
	return id
}

// callerContext is the context key of the caller.
type callerContext struct{}

// callerOf is who asks, as limits count: "" outside of a request.
func callerOf(ctx context.Context) string {
	caller, _ := ctx.Value(callerContext{}).(string)
	return caller
}

// identify gives the request an id: the caller's when it is harmless in a log.
func identify(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := c.Request().Header.Get(requestIDHeader)
		if !harmlessID(id) {
			id = rand.Text()
		}
		c.Response().Header().Set(requestIDHeader, id)
		c.SetRequest(c.Request().WithContext(context.WithValue(
			context.WithValue(c.Request().Context(), idKey{}, id), callerContext{}, callerKey(c.RealIP()))))
		return next(c)
	}
}

func harmlessID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}

// observe writes the access log and the metrics. Query and headers stay out of
// the log: both may carry secrets.
func (a *API) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		done := a.metrics.begin()
		if err := next(c); err != nil {
			c.Error(err)
		}
		route, status, took := routeOf(c), c.Response().Status, time.Since(start)
		done(c.Request().Method, route, status, took)
		level := slog.LevelInfo
		if quiet(route) {
			level = slog.LevelDebug
		}
		a.log.Log(c.Request().Context(), level, "request",
			"method", c.Request().Method, "path", c.Request().URL.Path, "route", route, "status", status,
			"bytes", c.Response().Size, "ms", took.Milliseconds(), "ip", c.RealIP(), "requestId", requestID(c.Request().Context()))
		return nil
	}
}

// routeOf is the route's template as OpenAPI writes it; one name for everything
// that has none, so that foreign paths cannot grow the metrics.
func routeOf(c echo.Context) string {
	if c.Path() == "" {
		return "unmatched"
	}
	segments := strings.Split(c.Path(), "/")
	for i, s := range segments {
		if name, isParam := strings.CutPrefix(s, ":"); isParam {
			segments[i] = "{" + name + "}"
		}
	}
	return strings.Join(segments, "/")
}

// quiet routes are asked every few seconds by machines; they are neither
// limited nor worth a line in the log.
func quiet(route string) bool {
	return route == "/healthz" || route == "/readyz" || route == "/metrics"
}

// recover answers a panic with a 500 and keeps the process alive.
func (a *API) recover(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			r := recover()
			if r == nil {
				return
			}
			if r == http.ErrAbortHandler {
				panic(r) // the server's own signal to cut the connection
			}
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}()
		return next(c)
	}
}

// secure keeps browsers from reading our JSON as anything else.
func secure(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		return next(c)
	}
}

// deadline bounds the request; every outside call below takes its context.
func (a *API) deadline(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx, cancel := context.WithTimeout(c.Request().Context(), a.limits.Timeout)
		defer cancel()
		c.SetRequest(c.Request().WithContext(ctx))
		return next(c)
	}
}

// writeError is the last stop of errors from routing and middleware.
func (a *API) writeError(err error, c echo.Context) {
	if c.Response().Committed {
		a.log.WarnContext(c.Request().Context(), "request failed after its answer began", "error", err)
		return
	}
	var he *echo.HTTPError
	if errors.As(err, &he) && he.Code < 500 {
		err = routerProblem(he, c.Request().Method)
	}
	a.fail(c.Request().Context(), err).write(c.Response())
}

func noRoute() *ErrorBody {
	b := newBody(http.StatusNotFound, "not_found", "Not found", "no such route")
	b.Hint = "GET /openapi.json or /docs lists the routes"
	return b
}

// routerProblem puts the router's own refusals into our words.
func routerProblem(he *echo.HTTPError, method string) *ErrorBody {
	switch he.Code {
	case http.StatusNotFound:
		return noRoute()
	case http.StatusMethodNotAllowed:
		return newBody(he.Code, "method_not_allowed", "Method not allowed", method+" is not offered here")
	case http.StatusRequestEntityTooLarge:
		return newBody(he.Code, "too_large", "Request too large", "the request body is larger than the server allows")
	}
	return newBody(http.StatusBadRequest, "invalid", "Invalid request", "the request cannot be read")
}
