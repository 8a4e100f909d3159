package httpapi

import (
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"
)

// Route describes a route that is no typed operation, and answers GET.
type Route struct {
	Path        string // as OpenAPI writes it
	ID, Summary string
	ContentType string // of the answer
	Params      []*huma.Param
	Schema      *huma.Schema // schema of the answer; nil: none
	Example     any
}

// Get serves and describes a GET route.
func (s *Server) Get(r Route, handle echo.HandlerFunc) {
	s.Describe(http.MethodGet, r)
	s.Echo.GET(routerPath(r.Path), handle)
}

// Post serves and describes a POST route that reads: its body is a B and its answer an A. The handler decodes the body,
// so that its errors name the wrong member.
func Post[B, A any](s *Server, r Route, handle echo.HandlerFunc) {
	schemas := s.API.OpenAPI().Components.Schemas
	r.Schema = schemas.Schema(reflect.TypeFor[A](), true, "")
	s.Describe(http.MethodPost, r).RequestBody = &huma.RequestBody{Required: true,
		Content: map[string]*huma.MediaType{
			echo.MIMEApplicationJSON: {Schema: schemas.Schema(reflect.TypeFor[B](), true, "")}}}
	s.Echo.POST(routerPath(r.Path), handle)
}

// Stream is Get for a route that answers until the caller disconnects: without deadline and without
// buffering.
func (s *Server) Stream(r Route, handle echo.HandlerFunc) {
	s.streams[routerPath(r.Path)] = true
	s.Get(r, handle)
}

// Raw marks a path, in the router's form, whose handler bounds bodies and compresses answers
// itself.
func (s *Server) Raw(path string) { s.raw[path] = true }

// Streams marks a path, in the router's form, whose handler may answer until the caller disconnects.
func (s *Server) Streams(path string) { s.streams[path] = true }

// Describe adds a route to the document that is not served by Get.
func (s *Server) Describe(method string, r Route) *huma.Operation {
	op := &huma.Operation{Method: method, Path: r.Path, OperationID: r.ID, Summary: r.Summary, Parameters: r.Params,
		Responses: map[string]*huma.Response{
			"200": {Description: "OK", Content: map[string]*huma.MediaType{
				r.ContentType: {Schema: r.Schema, Example: r.Example}}},
			"default": s.Problems(),
		}}
	s.API.OpenAPI().AddOperation(op)
	return op
}

// Strict refuses parameters that a route does not have. Typed operations do so by themselves.
func Strict(params []*huma.Param, handle echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := checkQuery(c.Request().URL, params); err != nil {
			return err
		}
		return handle(c)
	}
}

// routerPath writes a path as the router does: {id} as :id, a colon as it is.
func routerPath(path string) string {
	return strings.NewReplacer(":", escapedColon, "{", ":", "}", "").Replace(path)
}

// TextParam describes a parameter that is text.
func TextParam(name, in, doc string) *huma.Param {
	return &huma.Param{Name: name, In: in, Required: in == "path", Description: doc,
		Schema: &huma.Schema{Type: huma.TypeString}}
}

// CountParam describes a parameter that is a number within bounds.
func CountParam(name, in string, least, most float64, doc string) *huma.Param {
	p := TextParam(name, in, doc)
	p.Schema = &huma.Schema{Type: huma.TypeInteger, Minimum: &least, Maximum: &most}
	return p
}
