// Package failure says in plain words what went wrong on a page, and what to do next: of errors of GraphQL, and of
// those of the server itself.
//
// Of decides by the code of a GraphQL error, which is stable, and takes the words of the API where they help a reader
// of the page. An error of no known kind shows no internal details: the page shows the id of the request, by which an
// operator finds it in the log.
package failure

import (
	"cmp"
	"errors"
	"net/http"

	"repute/internal/httpapi"
	"repute/web/query"
)

// Text is what the page of an error says.
type Text struct {
	Status              int
	Title, Detail, Next string
	RequestID           string
	// Retry is after how many seconds the page asks again; empty: never.
	Retry string
}

// ErrNowhere is returned for an unknown path, and for something that is not indexed.
var ErrNowhere = errors.New("nothing is here")

// Of returns what the page of an error says.
func Of(err error) Text {
	var q *query.Error
	switch {
	case errors.Is(err, ErrNowhere):
		return Text{Status: http.StatusNotFound, Title: "Nothing here",
			Detail: "No page or agent of this name is known to this index.",
			Next:   "Check the address, or search for a name, a host or an address of a wallet."}
	case !errors.As(err, &q):
		body := httpapi.ErrorOf(err)
		f := Text{Status: body.Status, Title: body.Title, Detail: body.Detail, Next: body.Hint}
		if f.Next == "" {
			f.Next = "Try again. If it stays like this, tell the operator the id of the request."
		}
		return f
	}
	f := Text{Detail: q.Message, Next: q.Extensions.Hint, RequestID: q.Extensions.RequestID,
		Retry: q.Extensions.RetryAfter.String()}
	switch q.Extensions.Code {
	case "INVALID", "BAD_QUERY":
		f.Status, f.Title = http.StatusBadRequest, "This cannot be asked"
		if q.Extensions.Field != "" {
			f.Detail = q.Extensions.Field + ": " + q.Message
		}
	case "NOT_FOUND":
		f.Status, f.Title = http.StatusNotFound, "Nothing here"
	case "UNAUTHORIZED":
		f.Status, f.Title = http.StatusUnauthorized, "A token is needed"
		f.Next = "Type a token of this server above. It is one of orchestrator.tokens in its configuration."
	case "FORBIDDEN":
		f.Status, f.Title = http.StatusForbidden, "The token is not enough"
	case "TOO_COMPLEX", "LIMITED":
		f.Status, f.Title = http.StatusTooManyRequests, "Too much at once"
	case "GONE":
		f.Status, f.Title = http.StatusGone, "Not kept any more"
		f.Next = cmp.Or(f.Next, "An input that this follows from was removed. Scores of newer epochs have theirs.")
	case "TIMEOUT":
		f.Status, f.Title = http.StatusServiceUnavailable, "This takes too long"
		f.Next = cmp.Or(f.Next, "Wait a few seconds and load the page again, or ask for less.")
	case "UNAVAILABLE":
		f.Status, f.Title = http.StatusServiceUnavailable, "The index does not answer"
		f.Next = "Wait a few seconds and load the page again. The page /readyz says which part is away."
	default:
		f.Status, f.Title = http.StatusInternalServerError, "Something broke here"
		f.Next = "Try again. If it stays like this, tell the operator the id of the request."
	}
	f.Next = cmp.Or(f.Next, "Go back, or search for something else.")
	return f
}

// codeOf returns the code of an error of GraphQL; "" for other errors.
func codeOf(err error) string {
	if q, isGraphQL := errors.AsType[*query.Error](err); isGraphQL {
		return q.Extensions.Code
	}
	return ""
}

// WantsToken reports whether the same question with a token, or with another one, could be answered.
func WantsToken(err error) bool {
	code := codeOf(err)
	return code == "UNAUTHORIZED" || code == "FORBIDDEN"
}

// NotServed reports whether this server is not configured for the question.
func NotServed(err error) bool { return codeOf(err) == "NOT_FOUND" }
