package intentcall_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"repute"
	"repute/internal/sitetest"
	"repute/manifest/agentjson"
	"repute/orchestrator/intentcall"
	"repute/resolver"
	"repute/resolver/wellknown"
)

func wellknownOf(c *resolver.Client) *wellknown.Fetcher { return wellknown.New(c) }

// planOf is the first intent of a manifest of example.com.
func planOf(t *testing.T, intent, more string) *intentcall.Plan {
	t.Helper()
	text := fmt.Sprintf(`{"version":"1.4","origin":"example.com","payout_address":"0x71C7656EC7ab88b098defB751B7401B5f6d8976F",
		"intents":[{"name":"find","description":"Finds what is asked for.",%s}]%s}`, intent, more)
	m, problems := agentjson.Parse([]byte(text), agentjson.Options{})
	if repute.HasErrors(problems) {
		t.Fatalf("%s: %+v", text, problems)
	}
	return &intentcall.Plan{Intent: m.Intents[0], Terms: m.Terms(0), Origin: m.Origin}
}

// Arguments go into the query of GET and DELETE, and into the body of POST and PUT.
func TestRequest(t *testing.T) {
	arguments := map[string]json.RawMessage{"q": json.RawMessage(`"a&b=c #<"`), "n": json.RawMessage(`2.50`),
		"l": json.RawMessage(`["x"]`)}
	const parameters = `"parameters":{"q":{"type":"string"},"n":{"type":"number"},"l":{"type":"array"}}`
	for _, c := range []struct{ method, endpoint, url, body string }{
		{"GET", "/find?k=1", "https://example.com/find?k=1&l=%5B%22x%22%5D&n=2.50&q=a%26b%3Dc+%23%3C", ""},
		{"DELETE", "/find", "https://example.com/find?l=%5B%22x%22%5D&n=2.50&q=a%26b%3Dc+%23%3C", ""},
		{"POST", "https://example.com/find", "https://example.com/find", `{"l":["x"],"n":2.50,"q":"a&b=c #<"}`},
		{"PUT", "/find", "https://example.com/find", `{"l":["x"],"n":2.50,"q":"a&b=c #<"}`},
	} {
		p := planOf(t, fmt.Sprintf(`"endpoint":%q,"method":%q,%s`, c.endpoint, c.method, parameters), "")
		r, err := p.Request(arguments)
		if err != nil || r.Method != c.method || r.URL != c.url || string(r.Body) != c.body ||
			(r.Type != "") != (c.body != "") {
			t.Errorf("%+v: %+v %s, %v", c, r, r.Body, err)
		}
	}
}

// An endpoint of another origin has no request, whatever its form.
func TestOtherOrigin(t *testing.T) {
	for _, endpoint := range []string{"https://evil.example/find", "http://example.com/find", "//evil.example/find",
		"https://example.com:8443/find", "https://example.com@evil.example/find", "https://www.example.com/find"} {
		p := planOf(t, fmt.Sprintf(`"endpoint":%q,"method":"POST"`, endpoint), "")
		if r, err := p.Request(nil); !errors.Is(err, repute.ErrInvalid) || r.URL != "" {
			t.Errorf("%s: %+v, %v", endpoint, r, err)
		}
		p.Intent.URL = endpoint // as if the reader had let it pass
		if r, err := p.Request(nil); !errors.Is(err, repute.ErrInvalid) || r.URL != "" {
			t.Errorf("%s: %+v, %v", endpoint, r, err)
		}
	}
	if p := planOf(t, `"parameters":{}`, ""); !p.Semantic() {
		t.Error("an intent without an endpoint is said in words")
	}
}

