package capability_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/agent/capability"
)

// definition is a valid one with given schemas.
func definition(input, output string) capability.Definition {
	return capability.Definition{Name: "code-review", Version: "1.0.0", InputSchema: json.RawMessage(input),
		OutputSchema: json.RawMessage(output)}
}

// withInput compiles a capability whose input has a schema.
func withInput(t testing.TB, schema string) *capability.Capability {
	t.Helper()
	c, err := capability.New(definition(schema, `{}`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParseDefinition(t *testing.T) {
	t.Parallel()
	const whole = `{"name":"code-review","version":"1.2.3-rc.1","description":"Reviews code.","inputSchema":{"type":"object"},
		"outputSchema":true,"pricing":{"amount":"0.001","currency":"ETH"},"estimatedDuration":4.5,"requiresValidation":true,
		"trustTier":2,"sideEffects":true,"timeoutSeconds":300}`
	d, err := capability.ParseDefinition([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	c, err := capability.New(d)
	if err != nil {
		t.Fatal(err)
	}
	got := c.Definition()
	if got.Scheme != capability.Exact || got.Settle != capability.SettleBefore || got.Timeout() != 5*time.Minute ||
		got.MaxRequestBytes != capability.DefaultMaxBytes || got.Free() {
		t.Errorf("got %+v", got)
	}
	list := strings.Replace(whole, `{"amount":"0.001","currency":"ETH"}`,
		`[{"amount":"0.001","currency":"ETH"},{"amount":"2.5","currency":"USDC","network":"eip155:8453"}]`, 1)
	if d, err = capability.ParseDefinition([]byte(list)); err != nil || len(d.Pricing) != 2 {
		t.Errorf("a list of prices: %+v, %v", d.Pricing, err)
	}
	for name, wrong := range map[string]string{
		"capability/trustTeir":         strings.Replace(whole, "trustTier", "trustTeir", 1),
		"capability/version":           strings.Replace(whole, `"1.2.3-rc.1"`, `7`, 1),
		"capability/pricing/amnt":      strings.Replace(whole, `"amount"`, `"amnt"`, 1),
		"capability/name":              strings.Replace(whole, `"version"`, `"name":"b","version"`, 1),
		"capability: is no JSON":       whole[:40],
		"capability.x: nests too deep": `{"x":` + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + `}`,
	} {
		_, err := capability.ParseDefinition([]byte(wrong))
		if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*capability.Definition){
		"name":        func(d *capability.Definition) { d.Name = "code_review" },
		"version":     func(d *capability.Definition) { d.Version = "1.0" },
		"description": func(d *capability.Definition) { d.Description = strings.Repeat("x", 5000) },
		"scheme":      func(d *capability.Definition) { d.Scheme = "maybe" },
		"settle": func(d *capability.Definition) {
			d.Scheme, d.Settle = capability.UpTo,
				capability.SettleBefore
		},
		"estimatedDuration": func(d *capability.Definition) { d.EstimatedDuration = -1 },
		"trustTier":         func(d *capability.Definition) { d.TrustTier = 5 },
		"timeoutSeconds":    func(d *capability.Definition) { d.TimeoutSeconds = 301 },
		"maxRequestBytes":   func(d *capability.Definition) { d.MaxRequestBytes = -1 },
		"maxAnswerBytes":    func(d *capability.Definition) { d.MaxAnswerBytes = 1 << 40 },
		"pricing[0].amount": func(d *capability.Definition) {
			d.Pricing = capability.Prices{{Amount: "1e3",
				Currency: "USDC"}}
		},
		"pricing[0].currency": func(d *capability.Definition) {
			d.Pricing = capability.Prices{{Amount: "1",
				Currency: "U S"}}
		},
		"pricing[0].network": func(d *capability.Definition) {
			d.Pricing = capability.Prices{{Amount: "1", Currency: "USDC", Network: "base"}}
		},
		"pricing[0].asset": func(d *capability.Definition) {
			d.Pricing = capability.Prices{{Amount: "1", Currency: "USDC", Asset: "0x1"}}
		},
		"inputSchema":       func(d *capability.Definition) { d.InputSchema = nil },
		"outputSchema/type": func(d *capability.Definition) { d.OutputSchema = json.RawMessage(`{"type":"objekt"}`) },
	}
	for field, change := range tests {
		d := definition(`{}`, `{}`)
		change(&d)
		_, err := capability.New(d)
		if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), field+":") {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

func TestSchemasAreBounded(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"another file":     `{"$ref":"other.json"}`,
		"a remote one":     `{"$ref":"https://example.com/schema.json"}`,
		"the meta-schema":  `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`,
		"a remote draft":   `{"$schema":"https://example.com/draft"}`,
		"nothing":          `{"$ref":"#/$defs/none"}`,
		"no RE2":           `{"pattern":"(?=a)b"}`,
		"a long pattern":   `{"pattern":"` + strings.Repeat("a", 2000) + `"}`,
		"a huge repeat":    `{"pattern":"(((a{1000}){1000}){1000})"}`,
		"10,000 levels":    strings.Repeat(`{"not":`, 10_000) + `{}` + strings.Repeat(`}`, 10_000),
		"too many":         `{"anyOf":[{}` + strings.Repeat(`,{}`, 5000) + `]}`,
		"too many bytes":   `{"description":"` + strings.Repeat("x", 70_000) + `"}`,
		"a member twice":   `{"type":"object","type":"string"}`,
		"no schema":        `7`,
		"no JSON":          `{`,
		"a huge exponent":  `{"multipleOf":1e1000000}`,
		"a wrong own kind": `{"minLength":"three"}`,
	}
	for name, schema := range tests {
		if _, err := capability.New(definition(schema, `{}`)); !errors.Is(err, repute.ErrInvalid) ||
			!strings.Contains(err.Error(), "inputSchema") || len(err.Error()) > 5000 {
			t.Errorf("reference to or use of %s: got %.300v", name, err)
		}
	}
}

func TestCheckInputNamesFieldAndCorrection(t *testing.T) {
	t.Parallel()
	c := withInput(t, `{"type":"object","required":["code"],"additionalProperties":false,"properties":{
		"code":{"type":"string","minLength":1,"maxLength":20,"pattern":"^[a-z ]*$"},"lang":{"enum":["go","rust"]},"n":{"type":"integer","maximum":9},
		"url":{"format":"uri"},"list":{"type":"array","items":{"type":"object","properties":{"a/b":{"const":1}}}}}}`)
	tests := []struct{ input, want string }{
		{`{"code":"x","lang":"go","n":9,"url":"https://a.example/","list":[{"a/b":1}]}`, ""},
		{`{}`, `input: "code" is missing (add what the schema requires)`},
		{`{"code":7}`, "input/code: is of type number (string)"},
		{`{"code":"` + strings.Repeat("secret ", 3) + `"}`, "input/code: maxLength: got 21, want 20"},
		{`{"code":"SECRET"}`, "input/code: does not match the pattern (^[a-z ]*$)"},
		{`{"code":"x","lang":"secret"}`, "input/lang: is none of the allowed values (go, rust)"},
		{`{"code":"x","n":10}`, "input/n: maximum: got 10, want 9"},
		{`{"code":"x","url":":secret"}`, "input/url: is no uri (a text of format uri)"},
		{`{"code":"x","list":[{},{"a/b":2}]}`, "input/list/1/a~1b: is not the allowed value (1)"},
		{`{"code":"x","more":1}`, `input: "more" is not a member (remove or rename it)`},
		{`[`, "input: is no JSON"},
		{`{"code":"x","code":"y"}`, "a member is given twice"},
		{`{"code":"x","n":9007199254740993}`, "input/n: the integer has too many digits"},
		{`{"code":"x","n":1e999999}`, "input/n: the number is out of range"},
		{`{"code":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `}`, "input.code: nests too deep"},
		{strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), "nests too deep"},
		{strings.Repeat("[", 1_000_000), "is no JSON"},
	}
	for _, tt := range tests {
		err := c.CheckInput(t.Context(), json.RawMessage(tt.input))
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.input, err)
			}
			continue
		}
		if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.60s: got %v; want %s", tt.input, err, tt.want)
		}
		if err != nil && strings.Contains(strings.ToLower(err.Error()), "secret") {
			t.Errorf("the error quotes the value: %v", err)
		}
	}
}

func TestMismatchListsTwenty(t *testing.T) {
	t.Parallel()
	c := withInput(t, `{"items":{"type":"string"}}`)
	err := c.CheckInput(t.Context(), json.RawMessage(`[1`+strings.Repeat(",1", 99)+`]`))
	var m *capability.Mismatch
	if !errors.As(err, &m) || len(m.Problems) != 20 || m.More != 80 || m.Problems[19].Field != "input/19" {
		t.Errorf("got %v", err)
	}
	if _, wide := any(m).(error); wide && len(m.Error()) > 4000 {
		t.Errorf("the text has %d bytes", len(m.Error()))
	}
}

func TestSizeLimits(t *testing.T) {
	t.Parallel()
	d := definition(`{}`, `{}`)
	d.MaxRequestBytes, d.MaxAnswerBytes = 10, 5
	c, err := capability.New(d)
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int][2]bool{5: {true, true}, 6: {true, false}, 10: {true, false}, 11: {false, false}} {
		doc := json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`)
		in, out := c.CheckInput(t.Context(), doc), c.CheckOutput(t.Context(), doc)
		if (in == nil) != want[0] || (out == nil) != want[1] || in != nil && !errors.Is(in, repute.ErrLimited) {
			t.Errorf("%d bytes: %v, %v", n, in, out)
		}
	}
}

// explosive are schemas that need exponential time for documents of a few hundred bytes.
func explosive() map[string][2]string {
	nested := strings.Repeat(`{"a":`, 60) + `1` + strings.Repeat(`}`, 60)
	chain := `"l0":{"type":"string"}`
	for i := 1; i <= 40; i++ {
		chain += fmt.Sprintf(`,"l%d":{"allOf":[{"$ref":"#/$defs/l%d"},{"$ref":"#/$defs/l%d"}]}`, i, i-1, i-1)
	}
	return map[string][2]string{
		"alternatives": {`{"$defs":{"e":{"anyOf":[{"required":["b"],"properties":{"a":{"$ref":"#/$defs/e"}}},
			{"required":["c"],"properties":{"a":{"$ref":"#/$defs/e"}}}]}},"$ref":"#/$defs/e"}`, nested},
		"alternatives under not": {`{"$defs":{"e":{"not":{"allOf":[{"properties":{"a":{"$ref":"#/$defs/e"}}},
			{"not":{"properties":{"a":{"$ref":"#/$defs/e"}}}}]}}},"$ref":"#/$defs/e"}`, nested},
		"references": {`{"$defs":{` + chain + `},"$ref":"#/$defs/l40"}`, `"x"`},
		"draft-07": {`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"e":{"oneOf":[{"properties":{"a":{"$ref":"#/definitions/e"}}},
			{"properties":{"a":{"$ref":"#/definitions/e"}}}]}},"$ref":"#/definitions/e"}`, nested},
		"itself":             {`{"$defs":{"e":{"$ref":"#/$defs/e"}},"$ref":"#/$defs/e"}`, `1`},
		"dynamic references": {`{"$dynamicAnchor":"e","anyOf":[{"required":["b"],"properties":{"a":{"$dynamicRef":"#e"}}},{"required":["c"],"properties":{"a":{"$dynamicRef":"#e"}}}]}`, nested},
		"patterns": {`{"items":{"allOf":[` + strings.Repeat(`{"pattern":"^(([a-z]+)*)*(x{1,200}){1,4}$"},`, 200) +
			`{}]}}`, `["` + strings.Repeat("x", 4_000_000) + `"]`},
		"many errors": {`{"items":{"allOf":[` + strings.Repeat(`{"minimum":10},`, 500) + `{}]}}`, `[1` +
			strings.Repeat(",1", 90_000) + `]`},
	}
}

// The test's own timeout is what fails when a validation does not end.
func TestExplosiveValidationEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range explosive() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := withInput(t, tt[0])
			for range 2 { // the second uses the copy of the schema that the first gave back
				err := c.CheckInput(t.Context(), json.RawMessage(tt[1]))
				if !errors.Is(err, repute.ErrInvalid) {
					t.Errorf("got %.200v", err)
				}
			}
			if err := c.CheckInput(t.Context(), json.RawMessage(`{"b":1,"c":1}`)); name == "alternatives" &&
				err != nil {
				t.Errorf("a document that matches: %v", err)
			}
		})
	}
}

func TestValidationEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := withInput(t, `{"items":{"type":"integer"}}`)
	err := c.CheckInput(ctx, json.RawMessage(`[1`+strings.Repeat(",1", 50_000)+`]`))
	if !errors.Is(err, context.Canceled) || errors.Is(err, repute.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

// Requests share a capability: each gets the decision on its own document.
func TestValidationIsConcurrent(t *testing.T) {
	t.Parallel()
	c := withInput(t, `{"items":{"type":"integer"}}`)
	for i := range 30 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for range 50 {
				good, bad := c.CheckInput(t.Context(), []byte(`[1,2,3]`)), c.CheckInput(t.Context(), []byte(`[1,"x"]`))
				if good != nil || bad == nil {
					t.Fatalf("%d: %v, %v", i, good, bad)
				}
			}
		})
	}
}

func TestCallOnTheWire(t *testing.T) {
	t.Parallel()
	c := capability.Call{AgentID: "42", Capability: "code-review", Version: "1.0.0", RequestID: "r",
		Client: common.HexToAddress("0x00000000000000000000000000000000000000aa"), Time: time.Unix(0, 0),
		Payment: &capability.Payment{Payer: common.HexToAddress("0xbb"), Amount: "1000", Asset: "0xcc",
			Network: "eip155:1"},
		Input: json.RawMessage(`{"a":1}`)}
	raw, err := json.Marshal(c)
	const want = `{"agentId":"42","capability":"code-review","version":"1.0.0","requestId":"r",` +
		`"clientAddress":"0x00000000000000000000000000000000000000AA",` +
		`"payment":{"payer":"0x00000000000000000000000000000000000000bb","amount":"1000","asset":"0xcc","network":"eip155:1"},` +
		`"timestamp":"1970-01-01T00:00:00Z","input":{"a":1}}`
	if err != nil || string(raw) != want {
		t.Errorf("got  %s, %v\nwant %s", raw, err, want)
	}
}

func BenchmarkCheckInput(b *testing.B) {
	c := withInput(b,
		`{"type":"object","required":["files"],"properties":{"files":{"type":"array","items":{"type":"object",
		"required":["path","text"],"properties":{"path":{"type":"string","pattern":"^[a-z/.]+$"},"text":{"type":"string"}}}}}}`)
	doc := json.RawMessage(`{"files":[` + strings.Repeat(`{"path":"a/b.go","text":"`+strings.Repeat("x", 1000)+
		`"},`, 99) +
		`{"path":"a","text":""}]}`)
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if err := c.CheckInput(b.Context(), doc); err != nil {
			b.Fatal(err)
		}
	}
}
