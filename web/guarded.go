package web

import (
	"net/url"

	"repute/web/failure"
)

// guarded is the body of a page that may need a token. A browser asks for such a page without one, because a script
// keeps the token until its tab is closed; the script then asks for the same page again with the token in a header, and
// replaces the part of the page that may need it.
type guarded struct {
	// Why says why the page shows nothing; nil where it shows what it is about.
	Why *failure.Text
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
	f := failure.Of(err)
	g := guarded{Why: &f, Wanted: failure.WantsToken(err), Live: f.Retry != ""}
	if !g.Wanted && !failure.NotServed(err) {
		p.Status, p.Retry = f.Status, f.Retry
	}
	return g
}

// Here returns the path of the page with its parameters.
func (p *page) Here() string { return (&url.URL{Path: p.Path, RawQuery: p.Query.Encode()}).String() }
