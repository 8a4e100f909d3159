package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"repute"
)

// Problem is an answer that is not 2xx: RFC 9457 problem details, as everywhere in this
// service. Code is for programs and stable; detail and hint are for people.
type Problem struct {
	Type      string       `json:"type" doc:"urn:repute:problem:{code}"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Code      string       `json:"code" enum:"invalid,unauthorized,not_found,method_not_allowed,conflict,gone,too_large,limited,unavailable,timeout,canceled,internal"`
	Detail    string       `json:"detail"`
	Hint      string       `json:"hint,omitempty" doc:"what would work"`
	Errors    []FieldError `json:"errors,omitempty"`
	RequestID string       `json:"requestId,omitempty" doc:"quote it when you report the problem"`

	retryAfter time.Duration
}

// FieldError names one wrong field.
type FieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Error is the detail.
func (p *Problem) Error() string { return p.Detail }

// GetStatus makes the router answer with the right status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders adds Retry-After where waiting helps, and how to prove who one is.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{"Cache-Control": {"no-store"}}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(max(1, int(p.retryAfter.Seconds()))))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	return h
}

// ContentType is RFC 9457's.
func (p *Problem) ContentType(string) string { return problemType }

const problemType = "application/problem+json"

// kind is one row of the table from error kinds to the wire.
type kind struct {
	err    error
	status int
	code   string
	title  string
	detail string // shown instead of the error's own words, which may name hosts
	retry  time.Duration
}

// kinds is the one mapping from error kinds to the wire, first match wins.
func kinds() []kind {
	return []kind{
		{repute.ErrInvalid, 400, "invalid", "Invalid request", "", 0},
		{errUnauthorized, 401, "unauthorized", "Unauthorized", "", 0},
		{repute.ErrNotFound, 404, "not_found", "Not found", "", 0},
		{repute.ErrConflict, 409, "conflict", "Conflict", "", 0},
		{repute.ErrGone, 410, "gone", "Gone", "", 0},
		{repute.ErrLimited, 429, "limited", "Too many requests", "", time.Second},
		{context.DeadlineExceeded, 503, "timeout", "Timed out", "the answer took longer than the server allows", 5 * time.Second},
		{context.Canceled, 499, "canceled", "Canceled", "the caller went away", 0},
		{repute.ErrUnavailable, 503, "unavailable", "Unavailable", "a dependency of this service does not answer; try again", 2 * time.Second},
	}
}

// problem translates any error. One of no known kind becomes a 500 that says nothing of
// the inside; the caller must log it.
func problem(err error) *Problem {
	var ready *Problem
	if errors.As(err, &ready) {
		return ready
	}
	for _, k := range kinds() {
		if errors.Is(err, k.err) {
			return k.body(err)
		}
	}
	return newProblem(500, "internal", "Internal error", "something broke on our side; it has been logged")
}

func (k kind) body(err error) *Problem {
	p := newProblem(k.status, k.code, k.title, k.detail)
	p.retryAfter = k.retry
	if p.Detail == "" {
		p.Detail = clean(err.Error())
	}
	var missing *repute.MissingError
	if errors.As(err, &missing) {
		p.Hint = clean(missing.Hint)
	}
	var input *repute.InputError
	if errors.As(err, &input) {
		p.Detail, p.Hint = clean(input.Field+": "+input.Reason), clean(input.Hint)
		p.Errors = []FieldError{{Field: clean(input.Field), Message: clean(input.Reason), Hint: p.Hint}}
	}
	return p
}

// clean makes text of anything.
func clean(s string) string {
	const replacement = string(utf8.RuneError)
	return strings.ReplaceAll(strings.ToValidUTF8(s, replacement), "\x00", replacement)
}

func newProblem(status int, code, title, detail string) *Problem {
	return &Problem{Type: "urn:repute:problem:" + code, Title: title, Status: status, Code: code, Detail: detail}
}

// fail prepares an error for the wire and logs it when it is ours to mend.
func (c *Control) fail(ctx context.Context, err error) *Problem {
	p := *problem(err)
	p.RequestID = requestID(ctx)
	if p.Status >= 500 {
		c.log.ErrorContext(ctx, "request failed", "requestId", p.RequestID, "status", p.Status, "error", err)
	}
	return &p
}

// write sends a problem outside of the typed handlers.
func (p *Problem) write(w http.ResponseWriter) {
	for name, values := range p.GetHeaders() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the caller may be gone; nobody is left to tell
}

// problemResponse documents the problem body once for every operation.
func problemResponse(r huma.Registry) *huma.Response {
	return &huma.Response{
		Description: "What went wrong, as RFC 9457 problem details: 400 a field is wrong, 401 a bearer token is missing or wrong, " +
			"404 nothing of that name, 409 what is stored forbids it, 429 too many at once, 503 a dependency is away (see Retry-After).",
		Content: map[string]*huma.MediaType{problemType: {Schema: r.Schema(reflect.TypeFor[Problem](), true, "")}},
	}
}
