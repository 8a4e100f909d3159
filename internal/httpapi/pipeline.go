package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// use installs the middleware of all requests, outermost first.
//
// The order is a contract: identify makes the call that all others write to; observe sees the status of everything
// below; catch is outside of what may panic; the rate limit comes before the token, so that tokens cannot be guessed
// fast; the body is read before the deadline begins, so that a slow caller does not use up its own time; and remember
// is innermost, so that it keeps plain bodies.
func (s *Server) use() {
	e := s.Echo
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = s.writeError
	e.IPExtractor = callerAddress(s.Limits.TrustedProxies)
	isRaw := func(c echo.Context) bool { return s.raw[c.Path()] || s.streams[c.Path()] }
	e.Use(identify, s.observe, catch, secure, s.share(), routed, s.limit, s.authenticate, s.permit, s.readBody,
		s.deadline, middleware.GzipWithConfig(middleware.GzipConfig{MinLength: 1024, Skipper: isRaw}), s.remember)
}

// share allows pages of all sites to read public routes, and pages of the configured origins to
// read private ones: without a token for reading, any page in a browser could do it.
func (s *Server) share() echo.MiddlewareFunc {
	config := middleware.CORSConfig{
		AllowMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete},
		AllowHeaders: []string{"Authorization", "X-API-Key", "Content-Type", "Idempotency-Key", "Last-Event-ID"},
		ExposeHeaders: []string{"ETag", "Location", RetryAfter, requestIDHeader, RateLimit, RateLimitPolicy,
			"Repute-Block", "Repute-Block-Hash", "Repute-Run"},
		MaxAge: 3600,
	}
	all, listed := config, config
	// Cookies are not used, so that a page has no credentials to send. Public routes accept any
	// header.
	all.AllowOrigins, all.AllowHeaders, listed.AllowOrigins = []string{"*"}, nil, s.origins
	everybody, some := middleware.CORSWithConfig(all), middleware.CORSWithConfig(listed)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		open, closed := everybody(next), next
		if len(s.origins) > 0 {
			closed = some(next)
		}
		return func(c echo.Context) error {
			if s.private(c.Request().URL.Path) {
				return closed(c)
			}
			return open(c)
		}
	}
}

// observe writes the access log, at level debug, and the metrics. Query and headers are not logged,
// because both may contain secrets.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		s.metrics.begin()
		if err := next(c); err != nil {
			c.Error(err)
		}
		status, took := c.Response().Status, time.Since(start)
		s.metrics.end(c.Request().Method, c.Path(), status, took)
		ctx := c.Request().Context()
		if quiet(c.Path()) || !s.Log.Enabled(ctx, slog.LevelDebug) {
			return nil
		}
		by, _ := By(ctx) // most callers need no name
		s.Log.DebugContext(ctx, "request", "method", c.Request().Method, "path", c.Request().URL.Path, "route",
			routeOf(c.Path()),
			"status", status, "bytes", c.Response().Size, "ms", took.Milliseconds(), "ip", c.RealIP(), "by", by,
			"caller", CallerOf(ctx), "requestId", RequestID(ctx))
		return nil
	}
}

// quiet reports whether a route, in the router's form, is requested every few seconds by machines. Such requests are
// neither limited nor logged.
func quiet(route string) bool {
	return route == "/healthz" || route == "/readyz" || route == "/metrics"
}

// readBody reads the body of a request before any other work. A handler so never waits for its caller, and RequestBody
// has what was sent.
func (s *Server) readBody(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if r.Body == nil || r.Body == http.NoBody || s.raw[c.Path()] {
			return next(c)
		}
		body, err := io.ReadAll(http.MaxBytesReader(c.Response(), r.Body, s.Limits.Body))
		if large, isLarge := errors.AsType[*http.MaxBytesError](err); isLarge {
			p := NewError(http.StatusRequestEntityTooLarge, "too_large", "Request too large",
				"the request body is larger than the server allows")
			p.Hint = fmt.Sprintf("at most %d bytes", large.Limit)
			return p
		}
		if err != nil {
			return NewError(http.StatusBadRequest, "invalid", "Invalid request", "the request body cannot be read")
		}
		callOf(r.Context()).body = body
		r.Body = io.NopCloser(bytes.NewReader(body))
		return next(c)
	}
}
