package api_test

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute/api/wire"
	"repute/internal/httpapi"
)

// rootsQuery asks for a score by addresses.
func rootsQuery(numbers ...int) string {
	parts := make([]string, len(numbers))
	for i, n := range numbers {
		parts[i] = addr(firstRoot + n).Hex()
	}
	return "?roots=" + url.QueryEscape(strings.Join(parts, ","))
}

// The caller's roots score as the chain's would if they were the chain's.
func TestScoresByRootsOfTheCaller(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1})
	same := 0
	for agent := range scoredAgents {
		stored := as[wire.ReputationAnswer](t, get(t, s, scoredPath(agent, "")))
		given := as[wire.ReputationAnswer](t, get(t, s, scoredPath(agent, rootsQuery(7, 6, 5, 4, 3, 2, 1, 0))))
		if stored.Scorer != nil && given.Standing != stored.Standing || *given.Roots != "given" ||
			given.Summary.Count != stored.Summary.Count {
			t.Errorf("agent %d: %+v, by the same roots %+v", agent, stored.Scored, given.Scored)
		}
		named := as[wire.ReputationAnswer](t, get(t, s, scoredPath(agent, "?roots=friends")))
		two := as[wire.ReputationAnswer](t, get(t, s, scoredPath(agent, strings.ToLower(rootsQuery(1, 0)))))
		if named.Standing != two.Standing || *named.Roots != "friends" {
			t.Errorf("agent %d: %+v, by the same addresses %+v", agent, named.Scored, two.Scored)
		}
		if named.Standing == stored.Standing {
			same++
		}
		nobody := as[wire.ReputationAnswer](t, get(t, s, scoredPath(agent, "?roots="+addr(1).Hex())))
		if nobody.Status != "unrated" || nobody.Score != 0 || nobody.Reason == nil ||
			*nobody.Finality != "provisional" {
			t.Errorf("agent %d by a root that rated nobody: %+v", agent, nobody.Scored)
		}
		if r := byGraphQL(t, s, agent, "friends"); r.Standing != named.Standing || *r.Scored.Roots != "friends" {
			t.Errorf("agent %d: GraphQL %+v, REST %+v", agent, r, named.Scored)
		}
		if stored.OwnRoots != nil || *given.OwnRoots != (wire.OwnRoots{Given: chainRoots, Known: chainRoots}) ||
			*nobody.OwnRoots != (wire.OwnRoots{Given: 1}) {
			t.Errorf("agent %d: roots counted %v, %v, %v", agent, stored.OwnRoots, given.OwnRoots, nobody.OwnRoots)
		}
		if agent < scoredAgents-1 && !strings.Contains(*nobody.Reason, "none of these roots ever rated anybody") {
			t.Errorf("agent %d: %s", agent, *nobody.Reason)
		}
	}
	if same > scoredAgents/2 {
		t.Errorf("%d of %d agents have the same score by any roots", same, scoredAgents)
	}
}

// A score by roots of the caller is explained by the same roots, and in the same form.
func TestExplanationsByRootsOfTheCaller(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1})
	ends := map[string]bool{}
	for agent := range scoredAgents {
		said := as[wire.ReputationAnswer](t, get(t, s, scoredPath(agent, "?roots=friends")))
		answer := get(t, s, scoredPath(agent, "/explain"+query("roots", "friends", "without", addr(firstRoot).Hex())))
		e, numbers := as[wire.ExplainAnswer](t, answer), as[exact](t, answer)
		sum := int64(0)
		for i, c := range e.Contributions {
			sum += thousandths(t, numbers.Contributions[i].Points)
			if len(c.Path) > 0 {
				ends[string(c.Path[0])] = true
			}
		}
		if e.Standing != said.Standing || sum != thousandths(t, numbers.Score) || *e.Roots != "friends" ||
			*e.OwnRoots != *said.OwnRoots ||
			e.Hashes.Roots != said.Hashes.Roots || e.Hashes.Evidence != nil || len(e.Counterfactuals) == 0 &&
			agent < scoredAgents-1 || e.AsOf.Block != said.AsOf.Block {
			t.Errorf("agent %d: %+v, parts %d, explained %.300s", agent, said.Standing, sum, answer.body)
		}
		a := ask(t, s,
			`query($id: ID!) { agent(id: $id) { explain(roots: "friends") { score low high confidence status tier roots ownRoots { given known } } } }`,
			map[string]any{"id": fmt.Sprintf("%d:%d", scoredChain, agent)})
		if g := data[struct{ Agent struct{ Explain wire.Scored } }](t, a).Agent.Explain; g.Standing != e.Standing ||
			*g.Roots != "friends" || *g.OwnRoots != *e.OwnRoots {
			t.Errorf("agent %d: GraphQL %+v, REST %+v", agent, g, e.Scored)
		}
	}
	for root := range ends {
		if root != addr(firstRoot).Hex() && root != addr(firstRoot+1).Hex() {
			t.Errorf("a path begins at %s, who is no friend", root)
		}
	}
	if len(ends) != 2 {
		t.Errorf("paths begin at %v", ends)
	}
}

type graphReputation struct {
	wire.Standing
	Scored       struct{ Roots *string }
	Independence wire.Independence
}

