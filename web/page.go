package web

import (
	"context"
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
	"repute/web/failure"
	"repute/web/format"
	"repute/web/query"
)

// page is what the layout shows around the content of every page.
type page struct {
	Title string
	// Path and Query are those of the request. Query is what a page reads its state from.
	Path  string
	Query url.Values
	// Form are the fields of a posted form; nil where nothing was posted. FormErr says why a posted form cannot be
	// read.
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
	// Status is the status of the answer; 0 for 200. Retry is after how many seconds the caller may ask again; empty
	// for none.
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
func nowhere(context.Context, *page) (string, error) { return "", failure.ErrNowhere }

// newPage returns the page of a request without content.
func (s *site) newPage(c echo.Context) *page {
	form, err := formOf(c)
	return &page{Path: c.Request().URL.Path, Query: c.Request().URL.Query(), Form: form, FormErr: err,
		ID: c.Param("id")}
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
	all := format.Funcs()
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

// failed fills in the page of an error and returns its status.
func (s *site) failed(c echo.Context, p *page, err error) int {
	f := failure.Of(err)
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
