package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"repute"
)

// ErrorBody is an answer that is not 2xx: RFC 9457 problem details. Code is for
// programs and stable; detail and hint are for people. Handlers may return one as their error. One that was returned
// MUST NOT be changed: copy it.
type ErrorBody struct {
	Type      string       `json:"type" doc:"urn:repute:problem:{code}"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Code      string       `json:"code" enum:"invalid,unauthorized,forbidden,not_found,method_not_allowed,conflict,gone,too_large,limited,unavailable,timeout,canceled,internal"`
	Detail    string       `json:"detail"`
	Hint      string       `json:"hint,omitempty" doc:"what would work"`
	Errors    []FieldError `json:"errors,omitempty"`
	RequestID string       `json:"requestId,omitempty" doc:"quote it when you report the problem"`

	// Retry is the pause before the next request; 0: a retry does not help.
	Retry time.Duration `json:"-"`
	// Challenge is the value of WWW-Authenticate; empty: none.
	Challenge string `json:"-"`
}

// FieldError describes one wrong parameter.
type FieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Error returns the detail.
func (b *ErrorBody) Error() string { return b.Detail }

// GetStatus returns the HTTP status, for huma.
func (b *ErrorBody) GetStatus() int { return b.Status }

// RetryAfter is the header with the pause before a retry, in seconds.
const RetryAfter = "Retry-After"

// GetHeaders returns Retry-After if a retry helps, and the authentication scheme if one is
// required.
func (b *ErrorBody) GetHeaders() http.Header {
	h := http.Header{"Cache-Control": {"no-store"}}
	if b.Retry > 0 {
		seconds := max(1, int64((b.Retry+time.Second-1)/time.Second))
		h.Set(RetryAfter, strconv.FormatInt(seconds, 10))
	}
	if b.Challenge != "" {
		h.Set("WWW-Authenticate", b.Challenge)
	}
	return h
}

// ContentType is that of RFC 9457.
func (b *ErrorBody) ContentType(string) string { return ProblemType }

// ProblemType is the media type of problems.
const ProblemType = "application/problem+json"

// ErrUnauthorized is returned when a route needs a token and the request has none that is known.
var ErrUnauthorized = errors.New("a bearer token is needed")

// ErrForbidden is returned when the token of the caller lacks the role that a route needs.
var ErrForbidden = errors.New("not for this caller")

// refusal is an error about a caller without the needed rights, with a hint. Its kind is
// ErrUnauthorized or ErrForbidden.
type refusal struct {
	kind         error
	detail, hint string
}

// Error returns the detail.
func (r *refusal) Error() string { return r.detail }

// Unwrap returns the kind.
func (r *refusal) Unwrap() error { return r.kind }

// howToAuthorize is the hint for a missing or unknown token.
const howToAuthorize = "send Authorization: Bearer {token} with one of orchestrator.tokens"

// kind is one row of the table from error kinds to responses.
type kind struct {
	err    error
	status int
	code   string
	title  string
	detail string // shown instead of the error's own text, which may contain hosts
	retry  time.Duration
}

// kinds is the only mapping from error kinds to responses; the first match is used. The order decides for errors of
// several kinds: what the caller can mend comes first.
func kinds() []kind {
	return []kind{
		{repute.ErrInvalid, 400, "invalid", "Invalid request", "", 0},
		{ErrUnauthorized, 401, "unauthorized", "Unauthorized", "", 0},
		{ErrForbidden, 403, "forbidden", "Forbidden", "", 0},
		{repute.ErrNotFound, 404, "not_found", "Not found", "", 0},
		{repute.ErrConflict, 409, "conflict", "Conflict", "", 0},
		{repute.ErrGone, 410, "gone", "Gone", "", 0},
		{repute.ErrLimited, 429, "limited", "Too many requests", "", time.Second},
		{context.DeadlineExceeded, 503, "timeout", "Timed out", "the answer took longer than the server allows",
			5 * time.Second},
		{context.Canceled, 499, "canceled", "Canceled", "the caller went away", 0},
		{repute.ErrUnavailable, 503, "unavailable", "Unavailable",
			"a dependency of this service does not answer; try again", 2 * time.Second},
	}
}

// ErrorOf converts any error; an *ErrorBody is returned unchanged. An error of no known kind
// becomes a 500 without internal details; the caller MUST log it.
func ErrorOf(err error) *ErrorBody {
	if ready, isReady := errors.AsType[*ErrorBody](err); isReady {
		return ready
	}
	for _, k := range kinds() {
		if errors.Is(err, k.err) {
			return k.body(err)
		}
	}
	return NewError(500, "internal", "Internal error", "something broke on our side; it has been logged")
}

// body returns the response for an error of this kind.
func (k kind) body(err error) *ErrorBody {
	b := NewError(k.status, k.code, k.title, k.detail)
	b.Retry = k.retry
	if k.status == http.StatusUnauthorized {
		b.Challenge = "Bearer"
	}
	if b.Detail == "" {
		b.Detail = Clean(err.Error())
	}
	if k.status == http.StatusUnauthorized {
		b.Hint = howToAuthorize
	}
	if no, isRefusal := errors.AsType[*refusal](err); isRefusal {
		b.Hint = no.hint
	}
	if missing, isMissing := errors.AsType[*repute.MissingError](err); isMissing {
		b.Detail, b.Hint = Clean(missing.Error()), Clean(missing.Hint)
	}
	if busy, isBusy := errors.AsType[*repute.BusyError](err); isBusy {
		b.Detail, b.Retry = Clean(busy.What), busy.Retry
		b.Hint = "wait as long as " + RetryAfter + " says, then ask again"
		if busy.Hint != "" {
			b.Hint += "; or " + Clean(busy.Hint)
		}
	}
	if input, isInput := errors.AsType[*repute.InputError](err); isInput {
		b.Detail = Clean(input.Field + ": " + input.Reason)
		b.Hint = Clean(input.Hint)
		b.Errors = []FieldError{{Field: Clean(input.Field), Message: Clean(input.Reason), Hint: b.Hint}}
	}
	return b
}

// NewError returns a problem without an underlying error.
func NewError(status int, code, title, detail string) *ErrorBody {
	return &ErrorBody{Type: "urn:repute:problem:" + code, Title: title, Status: status, Code: code, Detail: detail}
}

// maxMessage bounds a text of a problem, in bytes, because a wrong value may be as long as the
// request.
const maxMessage = 2048

// Cut returns a text of at most so many bytes, which ends with an ellipsis where it was cut.
func Cut(text string, most int) string {
	const ellipsis = "…"
	if len(text) <= most {
		return text
	}
	n := max(0, most-len(ellipsis))
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + ellipsis
}

// brief cuts a text of a problem.
func brief(text string) string { return Cut(text, maxMessage) }

// bounded returns the problem with cut texts.
func (b ErrorBody) bounded() ErrorBody {
	b.Detail, b.Hint = brief(b.Detail), brief(b.Hint)
	b.Errors = slices.Clone(b.Errors)
	for i, e := range b.Errors {
		b.Errors[i] = FieldError{Field: brief(e.Field), Message: brief(e.Message), Hint: brief(e.Hint)}
	}
	return b
}

// Report converts an error to a response, and logs it if it is a fault of this service. The caller
// owns the result. A canceled request is no fault and is not logged.
func Report(ctx context.Context, log *slog.Logger, err error) *ErrorBody {
	b := ErrorOf(err).bounded()
	b.RequestID = RequestID(ctx)
	if b.Status >= 500 {
		log.ErrorContext(ctx, "request failed", "requestId", b.RequestID, "status", b.Status, "error", err)
	}
	return &b
}

// Write sends a problem outside the typed handlers.
func (b *ErrorBody) Write(w http.ResponseWriter) {
	for name, values := range b.GetHeaders() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", ProblemType)
	w.WriteHeader(b.Status)
	_ = json.NewEncoder(w).Encode(b) // the caller may be gone
}

// Clean replaces invalid UTF-8 and NUL by U+FFFD.
func Clean(s string) string {
	const replacement = string(utf8.RuneError)
	return strings.ReplaceAll(strings.ToValidUTF8(s, replacement), "\x00", replacement)
}
