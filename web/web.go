// Package web serves the dashboard: one page per question, made on the server from our own GraphQL alone. Each page
// runs named documents of the folder queries, shows them, and links to a page where they can be changed. Pages load
// nothing from elsewhere, have no inline script or style, and work without JavaScript, charts, live rows and actions
// excepted: a script sends actions to the routes of the orchestrator, with a token that the browser keeps until the tab
// is closed. What comes from the chain and from documents is hostile text: it is escaped, bounded, and its control
// characters are shown.
//
// # How a page is made
//
// The table of pages is site.mount. A page is a function of type show: it runs documents with ask, which decodes the
// answer into a type that MUST have all that the document asks for, puts what it shows into page.Body, and
// returns the name of a template. The URL has the whole state of a page, so that a link to it shows the same. An error
// becomes a page that says in plain words what to do next (package failure); it never shows internal details.
//
// Templates take their functions from package format, which makes untrusted text showable, and draws gauges and bars as
// SVG with attributes alone. Files are served under names with a hash of their content (package assets), and kept for
// ever.
//
// # Tokens
//
// Pages about tasks, runs, money and operations need a token, which a browser does not send with a link. Such a page
// first answers without its content and asks for the token (guarded); a script then asks for the same page with it, and
// replaces the part. These pages are in no cache.
package web

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"fmt"
	"html/template"
	"net/http"

	"github.com/labstack/echo/v4"

	"repute/internal/httpapi"
	"repute/web/assets"
	"repute/web/query"
)

//go:embed static queries all:templates
var files embed.FS

// Policy is the content security policy of all pages: their own scripts and styles, no other host, and forms that ask
// this server only.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// prefix is the path of all pages but the overview, so that no page has the path of a route of the API.
const prefix = "/ui"

// Options configure the dashboard. Server and GraphQL are required.
type Options struct {
	// Server gets the routes.
	Server *httpapi.Server
	// GraphQL answers everything that pages show.
	GraphQL query.Runner
}

// site serves the pages.
type site struct {
	o         Options
	assets    *assets.Set
	documents query.Documents
	templates map[string]*template.Template // by the name of the page's file, without extension
}

// Mount adds the pages and their files to a server. It asks nothing.
func Mount(o Options) error {
	s := &site{o: o}
	var err error
	if s.assets, err = assets.Read(files, "static"); err != nil {
		return err
	}
	if s.documents, err = query.Read(files); err != nil {
		return err
	}
	if s.templates, err = s.readTemplates(); err != nil {
		return err
	}
	s.mount()
	return nil
}

// show fills in a page: it asks for what the page shows, and returns the page's template.
type show func(ctx context.Context, p *page) (name string, err error)

// mount adds the routes.
func (s *site) mount() {
	e := s.o.Server.Echo
	for path, f := range map[string]show{
		"/":                             s.overview,
		prefix + "/explore":             s.explore,
		prefix + "/agent/:id":           s.agent,
		prefix + "/agent/:id/score":     s.agentScore,
		prefix + "/agent/:id/ratings":   s.agentRatings,
		prefix + "/agent/:id/history":   s.agentHistory,
		prefix + "/agent/:id/work":      s.agentWork,
		prefix + "/reviewer/:id":        s.reviewer,
		prefix + "/reviewer/:id/graph":  s.reviewerGraph,
		prefix + "/validator/:id":       s.validator,
		prefix + "/validator/:id/graph": s.validatorGraph,
		prefix + "/domain/:id":          s.domain,
		prefix + "/domain/:id/graph":    s.domainGraph,
		prefix + "/compare":             s.compare,
		prefix + "/chain/:id":           s.chainHealth,
		prefix + "/offers":              s.intents,
		prefix + "/validators":          s.validators,
		prefix + "/leaders":             s.leaders,
		prefix + "/tags":                s.tags,
		prefix + "/trust":               s.trust,
		prefix + "/trust/roots":         s.roots,
		prefix + "/trust/parameters":    s.parameters,
		prefix + "/trust/attacks":       s.attacks,
		prefix + "/tasks":               s.tasks,
		prefix + "/runs":                s.runs,
		prefix + "/runs/:id":            s.run,
		prefix + "/treasury":            s.treasury,
		prefix + "/check":               s.check,
		prefix + "/operations":          s.operate,
		prefix + "/runtime":             s.runtime,
		"/docs":                         static("docs", "Interfaces", "docs.js"),
		"/graphiql":                     static("graphiql", "GraphQL", "graphiql.js"),
		prefix + "/*":                   nowhere,
	} {
		e.GET(path, s.page(f))
	}
	e.GET(prefix+"/latest", s.latest)
	e.POST(prefix+"/check", s.page(s.check))
	e.POST(prefix+"/runtime", s.page(s.runtime))
	s.o.Server.Raw("/assets/:name")
	e.GET("/assets/:name", s.assets.Serve)
}

// static is a page that asks nothing.
func static(name, title string, scripts ...string) show {
	return func(_ context.Context, p *page) (string, error) {
		p.Title, p.Scripts = title, scripts
		return name, nil
	}
}

// page makes a handler of a page. Failures are pages too.
func (s *site) page(f show) echo.HandlerFunc {
	return func(c echo.Context) error {
		p := s.newPage(c)
		name, err := f(c.Request().Context(), p)
		status := cmp.Or(p.Status, http.StatusOK)
		if err != nil {
			status, name = s.failed(c, p, err), "error"
		}
		var out bytes.Buffer
		if err := s.templates[name].ExecuteTemplate(&out, "layout", p); err != nil {
			return fmt.Errorf("page %s: %w", name, err)
		}
		if p.Retry != "" {
			c.Response().Header().Set(httpapi.RetryAfter, p.Retry)
		}
		if p.Private {
			c.Response().Header().Add("Vary", "Authorization")
			return s.sendAs(c, status, out.Bytes(), "no-store")
		}
		return s.send(c, status, out.Bytes())
	}
}

// send sends a page or a part of one.
func (s *site) send(c echo.Context, status int, html []byte) error {
	return s.sendAs(c, status, html, "no-cache")
}

// sendAs sends a page with what caches may do with it.
func (s *site) sendAs(c echo.Context, status int, html []byte, caching string) error {
	h := c.Response().Header()
	h.Set("Content-Security-Policy", Policy)
	h.Set("Cache-Control", caching)
	return c.Blob(status, echo.MIMETextHTMLCharsetUTF8, html)
}
