package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// KnowsOrigin reports whether a request was sent by a program, by a page of this server or by a page of a configured
// origin. Handlers of upgraded connections MUST ask it: browsers open these for pages of all sites, without CORS.
func (s *Server) KnowsOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	if strings.EqualFold(u.Host, r.Host) {
		return true
	}
	return slices.ContainsFunc(s.origins,
		func(known string) bool { return strings.EqualFold(strings.TrimSuffix(known, "/"), origin) })
}

// ForeignOrigin returns the answer to a request that KnowsOrigin does not know.
func ForeignOrigin() *ErrorBody {
	b := NewError(http.StatusForbidden, "forbidden", "Forbidden",
		"Origin: pages of other sites may not open this connection")
	b.Hint = "add the page's origin to mcp.origins of the configuration"
	return b
}

// Wait counts a request of a caller that came over an open connection, and returns how long the caller must wait first,
// 0 for not at all.
func (s *Server) Wait(ctx context.Context, caller string) time.Duration {
	if s.Limits.Rate < 0 {
		return 0
	}
	return s.limiter.Allow(ctx, caller)
}
