package agentjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"repute"
)

// upstreamSchema compiles upstream's JSON Schema.
func upstreamSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(testData(t, "agent-json/schema.json")))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("agent.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("agent.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// schemaAccepts reports whether the schema accepts a document.
func schemaAccepts(t interface{ Fatal(...any) }, schema *jsonschema.Schema, b []byte) bool {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(doc) == nil
}

// The places where upstream's schema and its validator differ, and what this package does.
func TestSchemaAndValidatorDiffer(t *testing.T) {
	t.Parallel()
	schema := upstreamSchema(t)
	two := `"intents":[{` + anIntent + `},{` + anIntent + `}]`
	for _, c := range []struct {
		name, members   string
		schema          bool // accepts
		validator       bool // accepts
		lenient, strict string
	}{
		{"duplicate intent names", two, true, false, "EJ620", "EJ620"},
		{"splits off 1", rewarded(`"type":"cpa","rate":2,"currency":"USDC","splits":{"orchestrator":0.5}`), true, false,
			"EJ640", "EJ640"},
		{"per_unit without unit_param", priced(`"amount":1,"currency":"USD","model":"per_unit"`), true, false, "EJ630",
			"EJ630"},
		{"x_ members", `"x_vendor":1`, false, true, "IJ604", "EJ604"},
		{"unknown members", `"unknown":1`, false, true, "WJ603", "EJ603"},
		// Lengths are recommendations to the validator and rules to the schema.
		{"a long name", fmt.Sprintf(`"display_name":"%0101d"`, 0), false, true, "WJ607", "EJ607"},
		{"a later schema_version", committed(`"schema_version":"1.1","entries":[]`), false, true, "WJ670", "EJ670"},
	} {
		b := []byte(`{"version":"1.4","origin":"example.com",` + zeroPay + `,` + c.members + `}`)
		if got := schemaAccepts(t, schema, b); got != c.schema || c.schema == c.validator {
			t.Errorf("%s: the schema accepts: %v", c.name, got)
		}
		_, lenient := Parse(b, Options{})
		_, strict := Parse(b, Options{Profile: Strict})
		if !slices.Contains(codes(lenient), c.lenient) || !slices.Contains(codes(strict), c.strict) {
			t.Errorf("%s: lenient %v, strict %v", c.name, codes(lenient), codes(strict))
		}
		if (len(errorsOf(lenient)) == 0) != c.validator {
			t.Errorf("%s: readers do not judge as the validator: %v", c.name, codes(lenient))
		}
	}
}

// mutate changes one place of a JSON value.
func mutate(t *rapid.T, v any) any {
	values := []any{nil, true, false, "", "x", "GET", "USDC", "base", json.Number("0"), json.Number("-1"),
		json.Number("1.5"),
		json.Number("1e40"), []any{}, map[string]any{}, []any{"base"}, map[string]any{"type": "string"}}
	replacement := rapid.SampledFrom(values).Draw(t, "value")
	switch v := v.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		switch how := rapid.IntRange(0, 3).Draw(t, "how"); {
		case how == 0 || len(names) == 0:
			extra := []string{"x-own", "x_own", "own", "method", "endpoint", "supported", "network", "splits", "enum",
				"ref",
				"unit_param", "free_tier", "returns", "identity", "did", "oatr_issuer_id", "commitments"}
			v[rapid.SampledFrom(extra).Draw(t, "extra")] = replacement
		case how == 1:
			delete(v, rapid.SampledFrom(names).Draw(t, "deleted"))
		default:
			name := rapid.SampledFrom(names).Draw(t, "member")
			v[name] = mutate(t, v[name])
		}
		return v
	case []any:
		if len(v) > 0 && rapid.Bool().Draw(t, "inside") {
			i := rapid.IntRange(0, len(v)-1).Draw(t, "index")
			v[i] = mutate(t, v[i])
			return v
		}
	}
	return replacement
}

// Whatever upstream's schema rejects is an error in the strict profile, and what has no error there the schema accepts.
// The lenient profile has no error that the strict one has not.
func TestSchemaAgrees(t *testing.T) {
	t.Parallel()
	schema := upstreamSchema(t)
	paths, err := filepath.Glob(filepath.Join(dataDir(), "agent-json/examples/*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no examples", err)
	}
	rejected := 0
	rapid.Check(t, func(t *rapid.T) {
		b, err := os.ReadFile(rapid.SampledFrom(paths).Draw(t, "example"))
		if err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(bytes.NewReader(b))
		decoder.UseNumber()
		var doc any
		if err := decoder.Decode(&doc); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			doc = mutate(t, doc)
		}
		if b, err = json.Marshal(doc); err != nil {
			t.Fatal(err)
		}
		_, strict := Parse(b, Options{Profile: Strict})
		_, lenient := Parse(b, Options{})
		if !schemaAccepts(t, schema, b) {
			rejected++
			if !repute.HasErrors(strict) {
				t.Fatalf("the schema rejects %s: %+v", b, strict)
			}
		}
		if repute.HasErrors(lenient) && !repute.HasErrors(strict) {
			t.Fatalf("only readers see an error in %s: %+v", b, lenient)
		}
	})
	if rejected == 0 {
		t.Error("no document was rejected: the test shows nothing")
	}
}
