package control_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"repute/orchestrator/control"
)

// described are the operations of the served document: methods by path.
func (h *house) described() map[string][]string {
	h.t.Helper()
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	h.into(h.call(http.MethodGet, "/openapi.json", ""), http.StatusOK, &doc)
	out := map[string][]string{}
	for path, methods := range doc.Paths {
		for method := range methods {
			out[path] = append(out[path], strings.ToUpper(method))
		}
	}
	if len(out) < 25 {
		h.t.Fatalf("only %d paths", len(out))
	}
	return out
}

// pathParameter is a parameter in a path of OpenAPI.
var pathParameter = regexp.MustCompile(`\{\w+\}`)

// TestMethodsBeforeParameters: at every path, a method that it does not have is 405 with the
// methods that it has, to every caller, and whatever else is wrong with the request.
func TestMethodsBeforeParameters(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(o *options) { o.PrivateReads = true })
	for path, methods := range h.described() {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
			http.MethodDelete} {
			if slices.Contains(methods, method) {
				continue
			}
			r := h.call(method, pathParameter.ReplaceAllString(path, "x")+"?nonsense=1&nonsense=", "{", "Content-Type",
				"application/json", "Authorization", "Bearer wrong-and-long-enough")
			if r.status != http.StatusMethodNotAllowed || !strings.Contains(r.header.Get("Allow"), methods[0]) {
				t.Errorf("%s %s: %d, allowed %q: %.100s", method, path, r.status, r.header.Get("Allow"), r.body)
			}
		}
	}
	if r := h.call(http.MethodPost, "/v1/nothing", "{"); r.status != http.StatusNotFound {
		t.Errorf("a path that there is none of: %d %.100s", r.status, r.body)
	}
}

// TestTokensBeforeParameters: every operation that takes a token says so before it says what
// is wrong with a request, and one without the role is refused before that too.
func TestTokensBeforeParameters(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(o *options) {
		o.PrivateReads = true
		o.on.Tokens["looks"], o.on.Roles = tokenOf("looks"), map[string][]string{"looks": {"read"}}
	})
	guarded := 0
	for path, methods := range h.described() {
		for _, method := range methods {
			at := pathParameter.ReplaceAllString(path, "x") + "?nonsense=1&nonsense="
			if method == http.MethodGet && !control.IsPrivate(path) || !strings.HasPrefix(path, "/v1/") {
				continue
			}
			guarded++
			for _, header := range [][]string{nil, {"Authorization", "Bearer wrong-and-long-enough"}} {
				if r := h.call(method, at, "{", header...); r.status != http.StatusUnauthorized ||
					r.header.Get("WWW-Authenticate") == "" {
					t.Errorf("%s %s %v: %d %.100s", method, path, header, r.status, r.body)
				}
			}
			want := http.StatusForbidden
			ofOperators := strings.HasPrefix(path, "/v1/webhooks") || strings.HasPrefix(path, "/v1/keys")
			if method == http.MethodGet && !ofOperators || path == "/v1/agents/{slug}/trust" {
				want = http.StatusBadRequest
			}
			if r := h.as("looks", method, at, "{"); r.status != want {
				t.Errorf("%s %s by a reader: %d, not %d: %.100s", method, path, r.status, want, r.body)
			}
		}
	}
	if guarded < 25 {
		t.Errorf("%d operations take a token", guarded)
	}
}
