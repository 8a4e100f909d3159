package trust

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/graph"
	"repute/trust/rating"
)

// testRules are two sources of class A, one of B and one of C.
var testRules = func() flow.SourceRules {
	bounds := func(praise, blame int64) flow.SourceBounds {
		return flow.SourceBounds{Praise: fixed.Ratio(praise, 2), Blame: fixed.Ratio(blame, 2)}
	}
	one := bounds(6, 4)
	return flow.SourceRules{All: bounds(14, 6),
		Sources: []flow.Source{{ID: "kyc", Class: 0, SourceBounds: one}, {ID: "passport", Class: 0, SourceBounds: one},
			{ID: "paid", Class: 1, SourceBounds: one}, {ID: "name", Class: 2, SourceBounds: one}},
		Classes: []flow.SourceClass{{ID: "A", Rater: fixed.One, SourceBounds: bounds(12, 6)},
			{ID: "B", Rater: fixed.One, SourceBounds: bounds(6, 4)},
			{ID: "C", Rater: fixed.Ratio(1, 10), SourceBounds: bounds(2, 1)}}}
}()

// credential is what a source gives rater n.
func credential(n, source int) graph.RaterCredit {
	return graph.RaterCredit{Rater: address(n), Source: source, Subject: common.BigToHash(bigInt(int64(n))),
		Weight: fixed.Ratio(1, 2)}
}

const kyc, passport, paid, name = 0, 1, 2, 3 // of testRules.Sources

// credentials are those of raters from up to below to.
func credentials(from, to, source int) (out []graph.RaterCredit) {
	for n := from; n < to; n++ {
		out = append(out, credential(n, source))
	}
	return out
}

// credited makes sources give the raters of a world what credentials say, after the raters rated one agent each.
func (w *world) credited(held ...graph.RaterCredit) *world { return w.busy(1, held...) }

// busy is credited after each holder rated so many agents.
func (w *world) busy(agents int, held ...graph.RaterCredit) *world {
	at := repute.Block{Number: 1e6, Time: time.Unix(testTime, 0)}
	reader := graph.NewReader(at, nil, nil, w.params)
	known := map[common.Address]bool{}
	for _, c := range held {
		if known[c.Rater] {
			continue
		}
		known[c.Rater] = true
		w.builder.Add(c.Rater)
		for i := range agents {
			token := repute.TokenID{uint64(i + 1)}
			if len(known) == 1 {
				reader.Agent(token, 0, address(5000+i), common.Address{})
			}
			reader.Rating(token, rating.Row{Block: 1, Time: testTime - testDay, Rater: c.Rater, Tag1: "starred",
				Amount: repute.Amount{Value: bigInt(90)}})
		}
	}
	w.weights = reader.Credited(w.walk(), &graph.Credits{Rules: testRules, Agents: 20, Days: 90, Raters: held})
	return w
}

// Facts alone give what is stated of each class, and no more however many there are.
func TestSourcesAreBounded(t *testing.T) {
	for _, c := range []struct {
		what             string
		value            int64
		held             []graph.RaterCredit
		positive, blamed float64
		paths            int
	}{
		{"one voice", 100, credentials(1000, 1001, kyc), 0.5, 0, 0},
		{"three voices", 100, credentials(1000, 1003, kyc), 1.5, 0, 1},
		{"one source", 100, credentials(1000, 1100, kyc), 3, 0, 3},
		{"a class", 100, append(credentials(1000, 1100, kyc), credentials(1100, 1200, passport)...), 6, 0, 6},
		{"cheap ones", 100, credentials(1000, 1100, name), 1, 0, 1},
		{"one rater of a cheap one", 100, credentials(1000, 1001, name), 0.1, 0, 0},
		{"two of one rater", 100, append(credentials(1000, 1001, kyc), credentials(1000, 1001, paid)...), 1, 0, 1},
		{"all", 100, slices.Concat(credentials(1000, 1100, kyc), credentials(1100, 1200, passport),
			credentials(1200, 1300, paid), credentials(1300, 1400, name)), 7, 0, 7},
		{"one source against", 0, credentials(1000, 1100, kyc), 0, 2, 2},
		{"a class against", 0, append(credentials(1000, 1100, kyc), credentials(1100, 1200, passport)...), 0, 3, 3},
		{"cheap ones against", 0, credentials(1000, 1100, name), 0, 0.5, 0},
	} {
		w := newWorld().credited(c.held...)
		r := w.score(rows(1000, 1400, c.value)...)
		factor := w.params.Negative.Factor(c.paths, w.params.Evidence.Base+fixed.Fixed(c.blamed*float64(fixed.One)))
		if near(r.Positive, c.positive) && near(r.Negative, c.blamed*unfix(factor)) &&
			max(r.PathsFor, r.PathsAgainst) == c.paths {
			continue
		}
		t.Errorf("%s: %s for in %d paths, %s against in %d, want %.2f, %.2f in %d", c.what, r.Positive.Decimal(3),
			r.PathsFor,
			r.Negative.Decimal(3), r.PathsAgainst, c.positive, c.blamed*unfix(factor), c.paths)
	}
}

func unfix(f fixed.Fixed) float64 { return float64(f) / float64(fixed.One) }

// near reports whether two numbers are the same but for rounding.
func near(f fixed.Fixed, want float64) bool { return unfix(f) > want-1e-4 && unfix(f) < want+1e-4 }

