package capability_test

import (
	"encoding/json"
	"errors"
	"testing"

	"repute"
	"repute/agent/capability"
)

func FuzzSchema(f *testing.F) {
	f.Add(explosive()["itself"][0], explosive()["itself"][1])
	f.Add(`{"type":"object","properties":{"a":{"format":"regex","minLength":1}}}`, `{"a":"("}`)
	f.Add(`{"$id":"https://a.example/","$defs":{"b":{"$id":"b","$anchor":"c"}},"$ref":"b#c"}`, `1`)
	f.Add(`{"unevaluatedProperties":false,"dependentSchemas":{"a":{"properties":{"b":true}}}}`, `{"a":1,"b":2}`)
	f.Fuzz(func(t *testing.T, schema, doc string) {
		c, err := capability.New(definition(schema, `{}`))
		if err != nil {
			if !errors.Is(err, repute.ErrInvalid) {
				t.Fatalf("schema: %v", err)
			}
			return
		}
		if err := c.CheckInput(t.Context(), json.RawMessage(doc)); err != nil {
			if !errors.Is(err, repute.ErrInvalid) {
				t.Fatalf("document: %v", err)
			}
			if len(err.Error()) > 16_000 {
				t.Fatalf("the error has %d bytes", len(err.Error()))
			}
			return
		}
		if _, err := c.TaskHash("1", json.RawMessage(doc)); err != nil {
			t.Fatalf("a document that is valid has no hash: %v", err)
		}
	})
}

func FuzzDefinition(f *testing.F) {
	f.Add(`{"name":"a","version":"1.0.0","inputSchema":{},"outputSchema":{},"pricing":[{"amount":"1","currency":"USDC"}]}`)
	f.Add(`{"name":"a","version":"1.0.0","inputSchema":true,"outputSchema":true,"pricing":{"amount":"0","currency":"ETH"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := capability.ParseDefinition([]byte(text))
		if err == nil {
			_, err = capability.New(d)
		}
		if err != nil {
			if !errors.Is(err, repute.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		raw, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := capability.ParseDefinition(raw); err != nil {
			t.Fatalf("written and read again: %v", err)
		}
	})
}
