package api_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"repute/api/wire"
	"repute/internal/httpapi"
)

// scoredList reads a list to its end, a few agents at a time.
func scoredList(t *testing.T, s *httptest.Server, filter string) (out []wire.Agent) {
	t.Helper()
	for cursor := ""; ; {
		page := as[wire.AgentList](t, get(t, s, "/agents?limit=5"+filter+cursor))
		out = append(out, page.Items...)
		if page.Next == nil {
			return out
		}
		cursor = "&cursor=" + *page.Next
	}
}

// Lists know the scores that agents have by themselves, and order and filter by them.
func TestListsByScore(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1})
	byID := map[wire.ID]wire.Agent{}
	for _, a := range scoredList(t, s, "") {
		one := as[wire.AgentAnswer](t, get(t, s, "/agents/"+string(a.ShortID)))
		if one.Standing != a.Standing {
			t.Errorf("%s: %+v, in a list %+v", a.ShortID, one.Standing, a.Standing)
		}
		byID[a.ID] = a
	}
	for order, sign := range map[string]float64{"": -1, "&order=asc": 1, "&order=desc": -1} {
		list := scoredList(t, s, "&sort=score"+order)
		if len(list) != scoredAgents-1 { // one was never rated
			t.Errorf("%q: %d agents", order, len(list))
		}
		for i := range list[1:] {
			if (list[i+1].Score-list[i].Score)*sign < 0 {
				t.Errorf("%q: %v before %v", order, list[i].Score, list[i+1].Score)
			}
		}
	}
	for filter, holds := range map[string]func(wire.Agent) bool{
		"&minScore=20":                    func(a wire.Agent) bool { return a.Status == "rated" && a.Score >= 20 },
		"&minScore=-100":                  func(a wire.Agent) bool { return a.Status == "rated" },
		"&minScore=100":                   func(a wire.Agent) bool { return a.Status == "rated" && a.Score >= 100 },
		"&tier=1":                         func(a wire.Agent) bool { return a.Status == "rated" && a.Tier == 1 },
		"&tier=2":                         func(a wire.Agent) bool { return a.Status == "rated" && a.Tier == 2 },
		"&rating=rated":                   func(a wire.Agent) bool { return a.Status == "rated" },
		"&rating=unrated":                 func(a wire.Agent) bool { return a.Status == "unrated" },
		"&rating=unrated&minScore=0":      func(wire.Agent) bool { return false },
		"&rating=rated&sort=feedback":     func(a wire.Agent) bool { return a.Status == "rated" },
		"&minScore=0.001&sort=updated":    func(a wire.Agent) bool { return a.Status == "rated" && a.Score >= 0.001 },
		"&minScore=10&sort=score":         func(a wire.Agent) bool { return a.Status == "rated" && a.Score >= 10 },
		"&tier=1&rating=rated&sort=score": func(a wire.Agent) bool { return a.Status == "rated" && a.Tier == 1 },
	} {
		checkList(t, filter, scoredList(t, s, filter), byID, holds)
	}
}

func checkList(t *testing.T, filter string, list []wire.Agent, all map[wire.ID]wire.Agent,
	holds func(wire.Agent) bool) {
	t.Helper()
	want := 0
	for _, a := range all {
		if holds(a) {
			want++
		}
	}
	for _, a := range list {
		if !holds(a) {
			t.Errorf("%s: %s, %+v", filter, a.ShortID, a.Standing)
		}
	}
	if len(list) != want {
		t.Errorf("%s: %d agents, want %d", filter, len(list), want)
	}
}

// explained is an explanation as GraphQL writes it.
const explained = `query($id: ID!, $at: String, $without: [Address!]) { agent(id: $id, at: $at) {
	score low high confidence status tier
	explain(limit: 7, without: $without) {
		agent: roots score low high confidence status tier sentence reason guard { agent score tier holder role share roots }
			sourced { raters classes praise blame } sources { source status reason chain block readAt completeAt kept } verified verifiedTo gates { id
			direction passed lacks { what have must need units } } scorer finality epoch
		scoredAt { block hash time } hashes { params tags roots links sources credentials fileScales evidence } roots ownRoots { given known sourced }
		contributions { kind points channel raters weight opinion evidence unvouched sourced sources path count rows { tx block time logIndex
			rater via index tag1 value } }
		excluded { tx block time logIndex rater via index tag1 value readings reason } excludedByReason { reason count }
		counterfactuals { without score low high confidence status tier }
		asOf { chainId block hash time finality safe finalized head headSeenAt lagSeconds lagBlocks completeness { status
			reason verifiedToBlock ranges { from to } pending undecoded openGaps } } } } }`

