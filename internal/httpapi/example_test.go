package httpapi_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// described is an OpenAPI document as far as its examples go.
type described struct {
	Paths map[string]map[string]struct {
		Summary   string
		Responses map[string]struct {
			Content map[string]struct {
				Schema   json.RawMessage
				Example  any
				Examples map[string]struct {
					Ref string `json:"$ref"`
				}
			}
		}
	}
	Components struct {
		Examples map[string]struct{ Value any }
	}
}

// TestExamplesFitTheirSchemas has an example of the answer of each route, and checks it against the schema of the
// answer.
func TestExamplesFitTheirSchemas(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"../../docs/reference/openapi.json"} {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var doc described
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		if err := c.AddResource("https://test.invalid/openapi.json", whole); err != nil {
			t.Fatal(err)
		}
		for route, methods := range doc.Paths {
			for method, op := range methods {
				for status, response := range op.Responses {
					shown := 0
					for kind, media := range response.Content {
						value := media.Example
						for _, example := range media.Examples {
							value = doc.Components.Examples[strings.TrimPrefix(example.Ref,
								"#/components/examples/")].Value
						}
						if value == nil {
							continue
						}
						shown++
						if len(media.Schema) == 0 {
							continue
						}
						at := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D", " ", "%20")
						schema, err := c.Compile("https://test.invalid/openapi.json#/paths/" + at.Replace(route) + "/" +
							method +
							"/responses/" + status +
							"/content/" + at.Replace(kind) + "/schema")
						if err != nil {
							t.Fatal(err)
						}
						if err := schema.Validate(value); err != nil {
							t.Errorf("%s %s, %s: %v", method, route, status, err)
						}
					}
					if shown == 0 && len(response.Content) > 0 {
						t.Errorf("%s %s: no example of %s, which is %v", method, route, status,
							slices.Collect(maps.Keys(response.Content)))
					}
				}
			}
		}
	}
}
