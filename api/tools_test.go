package api_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"repute/api"
	"repute/internal/httpapi"
	"repute/mcp"
)

func newTools(t testing.TB) *mcp.Server {
	t.Helper()
	return mcp.New(mcp.Options{Logger: slog.New(slog.DiscardHandler)})
}

// toolbox is a client with what the server offers.
type toolbox struct {
	t       *testing.T
	session *sdk.ClientSession
	tools   map[string]*sdk.Tool
	// answered has the tools whose answers were held against their schemas.
	answered map[string]bool
}

func connect(t *testing.T, s *httptest.Server) toolbox {
	t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: s.URL + "/mcp",
		DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	b := toolbox{t, session, map[string]*sdk.Tool{}, map[string]bool{}}
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		b.tools[tool.Name] = tool
	}
	return b
}

func (b toolbox) call(name, arguments string) *sdk.CallToolResult {
	b.t.Helper()
	r, err := b.session.CallTool(b.t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func said(r *sdk.CallToolResult) string { return r.Content[0].(*sdk.TextContent).Text }

// fits compares an answer with the schema that the tool promises.
func (b toolbox) fits(name string, r *sdk.CallToolResult) {
	b.t.Helper()
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///out", b.tools[name].OutputSchema); err != nil {
		b.t.Fatal(err)
	}
	s, err := c.Compile("mem:///out")
	if err != nil {
		b.t.Fatalf("%s: %v", name, err)
	}
	if err := s.Validate(r.StructuredContent); err != nil {
		b.t.Errorf("%s: the answer is not as its schema says: %v", name, err)
	}
	b.answered[name] = true
}

// Tools answer what the routes do, at the same block.
func TestToolsAnswerAsRoutes(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1})
	b := connect(t, s)
	if len(b.tools) != 6 {
		t.Fatalf("%d tools", len(b.tools))
	}
	for _, c := range []struct{ tool, arguments, path string }{
		{"repute_get_agent", `{"agentId":"31337:3"}`, "/agents/31337:3"},
		{"repute_decide", `{"agentId":"31337:3","minScore":-5,"tier":1,"gates":["service"],"valueAtRisk":"7"}`,
			"/agents/31337:3/decision?minScore=-5&tier=1&gates=service&valueAtRisk=7"},
		{"repute_find_intents", `{"q":"flight","limit":3}`, "/intents?q=flight&limit=3"},
		{"repute_get_agent", `{"agentId":3,"chainId":31337,"at":"finalized"}`, "/agents/3?chainId=31337&at=finalized"},
		{"repute_get_reputation", `{"agentId":"31337:3","openfi":true}`, "/agents/31337:3/reputation?openfi=1"},
		{"repute_get_reputation", `{"agentId":3,"at":41,"tag1":"starred"}`, "/agents/3/reputation?at=41&tag1=starred"},
		{"repute_get_reputation", `{"agentId":3,"roots":"friends"}`, "/agents/3/reputation?roots=friends"},
		{"repute_explain_score", `{"agentId":"31337:3","limit":2,"without":["` + addr(firstRoot).Hex() + `"]}`,
			"/agents/31337:3/reputation/explain?limit=2&without=" + addr(firstRoot).Hex()},
		{"repute_explain_score", `{"agentId":"31337:3","roots":"friends"}`,
			"/agents/31337:3/reputation/explain?roots=friends"},
		{"repute_search_agents", `{"limit":3,"sort":"score"}`, "/agents?limit=3&sort=score"},
		{"repute_search_agents", `{"chainIds":[31337],"rating":"rated","minScore":-3.5}`,
			"/agents?limit=10&chainId=31337&rating=rated&minScore=-3.5"},
		{"repute_search_agents", `{"q":"anything"}`, "/agents?limit=10&q=anything"},
	} {
		r := b.call(c.tool, c.arguments)
		if r.IsError {
			t.Errorf("%s %s: %s", c.tool, c.arguments, said(r))
			continue
		}
		b.fits(c.tool, r)
		var text map[string]any
		if err := json.Unmarshal([]byte(said(r)), &text); err != nil || !reflect.DeepEqual(text, r.StructuredContent) {
			t.Errorf("%s: the text is another answer: %v", c.tool, err)
		}
		route := as[map[string]any](t, get(t, s, c.path))
		// The names that other indexes have are for callers of the route: a model needs one name for a thing.
		for _, other := range []string{"avgRating", "totalFeedback", "overall_score", "tier_name"} {
			delete(route, other)
		}
		if settled(route); !reflect.DeepEqual(settled(text), route) {
			t.Errorf("%s %s and %s differ:\n%v\n%v", c.tool, c.arguments, c.path, text, route)
		}
	}
	for name := range b.tools {
		if !b.answered[name] {
			t.Errorf("no answer of %s was held against its schema", name)
		}
	}
}

