package toolserver

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"repute/agent/capability"
)

// TestInputSchema: the schema of a tool is one of an object, and arguments fit it where the input that
// they carry fits the capability.
func TestInputSchema(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		schema := rapid.SampledFrom([]string{`{"type":"object","required":["a"]}`, `{}`, `true`, `{"required":["a"]}`,
			`{"type":["object","string"]}`, `{"type":"string"}`, `{"type":["string","null"]}`,
			`{"$defs":{"n":{"type":"number"}},"type":"array","items":{"$ref":"#/$defs/n"}}`}).Draw(t, "schema")
		input := rapid.SampledFrom([]string{`{"a":1}`, `{"b":1}`, `{}`, `"x"`, `null`, `[1,2]`, `["x"]`}).Draw(t,
			"input")
		out, wrapped, err := inputSchema(json.RawMessage(schema))
		if err != nil {
			t.Fatal(err)
		}
		arguments := json.RawMessage(input)
		if wrapped {
			arguments = json.RawMessage(`{"input":` + input + `}`)
		} else if input[0] != '{' {
			return // arguments are objects
		}
		if got, want := fits(t, out, arguments), fits(t, json.RawMessage(schema), json.RawMessage(input)); got != want {
			t.Fatalf("%s of %s: %t, the input of the capability: %t", arguments, out, got, want)
		}
		if object, err := ofObject(out); err != nil || !object {
			t.Fatalf("%s: %v", out, err)
		}
	})
}

func fits(t *rapid.T, schema, value json.RawMessage) bool {
	c, err := capability.New(capability.Definition{Name: "x", Version: "1.0.0", InputSchema: schema,
		OutputSchema: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return c.CheckInput(t.Context(), value) == nil
}
