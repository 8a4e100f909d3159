package api_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"repute/api"
	"repute/api/wire"
)

// Every filter goes with every other and with every order, in REST, GraphQL and the
// tool alike, and all three give the same agents and the same total.
func TestFiltersTogether(t *testing.T) {
	t.Parallel()
	s, _ := documented(t, api.Options{Tools: newTools(t)}, unlimited())
	b := connect(t, s)
	for _, filter := range []map[string]any{
		{}, {"q": "weather"}, {"service": "MCP"}, {"skill": "chat"}, {"domain": "weather"},
		{"supportedTrust": "reputation"}, {"tag": "quality"},
		{"x402": true}, {"active": true}, {"status": "ok"}, {"minFeedback": 1}, {"owner": addr(3).Hex()},
		{"wallet": addr(77).Hex()},
		{"registeredSince": "2001-01-31"}, {"q": "weather", "service": "mcp", "status": "ok",
			"registeredSince": "2001-01-31T00:00:00Z"},
	} {
		for _, more := range []map[string]any{{}, {"rating": "unrated"}, {"minScore": -100.0},
			{"maxScore": 50.5, "tier": 1}} {
			for _, sort := range []string{"", "id", "feedback", "updated", "score", "relevance"} {
				all := map[string]any{}
				for _, part := range []map[string]any{filter, more} {
					for k, v := range part {
						all[k] = v
					}
				}
				if sort != "" {
					all["sort"], all["order"] = sort, "asc"
				}
				compareLists(t, s, b, all)
			}
		}
	}
}

// compareLists asks again where a busy machine took too long to count: the total is then at least the length of the
// page.
func compareLists(t *testing.T, s *httptest.Server, b toolbox, all map[string]any) {
	t.Helper()
	for tries := 1; !comparedLists(t, s, b, all); tries++ {
		if tries == 10 {
			t.Fatalf("%v: not counted ten times", all)
		}
	}
}

// comparedLists is false where one of the lists was not counted.
func comparedLists(t *testing.T, s *httptest.Server, b toolbox, all map[string]any) bool {
	t.Helper()
	params := []string{"limit", "50"}
	for name, v := range all {
		params = append(params, name, fmt.Sprint(v))
	}
	rest := as[wire.AgentList](t, get(t, s, "/agents"+query(params...)))
	all["limit"] = 50
	in, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	delete(all, "limit")
	var tool wire.AgentList
	if r := b.call("repute_search_agents", string(in)); r.IsError || json.Unmarshal([]byte(said(r)), &tool) != nil {
		t.Fatalf("%s: %s", in, said(r))
	}
	args, filter := "first: 50", ""
	for name, v := range all {
		value, _ := json.Marshal(v)
		switch name {
		case "q":
			args += ", query: " + string(value)
		case "sort", "order":
			args += fmt.Sprintf(", %s: %s", name, v)
		case "rating", "status":
			filter += fmt.Sprintf(" %s: %s", name, v)
		default:
			filter += fmt.Sprintf(" %s: %s", name, value)
		}
	}
	field := "search" // by relevance, which is REST's order beside what searches
	if isPlainList(all) {
		field = "agents"
	}
	graph := data[struct {
		List struct {
			Nodes []struct{ ShortID string }
			Total struct {
				Value    int
				Relation string
			}
		}
	}](t, ask(t, s, "{ list: "+field+"("+args+", filter: {"+filter+
		"}) { nodes { shortId } total { value relation } } }",
		nil)).List
	const counted = "eq"
	if rest.Total.Relation != counted || tool.Total.Relation != counted || graph.Total.Relation != counted {
		return false
	}
	var nodes []string
	for _, n := range graph.Nodes {
		nodes = append(nodes, n.ShortID)
	}
	want := ids(rest.Items)
	if ids(tool.Items) != want || strings.Join(nodes, " ") != want {
		t.Errorf("%v: REST %s, tool %s, GraphQL %v", all, want, ids(tool.Items), nodes)
	}
	if n := len(rest.Items); int(rest.Total.Value) != n && n < 50 || rest.Total != tool.Total ||
		graph.Total.Value != int(rest.Total.Value) {
		t.Errorf("%v: %d agents, totals %+v, %+v, %+v", all, n, rest.Total, tool.Total, graph.Total)
	}
	return true
}

// isPlainList reports whether a list is in order of ids by default.
func isPlainList(all map[string]any) bool {
	for _, name := range []string{"q", "service", "skill", "domain", "supportedTrust", "tag", "x402", "active",
		"status",
		"minFeedback"} {
		if all[name] != nil {
			return false
		}
	}
	return true
}
