package wire

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/trust"
	"repute/trust/replay"
)

// scoreOf is a stored score with such a result.
func scoreOf(status repute.Status, result string) repute.Score {
	return repute.Score{Status: status, Score: 37_500, Low: 20_000, High: 50_000, Confidence: 400_000, Run: 1,
		Scorer: "repute",
		Roots:  replay.NoRoots(), Result: []byte(result)}
}

// A sentence says on what a score rests.
func TestSentenceSaysTheBasis(t *testing.T) {
	for want, result := range map[string]string{
		"37.5: 1 trusted client, on average divided; their weight comes from roots":                                                        `{"trustedFor":1,"evidence":1}`,
		"37.5: 6 trusted clients, on average divided; their weight comes from sources alone (class A)":                                     `{"trustedFor":6,"evidence":3.2,"sourced":{"raters":6,"alone":6,"classes":["A"],"praise":3}}`,
		"37.5: 6 trusted clients, on average divided; their weight comes from sources alone (classes A, C)":                                `{"trustedFor":6,"evidence":3,"sourced":{"raters":6,"alone":6,"classes":["A","C"],"praise":3}}`,
		"37.5: 6 trusted clients, on average divided; 4 by roots and 2 by sources alone; sources give 75 % of the evidence (class B)":      `{"trustedFor":6,"evidence":4,"sourced":{"raters":6,"alone":2,"classes":["B"],"praise":2,"blame":1}}`,
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
	s := scoreOf(trust.Rated,
		`{"trustedFor":6,"evidence":3,"sourced":{"raters":6,"classes":["A"],"praise":3,"blame":0}}`)
	s.Readings = `[{"source":"fine","chain":9,"status":"ok","block":10,"time":100,"complete":100},
		{"source":"away","chain":9,"status":"incomplete","reason":"Post \"https://node.example/KEY\": timeout","block":10,"time":100,"complete":40,"kept":3}]`
	w, err := EncodeScored(s)
	if err != nil || len(w.Sources) != 1 || w.Sources[0].Source != "away" || w.Sources[0].Kept != 3 ||
		*w.Sources[0].Reason != `Post "https://node.example": timeout` ||
		*w.Sources[0].CompleteAt != "1970-01-01T00:00:40Z" {
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

// What full service needs follows from what holds without sources too: what they give lifts no agent towards it, and
// what they say against it holds it back.
func TestSentenceOfMixes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const base, baseVariance, need = 5, 0.25, 0.5
		type part struct{ evidence, value float64 }
		draw := func(name string, most float64) part {
			return part{rapid.Float64Range(0.05, most).Draw(t, name), rapid.Float64Range(-1, 1).Draw(t, name+" value")}
		}
		vouched, given, prior := draw("vouched", 12), draw("given", 7), rapid.Float64Range(0, 0.1).Draw(t, "prior")
		low := func(parts ...part) (low, high, mean, evidence float64) {
			value, spread := base*prior, base*baseVariance
			for _, p := range parts {
				evidence, value = evidence+p.evidence, value+p.evidence*p.value
			}
			mean = value / (base + evidence)
			for _, p := range parts {
				spread += p.evidence * (p.value - mean) * (p.value - mean)
			}
			deviation := math.Sqrt(spread) / (base + evidence)
			return mean - deviation, mean + deviation, mean, evidence
		}
		want := 0.0
		for ; want < 1000; want++ {
			more := part{want, 1}
			without, _, _, _ := low(vouched, more)
			if with, _, _, _ := low(vouched, given, more); min(with, without) >= need {
				break
			}
		}
		with, _, mean, evidence := low(vouched, given)
		without, high, _, _ := low(vouched)
		v := resultView{Mean: 100 * mean, Evidence: evidence, Confidence: evidence / (base + evidence),
			Sourced: &sourced{Low: 100 * without, High: 100 * high}}
		v.Sourced.Praise = given.evidence
		v.Channels = append(v.Channels, channel{evidence,
			100 * (vouched.evidence*vouched.value + given.evidence*given.value) / evidence})
		got := v.missing(Gate{Lacks: []Lacking{{What: "low", Have: 100 * min(with, without), Need: 100 * need}}},
			100*with)
		text := fmt.Sprintf("about %.0f more clients vouched for by roots", want)
		switch want {
		case 0:
			text = "more than ratings"
		case 1:
			text = "1 more client vouched for by roots"
		}
		if got != text {
			t.Fatalf("%q, want %q: %+v and %+v", got, text, vouched, given)
		}
	})
}