// settled leaves out what moves with the clock.
func settled(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "lagSeconds")
		for _, below := range v {
			settled(below)
		}
	case []any:
		for _, below := range v {
			settled(below)
		}
	}
	return v
}

// What is wrong is told with the field and what would be right.
func TestToolsRefuse(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1})
	b := connect(t, s)
	for _, c := range []struct{ tool, arguments, says string }{
		{"repute_get_agent", `{}`, "agentId: is missing"},
		{"repute_get_agent", `{"agentId":"31337:3","agent":1}`,
			"agent: is no field of this tool. Fix: known are agentId, at, chainId"},
		{"repute_get_agent", `{"agentId":["a"]}`, "agentId: must be text or a whole number"},
		{"repute_get_agent", `{"agentId":"x y"}`, "agentId: not a decimal token id"},
		{"repute_get_agent", `{"agentId":"31337:99"}`, "not_found: "},
		{"repute_get_agent", `{"agentId":"31337:3","at":"soon"}`, "at: "},
		{"repute_get_reputation", `{"agentId":"31337:3","clients":["nobody"]}`, "clients: not an address"},
		{"repute_explain_score", `{"agentId":"31337:3","limit":1000}`, "limit: must be number <= 100"},
		{"repute_search_agents", `{"sort":"name"}`, "sort: must be one of"},
		{"repute_search_agents", `{"limit":51}`, "limit: "},
		{"repute_search_agents", `{"q":"a b","minScore":1}`, "q: "},
		{"repute_search_agents", `{"cursor":"none"}`, "cursor: "},
	} {
		r := b.call(c.tool, c.arguments)
		if !r.IsError || !strings.Contains(said(r), c.says) {
			t.Errorf("%s %s: %s", c.tool, c.arguments, said(r))
		}
		if body, ok := r.Meta["repute/problem"].(map[string]any); !ok || body["code"] == "" ||
			body["requestId"] == "" ||
			r.StructuredContent != nil {
			t.Errorf("%s %s: meta %v", c.tool, c.arguments, r.Meta)
		}
	}
}

// Explanations by tools count against the caller as those by the route do.
func TestToolsAreLimited(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{})
	b := connect(t, s)
	for n := 0; ; n++ {
		r := b.call("repute_explain_score", `{"agentId":"31337:3"}`)
		if !r.IsError {
			if n > 40 {
				t.Fatal("nothing limits explanations")
			}
			continue
		}
		if !strings.HasPrefix(said(r), "limited: ") || n == 0 {
			t.Errorf("after %d: %s", n, said(r))
		}
		return
	}
}

// TestToolsArePosted answers other methods as every route does.
func TestToolsArePosted(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Options{DB: open(t, nowhere), Tools: mcp.New(mcp.Options{})})
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut} {
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/mcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 405 || resp.Header.Get("Content-Type") != "application/problem+json" ||
			resp.Header.Get("Allow") != "OPTIONS, POST" {
			t.Errorf("%s: %d %v", method, resp.StatusCode, resp.Header)
		}
	}
}
