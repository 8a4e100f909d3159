package web

import (
	"errors"
	"net/url"

	"repute/web/query"
)

// guarded is the body of a page that may need a token. A browser asks for such a page without one, because a script keeps
// the token until its tab is closed; the script then asks for the same page again with the token in a header, and replaces
// the part of the page that may need it.
type guarded struct {
	// Why says why the page shows nothing; nil where it shows what it is about.
	Why *failure
	// Wanted reports whether a token could help.
	Wanted bool
	// Live reports whether what is shown may still change, so that the page asks for it again.
	Live bool
	// Shown is what the page is about.
	Shown any
}

// guard returns the body of a page that may need a token from what it shows and from why it cannot. Failures are shown
// within the page, so that a page that is asked for again shows the next answer.
func guard(p *page, shown any, live bool, err error) guarded {
	p.Private = true
	if err == nil {
		return guarded{Shown: shown, Live: live}
	}
	f := failureOf(err)
	g := guarded{Why: &f, Wanted: wantsToken(err), Live: f.Retry != ""}
	if !g.Wanted && !notServed(err) {
		p.Status, p.Retry = f.Status, f.Retry
	}
	return g
}

// codeOf returns the code of an error of GraphQL; "" for other errors.
func codeOf(err error) string {
	var q *query.Error
	if errors.As(err, &q) {
		return q.Extensions.Code
	}
	return ""
}

// wantsToken reports whether the same question with a token, or with another one, could be answered.
func wantsToken(err error) bool {
	code := codeOf(err)
	return code == "UNAUTHORIZED" || code == "FORBIDDEN"
}

// notServed reports whether this server is not configured for the question.
func notServed(err error) bool { return codeOf(err) == "NOT_FOUND" }

// Here returns the path of the page with its parameters.
func (p *page) Here() string { return (&url.URL{Path: p.Path, RawQuery: p.Query.Encode()}).String() }
