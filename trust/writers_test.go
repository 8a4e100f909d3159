package trust

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/graph"
	"repute/trust/rating"
)

func reviewed(n int, weight uint64) repute.TrustRoot {
	return repute.TrustRoot{Address: address(n), Class: repute.ReviewedWriter, Weight: weight, Reason: "a test"}
}

// praisedBy scores an agent of which so many reviewed writers and nobody else say only good, each beside a hundred
// other agents.
func praisedBy(t *testing.T, writers int, with func(*graph.Reader)) Result {
	t.Helper()
	w := newWorld()
	at := w.evidence().Block
	r := graph.NewReader(at, nil, nil, w.params)
	var rows []rating.Row
	var list []repute.TrustRoot
	for i := range writers {
		list = append(list, reviewed(800+i, repute.MaxWriterWeight))
		row := amountRow(800+i, "starred", 100_000)
		row.Block += uint64(i)
		rows = append(rows, row)
	}
	for agent := range 100 {
		token := repute.TokenID{uint64(agent)}
		r.Agent(token, 0, address(5000+agent), common.Address{})
		for _, row := range rows {
			r.Rating(token, row)
		}
	}
	if with != nil {
		with(r)
	}
	weights := r.Build().Walk(nil, w.params.Walk)
	var none *graph.Credits
	e := w.evidence(rows...)
	e.Owner, e.Weights, e.Scales = address(5000), r.Credited(weights, none.WithReviewedWriters(list)), r.Scales()
	return Score(e, w.params)
}

// A reviewed writer gives less than a root: one makes nobody rated, any number stays below what the class may give, and
// none opens full service.
func TestReviewedWritersAreBounded(t *testing.T) {
	t.Parallel()
	var last Points
	for _, n := range []int{1, 3, 6, 12, 50} {
		r := praisedBy(t, n, nil)
		if n == 1 && (r.Status != Thin || r.Score > 10_000) {
			t.Errorf("one writer: %s %v", r.Status, r.Score)
		}
		if n == 3 && r.Status != Rated {
			t.Errorf("three writers: %s", r.Status)
		}
		if r.Mean > 38_500 || r.Tier > 2 || r.Mean < last {
			t.Errorf("%d writers: mean %v, tier %d", n, r.Mean, r.Tier)
		}
		if r.Sourced == nil || !slices.Equal(r.Sourced.Classes, []string{repute.ReviewedWriter}) {
			t.Errorf("%d writers: %+v", n, r.Sourced)
		}
		for _, g := range r.Gates {
			if g.Passed && (g.ID == "service" || g.ID == "validator") {
				t.Errorf("%d writers open %s", n, g.ID)
			}
		}
		last = r.Mean
	}
}

// Reviewed writers vouch for nobody: an address that they praise gets no weight as a rater.
func TestReviewedWritersVouchForNobody(t *testing.T) {
	t.Parallel()
	set := []repute.TrustRoot{reviewed(1, repute.MaxWriterWeight), {Address: address(2), Weight: repute.RootUnit}}
	at := time.Unix(1_700_000_000, 0)
	if roots := graph.RootsAt(set, at); len(roots) != 1 || roots[0].Address != address(2) {
		t.Errorf("roots %+v", roots)
	}
	expired := set[0]
	expired.Address, expired.Expires = address(3), at
	if writers := rating.WritersAt(append(set, expired), at); len(writers) != 1 || writers[0].Address != address(1) {
		t.Errorf("writers %+v", writers)
	}
}

// Beside a policy of sources, writers share the bounds of its class B and leave the others as they are.
func TestReviewedWritersBesideSources(t *testing.T) {
	t.Parallel()
	b := flow.SourceClass{ID: "B", Rater: fixed.One,
		SourceBounds: flow.SourceBounds{Praise: fixed.Int(2), Blame: fixed.One}}
	policy := &graph.Credits{Rules: flow.SourceRules{Sources: []flow.Source{{ID: "pro", Class: 1}},
		Classes: []flow.SourceClass{{ID: "A"}, b}, All: flow.SourceBounds{Praise: fixed.Int(5)}}, Agents: 20, Days: 90,
		Raters: []graph.RaterCredit{{Rater: address(9)}}}
	got := policy.WithReviewedWriters([]repute.TrustRoot{reviewed(1, 10*repute.RootUnit)})
	if len(policy.Rules.Sources) != 1 || len(policy.Raters) != 1 {
		t.Error("the policy was changed")
	}
	if len(got.Rules.Classes) != 2 || got.Rules.Classes[1] != b || got.Rules.All != policy.Rules.All ||
		got.Agents != 20 ||
		got.Rules.Sources[1].ID != graph.ReviewedWriters || got.Rules.Sources[1].Class != 1 {
		t.Errorf("%+v", got.Rules)
	}
	if r := got.Raters[1]; r.Rater != address(1) || r.Source != 1 || r.Weight != fixed.Ratio(1, 2) || !r.Unlimited {
		t.Errorf("%+v", r)
	}
	if policy.WithReviewedWriters(nil) != policy {
		t.Error("without writers there is nothing to add")
	}
}

func TestRulesOfRoots(t *testing.T) {
	t.Parallel()
	p := must(rating.DefaultParams())
	w := reviewed(1, 1)
	w.Rules = `[{"tags":["grade"],"channel":"quality","unit":"grade","better":"lower","range":[1,6],"weight":1,
		"curve":[[1,1],[6,-1]],"reason":"a school"}]`
	got, refused := p.WithRoots([]repute.TrustRoot{w, reviewed(2, 1)})
	if len(refused) > 0 || got.Tags.RuleOf(address(1), "grade") == nil || got.Tags.RuleOf(address(2), "grade") != nil {
		t.Errorf("%v", refused)
	}
	unknown := reviewed(3, 1)
	unknown.Rules = `[{"tag":["grade"]}]`
	got, refused = p.WithRoots([]repute.TrustRoot{unknown, w})
	if len(refused) != 1 || !errors.Is(refused[0], repute.ErrInvalid) || got.Tags.RuleOf(address(1), "grade") == nil {
		t.Errorf("an unknown member is read, or keeps the other writer out: %v", refused)
	}
}

// Writers whose rules are more than the table holds do not end all scoring: those with the first addresses keep theirs.
func TestMoreRulesOfRootsThanTheTableHolds(t *testing.T) {
	t.Parallel()
	p := must(rating.DefaultParams())
	own := 0
	for _, w := range p.Tags.Writers {
		own += len(w.Tags)
	}
	var list []repute.TrustRoot
	for i := range rating.MaxRules + 1 {
		w := reviewed(1+i, 1)
		w.Rules = `[{"tags":["grade"],"channel":"quality","unit":"grade","better":"lower","range":[1,6],"weight":1,
			"curve":[[1,1],[6,-1]],"reason":"a school"}]`
		list = append(list, w)
	}
	got, refused := p.WithRoots(list)
	if len(refused) != 1+own {
		t.Fatalf("%d refused: %v", len(refused), refused)
	}
	last := rating.MaxRules - own
	if got.Tags.RuleOf(list[last-1].Address, "grade") == nil || got.Tags.RuleOf(list[last].Address, "grade") != nil {
		t.Error("not the last ones are left out")
	}
	if again, _ := p.WithRoots(list); len(again.Tags.Writers) != len(got.Tags.Writers) {
		t.Error("another result")
	}
}
