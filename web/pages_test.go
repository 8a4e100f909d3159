package web

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"repute"
	"repute/internal/httpapi"
)

// stranger answers documents with whatever the schema allows: null where it may be, lists of any length, and texts that
// try to become markup or links with scripts.
type stranger struct {
	schema *ast.Schema
	draw   *rapid.T
}

// Run implements query.Runner.
func (s *stranger) Run(_ context.Context, document string, _ map[string]any) ([]byte, error) {
	doc, errs := gqlparser.LoadQueryWithRules(s.schema, document, nil)
	if len(errs) > 0 {
		return nil, errs
	}
	return json.Marshal(map[string]any{"data": s.object(doc.Operations[0].SelectionSet)})
}

// object returns the members that a selection asks for.
func (s *stranger) object(set ast.SelectionSet) map[string]any {
	out := map[string]any{}
	var add func(ast.SelectionSet)
	add = func(set ast.SelectionSet) {
		for _, selection := range set {
			switch one := selection.(type) {
			case *ast.Field:
				out[one.Alias] = s.value(one.Definition.Type, one.SelectionSet)
				if one.ObjectDefinition.Name == "ScoreInput" && one.Name == "text" { // a file of this program
					out[one.Alias] = `{"walk":{"steps":[1,null]}}`
				}
			case *ast.FragmentSpread:
				add(one.Definition.SelectionSet)
			case *ast.InlineFragment:
				add(one.SelectionSet)
			}
		}
	}
	add(set)
	return out
}

// value returns a value of a type.
func (s *stranger) value(of *ast.Type, set ast.SelectionSet) any {
	switch {
	case !of.NonNull && rapid.IntRange(0, 3).Draw(s.draw, "null") == 0:
		return nil
	case of.Elem != nil:
		list := make([]any, rapid.IntRange(0, 2).Draw(s.draw, "length"))
		for i := range list {
			list[i] = s.value(of.Elem, set)
		}
		return list
	case len(set) > 0:
		return s.object(set)
	}
	return s.scalar(of.NamedType)
}

// hostile are texts that strangers choose: names, descriptions, tags, URLs.
func hostile() []string {
	return []string{"", " ", `"><i data-hostile>`, `' onmouseover=alert(1) data-hostile='`, "</script><i data-hostile>",
		"javascript:alert(1)", " JAVASCRIPT:alert(1)", "data:text/html,<i data-hostile>",
		"https://a.example/<i data-hostile>",
		"\u202e\u0000\u2028", "{{.}}", strings.Repeat("ẅ̈̈̈̈̈̈̈", 300), "8453:22", "eip155:8453:0xaa:22"}
}

// scalar returns a value of a scalar or an enum.
func (s *stranger) scalar(name string) any {
	if def := s.schema.Types[name]; def != nil && def.Kind == ast.Enum {
		return rapid.SampledFrom(def.EnumValues).Draw(s.draw, "enum").Name
	}
	digits := rapid.StringMatching(`0|-?[1-9][0-9]{0,40}`)
	switch name {
	case "Boolean":
		return rapid.Bool().Draw(s.draw, "boolean")
	case "Int":
		return rapid.Int32().Draw(s.draw, "int")
	case "Long":
		return rapid.Int64().Draw(s.draw, "long")
	case "Float":
		return rapid.Float64Range(-1e6, 1e6).Draw(s.draw, "float")
	case "BigInt", "Decimal":
		return digits.Draw(s.draw, "digits")
	case "Address", "Hash", "Hex":
		return rapid.StringMatching(`0x[0-9a-fA-F]{0,64}`).Draw(s.draw, "hex")
	case "Time":
		return time.Unix(rapid.Int64Range(0, 1<<36).Draw(s.draw, "time"), 0).UTC().Format(time.RFC3339)
	}
	return rapid.SampledFrom(hostile()).Draw(s.draw, "text")
}

// TestPagesOfAnyAnswer: whatever GraphQL answers within the schema, each page is made, and no text of a stranger becomes
// an element, an attribute or a link with a script.
func TestPagesOfAnyAnswer(t *testing.T) {
	t.Parallel()
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphql", Input: repute.Schema})
	if err != nil {
		t.Fatal(err)
	}
	answers := &stranger{schema: schema}
	paths, h := mounted(t, answers)
	rapid.Check(t, func(t *rapid.T) {
		answers.draw = t
		for _, path := range rapid.SliceOfN(rapid.SampledFrom(paths), 3, 3).Draw(t, "pages") {
			checkPage(t, h, request(t, path))
		}
	})
}

// mounted returns the paths of all pages, and a server of them.
func mounted(t *testing.T, answers *stranger) (paths []string, h http.Handler) {
	t.Helper()
	server, err := httpapi.NewServer(httpapi.ServerOptions{Logger: slog.New(slog.DiscardHandler),
		Limits: httpapi.Limits{Rate: -1}})
	if err != nil {
		t.Fatal(err)
	}
	if err := Mount(Options{Server: server, GraphQL: answers}); err != nil {
		t.Fatal(err)
	}
	for _, r := range server.Echo.Routes() {
		if r.Method == http.MethodGet && !strings.HasPrefix(r.Path, "/assets/") {
			paths = append(paths, r.Path)
		}
	}
	slices.Sort(paths)
	if len(paths) < 30 {
		t.Fatalf("%d pages", len(paths))
	}
	if h, err = server.Handler(); err != nil {
		t.Fatal(err)
	}
	return paths, h
}

// request returns a request for a page with parameters of a stranger, posted where the page takes a form.
func request(t *rapid.T, path string) *http.Request {
	id := rapid.SampledFrom([]string{"8453:22", "8453", "<i data-hostile>", "shop.example"}).Draw(t, "id")
	path = strings.NewReplacer(":id", url.PathEscape(id), "*", "nowhere").Replace(path)
	text := rapid.SampledFrom(hostile())
	q := url.Values{}
	for _, name := range []string{"q", "after", "tag", "kind", "by", "set", "url", "ask", "agent", "runs", "service"} {
		if rapid.Bool().Draw(t, name) {
			q.Set(name, text.Draw(t, "parameter"))
		}
	}
	q.Set("id", "8453:1 8453:2")
	if (path == prefix+"/check" || path == prefix+"/runtime") && rapid.Bool().Draw(t, "posted") {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		for _, name := range []string{"content", "kind", "url", "ask"} {
			if err := form.WriteField(name, text.Draw(t, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := form.Close(); err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, path, &body)
		r.Header.Set("Content-Type", form.FormDataContentType())
		return r
	}
	return httptest.NewRequest(http.MethodGet, path+"?"+q.Encode(), nil)
}

// checkPage checks the page that answers a request.
func checkPage(t *rapid.T, h http.Handler, r *http.Request) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code >= http.StatusInternalServerError || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		t.Fatalf("%s: %d %s", r.URL, w.Code, w.Body)
	}
	if w.Header().Get("Content-Security-Policy") != Policy {
		t.Fatalf("%s: policy %q", r.URL, w.Header().Get("Content-Security-Policy"))
	}
	root, err := html.Parse(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			link := strings.ToLower(strings.TrimSpace(a.Val))
			isLink := a.Key == "href" || a.Key == "src" || a.Key == "action" || a.Key == "formaction"
			if a.Key == "data-hostile" || strings.HasPrefix(a.Key, "on") || a.Key == "style" ||
				isLink && (strings.HasPrefix(link, "javascript:") || strings.HasPrefix(link, "data:")) {
				t.Fatalf("%s: <%s %s=%q>", r.URL, n.Data, a.Key, a.Val)
			}
		}
	}
}
