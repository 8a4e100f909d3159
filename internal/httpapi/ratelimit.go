package httpapi

import (
	"fmt"
	"math"
	"net/http"

	"github.com/labstack/echo/v4"

	"repute"
)

// Headers of the IETF draft "RateLimit header fields for HTTP": what a caller may use, and what is left of it.
const (
	RateLimit       = "RateLimit"
	RateLimitPolicy = "RateLimit-Policy"
)

// limit limits each caller, except for the quiet routes: by its API key, or else by its address. The headers are set on
// answers of both kinds, so that callers can slow down before they are refused.
func (s *Server) limit(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if quiet(c.Path()) {
			return next(c)
		}
		policy, caller, quota := "address", CallerOf(c.Request().Context()), Quota{s.Limits.Rate, s.Limits.Burst}
		key, err := s.keyOf(c)
		if err != nil {
			return err
		}
		if key != nil {
			policy, caller, quota = "key", "key/"+key.Name, key.quota()
			callOf(c.Request().Context()).caller = caller
		}
		if s.Limits.Rate < 0 {
			return next(c)
		}
		taken := s.limiter.Take(c.Request().Context(), caller, quota)
		announce(c.Response().Header(), policy, quota, taken)
		if taken.Wait <= 0 {
			return next(c)
		}
		return s.refuse(quota, taken)
	}
}

// announce sets the headers about a quota. The window is the time in which an empty bucket is full again.
func announce(h http.Header, policy string, q Quota, t Taken) {
	refill := func(n int) int { return int(math.Ceil(float64(n) / q.Rate)) }
	h.Set(RateLimitPolicy, fmt.Sprintf("%q;q=%d;w=%d", policy, q.Burst, max(1, refill(q.Burst))))
	h.Set(RateLimit, fmt.Sprintf("%q;r=%d;t=%d", policy, t.Left, refill(q.Burst-t.Left)))
}

// refuse returns the answer to a caller above its limit, and counts it.
func (s *Server) refuse(q Quota, t Taken) error {
	s.metrics.limited.Inc()
	b := *ErrorOf(fmt.Errorf("more than %g requests per second: %w", q.Rate, repute.ErrLimited))
	b.Retry = t.Wait
	b.Hint = "wait as long as Retry-After says; lists and GraphQL answer many questions in one request"
	return &b
}

// keyOf returns the API key of a request, nil for a request without one. A key that is not known is refused, because
// its caller relies on it. While keys cannot be read the caller counts by its address.
func (s *Server) keyOf(c echo.Context) (*APIKey, error) {
	text := keyIn(c.Request())
	if text == "" || s.keys == nil {
		return nil, nil
	}
	ctx := c.Request().Context()
	found, known := s.keys.peek(text)
	if !known {
		// Nobody may make this process ask for more keys than an address may send requests.
		if q := (Quota{s.Limits.Rate, s.Limits.Burst}); s.Limits.Rate > 0 {
			if t := s.limiter.Take(ctx, CallerOf(ctx), q); t.Wait > 0 {
				return nil, s.refuse(q, t)
			}
		}
		var err error
		if found, err = s.keys.find(ctx, text); err != nil {
			s.Log.WarnContext(ctx, "API keys cannot be read: callers count by their addresses", "error", err)
			return nil, nil
		}
	}
	if found == nil {
		return nil, &refusal{ErrUnauthorized, "the API key is not known, was revoked or has expired",
			"ask the operator for another key, or send none: the limit is then that of the address"}
	}
	if scope := scopeOf(c.Path()); !found.has(scope) {
		return nil, &refusal{ErrForbidden, fmt.Sprintf("the API key %q lacks the scope %q", found.Name, scope),
			"ask the operator for a key with the scope, or send none"}
	}
	return found, nil
}
