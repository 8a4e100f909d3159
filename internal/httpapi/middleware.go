package httpapi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"

	"github.com/labstack/echo/v4"
)

// requestIDHeader carries a request's id, both ways.
const requestIDHeader = "X-Request-Id"

// RequestID returns the id of the request of ctx, "" outside of a request.
func RequestID(ctx context.Context) string { return callOf(ctx).id }

// CallerOf returns the key by which the caller is limited, "" outside of a request.
func CallerOf(ctx context.Context) string { return callOf(ctx).caller }

// identify gives the request an id, the caller's if it is safe in a log, and records the caller. It
// MUST be the first middleware. The address is the caller until limit finds an API key.
func identify(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := c.Request().Header.Get(requestIDHeader)
		if !harmlessID(id) {
			id = rand.Text()
		}
		c.Response().Header().Set(requestIDHeader, id)
		c.SetRequest(c.Request().WithContext(context.WithValue(c.Request().Context(), callKey{},
			&call{id: id, caller: CallerKey(c.RealIP()), denied: ErrUnauthorized})))
		return next(c)
	}
}

// harmlessID reports whether a caller's request id is safe in a log.
func harmlessID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}

// CallerKey returns the key of an IP address for limits: an IPv6 network is one caller, who owns
// all of its addresses. A network of 64 bits is what one customer of a provider gets. Text that is no address is its
// own key.
func CallerKey(ip string) string {
	addr, err := netip.ParseAddr(ip)
	if err != nil || addr.Unmap().Is4() {
		return ip
	}
	prefix, err := addr.WithZone("").Prefix(64)
	if err != nil {
		return ip
	}
	return prefix.String()
}

// callerAddress returns a function for the caller's address: that of the connection, or the one
// that a trusted proxy reports.
func callerAddress(proxies []netip.Prefix) echo.IPExtractor {
	if len(proxies) == 0 {
		return echo.ExtractIPDirect()
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, p := range proxies {
		p = p.Masked()
		bits := p.Addr().BitLen()
		options = append(options, echo.TrustIPRange(&net.IPNet{IP: p.Addr().AsSlice(),
			Mask: net.CIDRMask(p.Bits(), bits)}))
	}
	return echo.ExtractIPFromXFFHeader(options...)
}

// catch answers a panic with a 500 and keeps the process alive. The stack is in the error, which Report logs and never
// shows.
func catch(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			r := recover()
			if r == nil {
				return
			}
			if r == http.ErrAbortHandler { //nolint:errorlint // a recovered value is compared, as net/http does
				panic(r) // the server's own signal to cut the connection
			}
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}()
		return next(c)
	}
}

// secure sets headers that keep browsers from interpreting answers as another type.
func secure(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		return next(c)
	}
}

// deadline bounds every request except streams. Handlers pass the request's context to every call.
func (s *Server) deadline(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if s.streams[c.Path()] {
			return next(c)
		}
		ctx, cancel := context.WithTimeout(c.Request().Context(), s.Limits.Timeout)
		defer cancel()
		c.SetRequest(c.Request().WithContext(ctx))
		return next(c)
	}
}

// writeError converts errors of routing and middleware to answers.
func (s *Server) writeError(err error, c echo.Context) {
	ctx := c.Request().Context()
	if c.Response().Committed {
		s.Log.WarnContext(ctx, "request failed after its answer began", "error", err)
		return
	}
	if he, isRouters := errors.AsType[*echo.HTTPError](err); isRouters && he.Code < 500 {
		err = routerProblem(he, c.Request().Method, c.Response().Header().Get(echo.HeaderAllow))
	}
	s.Fail(ctx, err).Write(c.Response())
}

// routerProblem converts errors of the router to problem details.
func routerProblem(he *echo.HTTPError, method, allowed string) *ErrorBody {
	switch he.Code {
	case http.StatusNotFound:
		return NoRoute()
	case http.StatusMethodNotAllowed:
		b := NewError(he.Code, "method_not_allowed", "Method not allowed", method+" is not offered here")
		if allowed != "" {
			b.Hint = "one of " + allowed
		}
		return b
	case http.StatusRequestEntityTooLarge:
		return NewError(he.Code, "too_large", "Request too large", "the request body is larger than the server allows")
	}
	return NewError(http.StatusBadRequest, "invalid", "Invalid request", "the request cannot be read")
}
