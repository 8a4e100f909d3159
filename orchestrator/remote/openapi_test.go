package remote_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"repute/orchestrator/outbound"
	"repute/orchestrator/remote"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/policy"
)

// described is the protocol's document.
type described struct {
	compiler *jsonschema.Compiler
	document map[string]any
}

func openAPI(t testing.TB) described {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(remote.OpenAPI()))
	ok(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	ok(t, c.AddResource("openapi.json", document))
	return described{c, document.(map[string]any)}
}

// at is the value behind keys, nil where there is none.
func (d described) at(keys ...string) any {
	var v any = d.document
	for _, k := range keys {
		o, _ := v.(map[string]any)
		v = o[k]
	}
	return v
}

// check judges JSON by the schema behind keys.
func (d described) check(text []byte, keys ...string) error {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	pointer := ""
	for _, k := range keys {
		pointer += "/" + escape.Replace(k)
	}
	schema, err := d.compiler.Compile("openapi.json#" + pointer)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

const jsonType = "application/json"

func answerKeys(path, verb string) []string {
	return []string{"paths", path, verb, "responses", "200", "content", jsonType, "schema"}
}

// watched is a transport that judges every request and every answer of status 200.
type watched struct {
	t *testing.T
	described
	prefix string // of the agent's URL
	seen   chan<- string
}

func watch(t *testing.T, prefix string) (*http.Client, <-chan string) {
	seen := make(chan string, 1000)
	return &http.Client{Transport: watched{t, openAPI(t), prefix, seen}}, seen
}

// RoundTrip implements http.RoundTripper.
func (w watched) RoundTrip(r *http.Request) (*http.Response, error) {
	path, verb := strings.TrimPrefix(r.URL.Path, w.prefix), strings.ToLower(r.Method)
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		if err := w.check(text, "paths", path, verb, "requestBody", "content", jsonType, "schema"); err != nil {
			w.t.Errorf("%s is asked %s: %v", path, text, err)
		}
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || res.StatusCode != http.StatusOK {
		return res, err
	}
	text, err := io.ReadAll(res.Body)
	if err := res.Body.Close(); err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(text))
	if err := w.check(text, answerKeys(path, verb)...); err != nil {
		w.t.Errorf("%s is answered %s: %v", path, text, err)
	}
	w.seen <- path
	return res, err
}

// The document and the Go types name the same members, of the same kinds.
func TestDocumentHasTheMembersOfTheTypes(t *testing.T) {
	t.Parallel()
	d := openAPI(t)
	named := map[string]bool{}
	for _, v := range []any{remote.Info{}, remote.Question{}, remote.Answer{}, standard.DryRun{},
		standard.Summary{}, outbound.HTTPResponse{}, outbound.PaidResponse{}, outbound.IntentResponse{},
		transaction.Simulation{}, transaction.Sent{}} {
		d.compare(t, reflect.TypeOf(v), named)
	}
	for name := range d.at("components", "schemas").(map[string]any) {
		if !named[name] {
			t.Errorf("no type is %s", name)
		}
	}
}

// compare looks at a struct and at those in it.
func (d described) compare(t *testing.T, typ reflect.Type, named map[string]bool) {
	if named[typ.Name()] {
		return
	}
	named[typ.Name()] = true
	properties, _ := d.at("components", "schemas", typ.Name(), "properties").(map[string]any)
	var members []string
	for _, f := range reflect.VisibleFields(typ) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || f.Anonymous { // the members of an embedded struct are visible too
			continue
		}
		members = append(members, name)
		p, there := properties[name].(map[string]any)
		if !there {
			t.Errorf("%s.%s is not in the document", typ.Name(), name)
			continue
		}
		d.compareMember(t, typ.Name()+"."+name, f.Type, p, named)
	}
	for name := range properties {
		if !slices.Contains(members, name) {
			t.Errorf("%s.%s is in the document alone", typ.Name(), name)
		}
	}
}

// compareMember looks at one member: what it refers to, or the kind of JSON that it is.
func (d described) compareMember(t *testing.T, name string, typ reflect.Type, p map[string]any, named map[string]bool) {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if items, ok := p["items"].(map[string]any); ok && typ.Kind() == reflect.Slice {
		d.compareMember(t, name+"[]", typ.Elem(), items, named)
		return
	}
	if ref, ok := p["$ref"].(string); ok {
		if ref != "#/components/schemas/"+typ.Name() {
			t.Errorf("%s is %s, the document says %s", name, typ.Name(), ref)
		}
		d.compare(t, typ, named)
		return
	}
	zero := reflect.Zero(typ)
	if typ.Kind() == reflect.Map {
		zero = reflect.MakeMap(typ)
	}
	b, err := json.Marshal(zero.Interface())
	ok(t, err)
	_, constant := p["const"]
	_, closed := p["enum"]
	if open := p["type"] == nil && typ == reflect.TypeFor[json.RawMessage](); open || constant || closed &&
		typ.Kind() == reflect.String {
		return
	}
	kind := map[string]any{"type": p["type"]}
	c := jsonschema.NewCompiler()
	ok(t, c.AddResource("member.json", kind))
	schema, err := c.Compile("member.json")
	ok(t, err)
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	ok(t, err)
	if err := schema.Validate(v); p["type"] == nil || err != nil {
		t.Errorf("%s is %s in Go, the document says %v", name, typ, p["type"])
	}
}

