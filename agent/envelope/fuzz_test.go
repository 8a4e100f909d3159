package envelope_test

import (
	"encoding/json"
	"errors"
	"testing"

	"repute"
	"repute/agent"
	"repute/agent/capability"
	"repute/agent/envelope"
	"repute/x402"
)

func newRouter(t testing.TB, names ...string) *agent.Router {
	t.Helper()
	o := agent.Options{}
	for _, name := range names {
		c, err := capability.New(capability.Definition{Name: name, Version: "1.0.0", InputSchema: json.RawMessage(`{}`),
			OutputSchema: json.RawMessage(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		o.Services = append(o.Services, &agent.Service{Capability: c, Handler: none{}})
	}
	r, err := agent.NewRouter(nil, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// none is a handler that is not called.
type none struct{ agent.Handler }

// TestReadOrder: an object of the known members is an order, and everything else is the input.
func TestReadOrder(t *testing.T) {
	t.Parallel()
	one, two := newRouter(t, "a-b"), newRouter(t, "a-b", "c")
	for _, c := range []struct {
		r                        *agent.Router
		raw, name, wants, inputs string
	}{
		{one, `{"input":1}`, "", "a-b", "1"},
		{one, `{"capability":"c","input":{}}`, "", "c", "{}"},
		{one, `{"text":"x"}`, "", "a-b", `{"text":"x"}`},
		{one, `{"input":1,"other":2}`, "", "a-b", `{"input":1,"other":2}`},
		{one, `"text"`, "", "a-b", `"text"`},
		{two, `{"input":1}`, "a_b", "a_b", "1"},
		{two, `{"input":1}`, "unknown", "", ""},
		{two, `[]`, "", "", ""},
		{two, `{"capability":5,"input":1}`, "", "", ""},
		{two, `{"capability":"c","input":1,"payment":{"x402Version":7}}`, "", "", ""},
	} {
		o, err := envelope.ReadOrder(c.r, json.RawMessage(c.raw), c.name)
		if (err != nil) != (c.wants == "") || err == nil && (o.Capability != c.wants || string(o.Input) != c.inputs) {
			t.Errorf("%s: %+v, %v", c.raw, o, err)
		}
	}
}

// FuzzReadOrder checks for arbitrary bytes that an error has a kind with a status, and that the input is a
// part of the message.
func FuzzReadOrder(f *testing.F) {
	for _, seed := range []string{`{"input":1}`, `{"capability":"a","input":{},"payment":{"x402Version":2}}`, `[`,
		`null`,
		`{"input":null,"payment":null}`} {
		f.Add(seed)
	}
	r := newRouter(f, "a-b")
	f.Fuzz(func(t *testing.T, text string) {
		o, err := envelope.ReadOrder(r, json.RawMessage(text))
		var refused *x402.Refusal
		switch {
		case err == nil && (o.Capability == "" || len(o.Input) == 0 && text != ""):
			t.Errorf("%q: %+v", text, o)
		case err != nil && !errors.Is(err, repute.ErrInvalid) && !errors.As(err, &refused):
			t.Errorf("%q: %v", text, err)
		}
		var v any
		if json.Unmarshal([]byte(text), &v) != nil {
			return
		}
		if _, err := envelope.ReadPayment(v); err != nil && !errors.As(err, &refused) {
			t.Errorf("%q: payment: %v", text, err)
		}
	})
}
