package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/labstack/echo/v4"

	"repute/internal/httpapi"
	"repute/internal/shell"
	"repute/web/format"
	"repute/web/query"
)

// page is what the layout shows around the content of every page.
type page struct {
	Title string
	// Path and Query are those of the request. Query is what a page reads its state from.
	Path  string
	Query url.Values
	// Form are the fields of a posted form; nil where nothing was posted. FormErr says why a posted form cannot be read.
	Form    url.Values
	FormErr error
	// ID is the parameter of the path.
	ID string
	// Asked are the documents that the page ran.
	Asked []query.Asked
	// Scripts are the files that the page needs in addition to those of every page.
	Scripts []string
	// Body is what the page's template shows.
	Body any
	// Private keeps the page out of caches: what it shows depends on the caller's token.
	Private bool
	// Status is the status of the answer; 0 for 200. Retry is after how many seconds the caller may ask again; empty for
	// none.
	Status int
	Retry  string

	tips []format.Tip // of the numbers that the page shows
}

// ask runs a document for a page, which shows it. The error of GraphQL is a *query.Error.
func ask[T any](ctx context.Context, s *site, p *page, name string, variables map[string]any) (T, error) {
	data, asked, err := query.Ask[T](ctx, s.o.GraphQL, s.documents, name, variables)
	if asked.Name != "" {
		p.Asked = append(p.Asked, asked)
	}
	return data, err
}

// nowhere is the page of an unknown path.
func nowhere(context.Context, *page) (string, error) { return "", errNowhere }

// newPage returns the page of a request without content.
func (s *site) newPage(c echo.Context) *page {
	form, err := formOf(c)
	return &page{Path: c.Request().URL.Path, Query: c.Request().URL.Query(), Form: form, FormErr: err, ID: c.Param("id")}
}

// Tip returns how a number is made, and has the page explain it at its end.
func (p *page) Tip(name string) (format.Tip, error) {
	t, known := format.Tips()[name]
	if !known {
		return format.Tip{}, fmt.Errorf("no tip %q", name)
	}
	for _, seen := range p.tips {
		if seen.Term == t.Term {
			return t, nil
		}
	}
	p.tips = append(p.tips, t)
	return t, nil
}

// Tips returns what the page has explained so far. Content is executed before the end of the layout.
func (p *page) Tips() []format.Tip { return p.tips }

// With returns the URL of the page with parameters replaced: pairs of name and value. An empty value removes one. Other
// parameters than cursors are kept.
func (p *page) With(pairs ...string) string {
	q := url.Values{}
	for name, values := range p.Query {
		if name != "after" {
			q[name] = values
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Del(pairs[i])
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return p.Path
	}
	return p.Path + "?" + q.Encode()
}

// Is reports whether a parameter of the page has a value.
func (p *page) Is(name, value string) bool { return p.Query.Get(name) == value }

// On reports whether the page is at a path or below it.
func (p *page) On(at string) bool {
	return p.Path == at || at != "/" && strings.HasPrefix(p.Path, at+"/")
}

// OnAny reports whether the page is at a path or below it, or at one of others.
func (p *page) OnAny(at string, others any) bool {
	list, _ := others.([]any) // nil where a template names none
	for _, other := range list {
		if path, isText := other.(string); isText && p.On(path) {
			return true
		}
	}
	return p.On(at)
}

// At reports whether the page is this tab of its agent; "" is the first one.
func (p *page) At(tab string) bool {
	rest := strings.TrimPrefix(p.Path, prefix+"/agent/")
	_, at, _ := strings.Cut(rest, "/")
	return at == tab
}

// funcs are the functions of templates.
func (s *site) funcs() template.FuncMap {
	all := format.Funcs(s.o.Now)
	all["asset"], all["command"], all["prefix"] = s.assets.URL, shell.Line, func() string { return prefix }
	return all
}

// readTemplates parses the layout with each page. Files that begin with an underscore are parts of pages.
func (s *site) readTemplates() (map[string]*template.Template, error) {
	base, err := template.New("").Funcs(s.funcs()).ParseFS(files, "templates/_*.html")
	if err != nil {
		return nil, fmt.Errorf("templates: %w", err)
	}
	names, err := fs.Glob(files, "templates/[a-z]*.html")
	if err != nil {
		return nil, fmt.Errorf("templates: %w", err)
	}
	out := map[string]*template.Template{}
	for _, name := range names {
		t, err := base.Clone()
		if err != nil {
			return nil, fmt.Errorf("templates: %w", err)
		}
		if out[strings.TrimSuffix(path.Base(name), ".html")], err = t.ParseFS(files, name); err != nil {
			return nil, fmt.Errorf("templates: %w", err)
		}
	}
	return out, nil
}

// failure is what the page of an error says.
type failure struct {
	Status              int
	Title, Detail, Next string
	RequestID           string
	// Retry is after how many seconds the page asks again; empty: never.
	Retry string
}

// errNowhere is returned for an unknown path, and for something that is not indexed.
var errNowhere = errors.New("nothing is here")

// failed fills in the page of an error and returns its status.
func (s *site) failed(c echo.Context, p *page, err error) int {
	f := failureOf(err)
	if f.Status == http.StatusInternalServerError {
		body := s.o.Server.Fail(c.Request().Context(), err) // logs it
		f.RequestID = body.RequestID
	}
	p.Title, p.Body = f.Title, f
	if f.Retry != "" {
		c.Response().Header().Set(httpapi.RetryAfter, f.Retry)
	}
	return f.Status
}

// failureOf says in plain words what went wrong and what to do next.
func failureOf(err error) failure {
	var q *query.Error
	switch {
	case errors.Is(err, errNowhere):
		return failure{Status: http.StatusNotFound, Title: "Nothing here",
			Detail: "No page or agent of this name is known to this index.",
			Next:   "Check the address, or search for a name, a host or an address of a wallet."}
	case !errors.As(err, &q):
		body := httpapi.ErrorOf(err)
		f := failure{Status: body.Status, Title: body.Title, Detail: body.Detail, Next: body.Hint}
		if f.Next == "" {
			f.Next = "Try again. If it stays like this, tell the operator the id of the request."
		}
		return f
	}
	f := failure{Detail: q.Message, Next: q.Extensions.Hint, RequestID: q.Extensions.RequestID,
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
