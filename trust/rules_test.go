package trust

import (
	"errors"
	"testing"

	"repute"
	"repute/trust/fixed"
	"repute/trust/rating"
)

// A writer's own rule replaces the general one for its ratings alone.
func TestRulesOfWriters(t *testing.T) {
	t.Parallel()
	own := []rating.WriterRules{{Address: address(0),
		Tags: []rating.TagRule{{Tags: []string{"starred", "grade"}, Channel: "quality",
			Unit: "school grade", Better: rating.LowerBetter, Range: []fixed.Fixed{fixed.One, fixed.Int(6)},
			Weight: fixed.One,
			Curve:  []rating.Corner{{X: fixed.One, Y: fixed.One}, {X: fixed.Int(6), Y: -fixed.One}},
			Reason: "a school"}}}}
	w := newWorld()
	p, err := w.params.WithWriters(own)
	if err != nil {
		t.Fatal(err)
	}
	opinion := func(p *rating.Params, rater int, tag string, thousandths int64) string {
		e := w.evidence(amountRow(rater, tag, thousandths))
		got := NewScorer(e.Weights, p).Explain(e)
		if len(got.Excluded) > 0 {
			return string(got.Excluded[0].Reason)
		}
		raw, _ := got.Contributions[0].Opinion.MarshalJSON()
		return string(raw)
	}
	for _, c := range []struct {
		p     *rating.Params
		rater int
		tag   string
		value int64
		want  string
	}{
		{p, 0, "starred", 1000, "1.000000"},
		{p, 0, "starred", 6000, "-1.000000"},
		{p, 0, "grade", 3500, "0.000000"},
		{p, 0, "starred", 90_000, "out-of-range"},
		{p, 1, "starred", 90_000, "0.800000"},
		{p, 1, "grade", 1000, "unknown-tag"},
		{w.params, 0, "starred", 90_000, "0.800000"},
		{w.params, 0, "grade", 1000, "unknown-tag"},
	} {
		if got := opinion(c.p, c.rater, c.tag, c.value); got != c.want {
			t.Errorf("rater %d, %s %d: %s, want %s", c.rater, c.tag, c.value, got, c.want)
		}
	}
	if p.Hash != w.params.Hash || p.TagsHash != w.params.TagsHash {
		t.Error("the hashes of the files changed")
	}
	if _, err := w.params.WithWriters(append(own, own...)); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("two rules for one tag of a writer: %v", err)
	}
}

// An agent of which nothing is said is not as good as zero: how good is not known.
func TestUnjudgedIsUncertain(t *testing.T) {
	t.Parallel()
	p, err := rating.DefaultParams()
	if err != nil {
		t.Fatal(err)
	}
	r := Unjudged(p, repute.Block{Number: 7})
	if r.Status != Unrated || r.Score != 0 || r.Low != -22_361 || r.High != 22_361 || len(r.Gates) != len(p.Gates) ||
		r.Block != 7 {
		t.Errorf("%+v", r)
	}
	for _, g := range r.Gates {
		if g.Passed || len(g.Lacks) == 0 {
			t.Errorf("%+v", g)
		}
	}
}