func byGraphQL(t *testing.T, s *httptest.Server, agent int, roots string) graphReputation {
	t.Helper()
	a := ask(t, s,
		`query($id: ID!, $roots: String) { agent(id: $id) { reputation(roots: $roots) { score low high confidence status tier
		scored { roots } independence { ratings raters clusters oneAgentShare burstiness } } } }`,
		map[string]any{"id": fmt.Sprintf("%d:%d", scoredChain, agent), "roots": roots})
	return data[struct {
		Agent struct{ Reputation graphReputation }
	}](t, a).Agent.Reputation
}

// Roots that cannot be meant are refused, never replaced by the chain's.
func TestHostileRoots(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1})
	root := addr(firstRoot).Hex()
	many := make([]string, 101)
	for i := range many {
		many[i] = addr(i).Hex()
	}
	mixed := "0x8004A169FB4a3325136EB29fA0ceB6D2e539A432" // the last letter should be small
	for name, roots := range map[string]string{
		"twice": root + "," + root, "twice in other capitals": root + "," + strings.ToLower(root),
		"too many": strings.Join(many, ","),
		"empty":    "", "comma": ",", "open end": root + ",", "zero": common.Address{}.Hex(), "short": root[:41],
		"long":   root + "00",
		"no hex": "0x" + strings.Repeat("g", 40), "bad checksum": mixed, "unknown set": "enemies",
		"set and address": "friends," + root,
		"no name":         "'; drop table agents; --", "NUL": "a\x00b", "long name": strings.Repeat("a", 5000),
	} {
		for path, field := range map[string]string{"": "reputation(roots: $r) { score }",
			"/explain": "explain(roots: $r) { score }"} {
			r := get(t, s, scoredPath(0, path+query("roots", roots)))
			p := problemOf(t, r)
			if r.status != 400 || len(p.Errors) != 1 || p.Errors[0].Field != "roots" || len(r.body) > 2000 {
				t.Errorf("%s%s: %d %s", name, path, r.status, r.body)
			}
			a := ask(t, s, `query($r: String) { agent(id: "31337:0") { `+field+` } }`, map[string]any{"r": roots})
			if len(a.Errors) != 1 || a.Errors[0].Extensions["field"] != "roots" {
				t.Errorf("%s: GraphQL %s %+v", name, field, a)
			}
		}
	}
	for _, rest := range []string{"?at=20", "?at=finalized", "?signed=1", "/explain?at=20", "/explain?at=safe"} {
		if r := get(t, s, scoredPath(0, rest+"&roots=friends")); r.status != 400 {
			t.Errorf("%s: %d %s", rest, r.status, r.body)
		}
	}
	if a := ask(t, s, `query { agent(id: "31337:0", at: "20") { explain(roots: "friends") { score } } }`,
		nil); len(a.Errors) != 1 || a.Errors[0].Extensions["field"] != "roots" {
		t.Errorf("GraphQL at a block: %+v", a)
	}
	for how, variable := range map[string]string{`query { agent(id: "31337:0") { explain(roots: ["0x12"]) { score } } }`: "", `query($r: String) { agent(id: "31337:0") { reputation(roots: $r) { score } } }`: "r"} {
		a := ask(t, s, how, map[string]any{variable: []string{"0x12"}})
		if len(a.Errors) == 0 || strings.Contains(a.Errors[0].Message, "interface") || variable != "" &&
			a.Errors[0].Message != "a variable is a list where a text belongs" {
			t.Errorf("a list: %+v", a)
		}
	}
	for path, want := range map[string]int{"?roots=friends&sources=default": 200, "?roots=friends&sources=none": 200,
		"?roots=friends&sources=all": 400, "?sources=default": 400, "?sources=none": 400,
		"/explain?sources=default":               400,
		"/explain?roots=friends&sources=default": 200} {
		r := get(t, s, scoredPath(0, path))
		if r.status != want || want == 400 && problemOf(t, r).Errors[0].Field != "sources" {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	for _, field := range []string{"reputation(sources: \"default\") { score }",
		"explain(roots: \"friends\", sources: \"all\") { score }"} {
		if a := ask(t, s, `query { agent(id: "31337:0") { `+field+` } }`, nil); len(a.Errors) != 1 ||
			a.Errors[0].Extensions["field"] != "sources" {
			t.Errorf("GraphQL %s: %+v", field, a)
		}
	}
	if r := get(t, s, "/agents/31337:99/reputation?roots=friends"); r.status != 404 {
		t.Errorf("no such agent: %d %s", r.status, r.body)
	}
}

// Walks have a limit of their own; what was asked before is free.
func TestWalksAreLimited(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: 1000, Burst: 1000})
	limited := reply{}
	for n := range 40 {
		r := get(t, s, scoredPath(0, "?roots="+addr(n).Hex()))
		if r.status == 429 {
			limited = r
			break
		}
		if r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	if limited.header.Get("Retry-After") == "" {
		t.Fatalf("forty walks: %d %s", limited.status, limited.body)
	}
	for path, want := range map[string]int{"?roots=" + addr(0).Hex(): 200, "": 200} {
		if r := get(t, s, scoredPath(1, path)); r.status != want {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
}
