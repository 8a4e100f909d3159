package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"repute/internal/httpapi"
)

// use sets up what every request passes, outermost first.
func (c *Control) use() {
	e := c.echo
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = httpapi.WriteErrors(c.log, prefix+"/openapi.json")
	e.IPExtractor = httpapi.CallerAddress(c.limits.TrustedProxies)
	e.Use(httpapi.Identify, c.observe, httpapi.Catch, httpapi.Secure,
		c.share(), httpapi.Routed, c.limiter.Limit(func(echo.Context) bool { return c.limits.Rate < 0 }, nil,
			"the events of a run tell more than asking for it again and again"),
		c.authenticate, c.permit, c.readBody,
		httpapi.Deadline(c.limits.Timeout, func(e echo.Context) bool { return e.Path() == eventsRoute }))
}

// share lets pages of other sites read what is open to all, and what tasks did only those
// that are listed: where reading takes no token, any page in a browser could ask.
func (c *Control) share() echo.MiddlewareFunc {
	config := middleware.CORSConfig{
		AllowMethods:  []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete},
		AllowHeaders:  []string{"Authorization", "X-API-Key", "Content-Type", "Idempotency-Key", "Last-Event-ID"},
		ExposeHeaders: []string{"Location", httpapi.RetryAfter, httpapi.RequestIDHeader},
		MaxAge:        3600,
	}
	all, listed := config, config
	// no cookies: a page has no token of its own to send
	all.AllowOrigins, listed.AllowOrigins = []string{"*"}, c.o.Origins
	everybody, some := middleware.CORSWithConfig(all), middleware.CORSWithConfig(listed)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		open, closed := everybody(next), next
		if len(c.o.Origins) > 0 {
			closed = some(next)
		}
		return func(e echo.Context) error {
			if IsPrivate(e.Request().URL.Path) {
				return closed(e)
			}
			return open(e)
		}
	}
}

// about is what is known of a request beside itself.
type about struct {
	token  *token // nil without one
	by     string // name of the token, empty without one
	denied error  // why there is no name
	body   []byte
}

// aboutKey is the context key of a request's *about.
type aboutKey struct{}

// aboutOf returns what is known of the caller of a request.
func aboutOf(ctx context.Context) *about {
	if a, ok := ctx.Value(aboutKey{}).(*about); ok {
		return a
	}
	return &about{denied: httpapi.ErrUnauthorized}
}

// observe writes the access log, at level debug. Query and headers stay out of it: both may carry
// secrets.
func (c *Control) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(e echo.Context) error {
		start := time.Now()
		if err := next(e); err != nil {
			e.Error(err)
		}
		ctx := e.Request().Context()
		c.log.DebugContext(ctx, "request", "method", e.Request().Method, "path", e.Request().URL.Path, "status",
			e.Response().Status,
			"bytes", e.Response().Size, "ms", time.Since(start).Milliseconds(), "ip", e.RealIP(), "by", aboutOf(ctx).by,
			"requestId", httpapi.RequestID(ctx))
		return nil
	}
}

// readBody reads what a caller sends before anything else happens.
func (c *Control) readBody(next echo.HandlerFunc) echo.HandlerFunc {
	return func(e echo.Context) error {
		r := e.Request()
		if r.Body == nil || r.Body == http.NoBody {
			return next(e)
		}
		body, err := io.ReadAll(http.MaxBytesReader(e.Response(), r.Body, c.limits.Body))
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			p := httpapi.NewError(http.StatusRequestEntityTooLarge, "too_large", "Request too large",
				"the request body is larger than the server allows")
			p.Hint = fmt.Sprintf("at most %d bytes", large.Limit)
			return p
		}
		if err != nil {
			return httpapi.NewError(http.StatusBadRequest, "invalid", "Invalid request", "the request body cannot be read")
		}
		aboutOf(r.Context()).body = body
		r.Body = io.NopCloser(bytes.NewReader(body))
		return next(e)
	}
}