// Calls of every kind, and what comes of them, are as the document says.
func TestDocumentOfCalls(t *testing.T) {
	t.Parallel()
	d := openAPI(t)
	token := common.HexToAddress("0x3")
	tx := transaction.Tx{ChainID: 1, Target: common.HexToAddress("0x2"), Value: "1", Data: []byte{1}, Token: &token,
		Amount: "2", Purpose: "p"}
	for name, v := range map[string]any{
		"Call": remote.Answer{Calls: []remote.Call{{Kind: "tool", Tool: "a", Input: json.RawMessage(`[1]`)}}},
		"HTTP": remote.Answer{Calls: []remote.Call{{Kind: "http",
			HTTP: &outbound.HTTPRequest{URL: "https://example.com", Header: http.Header{"A": {"b"}},
				Body: []byte("x")}}}},
		"Pay": remote.Answer{Calls: []remote.Call{{Kind: "pay",
			Pay: &outbound.PaidRequest{HTTPRequest: outbound.HTTPRequest{URL: "https://example.com"}, Key: "a"}}}},
		"Intent": remote.Answer{Calls: []remote.Call{{Kind: "intent",
			Intent: &outbound.IntentRequest{Intent: "find@shop.example",
				Params: map[string]json.RawMessage{"q": json.RawMessage(`"a"`)}, Max: "0.05"}}}},
		"IntentResponse": outbound.IntentResponse{PaidResponse: &outbound.PaidResponse{
			HTTPResponse: outbound.HTTPResponse{Status: 200}}, Instructions: &outbound.Instructions{Intent: "a"}},
		"Read": remote.Answer{Calls: []remote.Call{{Kind: "read",
			Read: &remote.Read{ChainID: 1, To: tx.Target.Hex(), Data: "0x"}}}},
		"Tx": remote.Answer{Calls: []remote.Call{{Kind: "simulate", Tx: &tx},
			{Kind: "send", Tx: &transaction.Tx{ChainID: 1}}}},
		"HTTPResponse": outbound.HTTPResponse{Status: 200},
		"PaidResponse": outbound.PaidResponse{HTTPResponse: outbound.HTTPResponse{Status: 200},
			Payment: &outbound.Payment{ID: "buy_1"}}, "Simulation": transaction.Simulation{},
		"Sent": transaction.Sent{}, "DryRun": standard.DryRun{Calls: []transaction.Tx{tx}},
		"Budget": policy.DefaultBudget(),
	} {
		schema := name
		if _, is := v.(remote.Answer); is {
			schema = "Answer"
		}
		text, err := json.Marshal(v)
		ok(t, err)
		if err := d.check(text, "components", "schemas", schema); err != nil {
			t.Errorf("%s: %s: %v", name, text, err)
		}
	}
}

// What the orchestrator refuses is no answer in the document either.
func TestDocumentRefuses(t *testing.T) {
	t.Parallel()
	d := openAPI(t)
	for _, c := range []struct{ path, verb, answer string }{
		{"/info", "get",
			`{"protocol":"repute-agent/2","slug":"a","identityMode":"erc8004-required","manifest":{"slug":"a"}}`},
		{"/info", "get",
			`{"protocol":"repute-agent/1","slug":"No slug","identityMode":"erc8004-required","manifest":{"slug":"a"}}`},
		{"/info", "get", `{"protocol":"repute-agent/1","slug":"a","identityMode":"none","manifest":{"slug":"a"}}`},
		{"/can-handle", "post", `{}`},
		{"/can-handle", "post", `{"result":"yes"}`},
		{"/can-handle", "post", `{"calls":[{"kind":"tool","tool":"a"}]}`},
		{"/plan", "post", `{"result":[]}`},
		{"/plan", "post", `{"error":"","calls":[]}`},
		{"/plan", "post", `{"calls":[{"kind":"wish"}]}`},
		{"/plan", "post", `{"calls":[{"kind":"send"}]}`},
		{"/plan", "post", `{"calls":[{"kind":"intent","intent":{"intent":"find"}}]}`},
		{"/plan", "post", `{"calls":[{"kind":"intent"}]}`},
		{"/plan", "post", `{"calls":[{"kind":"pay","http":{"url":"https://example.com"}}]}`},
		{"/plan", "post", `{"calls":[` + strings.Repeat(`{"kind":"tool","tool":"a"},`, 16) +
			`{"kind":"tool","tool":"a"}]}`},
		{"/verify", "post", `{"result":{"checks":[],"score":1.5}}`},
		{"/summarize", "post", `{"result":"done"}`},
	} {
		if err := d.check([]byte(c.answer), answerKeys(c.path, c.verb)...); err == nil {
			t.Errorf("%s may be answered %s", c.path, c.answer)
		}
	}
}
