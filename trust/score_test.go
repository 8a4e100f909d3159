package trust

import (
	"encoding/json"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
)

func bigInt(n int64) *big.Int { return big.NewInt(n) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

const (
	testDay  = 24 * 60 * 60
	testTime = 1_800_000_000
)

// world is a small chain: roots 0 to 19 vouch for members 20 to 119, who vouch for
// each other; addresses from 1000 on are strangers, the agent's owner is 900.
type world struct {
	builder *flow.GraphBuilder
	params  *rating.Params
	weights *flow.Weights
}

func newWorld(edges ...[2]int) *world {
	w := &world{builder: flow.NewGraphBuilder(), params: must(rating.DefaultParams())}
	for i := range 20 {
		for j := range 5 {
			w.vouch(i, 20+i*5+j)
			w.vouch(20+i*5+j, 20+(i*5+j+7)%100)
		}
	}
	for _, e := range edges {
		w.vouch(e[0], e[1])
	}
	return w
}

func (w *world) vouch(from, to int) {
	w.builder.Vouch(w.builder.Add(address(from)), w.builder.Add(address(to)), fixed.One)
}

func (w *world) walk() *flow.Weights {
	if w.weights == nil {
		var roots []flow.Root
		for i := range 20 {
			roots = append(roots, flow.Root{Address: address(i), Weight: fixed.One})
		}
		w.weights = w.builder.Build().Walk(roots, w.params.Walk)
	}
	return w.weights
}

func (w *world) evidence(rows ...rating.Row) Evidence {
	return Evidence{
		Agent: repute.AgentID{ChainID: 1}, Block: repute.Block{Number: 1e6, Time: time.Unix(testTime, 0)},
		Owner: address(900), Rows: rows, Weights: w.walk(),
	}
}

func (w *world) score(rows ...rating.Row) Result { return Score(w.evidence(rows...), w.params) }

// row is a rating by address n with value 0 to 100, in a block of its own.
func row(n int, value int64, age int64) rating.Row {
	return rating.Row{Tx: common.BigToHash(bigInt(int64(n))), Block: uint64(1e6 - age/12 - 1), LogIndex: uint32(n),
		Time:  testTime - age,
		Rater: address(n), Index: 1, Amount: repute.Amount{Value: bigInt(value)}, Tag1: "starred",
		Content: common.BigToHash(bigInt(int64(n)))}
}

func rows(from, to int, value int64) (out []rating.Row) {
	for n := from; n < to; n++ {
		out = append(out, row(n, value, 0))
	}
	return out
}

func TestStrangersBuyNothing(t *testing.T) {
	for _, n := range []int{1, 10, 100, 1000, 10000} {
		w := newWorld()
		for i := range min(n, 1000) {
			w.vouch(1000+i, 1000+(i+1)%n)
			w.vouch(1000+i, 900)
		}
		r := w.score(rows(1000, 1000+n, 100)...)
		if r.Status != Unrated || r.Score != 0 || r.Mean > 10_000 {
			t.Errorf("%d strangers: %s %s, mean %s", n, r.Status, r.Score, r.Mean)
		}
	}
}

func TestHonestAgentIsRated(t *testing.T) {
	w := newWorld()
	var in []rating.Row
	for root := range 10 {
		in = append(in, row(20+root*5, 95, 0))
	}
	r := w.score(in...)
	if r.Status != Rated || r.Low < 50_000 || r.PathsFor != 10 || r.Tier != 3 {
		t.Errorf("ten members: %s %s, %d paths, tier %d", r.Status, r.Score, r.PathsFor, r.Tier)
	}
	if r := w.score(); r.Status != Unrated || r.Score != 0 || r.Tier != 0 {
		t.Errorf("nothing known: %s %s", r.Status, r.Score)
	}
}

// One trusted voice gives a score that opens nothing, and no number of strangers gives one.
func TestThin(t *testing.T) {
	w := newWorld()
	for value, want := range map[int64]Status{100: Thin, 50: Thin, 0: Thin} {
		r := w.score(append(rows(1000, 1200, 100), row(0, value, 1))...)
		if r.Status != want || r.Tier != 1 || r.Score != r.Mean || r.High-r.Low < 20_000 {
			t.Errorf("one root says %d: %s, tier %d, %s of %s to %s", value, r.Status, r.Tier, r.Score, r.Low, r.High)
		}
		for _, g := range r.Gates {
			if g.Passed {
				t.Errorf("one root says %d: passes the gate %s", value, g.ID)
			}
		}
	}
	if r := w.score(rows(1000, 1200, 100)...); r.Status != Unrated || r.Tier != 0 || r.Score != 0 {
		t.Errorf("strangers alone: %s, tier %d, %s", r.Status, r.Tier, r.Score)
	}
	if r := w.score(row(0, 100, 1), row(1, 100, 1)); r.Status != Rated {
		t.Errorf("two roots: %s", r.Status)
	}
	if r := w.score(row(0, 100, 2000*testDay)); r.Status != Unrated {
		t.Errorf("a root, years ago: %s", r.Status)
	}
}

// One bought identity carries one unit, however many strangers stand behind it.
func TestOnePathCarriesOneUnit(t *testing.T) {
	for paths, most := range map[int]Points{1: 30_000, 2: 50_000} {
		w := newWorld()
		for i := range paths {
			for s := range 100 {
				w.vouch(i, 1000+i*100+s)
				w.vouch(1000+i*100+s, 900)
			}
		}
		r := w.score(rows(1000, 1000+100*paths, 100)...)
		if r.PathsFor != paths || r.Mean > most {
			t.Errorf("%d compromised roots: %s by %d paths", paths, r.Mean, r.PathsFor)
		}
	}
}

// Whatever strangers say, in whatever blocks, with whatever copies: the score moves no
// further than the pool lets it.
func TestStrangersMoveNoFurtherThanThePool(t *testing.T) {
	w := newWorld()
	rapid.Check(t, func(t *rapid.T) {
		honest := drawRows(t, "honest", 0, 119)
		hostile := drawRows(t, "hostile", 1000, 1400)
		for i := range hostile { // some copy what others said, in the same block
			if len(honest) > 0 && rapid.Bool().Draw(t, "copy") {
				from := rapid.SampledFrom(honest).Draw(t, "of")
				rater := hostile[i].Rater
				hostile[i] = from
				hostile[i].Rater, hostile[i].LogIndex = rater, 5000+uint32(i)
			}
		}
		before, after := w.score(honest...), w.score(append(hostile, honest...)...)
		moved := after.Mean - before.Mean
		pool, base := w.params.Evidence.Pool, w.params.Evidence.Base
		vouched := before.Positive + before.Negative
		most := points((2 * pool).Div(base+vouched+pool)) + 2
		if size(moved) > most {
			t.Fatalf("moved by %s with %s units of evidence, most is %s", moved, vouched.Decimal(2), most)
		}
		if after.PathsFor != before.PathsFor || after.PathsAgainst != before.PathsAgainst {
			t.Fatalf("paths changed from %d/%d to %d/%d", before.PathsFor, before.PathsAgainst, after.PathsFor,
				after.PathsAgainst)
		}
	})
}

func drawRows(t *rapid.T, what string, low, high int) (out []rating.Row) {
	for range rapid.IntRange(0, 60).Draw(t, what) {
		r := row(rapid.IntRange(low, high).Draw(t, "rater"), rapid.Int64Range(0, 100).Draw(t, "value"),
			rapid.Int64Range(0, 300*testDay).Draw(t, "age"))
		r.LogIndex = uint32(len(out))
		if low > 0 {
			r.LogIndex += 10_000
		}
		out = append(out, r)
	}
	return out
}

// One more rater that says +1 never lowers the score, and taking it away restores it.
func TestPraiseNeverLowers(t *testing.T) {
	w := newWorld()
	rapid.Check(t, func(t *rapid.T) {
		before := drawRows(t, "rows", 0, 119)
		more := row(rapid.OneOf(rapid.IntRange(0, 119), rapid.IntRange(1000, 2000)).Draw(t, "rater"), 100,
			rapid.Int64Range(0, 300*testDay).Draw(t, "age"))
		more.LogIndex = 20_000
		before = slices.DeleteFunc(before, func(r rating.Row) bool { return r.Rater == more.Rater })
		if len(before) > 0 && rapid.Bool().Draw(t, "same block") {
			like := rapid.SampledFrom(before).Draw(t, "like")
			more.Block, more.Time = like.Block, like.Time
			if like.Amount.Decimal() == "100" {
				more.Content = like.Content
			}
		}
		low, high := w.score(before...), w.score(append(slices.Clone(before), more)...)
		if high.Mean < low.Mean {
			t.Fatalf("praise lowered the score from %s to %s", low.Mean, high.Mean)
		}
	})
}

// The order of the input is not seen in the result, and contributions add up.
func TestScoreIsExact(t *testing.T) {
	w := newWorld()
	rapid.Check(t, func(t *rapid.T) {
		in := append(drawRows(t, "rows", 0, 119), drawRows(t, "others", 1000, 1100)...)
		shuffled := rapid.Permutation(in).Draw(t, "order")
		scorer := NewScorer(w.walk(), w.params)
		a, b := must(json.Marshal(scorer.Explain(w.evidence(in...)))),
			must(json.Marshal(scorer.Explain(w.evidence(shuffled...))))
		if string(a) != string(b) {
			t.Fatalf("two orders, two results:\n%s\n%s", a, b)
		}
		ex := scorer.Explain(w.evidence(in...))
		var sum Points
		for _, c := range ex.Contributions {
			sum += c.Points
		}
		if sum != ex.Result.Score {
			t.Fatalf("contributions add up to %s, the score is %s", sum, ex.Result.Score)
		}
	})
}

// The walk does not depend on the order in which edges were named.
func TestWalkIsExact(t *testing.T) {
	params := must(rating.DefaultParams())
	rapid.Check(t, func(t *rapid.T) {
		var edges [][2]int
		for range rapid.IntRange(1, 60).Draw(t, "edges") {
			edges = append(edges, [2]int{rapid.IntRange(0, 20).Draw(t, "from"), rapid.IntRange(0, 20).Draw(t, "to")})
		}
		masses := func(edges [][2]int) (out []fixed.Fixed) {
			b := flow.NewGraphBuilder()
			for _, e := range edges {
				b.Vouch(b.Add(address(e[0])), b.Add(address(e[1])), fixed.Ratio(int64(e[0]+1), 30))
			}
			w := b.Build().Walk([]flow.Root{{Address: address(0), Weight: fixed.One},
				{Address: address(1), Weight: fixed.One},
				{Address: address(50), Weight: fixed.One}}, params.Walk)
			for i := range 21 {
				_, weight := w.Rater(address(i))
				out = append(out, weight)
			}
			return out
		}
		if a, b := masses(edges), masses(rapid.Permutation(edges).Draw(t, "order")); !slices.Equal(a, b) {
			t.Fatalf("two orders, two walks:\n%v\n%v", a, b)
		}
	})
}

// On-off: sixty good ratings over a year, then a bad one each day, each by a root of its own.
func TestOnOff(t *testing.T) {
	params := must(rating.DefaultParams())
	b := flow.NewGraphBuilder()
	var roots []flow.Root
	for i := range 300 {
		b.Add(address(i))
		roots = append(roots, flow.Root{Address: address(i), Weight: fixed.One})
	}
	w := &world{params: params, weights: b.Build().Walk(roots, params.Walk)}
	at := func(bad, good int) Points {
		var in []rating.Row
		now := int64(bad+good) * testDay
		for i := range 60 {
			in = append(in, row(i, 90, now+int64(60-i)*6*testDay))
		}
		for i := range bad {
			in = append(in, row(60+i, 0, now-int64(i)*testDay))
		}
		for i := range good {
			in = append(in, row(150+i, 90, now-int64(bad+i)*testDay))
		}
		return w.score(in...).Mean
	}
	for _, d := range []int{0, 1, 2, 3, 5, 8, 10, 12, 15, 20, 25, 30} {
		t.Logf("after %d bad days: %s", d, at(d, 0))
	}
	for _, d := range []int{20, 40, 60, 80, 90, 100} {
		t.Logf("15 bad days and %d good: %s", d, at(15, d))
	}
	if at(3, 0) >= 50_000 {
		t.Errorf("three bad days leave %s", at(3, 0))
	}
	if at(12, 0) >= -10_000 {
		t.Errorf("twelve bad days leave %s", at(12, 0))
	}
	if at(15, 59) >= 50_000 {
		t.Errorf("59 good days restore %s", at(15, 59))
	}
}