// A price that is stated needs a bound, and is the most that is paid.
func TestLimit(t *testing.T) {
	const way = `,"payments":{"x402":{"networks":[{"network":"base","asset":"USDC"},{"network":"polygon","asset":"EURC"}]}}`
	price := func(more string) string { return `"endpoint":"/f","method":"GET",` + more }
	micros := func(n repute.Micros) *repute.Micros { return &n }
	for _, c := range []struct {
		intent, more string
		most         *repute.Micros
		limit        repute.Micros
		refused      bool
	}{
		{price(`"price":{"amount":0.02,"currency":"USD"}`), way, nil, 0, true},
		{price(`"price":{"amount":0.02,"currency":"USD"}`), way, micros(50_000), 20_000, false},
		{price(`"price":{"amount":0.02,"currency":"USD"}`), way, micros(19_999), 0, true},
		{price(`"price":{"amount":0.02,"currency":"USD"}`), "", nil, 0, true},
		{price(`"price":{"amount":0.02,"currency":"USD"}`), "", micros(19_999), 0, true},
		{price(`"price":{"amount":0,"currency":"USD"}`), way, nil, 0, false},
		{price(`"price":{"amount":0.02,"currency":"USD","model":"per_unit","unit_param":"n"},"parameters":{"n":{"type":"integer"}}`),
			way, micros(50_000), 50_000, false},
		{price(`"payments":{"x402":{"network_pricing":[{"network":"polygon","direct_price":3}]}}`), way, nil, 0, true},
		{price(`"payments":{"x402":{"network_pricing":[{"network":"polygon","direct_price":3}]}}`), way, micros(5), 5,
			false},
		{price(`"payments":{"x402":{"ticket_price":0.01}}`), way, nil, 0, true},
		{price(`"parameters":{}`), way, nil, 0, false},
		{price(`"parameters":{}`), way, micros(7), 7, false},
	} {
		got, err := planOf(t, c.intent, c.more).Limit(c.most)
		if got != c.limit || (err != nil) != c.refused || err != nil && !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%s: %d, %v", c.intent, got, err)
		}
	}
}

// Names and arguments are read strictly.
func TestTexts(t *testing.T) {
	for text, want := range map[string]bool{"a@b.example": true, "a": false, "@b": false, "a@": false, "a@b@c": false,
		"": false} {
		if _, err := intentcall.ParseTarget(text); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
	p := planOf(t, `"endpoint":"/f","method":"GET","parameters":{"q":{"type":"string"}}`, "")
	for _, texts := range [][]string{{"q"}, {"q=1", "q=2"}, {"=1"}, {"r=1"}} {
		if _, err := p.Arguments(texts); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%q: %v", texts, err)
		}
	}
	if got, err := p.Arguments([]string{"q=a=b"}); err != nil || string(got["q"]) != `"a=b"` {
		t.Errorf("%s, %v", got, err)
	}
}

// A redirect is not followed, also within the origin, and a manifest of another origin is not acted on.
func TestRedirect(t *testing.T) {
	var reached atomic.Bool
	text := `{"version":"1.4","origin":"%s","payout_address":"0x71C7656EC7ab88b098defB751B7401B5f6d8976F","intents":[
		{"name":"find","description":"Finds what is asked for.","endpoint":"/go","method":"POST"}]}`
	var origin atomic.Value
	origin.Store("example.com")
	guard := sitetest.New(t, "127.80.3.3", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/agent.json":
			fmt.Fprintf(w, text, origin.Load())
		case "/go":
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
		default:
			reached.Store(true)
		}
	}))
	client, err := resolver.New(resolver.Options{GuardOptions: guard})
	ok(t, err)
	t.Cleanup(client.Close)
	find := func() (*intentcall.Plan, error) {
		return intentcall.Find(t.Context(), wellknown.New(client),
			intentcall.Target{Name: "find", Domain: "example.com"})
	}
	p, err := find()
	ok(t, err)
	r, err := p.Request(nil)
	ok(t, err)
	direct := resolver.NewGuard(guard).Client(time.Minute)
	if _, err := intentcall.Call(t.Context(), intentcall.Free{Client: direct}, r); !errors.Is(err, repute.ErrInvalid) ||
		!strings.Contains(err.Error(), "redirects with status 307") {
		t.Errorf("%v", err)
	}
	if reached.Load() {
		t.Error("the redirect was followed")
	}
	origin.Store("other.example")
	if _, err := find(); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("a manifest of another origin: %v", err)
	}
}
