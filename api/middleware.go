package api

import (
	"fmt"
	"net/http"
	"time"

	"repute/internal/httpapi"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// routesAt is where the routes are listed.
const routesAt = "/openapi.json or /docs"

// use sets up what every request passes, outermost first.
func (a *API) use() {
	e := a.echo
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = httpapi.WriteErrors(a.log, routesAt)
	e.IPExtractor = httpapi.CallerAddress(a.limits.TrustedProxies)
	e.Use(
		httpapi.Identify,
		a.observe,
		httpapi.Catch,
		httpapi.Secure,
		middleware.CORSWithConfig(middleware.CORSConfig{
			AllowOrigins:  []string{"*"}, // public and read-only, no cookies
			AllowMethods:  []string{http.MethodGet, http.MethodHead, http.MethodPost},
			ExposeHeaders: []string{"ETag", httpapi.RetryAfter, httpapi.RequestIDHeader},
			MaxAge:        3600,
		}),
		httpapi.Routed,
		a.limiter.Limit(func(c echo.Context) bool { return a.limits.Rate < 0 || quiet(httpapi.RouteOf(c)) },
			a.metrics.limited.Inc,
			"lists and GraphQL answer many questions in one request"),
		// tools have their own
		middleware.BodyLimitWithConfig(middleware.BodyLimitConfig{Limit: fmt.Sprintf("%dB", a.limits.Body),
			Skipper: isTools}),
		httpapi.Deadline(a.limits.Timeout, nil),
		middleware.GzipWithConfig(middleware.GzipConfig{MinLength: 1024, Skipper: isGateway}),
	)
}

// observe writes the access log, at level debug, and the metrics. Query and headers stay
// out of the log: both may carry secrets.
func (a *API) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		done := a.metrics.begin()
		if err := next(c); err != nil {
			c.Error(err)
		}
		route, status, took := httpapi.RouteOf(c), c.Response().Status, time.Since(start)
		done(c.Request().Method, route, status, took)
		if quiet(route) {
			return nil
		}
		a.log.DebugContext(c.Request().Context(), "request",
			"method", c.Request().Method, "path", c.Request().URL.Path, "route", route, "status", status,
			"bytes", c.Response().Size, "ms", took.Milliseconds(), "ip", c.RealIP(), "requestId",
			httpapi.RequestID(c.Request().Context()))
		return nil
	}
}

// quiet routes are asked every few seconds by machines; they are neither
// limited nor worth a line in the log.
func quiet(route string) bool {
	return route == "/healthz" || route == "/readyz" || route == "/metrics"
}
