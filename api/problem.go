package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"repute"

	"github.com/danielgtaylor/huma/v2"
)

// ErrorBody is an answer that is not 2xx: RFC 9457 problem details. Code is for
// programs and stable; detail and hint are for people.
type ErrorBody struct {
	Type      string       `json:"type" doc:"urn:repute:problem:{code}"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Code      string       `json:"code" enum:"invalid,unauthorized,forbidden,not_found,method_not_allowed,conflict,gone,too_large,limited,unavailable,timeout,canceled,internal"`
	Detail    string       `json:"detail"`
	Hint      string       `json:"hint,omitempty" doc:"what would work"`
	Errors    []FieldError `json:"errors,omitempty"`
	RequestID string       `json:"requestId,omitempty" doc:"quote it when you report the problem"`

	retryAfter time.Duration
}

// FieldError names one wrong parameter.
type FieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Error is the detail.
func (b *ErrorBody) Error() string { return b.Detail }

// GetStatus makes the router answer with the right status.
func (b *ErrorBody) GetStatus() int { return b.Status }

// retryAfter is the header that says when to come back, in seconds.
const retryAfter = "Retry-After"

// GetHeaders adds Retry-After where waiting helps.
func (b *ErrorBody) GetHeaders() http.Header {
	h := http.Header{"Cache-Control": {"no-store"}}
	if b.retryAfter > 0 {
		seconds := max(1, int64((b.retryAfter+time.Second-1)/time.Second))
		h.Set(retryAfter, strconv.FormatInt(seconds, 10))
	}
	return h
}

// ContentType is RFC 9457's.
func (b *ErrorBody) ContentType(string) string { return problemType }

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
		{repute.ErrNotFound, 404, "not_found", "Not found", "", 0},
		{repute.ErrConflict, 409, "conflict", "Conflict", "", 0},
		{repute.ErrGone, 410, "gone", "Gone", "", 0},
		{repute.ErrLimited, 429, "limited", "Too many requests", "", time.Second},
		{context.DeadlineExceeded, 503, "timeout", "Timed out", "the answer took longer than the server allows", 5 * time.Second},
		{context.Canceled, 499, "canceled", "Canceled", "the caller went away", 0},
		{repute.ErrUnavailable, 503, "unavailable", "Unavailable", "a dependency of this service does not answer; try again", 2 * time.Second},
	}
}

// problem translates any error. One of no known kind becomes a 500 that says
// nothing of the inside; the caller must log it.
func problem(err error) *ErrorBody {
	var ready *ErrorBody
	if errors.As(err, &ready) {
		return ready
	}
	for _, k := range kinds() {
		if errors.Is(err, k.err) {
			return k.body(err)
		}
	}
	return newBody(500, "internal", "Internal error", "something broke on our side; it has been logged")
}

func (k kind) body(err error) *ErrorBody {
	b := newBody(k.status, k.code, k.title, k.detail)
	b.retryAfter = k.retry
	if b.Detail == "" {
		b.Detail = clean(err.Error())
	}
	var missing *repute.MissingError
	if errors.As(err, &missing) {
		b.Detail, b.Hint = clean(missing.Error()), clean(missing.Hint)
	}
	var input *repute.InputError
	if errors.As(err, &input) {
		b.Detail = clean(input.Field + ": " + input.Reason)
		b.Hint = clean(input.Hint)
		b.Errors = []FieldError{{Field: clean(input.Field), Message: clean(input.Reason), Hint: b.Hint}}
	}
	return b
}

func newBody(status int, code, title, detail string) *ErrorBody {
	return &ErrorBody{Type: "urn:repute:problem:" + code, Title: title, Status: status, Code: code, Detail: detail}
}

// fail prepares an error for the wire and logs it when it is ours to mend.
func (a *API) fail(ctx context.Context, err error) *ErrorBody {
	b := *problem(err)
	b.RequestID = requestID(ctx)
	if b.Status >= 500 {
		a.log.ErrorContext(ctx, "request failed", "requestId", b.RequestID, "status", b.Status, "error", err)
	}
	return &b
}

// write sends a problem outside the typed handlers.
func (b *ErrorBody) write(w http.ResponseWriter) {
	for name, values := range b.GetHeaders() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(b.Status)
	_ = json.NewEncoder(w).Encode(b) // the caller may be gone; nobody is left to tell
}

// problemResponse documents the problem body once for every operation.
func problemResponse(r huma.Registry) *huma.Response {
	return &huma.Response{
		Description: "What went wrong, as RFC 9457 problem details: 400 a parameter is wrong, 404 nothing of that name, " +
			"429 too many requests, 503 a dependency is away (see Retry-After).",
		Content: map[string]*huma.MediaType{problemType: {Schema: r.Schema(reflect.TypeFor[ErrorBody](), true, "")}},
	}
}
