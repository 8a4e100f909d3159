package control

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// use sets up what every request passes, outermost first.
func (c *Control) use() {
	e := c.echo
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = c.writeError
	e.IPExtractor = callerAddress(c.limits.TrustedProxies)
	e.Use(identify, c.observe, catch, secure,
		middleware.CORSWithConfig(middleware.CORSConfig{
			AllowOrigins:  []string{"*"}, // no cookies: a page of another site has no token to send
			AllowMethods:  []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete},
			AllowHeaders:  []string{"Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"},
			ExposeHeaders: []string{"Location", "Retry-After", requestIDHeader},
			MaxAge:        3600,
		}), c.authenticate, c.readBody, c.deadline)
}

const requestIDHeader = "X-Request-Id"

// about is what is known of a request beside itself.
type about struct {
	id     string
	caller string // address
	by     string // name of the token, empty without one
	denied error  // why there is no name
	body   []byte
}

// aboutKey is the context key of a request's *about.
type aboutKey struct{}

func aboutOf(ctx context.Context) *about {
	if a, ok := ctx.Value(aboutKey{}).(*about); ok {
		return a
	}
	return &about{denied: errUnauthorized}
}

func requestID(ctx context.Context) string { return aboutOf(ctx).id }

// identify gives the request an id: the caller's when it is harmless in a log.
func identify(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := c.Request().Header.Get(requestIDHeader)
		if !harmlessID(id) {
			id = rand.Text()
		}
		c.Response().Header().Set(requestIDHeader, id)
		a := &about{id: id, caller: c.RealIP(), denied: errUnauthorized}
		c.SetRequest(c.Request().WithContext(context.WithValue(c.Request().Context(), aboutKey{}, a)))
		return next(c)
	}
}

func harmlessID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}

// observe writes the access log. Query and headers stay out of it: both may carry
// secrets.
func (c *Control) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(e echo.Context) error {
		start := time.Now()
		if err := next(e); err != nil {
			e.Error(err)
		}
		ctx := e.Request().Context()
		c.log.Log(ctx, slog.LevelInfo, "request", "method", e.Request().Method, "path", e.Request().URL.Path, "status", e.Response().Status,
			"bytes", e.Response().Size, "ms", time.Since(start).Milliseconds(), "ip", e.RealIP(), "by", aboutOf(ctx).by, "requestId", requestID(ctx))
		return nil
	}
}

// catch answers a panic with a 500 and keeps the process alive.
func catch(next echo.HandlerFunc) echo.HandlerFunc {
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
			p := newProblem(http.StatusRequestEntityTooLarge, "too_large", "Request too large", "the request body is larger than the server allows")
			p.Hint = fmt.Sprintf("at most %d bytes", large.Limit)
			return p
		}
		if err != nil {
			return newProblem(http.StatusBadRequest, "invalid", "Invalid request", "the request body cannot be read")
		}
		aboutOf(r.Context()).body = body
		r.Body = io.NopCloser(bytes.NewReader(body))
		return next(e)
	}
}

// deadline bounds the request; every outside call below takes its context. Streams end
// by themselves.
func (c *Control) deadline(next echo.HandlerFunc) echo.HandlerFunc {
	return func(e echo.Context) error {
		if e.Path() == eventsRoute {
			return next(e)
		}
		ctx, cancel := context.WithTimeout(e.Request().Context(), c.limits.Timeout)
		defer cancel()
		e.SetRequest(e.Request().WithContext(ctx))
		return next(e)
	}
}

// writeError is the last stop of errors from routing and middleware.
func (c *Control) writeError(err error, e echo.Context) {
	if e.Response().Committed {
		c.log.WarnContext(e.Request().Context(), "request failed after its answer began", "error", err)
		return
	}
	var he *echo.HTTPError
	if errors.As(err, &he) && he.Code < 500 {
		err = routerProblem(he, e.Request().Method)
	}
	c.fail(e.Request().Context(), err).write(e.Response())
}

// routerProblem puts the router's own refusals into our words.
func routerProblem(he *echo.HTTPError, method string) *Problem {
	switch he.Code {
	case http.StatusNotFound:
		p := newProblem(http.StatusNotFound, "not_found", "Not found", "no such route")
		p.Hint = "GET /v1/openapi.json lists the routes"
		return p
	case http.StatusMethodNotAllowed:
		return newProblem(he.Code, "method_not_allowed", "Method not allowed", method+" is not offered here")
	}
	return newProblem(http.StatusBadRequest, "invalid", "Invalid request", "the request cannot be read")
}

// callerAddress believes only trusted proxies in who the caller is.
func callerAddress(proxies []netip.Prefix) echo.IPExtractor {
	if len(proxies) == 0 {
		return echo.ExtractIPDirect()
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, p := range proxies {
		p = p.Masked()
		options = append(options, echo.TrustIPRange(&net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}))
	}
	return echo.ExtractIPFromXFFHeader(options...)
}