// GraphQL explains as REST does.
func TestGraphQLExplains(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1})
	for _, at := range []string{"latest", "finalized", "25", "3"} {
		for agent := range scoredAgents {
			id, root := fmt.Sprintf("%d:%d", scoredChain, agent), addr(firstRoot).Hex()
			a := data[struct {
				Agent struct {
					wire.Standing
					Explain map[string]any
				}
			}](t, ask(t, s, explained, map[string]any{"id": id, "at": at, "without": []string{root}})).Agent
			rest := as[map[string]any](t,
				get(t, s, scoredPath(agent, "/explain"+query("at", at, "limit", "7", "without", root))))
			delete(a.Explain, "agent")
			delete(rest, "agent")
			for _, e := range []map[string]any{a.Explain, rest} { // the clock ran on
				asOf := e["asOf"].(map[string]any)
				delete(asOf, "lagSeconds")
			}
			for _, gate := range a.Explain["gates"].([]any) {
				for _, lacks := range gate.(map[string]any)["lacks"].([]any) {
					if l := lacks.(map[string]any); l["units"] == nil { // REST leaves it out
						delete(l, "units")
					}
				}
			}
			got, want := canonical(t, a.Explain), canonical(t, rest)
			if got != want {
				t.Errorf("agent %d at %s: GraphQL\n%s\nREST\n%s", agent, at, got, want)
			}
			if at == "latest" && fmt.Sprint(a.Score) != fmt.Sprint(rest["score"]) {
				t.Errorf("agent %d: score %v, explained %v", agent, a.Score, rest["score"])
			}
		}
	}
	for q, field := range map[string]string{
		`{ agent(id: "31337:0") { explain(limit: 0) { score } } }`:                      "limit",
		`{ agent(id: "31337:0") { explain(limit: 101) { score } } }`:                    "limit",
		`{ agent(id: "31337:0") { explain(without: ["0x1"]) { score } } }`:              "without",
		`{ agents(filter: {minScore: 101}) { nodes { id } } }`:                          "minScore",
		`{ agents(filter: {tier: 9}) { nodes { id } } }`:                                "tier",
		`{ agent(id: "31337:0", at: "20") { reputation(roots: "friends") { score } } }`: "roots",
		`{ agent(id: "31337:0") { explain(without: [` + strings.Repeat(`"`+addr(1).Hex()+`",`,
			101) + `]) { score } } }`: "without",
	} {
		a := ask(t, s, q, nil)
		if len(a.Errors) == 0 || a.Errors[0].Extensions["field"] != field {
			t.Errorf("%.90s: %+v", q, a.Errors)
		}
	}
}

func canonical(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Explanations refuse what cannot be meant.
func TestHostileExplanations(t *testing.T) {
	t.Parallel()
	s, l := scoredWorld(t, httpapi.Limits{Rate: -1})
	many := strings.TrimSuffix(strings.Repeat(addr(1).Hex()+",", 101), ",")
	for q, field := range map[string]string{
		"?limit=0": "limit", "?limit=101": "limit", "?limit=x": "limit", "?without=0x1": "without",
		"?without=" + many: "without",
		"?at=yesterday":    "at", fmt.Sprintf("?at=%d", l.tip.Number+1): "at", "?roots=foes": "roots",
		"?without=,": "without",
	} {
		r := get(t, s, scoredPath(0, "/explain"+q))
		if p := problemOf(t, r); r.status != 400 || len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%.60s: %d %s", q, r.status, r.body)
		}
	}
	for _, path := range []string{"/agents/31337:99/reputation/explain", "/agents/8453:1/reputation/explain",
		"/agents/31337:0/reputation/explain/more"} {
		if r := get(t, s, path); r.status != 404 {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
}

// OpenFi's snapshot is there where it is asked for.
func TestOpenFi(t *testing.T) {
	t.Parallel()
	s, l := scoredWorld(t, httpapi.Limits{Rate: -1})
	plain := get(t, s, scoredPath(0, ""))
	if strings.Contains(string(plain.body), "openfi") {
		t.Errorf("not asked for: %s", plain.body)
	}
	r := as[wire.ReputationAnswer](t, get(t, s, scoredPath(0, "?openfi=1"))).OpenFi
	if r == nil || !r.IdentityExists || r.RegistrationResolves || r.ValidationStatus != "failed" || r.Overall != 0.25 ||
		r.OverallGranted != 0.25 ||
		len(r.Lacks) != 4 || r.Block != Long(l.tip.Number) || r.SnapshotAt == nil {
		t.Errorf("%+v", r)
	}
	past := as[wire.ReputationAnswer](t, get(t, s, scoredPath(0, "?openfi=true&at=20"))).OpenFi
	if past == nil || past.Block != 20 {
		t.Errorf("%+v", past)
	}
	byGraph := data[struct {
		Agent struct{ Reputation struct{ OpenFi wire.OpenFi } }
	}](t,
		ask(t, s,
			`{ agent(id: "31337:0") { reputation { openfi { identityExists registrationResolves agentJsonResolves operatorMatches validationStatus
		overallTrustScore overallTrustScoreValidationGranted lacks { part reason } block snapshotAt read { sha256
			parserVersion } } } } }`, nil)).Agent.Reputation.OpenFi
	if canonical(t, byGraph) != canonical(t, r) {
		t.Errorf("GraphQL %+v, REST %+v", byGraph, r)
	}
	if p := problemOf(t, get(t, s, scoredPath(0, "?openfi=maybe"))); p.Status != 400 || p.Errors[0].Field != "openfi" {
		t.Errorf("%+v", p)
	}
}
