package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"repute/api"
)

func TestETag(t *testing.T) {
	t.Parallel()
	s, l := populated(t, api.Options{})
	for _, path := range []string{
		"/agents/8453:7", "/agents/8453:7/reputation", "/agents/8453:7/feedback", "/agents/8453:7/validations",
		"/agents?chainId=8453",
	} {
		first := get(t, s, path)
		tag := first.header.Get("ETag")
		if !strings.HasPrefix(tag, `W/"`) || first.header.Get("Cache-Control") == "" {
			t.Fatalf("%s: %v", path, first.header)
		}
		for _, have := range []string{tag, `"x", ` + tag, strings.TrimPrefix(tag, "W/"), "*"} {
			r := get(t, s, path, "If-None-Match", have)
			if r.status != http.StatusNotModified || len(r.body) != 0 || r.header.Get("ETag") != tag {
				t.Errorf("%s with %s: %d %q", path, have, r.status, r.body)
			}
		}
		l.add(ratingOf(8, 300, l.tip.Number, 1, 0, "other", ""))
		if r := get(t, s, path, "If-None-Match", tag); r.status != http.StatusOK {
			t.Errorf("%s after a block: %d", path, r.status)
		}
	}
	if a, b := get(t, s, "/agents/8453:7/reputation?tag1=a"),
		get(t, s, "/agents/8453:8/reputation?tag1=a"); a.header.Get("ETag") == b.header.Get("ETag") {
		t.Error("two questions share an ETag")
	}
	if h := get(t, s, "/status").header; h.Get("Cache-Control") != "no-store" || h.Get("ETag") != "" {
		t.Errorf("/status may be cached: %v", h)
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{})
	r := do(t, s, http.MethodHead, "/agents/8453:7", nil)
	if r.status != http.StatusOK || len(r.body) != 0 || r.header.Get("ETag") == "" {
		t.Errorf("%d %v", r.status, r.header)
	}
}

// TestEveryMemberIsDocumented: what is sent is what OpenAPI promises.
func TestEveryMemberIsDocumented(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{})
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any `json:"properties"`
				Required   []string       `json:"required"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(get(t, s, "/openapi.json").body, &doc); err != nil {
		t.Fatal(err)
	}
	for path, name := range map[string]string{
		"/agents/8453:7": "AgentAnswer", "/agents/8453:7/reputation": "ReputationAnswer", "/agents": "AgentList",
		"/agents/8453:7/feedback": "FeedbackList", "/agents/8453:7/validations": "ValidationList",
		"/chains": "ChainList", "/chains/1": "Chain", "/status": "StatusAnswer", "/agents/x": "ErrorBody",
	} {
		var body map[string]any
		if err := json.Unmarshal(get(t, s, path).body, &body); err != nil {
			t.Fatal(err)
		}
		schema, found := doc.Components.Schemas[name]
		if !found {
			t.Fatalf("no schema %s", name)
		}
		for member := range body {
			if _, known := schema.Properties[member]; !known {
				t.Errorf("%s: %s is not documented", path, member)
			}
		}
		for _, member := range schema.Required {
			if _, sent := body[member]; !sent {
				t.Errorf("%s: %s is promised and missing", path, member)
			}
		}
	}
}

// What is not there comes with where to look: for the agent, or for what the id names.
func TestHintsOfMissing(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{})
	for path, want := range map[string]string{
		"/agents/8453:999":            "GET /agents and the tool repute_search_agents list",
		"/agents/8453:999/reputation": "GET /agents and the tool repute_search_agents list",
		"/agents/5:7":                 "GET /chains",
	} {
		if p := problemOf(t, get(t, s, path)); p.Status != 404 || !strings.Contains(p.Hint, want) {
			t.Errorf("%s: %+v", path, p)
		}
	}
}
