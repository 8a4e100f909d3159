package api_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"reflect"
	"slices"
	"testing"
	"time"

	"repute/api"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
	"repute/trust/engine"
)

// TestDecision: a decision follows from the score that the reputation shows, reads its lower
// bound, and is the same by REST, GraphQL and the tool.
func TestDecision(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1})
	allowed := 0
	for agent := range scoredAgents {
		r := as[wire.ReputationAnswer](t, get(t, s, scoredPath(agent, "")))
		keptOut := slices.ContainsFunc(r.Gates, func(g wire.Gate) bool { return g.Direction == "keepsOut" && g.Passed })
		service := slices.ContainsFunc(r.Gates, func(g wire.Gate) bool { return g.ID == "service" && g.Passed })
		for _, tag := range r.Tags {
			if known := tag.Tag == "starred"; known != (tag.Unit != nil) || known && *tag.Unit != "points of 100" {
				t.Errorf("agent %d: tag %q has unit %v", agent, tag.Tag, tag.Unit)
			}
		}
		rated := r.Status == "rated" && !keptOut
		for query, want := range map[string]bool{
			"":                                   rated && r.Low >= 0,
			"?valueAtRisk=0":                     rated && r.Low >= 0,
			"?minScore=-100":                     rated,
			fmt.Sprintf("?minScore=%.3f", r.Low): rated,
			fmt.Sprintf("?minScore=%.3f", min(100, r.Low+1)): false,
			"?tier=2":                                        rated && r.Tier >= 2,
			"?gates=service":                                 rated && service,
			"?valueAtRisk=10000000000000000":                 rated && r.Low >= 0 && r.Tier >= 2,
			"?valueAtRisk=1000000000000000000":               rated && service,
			"?minScore=-100&valueAtRisk=1000000000000000000": rated && service,
			"?valueAtRisk=99999999999999999999999999&gates=service,identity&tier=4&minScore=99": false,
		} {
			d := as[wire.DecisionAnswer](t, get(t, s,
				fmt.Sprintf("/agents/%d:%d/decision%s", scoredChain, agent, query)))
			if d.Decision.Decision != map[bool]string{true: "allow", false: "deny"}[want] || d.Standing != r.Standing ||
				d.AsOf.Block != r.AsOf.Block ||
				want != (len(d.Reasons) == 0) || want && len(d.Missing) > 0 ||
				!want && len(d.Missing) == 0 && !keptOut &&
					d.Status == "rated" {
				t.Errorf("agent %d %s: %+v, want %v of %+v", agent, query, d, want, r.Standing)
			}
			if want {
				allowed++
			}
		}
	}
	if allowed < 5 {
		t.Errorf("only %d decisions allow", allowed)
	}
	for query, field := range map[string]string{
		"?minScore=101": "minScore", "?minScore=x": "minScore", "?tier=5": "tier", "?gates=reject": "gates",
		"?gates=servic":   "gates",
		"?valueAtRisk=-1": "valueAtRisk", "?valueAtRisk=1.5": "valueAtRisk", "?value=1": "value",
	} {
		b := problemOf(t, get(t, s, fmt.Sprintf("/agents/%d:0/decision%s", scoredChain, query)))
		if b.Status != 400 || len(b.Errors) == 0 || b.Errors[0].Field != field {
			t.Errorf("%s: %+v", query, b)
		}
	}
}

// TestDecisionEverywhere compares the three ways to ask.
func TestDecisionEverywhere(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1})
	const fields = `decision(minScore: 10, tier: 2, gates: ["service"], valueAtRisk: "10000000000000000") { decision reasons { id text have need }
		missing { gate what have must need } demanded { minScore tier verified gates valueAtRisk } score low high confidence status
			tier finality scoredAt { block hash time } verified verifiedTo }`
	list := data[struct {
		Agents struct{ Nodes []struct{ Decision any } }
	}](t, ask(t, s, `{ agents(first: 50) { nodes { `+fields+` } } }`, nil)).Agents.Nodes
	for agent := range scoredAgents {
		rest := as[map[string]any](t,
			get(t, s,
				fmt.Sprintf("/agents/%d:%d/decision?minScore=10&tier=2&gates=service&valueAtRisk=10000000000000000",
					scoredChain, agent)))
		delete(rest, "agent")
		delete(rest, "asOf")
		alone := data[struct{ Agent struct{ Decision any } }](t,
			ask(t, s, fmt.Sprintf(`{ agent(id: "%d:%d") { %s } }`, scoredChain, agent, fields), nil)).Agent.Decision
		if !reflect.DeepEqual(alone, any(rest)) || !reflect.DeepEqual(list[agent].Decision, any(rest)) {
			t.Errorf("agent %d: REST %v, GraphQL %v, in a list %v", agent, rest, alone, list[agent].Decision)
		}
	}
}

// TestOneScore: while agents are rated and scored, one query shows one score of an agent, and
// an explanation between two equal reputations has their score.
func TestOneScore(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t))
	l := newLedger(t, db, scoredChain)
	l.addRoots("default", chainRoots)
	l.crowd()
	rng, given := rand.New(rand.NewPCG(9, 1)), map[string]uint64{}
	for l.tip.Number < 28 {
		l.add(rate(rng, given)...)
	}
	if err := chaindb.SetHead(t.Context(), db, scoredChain, store.Lease{},
		chaindb.Head{Head: l.tip.Number, Safe: 25, Finalized: 21, SeenAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	runEngine(t, db, 20)
	s := serve(t, api.Options{DB: db}, unlimited())
	e, err := engine.New(db, engine.EngineOptions{Poll: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- e.Run(t.Context()) }()
	compared, moved := 0, map[float64]bool{}
	for range 60 {
		l.add(rate(rng, given)...)
		for agent := range 3 {
			compared += compareScores(t, s, agent, moved)
		}
	}
	t.Logf("%d explanations between equal reputations, %d scores", compared, len(moved))
	if compared < 20 || len(moved) < 10 {
		t.Errorf("%d explanations between equal reputations, %d scores", compared, len(moved))
	}
}

func compareScores(t *testing.T, s *httptest.Server, agent int, moved map[float64]bool) (compared int) {
	t.Helper()
	one := data[struct {
		Agent struct {
			Score      json.Number
			Reputation struct {
				Score  json.Number
				Scored struct{ Score json.Number }
			}
			Explain  struct{ Score json.Number }
			Decision struct{ Score json.Number }
		}
	}](t,
		ask(t, s,
			fmt.Sprintf(`{ agent(id: "%d:%d") { score reputation { score scored { score } } explain { score } decision { score } } }`, scoredChain, agent), nil)).Agent
	if one.Score != one.Reputation.Score || one.Score != one.Reputation.Scored.Score ||
		one.Score != one.Explain.Score ||
		one.Score != one.Decision.Score {
		t.Errorf("agent %d: one query shows %+v", agent, one)
	}
	before := as[wire.ReputationAnswer](t, get(t, s, scoredPath(agent, "")))
	why := as[wire.ExplainAnswer](t, get(t, s, scoredPath(agent, "/explain")))
	after := as[wire.ReputationAnswer](t, get(t, s, scoredPath(agent, "")))
	moved[before.Score] = true
	if !reflect.DeepEqual(before.Scored, after.Scored) {
		return 0
	}
	if why.Standing != before.Standing || !reflect.DeepEqual(why.ScoredAt, before.ScoredAt) {
		t.Errorf("agent %d: reputation %+v, explained %+v", agent, before.Standing, why.Standing)
	}
	return 1
}
