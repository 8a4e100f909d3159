package trust

import (
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/flow"
	"repute/trust/rating"
)

func reasons(w *world, rows ...rating.Row) map[rating.Reason]int {
	return NewScorer(w.walk(), w.params).Explain(w.evidence(rows...)).ByReason
}

// Values of any size are outside every curve, and read exactly where they are inside.
func TestExtremeValues(t *testing.T) {
	w := newWorld()
	most := new(big.Int).Lsh(big.NewInt(1), 127)
	least := new(big.Int).Neg(most)
	for _, decimals := range []uint8{0, 18} {
		for _, v := range []*big.Int{most, least, new(big.Int).Sub(most, big.NewInt(1)), big.NewInt(-1)} {
			r := row(20, 0, 0)
			r.Amount = repute.Amount{Value: v, Decimals: decimals}
			if got := reasons(w, r); got[rating.ReasonRange] != 1 {
				t.Errorf("%s with %d decimals: %v", v, decimals, got)
			}
		}
	}
	r := row(20, 0, 0)
	r.Amount = repute.Amount{Value: new(big.Int).Exp(big.NewInt(10), big.NewInt(20), nil), Decimals: 18} // 100
	full, plain := w.score(r), w.score(row(20, 100, 0))
	if full.Mean != plain.Mean || full.Excluded != 0 {
		t.Errorf("100 in 18 decimals gives %s, 100 gives %s", full.Mean, plain.Mean)
	}
	r.Amount = repute.Amount{}
	if got := reasons(w, r); got[rating.ReasonRange] != 1 {
		t.Errorf("no value: %v", got)
	}
}

func TestTagsOfAnyLength(t *testing.T) {
	w := newWorld()
	empty, long := row(20, 100, 0), row(21, 100, 0)
	empty.Tag1, long.Tag1, long.Tag2 = "", strings.Repeat("starred", 150_000), strings.Repeat("x", 1<<20)
	if got := reasons(w, empty, long); got[rating.ReasonUnknownTag] != 2 {
		t.Errorf("%v", got)
	}
	long.Tag1 = "starred"
	if r := w.score(long); r.Excluded != 0 || r.Positive == 0 {
		t.Errorf("a long second tag: %+v", r)
	}
}

// However often one rater speaks, it is one.
func TestOneRaterOfMany(t *testing.T) {
	w := newWorld()
	const count = 284_000
	many := make([]rating.Row, count)
	for i := range many {
		many[i] = row(20, 100, 0)
		many[i].Block, many[i].LogIndex, many[i].Index = uint64(i/100), uint32(i%100), uint64(i+1)
	}
	once, often := w.score(row(20, 100, 0)), w.score(many...)
	if often.Rows != count || often.Mean != once.Mean || often.Evidence != once.Evidence || often.PathsFor != 1 {
		t.Errorf("%d rows: %s by %s units, one row: %s by %s", often.Rows, often.Mean, often.Evidence.Decimal(3),
			once.Mean,
			once.Evidence.Decimal(3))
	}
}

// A cycle that nobody vouches for has no weight in scores.
func TestCyclesHaveNoWeight(t *testing.T) {
	loops := newWorld([2]int{25, 25}, [2]int{1000, 1000}, [2]int{1000, 1001}, [2]int{1001, 1000})
	if _, weight := loops.walk().Rater(address(1000)); weight != 0 {
		t.Errorf("a cycle nobody vouches for has weight %s", weight.Decimal(6))
	}
}

// A rater that acts for the agent now does not count, no matter when it rated.
func TestClientBecomesTheAgents(t *testing.T) {
	w := newWorld()
	praise := []rating.Row{row(20, 100, 300*testDay), row(25, 100, 300*testDay)}
	e := w.evidence(praise...)
	e.Self = []common.Address{address(20)}
	if r := Score(e, w.params); r.Excluded != 1 || r.PathsFor != 1 {
		t.Errorf("a rater became the wallet: %+v", r)
	}
	e.Owner, e.Self = address(25), []common.Address{address(20)}
	if r := Score(e, w.params); r.Excluded != 2 || r.Status != Unrated || r.Score != 0 {
		t.Errorf("both raters act for the agent: %+v", r)
	}
	e = w.evidence(praise...)
	e.Since = praise[0].Block + 1
	if got := NewScorer(w.walk(), w.params).Explain(e).ByReason; got[rating.ReasonEarlier] != 2 {
		t.Errorf("praise of an earlier owner: %v", got)
	}
}

