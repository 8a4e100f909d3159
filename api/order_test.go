package api_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"repute/api"
)

// TestMethodsBeforeParameters: at every path, a method that it does not have is 405 with the
// methods that it has, whatever else is wrong with the request.
func TestMethodsBeforeParameters(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Options{DB: open(t, nowhere)}, unlimited())
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(get(t, s, "/openapi.json").body, &doc); err != nil || len(doc.Paths) < 20 {
		t.Fatalf("%d paths, %v", len(doc.Paths), err)
	}
	parameter := regexp.MustCompile(`\{\w+\}`)
	for path, operations := range doc.Paths {
		var methods []string
		for method := range operations {
			methods = append(methods, strings.ToUpper(method))
		}
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
			http.MethodDelete} {
			if slices.Contains(methods, method) {
				continue
			}
			req, err := http.NewRequestWithContext(t.Context(), method,
				s.URL+parameter.ReplaceAllString(path, "7")+"?nonsense=1&nonsense=", strings.NewReader("{"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := s.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusMethodNotAllowed ||
				!strings.Contains(resp.Header.Get("Allow"), methods[0]) {
				t.Errorf("%s %s: %d, allowed %q", method, path, resp.StatusCode, resp.Header.Get("Allow"))
			}
		}
	}
}
