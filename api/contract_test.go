package api_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"repute"
	"repute/api"
	"repute/store"
)

var update = flag.Bool("update", false, "write the golden files")

// TestContract: GraphQL is a public contract. A change must raise its version, then run with
// -update. The OpenAPI document is compared where all of its routes are: orchestrator/control.
func TestContract(t *testing.T) {
	t.Parallel()
	schema := get(t, serve(t, api.Options{DB: open(t, nowhere)}), "/schema.graphql")
	if string(schema.body) != repute.Schema {
		t.Error("the served schema is another one")
	}
	checkGolden(t, "schema.graphql", string(schema.body), schemaVersion)
}

// nowhere is a database that never answers.
const nowhere = "postgres://repute@127.0.0.1:1/repute"

func checkGolden(t *testing.T, name, got string, version func(testing.TB, string) string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	raw, err := os.ReadFile(path)
	want := string(raw)
	switch {
	case err == nil && got == want:
		return
	case err == nil && version(t, got) == version(t, want):
		t.Errorf("%s changed, its version did not (%s): raise it in the first line of %s, then "+
			"go test ./api -run TestContract -update", name, version(t, got), name)
	case *update:
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s differs from %s (%v): go test ./api -run TestContract -update", name, path, err)
	}
}

func schemaVersion(t testing.TB, sdl string) string {
	m := regexp.MustCompile(`(?m)^# .*Version (\d+\.\d+\.\d+)\.$`).FindStringSubmatch(sdl)
	if m == nil {
		t.Fatal("schema.graphql names no version")
	}
	return m[1]
}

// TestResolversMatchSchema: New parses schema and resolvers together.
func TestResolversMatchSchema(t *testing.T) {
	t.Parallel()
	serve(t, api.Options{DB: new(store.DB)})
}

// TestEveryRouteIsDescribed: operations have an id, a summary, documented
// parameters and the problem body.
func TestEveryRouteIsDescribed(t *testing.T) {
	s := serve(t, api.Options{DB: open(t, nowhere)})
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Summary     string `json:"summary"`
			Parameters  []struct {
				Name, In    string
				Description string
				Schema      struct{ Description string }
			} `json:"parameters"`
			Responses map[string]struct {
				Content map[string]any `json:"content"`
			} `json:"responses"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(get(t, s, "/openapi.json").body, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Paths) < 18 {
		t.Errorf("only %d paths", len(doc.Paths))
	}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			posts := method == "post" && (strings.HasSuffix(path, ":refresh") || strings.HasSuffix(path, ":batch") ||
				path == "/graphql" || path == "/subgraphs/{chainId}")
			if (method == "get") == posts || op.OperationID == "" || op.Summary == "" {
				t.Errorf("%s %s: %+v", method, path, op)
			}
			if op.Responses["default"].Content["application/problem+json"] == nil {
				t.Errorf("%s: no problem body", path)
			}
			for _, p := range op.Parameters {
				if p.In == "query" && p.Description+p.Schema.Description == "" {
					t.Errorf("%s: %s is not explained", path, p.Name)
				}
			}
			for _, name := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(path, -1) {
				if !hasPathParam(op.Parameters, name[1]) {
					t.Errorf("%s: {%s} is not a parameter", path, name[1])
				}
			}
		}
	}
}

func hasPathParam(params []struct {
	Name, In    string
	Description string
	Schema      struct{ Description string }
}, name string) bool {
	for _, p := range params {
		if p.In == "path" && p.Name == name {
			return true
		}
	}
	return false
}