// An address that an owner names without its consent may not praise the agent, but a critic that is named can still
// blame it.
func TestOperatorsMayBlame(t *testing.T) {
	w := newWorld()
	e := w.evidence(row(20, 100, testDay), row(21, 0, testDay), row(25, 50, testDay))
	before := Score(e, w.params)
	e.Named = []common.Address{address(21)}
	if r := Score(e, w.params); r.Excluded != 0 || r.Mean != before.Mean || r.PathsAgainst != before.PathsAgainst {
		t.Errorf("a critic became an operator: %+v, before %+v", r, before)
	}
	e.Named = []common.Address{address(20), address(25)} // praise, and what is neither
	if r := Score(e, w.params); r.Excluded != 2 || r.PathsFor != 0 || r.Mean >= before.Mean {
		t.Errorf("raters became operators: %+v, before %+v", r, before)
	}
	e.Self = []common.Address{address(21)}
	if r := Score(e, w.params); r.Excluded != 3 {
		t.Errorf("the wallet blames: %+v", r)
	}
}

func TestClocksThatAreWrong(t *testing.T) {
	w := newWorld()
	future, undated, far := row(20, 100, -1), row(21, 100, 0), row(22, 100, 0)
	undated.Time, far.Time = 0, 1<<40
	if got := reasons(w, future, undated, far); got[rating.ReasonFuture] != 1 || got[rating.ReasonUndated] != 2 {
		t.Errorf("%v", got)
	}
	now := row(20, 100, 0)
	if r := w.score(now); r.Excluded != 0 {
		t.Errorf("a row of the view's own block: %+v", r)
	}
}

// An agent of which nothing is known is unrated, with roots and without.
func TestNoDataIsUnrated(t *testing.T) {
	w := newWorld()
	nobody := flow.NewGraphBuilder().Build().Walk(nil, w.params.Walk)
	for _, e := range []Evidence{w.evidence(), {Weights: nobody}, {Weights: w.walk(), Owner: address(0)},
		{Weights: nobody, Block: w.evidence().Block, Rows: rows(20, 40, 100)}} {
		r := Score(e, w.params)
		if r.Status != Unrated || r.Score != 0 || r.Tier != 0 ||
			slices.ContainsFunc(r.Gates, func(g GateView) bool { return g.Passed }) {
			t.Errorf("%+v", r)
		}
	}
}

// An answer counts by the rule of validations, never by a tag that names one.
func TestTagsDoNotMakeValidations(t *testing.T) {
	w := newWorld()
	forged := row(20, 100, 0)
	forged.Tag1 = "hard_finality"
	if got := reasons(w, forged); got[rating.ReasonUnknownTag] != 1 {
		t.Errorf("%v", got)
	}
	answer := forged
	answer.Validation = true
	if r := w.score(answer); r.Excluded != 0 || len(r.Channels) != 1 || r.Channels[0].Channel != "validation" {
		t.Errorf("%+v", r)
	}
}

// Files that are wrong in any way are refused, and those that are not can be used.
func FuzzParseParams(f *testing.F) {
	defaultParams, defaultTags := rating.DefaultFiles()
	f.Add(string(defaultParams), string(defaultTags))
	f.Add(`{"version":"x"}`, `{}`)
	f.Add(strings.Replace(string(defaultParams), `"iterations": 60`, `"iterations": -1`, 1), string(defaultTags))
	f.Add(string(defaultParams), strings.Replace(string(defaultTags), `[100, 1]`, `[100]`, 1))
	f.Add(string(defaultParams), strings.Replace(string(defaultTags), `"weight": 1.5`, `"weight": 1e9`, 1))
	f.Fuzz(func(t *testing.T, params, tags string) {
		p, err := rating.ParseParams([]byte(params), []byte(tags))
		if err != nil {
			if !errors.Is(err, repute.ErrInvalid) || p != nil {
				t.Fatalf("%v with %v", err, p)
			}
			return
		}
		if p.Walk.Iterations > 100 || len(params) > 4096 {
			return // right, and slow
		}
		w := newWorld()
		w.params = p
		if r := w.score(append(rows(20, 30, 100), rows(1000, 1010, 0)...)...); r.Score < -100_000 ||
			r.Score > 100_000 ||
			r.Low > r.High {
			t.Fatalf("%+v", r)
		}
	})
}
