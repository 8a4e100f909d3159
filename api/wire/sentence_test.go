package wire

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust"
	"repute/trust/replay"
)

// scoreOf is a stored score with such a result.
func scoreOf(status repute.Status, result string) repute.Score {
	return repute.Score{Status: status, Score: 37_500, Low: 20_000, High: 50_000, Confidence: 400_000, Run: 1, Scorer: "repute",
		Roots: replay.NoRoots(), Result: []byte(result)}
}

// A sentence says on what a score rests.
func TestSentenceSaysTheBasis(t *testing.T) {
	for want, result := range map[string]string{
		"37.5: 1 trusted client, on average divided; their weight comes from roots":                                                        `{"trustedFor":1,"evidence":1}`,
		"37.5: 6 trusted clients, on average divided; their weight comes from sources alone (class A)":                                     `{"trustedFor":6,"evidence":3.2,"sourced":{"raters":6,"classes":["A"],"praise":3}}`,
		"37.5: 6 trusted clients, on average divided; their weight comes from sources alone (classes A, C)":                                `{"trustedFor":6,"evidence":3,"sourced":{"raters":6,"classes":["A","C"],"praise":3}}`,
		"37.5: 6 trusted clients, on average divided; their weight comes from roots and, for 25 % of the evidence, from sources (class B)": `{"trustedFor":6,"evidence":4,"sourced":{"raters":2,"classes":["B"],"praise":0.5,"blame":0.5}}`,
	} {
		w, err := EncodeScored(scoreOf(trust.Rated, result))
		if err != nil || w.Sentence != want {
			t.Errorf("%q, %v, want %q", w.Sentence, err, want)
		}
	}
}

// A chain without roots rates by its sources, and nobody is told otherwise.
func TestReasonsOfChainsWithoutRoots(t *testing.T) {
	nobody := "the chain has neither roots nor sources: nobody is rated; see docs/how-to/roots.md or pass roots="
	s := scoreOf(trust.Unrated, `{"rows":2}`)
	if w, err := EncodeScored(s); err != nil || *w.Reason != nobody {
		t.Errorf("%v, %v", *w.Reason, err)
	}
	s.Credentials = common.Hash{1}
	want := "too little of what was said of it is vouched for by the chain's sources (it has no roots): confidence is 0.400"
	if w, err := EncodeScored(s); err != nil || *w.Reason != want {
		t.Errorf("%v, %v", *w.Reason, err)
	}
	s.Status, s.Result = trust.Thin, []byte(`{"rows":2,"trustedFor":2}`)
	want = "too few trusted clients by the chain's sources (it has no roots) for a rating: confidence is 0.400"
	if w, err := EncodeScored(s); err != nil || *w.Reason != want {
		t.Errorf("%v, %v", *w.Reason, err)
	}
}

// A score says which sources could not be read for it, and a public answer shows classes, never the sources of its
// raters.
func TestScoreShowsTroubledSources(t *testing.T) {
	s := scoreOf(trust.Rated, `{"trustedFor":6,"evidence":3,"sourced":{"raters":6,"classes":["A"],"praise":3,"blame":0}}`)
	s.Readings = `[{"source":"fine","chain":9,"status":"ok","block":10,"time":100,"complete":100},
		{"source":"away","chain":9,"status":"incomplete","reason":"Post \"https://node.example/KEY\": timeout","block":10,"time":100,"complete":40,"kept":3}]`
	w, err := EncodeScored(s)
	if err != nil || len(w.Sources) != 1 || w.Sources[0].Source != "away" || w.Sources[0].Kept != 3 ||
		*w.Sources[0].Reason != `Post "https://node.example": timeout` || *w.Sources[0].CompleteAt != "1970-01-01T00:00:40Z" {
		t.Errorf("%+v, %v", w.Sources, err)
	}
	if w.Sourced == nil || w.Sourced.Raters != 6 || fmt.Sprint(w.Sourced.Classes) != "[A]" {
		t.Errorf("%+v", w.Sourced)
	}
	s.Readings = "{"
	if _, err := EncodeScored(s); err == nil {
		t.Error("readings that cannot be read are none")
	}
}

// What credentials cost is null where it is out of reach, and never 0.
func TestEncodeCoverageBySource(t *testing.T) {
	c := repute.Coverage{BySource: map[string]int64{"a": 1, "b": 3, "c": 3},
		ToFifty: &repute.LiftPrice{Cents: 47_050, Units: 5000, Priced: []string{"a"}, Unpriced: []string{"b"}}}
	w := encodeCoverage(c)
	if fmt.Sprint(w.BySource) != "[{b 3} {c 3} {a 1}]" || *w.ToFifty.Dollars != 470.5 || w.ToFifty.Units != 5 {
		t.Errorf("%+v, %+v", w.BySource, w.ToFifty)
	}
	c.ToFifty = &repute.LiftPrice{OutOfReach: true, Units: 3000}
	body, err := json.Marshal(encodeCoverage(c).ToFifty)
	if want := `{"dollars":null,"units":3,"priced":[],"unpriced":[]}`; err != nil || string(body) != want {
		t.Errorf("%s, %v", body, err)
	}
}