// All sources together make an agent rated, and never open the gates of value.
func TestSourcesAloneOpenNothing(t *testing.T) {
	held := slices.Concat(credentials(1000, 1100, kyc), credentials(1100, 1200, passport),
		credentials(1200, 1300, paid), credentials(1300, 1400, name))
	in := rows(1000, 1400, 100)
	for i := range in {
		in[i].Paid = fixed.Int(1000) // a payment multiplies inside the bounds
	}
	r := newWorld().credited(held...).score(in...)
	if r.Status != Rated || r.Tier != 2 || r.Low >= 50_000 || r.passes("service") || r.passes("validator") {
		t.Errorf("praise by all sources: %s %s, low %s, tier %d", r.Status, r.Score, r.Low, r.Tier)
	}
	if r.Sourced == nil || r.Sourced.Raters != 400 || fmt.Sprint(r.Sourced.Classes) != "[A B C]" ||
		!near(r.Sourced.Praise, 7) {
		t.Errorf("it rests on %+v", r.Sourced)
	}
	w := newWorld().credited(held...)
	before := w.score(rows(20, 28, 95)...)
	after := w.score(append(rows(20, 28, 95), rows(1000, 1400, 0)...)...)
	if drop := before.Score - after.Score; drop > 26_000 || after.passes("reject") {
		t.Errorf("blame by all sources takes %s points from %s", drop, before.Score)
	}
}

// Addresses of one person share what one of them has, at an agent and over all agents.
func TestPersonsShare(t *testing.T) {
	held := credentials(1000, 1010, kyc)
	for i := range held {
		held[i].Subject = common.Hash{1}
	}
	if r := newWorld().credited(held...).score(rows(1000, 1010, 100)...); !near(r.Positive, 0.5) {
		t.Errorf("one person with ten addresses gives %s units", r.Positive.Decimal(3))
	}
	if r := newWorld().busy(20, held[0]).score(row(1000, 100, 0)); !near(r.Positive, 0.5) {
		t.Errorf("who rated 20 agents gives %s units", r.Positive.Decimal(3))
	}
	if r := newWorld().busy(80, held[0]).score(row(1000, 100, 0)); !near(r.Positive, 0.125) {
		t.Errorf("who rated 80 agents gives %s units", r.Positive.Decimal(3))
	}
	if r := newWorld().busy(8, held...).score(rows(1000, 1010, 100)...); !near(r.Positive, 0.125) {
		t.Errorf("one person who rated 80 times with ten addresses gives %s units", r.Positive.Decimal(3))
	}
}

// A rater has the larger of what vouches for it and what sources give it, and passes on nothing of the latter.
func TestCreditsVouchForNobody(t *testing.T) {
	w := newWorld([2]int{1000, 1001}, [2]int{1001, 900}).credited(append(credentials(20, 21, kyc),
		credential(1000, kyc))...)
	n := func(i int) flow.Node { return w.weights.Graph().Node(address(i)) }
	vouched := w.weights.Weight(n(20))
	if vouched < fixed.Ratio(1, 2) || w.weights.Granted(n(20)) != 0 {
		t.Errorf("a member of weight %s is granted %s", vouched.Decimal(3), w.weights.Granted(n(20)).Decimal(3))
	}
	if w.weights.Granted(n(1000)) != fixed.Ratio(1, 2) || w.weights.Counts(n(1001), 0) ||
		w.weights.Vouching(n(900), 3) != 0 {
		t.Error("a credit gave somebody else weight")
	}
	plain := newWorld([2]int{1000, 1001}, [2]int{1001, 900}).walk()
	if plain.Sum() != w.weights.Sum() {
		t.Error("credits changed what the walk found")
	}
}

// Whatever else is said, who praises an agent without a credential lifts it no more than with one, but for what it adds
// to the strangers, who are left out here. The order of rows and credentials does not matter.
func TestCreditsAreMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var held []graph.RaterCredit
		var in []rating.Row
		blamers := rapid.IntRange(0, 8).Draw(t, "blamers")
		for n := range rapid.IntRange(1, 40).Draw(t, "raters") {
			value := int64(100)
			if n < blamers {
				value = 0
			}
			in = append(in, row(1000+n, value, int64(rapid.IntRange(0, 60).Draw(t, "age"))*testDay))
			for _, s := range rapid.SliceOfNDistinct(rapid.IntRange(0, 3), 0, 3, rapid.ID[int]).Draw(t, "sources") {
				held = append(held, credential(1000+n, s))
			}
		}
		score := func() Result {
			w := newWorld()
			w.params.Evidence.Pool = 0
			return w.credited(held...).score(in...)
		}
		with := score()
		rng := rand.New(rand.NewPCG(1, 1))
		rng.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
		rng.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
		if again := score(); !reflect.DeepEqual(again, with) {
			t.Fatalf("shuffled: %v, want %v", again, with)
		}
		gone := rapid.IntRange(blamers, 40).Draw(t, "gone")
		held = slices.DeleteFunc(held, func(c graph.RaterCredit) bool { return c.Rater == address(1000+gone) })
		if without := score(); without.Mean > with.Mean+1 {
			t.Fatalf("without a credential %s, with it %s", without.Mean, with.Mean)
		}
	})
}

// An explanation names the sources, and its points add up.
func TestExplanationNamesSources(t *testing.T) {
	w := newWorld().credited(append(credentials(1000, 1003, kyc), credential(1000, name))...)
	e := NewScorer(w.weights, w.params).Explain(w.evidence(append(rows(1000, 1003, 90), rows(20, 24, 80)...)...))
	var sum Points
	sourced := 0
	for _, c := range e.Contributions {
		sum += c.Points
		if c.Sourced > 0 {
			sourced++
			if c.Weight < fixed.Ratio(1, 2) || c.Sources[0] != "kyc" {
				t.Errorf("a contribution of weight %s by %v", c.Weight.Decimal(3), c.Sources)
			}
		}
	}
	if sum != e.Result.Score || sourced != 3 {
		t.Errorf("%d contributions by sources, %s points in all, want 3 and %s", sourced, sum, e.Result.Score)
	}
}
