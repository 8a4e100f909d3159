// Package trustbench measures what it takes to move a score, how well scores tell good from bad, and what they cost.
//
// Trust makes all measurements. Attacks of package attack are tried on a generated population and on recorded traders
// (T1 to T22), credentials of sources are bought or lost on both (S1 to S6, G1 to G9), and the formulas of other
// scorers are asked about the same victims. What users can rely on is a Target; prices and choices are measured only.
// These need no database: the same seed gives the same figures on every machine.
//
// Cost is measured twice: in this process for any number of ratings, and by the product itself on a private Postgres
// with a chain of random ratings, from the moment that an epoch's last block is final until its scores are visible.
//
// The report is part of the release: docs/bench/trust.json is served by the API, and the tests of this package compare
// docs/explanation/trust.md with it.
package trustbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"repute"
	"repute/internal/attack"
	"repute/internal/bench/harness"
	"repute/trust/fixed"
	"repute/trust/rating"
	"repute/trust/source"
)

// TrustOptions say what Trust measures.
type TrustOptions struct {
	// Data is a directory with trust/soc-sign-bitcoinalpha.csv and trust/alpha_gt.csv; "" or a directory
	// without them leaves out what is measured on recorded traders: see CheckTrustData.
	Data   string
	Curve  []int // numbers of ratings to recompute, ascending; none: no cost is measured
	Trials int   // of what always holds, 2,000
	// Epoch is the number of ratings of the chain on which Program makes epochs; 0: it makes none.
	Epoch    int
	Program  harness.Program
	Progress io.Writer // lines for a person; nil: none
}

// TrustMeasurements is what Trust found.
type TrustMeasurements struct {
	Worlds    []TrustWorld      `json:"worlds"`
	Detection *attack.Detection `json:"detection,omitempty"` // T12, T13; of the recorded traders
	OnOff     attack.OnOff      `json:"on_off"`              // T9
	Negatives []NegativeRule    `json:"negative_rules"`      // the choice between T7 and T9
	Digests   []string          `json:"digests"`             // T15: different ones among all orders and processors
	Cost      []Cost            `json:"cost"`                // T16
	Epoch     *TrustEpoch       `json:"epoch,omitempty"`     // T16, by the product; nil: not measured
	VouchAge  []float64         `json:"vouch_age"`           // weight by a root's only praise, so many half-lives ago
	Personal  float64           `json:"personal_ms"`         // walk and score by a caller's roots, slowest of twenty
	Sources   *TrustSources     `json:"sources"`             // G1 to G8
}

// TrustWorld is what attacks on one world reached.
type TrustWorld struct {
	World     string           `json:"world"`
	Ratings   int              `json:"ratings"`
	Outcomes  []attack.Outcome `json:"outcomes"` // T1 to T5, T17, T18
	Drops     []attack.Drop    `json:"drops"`    // T6, T7, T17
	Bounds    attack.Bounds    `json:"bounds"`   // T8, T14
	Whitewash attack.Whitewash `json:"whitewash"`
	Price     attack.Price     `json:"price"`
	Scales    attack.ScaleLoss `json:"scales"` // T20
	Batch     attack.Batch     `json:"batch"`  // T22
	Sources   SourceAttacks    `json:"sources"`
	Rated     int              `json:"honest_rated"` // parties with eight raters of full weight
	Honest    int              `json:"honest"`
}

// NegativeRule is one way to weigh evidence against an agent, and what it does to both
// targets that pull it apart: the heavier bad evidence is, the sooner an agent that turns bad
// falls, and the more a few slanderers take.
type NegativeRule struct {
	Rule     string  `json:"rule"`
	Chosen   bool    `json:"chosen"`
	One      float64 `json:"slander_by_1"` // worst drop, T7
	Three    float64 `json:"slander_by_3"`
	Below50  int     `json:"days_below_50"` // T9
	Below10  int     `json:"days_below_minus_10"`
	Recovery int     `json:"recovery_days"`
}

// Trust measures what it takes to move a score, what it takes with other formulas,
// how well scores tell good from bad, and what they cost.
func Trust(ctx context.Context, o TrustOptions) (r harness.Report, err error) {
	o.Trials = cmp.Or(o.Trials, 2000)
	if !slices.IsSorted(o.Curve) {
		return r, repute.Invalid("curve", "sizes are not ascending", "e.g. 10000,100000")
	}
	p, err := rating.DefaultParams()
	if err != nil {
		return r, err
	}
	policy, err := sourcePolicy()
	if err != nil {
		return r, err
	}
	b := &trustBench{Progress: harness.Progress{To: o.Progress}, o: o, p: p, policy: policy}
	if err := b.measure(ctx); err != nil {
		return r, err
	}
	r = harness.Report{Name: "trust", Machine: harness.Host(), Measurements: b.m, Targets: b.targets,
		Config: map[string]any{"params": p.Version, "params_hash": p.Hash, "tags_hash": p.TagsHash, "trials": o.Trials,
			"curve": o.Curve, "epoch": o.Epoch, "seed": harness.Seed}}
	for _, t := range r.Targets {
		b.Say("%s", t)
	}
	return r, nil
}

// trustBench is one call of Trust. Its parts add measurements and targets in the order of the report.
type trustBench struct {
	harness.Progress
	o       TrustOptions
	p       *rating.Params
	policy  *source.Policy
	m       TrustMeasurements
	targets []harness.Target
}

// judge adds targets. A figure that no target is made of is measured only.
func (b *trustBench) judge(t ...harness.Target) { b.targets = append(b.targets, t...) }

// measure attacks both worlds, and then measures what needs one of them only. Progress is told before each part, as the
// whole takes minutes.
func (b *trustBench) measure(ctx context.Context) error {
	generated := attack.Population(1500, 60, harness.Seed)
	recorded, err := b.recorded()
	if err != nil {
		return err
	}
	b.world(generated, b.p)
	if recorded != nil {
		// The recorded world has ratings of many years, of which the memory of time would leave little to attack.
		bent := recorded.Bend(0.3) // its ratings use the lowest tenth of their scale
		bent.Roots = attack.EarlyRoots(bent.Ratings, 20)
		b.world(bent, attack.Ageless(*b.p))
		b.detect(recorded)
	}
	b.onOff()
	b.rules(generated)
	if err := b.coverage(ctx, generated); err != nil {
		return err
	}
	if err := b.digests(ctx, generated); err != nil {
		return err
	}
	if err := b.cost(ctx); err != nil {
		return err
	}
	return b.epoch(ctx)
}

// trustFiles are the files of recorded traders in a directory of data.
func trustFiles(dir string) (ratings, labels string) {
	return filepath.Join(dir, "trust", "soc-sign-bitcoinalpha.csv"), filepath.Join(dir, "trust", "alpha_gt.csv")
}

// CheckTrustData refuses a directory for TrustOptions.Data that somebody named and that has
// not both files: the report would say less than was asked for. The error is repute.ErrInvalid;
// "" is no directory and no error.
func CheckTrustData(dir string) error {
	if dir == "" {
		return nil
	}
	ratings, labels := trustFiles(dir)
	for _, file := range []string{ratings, labels} {
		if _, err := os.Stat(file); err != nil {
			return repute.Invalid("data", fmt.Sprintf("the recorded traders are not there: %v", err),
				"a directory with trust/soc-sign-bitcoinalpha.csv and trust/alpha_gt.csv, or neither --data nor REPUTE_TEST_DATA")
		}
	}
	return nil
}

// recorded is the world of recorded traders, nil where there is none.
func (b *trustBench) recorded() (*attack.World, error) {
	if b.o.Data == "" {
		return nil, nil
	}
	w, err := attack.Load(trustFiles(b.o.Data))
	if errors.Is(err, fs.ErrNotExist) {
		b.Say("detection is not measured: %v", err)
		return nil, nil
	}
	return w, err
}

// world attacks one world: T1 to T8, T10, T11 and T14.
func (b *trustBench) world(w *attack.World, p *rating.Params) {
	b.Say("attacks on %s, %d ratings", w.Name, len(w.Ratings))
	a := attack.NewBench(w, p, harness.Seed)
	out := TrustWorld{World: w.Name, Ratings: len(w.Ratings)}
	b.praise(a, &out)
	b.slander(a, &out)
	b.mixing(a, &out)
	b.batches(a, &out)
	b.sources(a, &out)
	b.always(a, &out)
	out.Rated, out.Honest = a.Rated()
	share := 0.0
	if out.Honest > 0 {
		share = float64(out.Rated) / float64(out.Honest)
	}
	b.judge(harness.AtLeast(in(w, "honest agents with eight raters of full weight that are rated"), share, 0.9, ""))
	out.Whitewash = a.Whitewash()
	out.Price, out.Scales = a.Price(), a.Scales()
	b.judge(harness.AtMost(in(w, "T20 loss by six ratings on other scales among twelve"), out.Scales.Inferred, 2,
		"points"))
	b.identity(w, out)
	b.m.Worlds = append(b.m.Worlds, out)
}

// in names a target in a world.
func in(w *attack.World, target string) string { return target + " (" + w.Name + ")" }

// praise are attacks that lift a new agent. Of several sizes of one attack the worst is judged. The limits are 10
// points for strangers, 30 for one party of weight, below 50 for two or three.
func (b *trustBench) praise(a *attack.Bench, out *TrustWorld) {
	try := func(most float64, outcomes ...attack.Outcome) {
		worst := slices.MaxFunc(outcomes, func(x, y attack.Outcome) int { return cmp.Compare(x.Mean, y.Mean) })
		out.Outcomes = append(out.Outcomes, outcomes...)
		b.judge(harness.AtMost(in(a.World, fmt.Sprintf("%s, %d: mean", worst.Attack, worst.Size)), worst.Mean, most,
			"points"))
	}
	var fresh []attack.Outcome
	for _, n := range []int{1, 3, 10, 100, 1000, 10_000} {
		fresh = append(fresh, a.FreshSybils(n))
	}
	try(10, fresh...)
	try(10, a.Camouflage(1000))
	try(30, a.CompromisedRoots(1), a.CompromisedRaters(1))
	try(below50, a.CompromisedRoots(2), a.CompromisedRaters(2))
	try(30, a.LowEdges())
	try(below50, a.Bribed(3))
	try(below50, a.WeakInChannels(5, false))
	try(below50, a.WeakInChannels(5, true))
	for _, n := range []int{1, 5, 10} { // measured, not judged
		out.Outcomes = append(out.Outcomes, a.Bribed(n))
	}
	out.Outcomes = append(out.Outcomes, a.CompromisedRoots(3), a.CompromisedRaters(3))
}

// below50 is the most that is not 50 points, in the thousandths that scores are kept in.
const below50 = 49.999

// slander are attacks on others.
func (b *trustBench) slander(a *attack.Bench, out *TrustWorld) {
	b.drops(a, out, 10, a.SlanderBySybils(1), a.SlanderBySybils(10), a.SlanderBySybils(100), a.SlanderBySybils(1000),
		a.SlanderBySybils(10_000))
	b.drops(a, out, 10, a.SlanderByRaters(1))
	b.drops(a, out, 27, a.SlanderByRaters(3))
}

// drops judges the worst of several slanders.
func (b *trustBench) drops(a *attack.Bench, out *TrustWorld, most float64, drops ...attack.Drop) {
	worst := slices.MaxFunc(drops, func(x, y attack.Drop) int { return cmp.Compare(x.Worst, y.Worst) })
	rejected := 0
	for _, d := range drops {
		rejected += d.Rejected
	}
	out.Drops = append(out.Drops, drops...)
	b.judge(harness.AtMost(in(a.World, fmt.Sprintf("%s, %d: worst drop", worst.Attack, worst.Size)), worst.Worst, most,
		"points"),
		harness.AtMost(in(a.World, worst.Attack+": victims rejected or shut down"), float64(rejected), 0, ""))
}

// mixing are attacks that put together what each by itself is worth little: T17 and T18.
func (b *trustBench) mixing(a *attack.Bench, out *TrustWorld) {
	try := func(most float64, tier int, outcomes ...attack.Outcome) {
		worst := slices.MaxFunc(outcomes, func(x, y attack.Outcome) int { return cmp.Compare(x.Mean, y.Mean) })
		best := slices.MaxFunc(outcomes, func(x, y attack.Outcome) int { return cmp.Compare(x.Tier, y.Tier) })
		out.Outcomes = append(out.Outcomes, outcomes...)
		b.judge(harness.AtMost(in(a.World, fmt.Sprintf("%s, %d: mean", worst.Attack, worst.Size)), worst.Mean, most,
			"points"),
			harness.AtMost(in(a.World, fmt.Sprintf("%s, %d: tier", best.Attack, best.Size)), float64(best.Tier),
				float64(tier),
				""))
	}
	var byRoot, byRater []attack.Outcome
	var drops []attack.Drop
	for _, n := range []int{0, 5, 20, 100} {
		byRoot, byRater = append(byRoot, a.Dust(n, true)), append(byRater, a.Dust(n, false))
		drops = append(drops, a.SlanderByDust(n))
	}
	try(30, 1, byRoot...)
	try(32, 1, byRater...)
	b.drops(a, out, 10, drops...)
	shells := func(n int) (all []attack.Outcome) {
		for _, agents := range []int{1, 100} {
			for _, shape := range []attack.Shape{attack.Star, attack.Clique, attack.Layers} {
				all = append(all, a.Shells(n, agents, shape))
			}
		}
		return all
	}
	try(30, 1, append(shells(6), shells(12)...)...)
	try(50, 2, shells(40)...)
}

// always tries what holds for any agent.
func (b *trustBench) always(a *attack.Bench, out *TrustWorld) {
	out.Bounds = a.Bounds(b.o.Trials)
	b.judge(harness.AtMost(in(a.World, "T8 most that strangers moved a score / what the pool allows"),
		out.Bounds.Strangers,
		1, ""),
		harness.AtMost(in(a.World, "T14 times that praise lowered a score"), float64(out.Bounds.Lowered), 0, ""),
		harness.AtMost(in(a.World, "T14 times that revoking did not restore it exactly"),
			float64(out.Bounds.Unrestored), 0,
			""))
}

// identity judges what has rules, T10 and T11; prices are measured.
func (b *trustBench) identity(w *attack.World, out TrustWorld) {
	x := out.Whitewash
	b.judge(harness.AtMost(in(w, "T10 new agent of a bad agent's party, in every way: score above the bad one's"),
		x.Worst()-x.Old, 0, "points"),
		harness.AtMost(in(w, "T10 new agent of a bad agent's party: tier"), float64(x.BestTier), 0, ""),
		harness.AtMost(in(w, "T10 loss of who was given a bad agent, and of his customer"),
			x.Praised-min(x.Gifted, x.GiftedFirst, x.Customer), 0, "points"),
		harness.AtMost(in(w, "T21 agent of a party of which one known agent in four is bad: score above the bad one's"),
			x.Shared[1].Score-x.Old, 0, "points"),
		harness.AtMost(in(w, "T21 the same of one in a thousand: loss"), x.Praised-x.Shared[4].Score, 2, "points"),
		harness.AtMost(in(w, "T10 new agent without a link: score"), x.Unlinked, 0, "points"),
		harness.Holds(in(w, "T10 new agent without a link is not served in full"), !x.Service),
		harness.AtMost(in(w, "T11 strangers with payments above strangers without"),
			out.Price.Strangers-out.Price.Unpaid, 0,
			"points"))
	for _, c := range x.Cases {
		b.judge(harness.AtMost(in(w, "T10 "+c.Accountable+": other agent's score above the bad one's"), c.Score-c.Bad,
			0, "points"),
			harness.AtMost(in(w, "T10 "+c.Bystander+": loss"), c.Free-c.Unlimited, 2, "points"))
	}
}

// detect is T12 and T13: it needs labels of good and bad parties, which recorded traders alone have.
func (b *trustBench) detect(w *attack.World) {
	b.Say("detection on %s", w.Name)
	const leave = 1500 // ratings that are left out in turn: each takes a walk of its own
	d := attack.Detect(w, attack.Undated(*b.p), b.p, leave)
	b.m.Detection = &d
	b.judge(harness.AtLeast(in(w, "T12 AUC of bad against good parties, label edges removed"), d.AUC, 0.90, ""),
		harness.AtLeast(in(w, "T12 the same with the first three ratings"), d.First3, 0.82, ""),
		harness.AtLeast(in(w, "T12 AUC of the score that users see, by the shipped parameters"), d.Seen, 0.905, ""),
		harness.AtLeast(in(w, "T12 the same score with the first three ratings"), d.SeenFirst3, 0.84, ""),
		harness.AtLeast(in(w, "T12 lower end of the 95 % interval above the plain mean"), d.Low, 0.000001, ""),
		harness.AtMost(in(w, "T13 leave-one-out error of the engine"), d.Error, 0.265, ""),
		harness.AtLeast(in(w, "T13 leave-one-out correlation of the engine"), d.Pearson, 0.41, ""))
}

// onOff is T9 and T19: an agent that turns bad after a year of good work, and praise that ages.
func (b *trustBench) onOff() {
	o := attack.MeasureOnOff(b.p)
	b.m.OnOff = o
	b.judge(harness.AtMost("T9 bad days until below 50", float64(o.Below50), 3, "days"),
		harness.AtMost("T9 bad days until below -10", float64(o.Below10), 12, "days"),
		harness.AtLeast("T9 good days until 50 again", float64(o.Recovery), 60, "days"))
	const halfLives = 4
	b.m.VouchAge = attack.VouchAge(b.p, 2*halfLives)
	b.judge(harness.AtMost("T19 weight by a root's only praise, four half-lives old", b.m.VouchAge[halfLives], 0.1, ""))
}

// rules compares ways to weigh bad news, by T7 and T9. They are measured, and the one of the parameters is marked.
func (b *trustBench) rules(w *attack.World) {
	for _, rule := range []struct {
		name    string
		factors []fixed.Fixed
	}{
		{"once", []fixed.Fixed{fixed.One}},
		{"twice", []fixed.Fixed{2 * fixed.One}},
		{"twice from four paths on", []fixed.Fixed{fixed.One, fixed.One, fixed.One, 2 * fixed.One}},
		{"as in the parameters", b.p.Negative.Factors},
	} {
		p := *b.p
		p.Negative.Factors = rule.factors
		a, o := attack.NewBench(w, &p, harness.Seed), attack.MeasureOnOff(&p)
		b.m.Negatives = append(b.m.Negatives,
			NegativeRule{Rule: rule.name, Chosen: slices.Equal(rule.factors, b.p.Negative.Factors),
				One: a.SlanderByRaters(1).Worst, Three: a.SlanderByRaters(3).Worst, Below50: o.Below50,
				Below10:  o.Below10,
				Recovery: o.Recovery})
	}
}

// digests is T15: the same ratings in any order give the same bytes of results, on any number of processors.
func (b *trustBench) digests(ctx context.Context, w *attack.World) error {
	b.Say("the same bytes in any order")
	seen := map[string]bool{}
	for i := range 6 {
		digest, err := w.Digest(ctx, b.p, uint64(i), 1+i%2, i >= 3)
		if err != nil {
			return fmt.Errorf("digest: %w", err)
		}
		seen[digest] = true
	}
	for digest := range seen {
		b.m.Digests = append(b.m.Digests, digest)
	}
	slices.Sort(b.m.Digests)
	b.judge(harness.AtMost("T15 different results of six orders, on one and two processors, one by one and in one pass",
		float64(len(seen)), 1, ""))
	return nil
}

// What a recomputation may take.
const (
	costEdges   = 10_000_000
	costSeconds = 5
	costMB      = 1000
	costEventMS = 5
	costLargeMS = 50

	personalEdges = 600_000
	personalMS    = 300
)

// cost is T16. The largest size of the curve is judged, because the others are parts of it.
func (b *trustBench) cost(ctx context.Context) error {
	for _, n := range b.o.Curve {
		b.Say("recomputing %d ratings", n)
		c, err := measureCost(ctx, n, b.p)
		if err != nil {
			return fmt.Errorf("cost of %d ratings: %w", n, err)
		}
		b.Say("%d ratings: loaded in %.1f s; walk %.2f s, scores %.2f s, %.2f s of processors, %.0f MB; an event %.2f ms, of the most rated agent %.2f ms",
			n, c.Build, c.Walk, c.Scores, c.CPU, c.Memory, c.Event, c.Busiest)
		b.m.Cost = append(b.m.Cost, c)
	}
	if len(b.m.Cost) == 0 {
		return nil
	}
	c := b.m.Cost[len(b.m.Cost)-1]
	edges := min(personalEdges, c.Edges)
	b.m.Personal = measurePersonal(edges, b.p)
	name := fmt.Sprintf(" of %d ratings", c.Edges)
	part := float64(min(c.Edges, costEdges)) / costEdges // a shorter curve is held to its part, not below a tenth
	b.judge(harness.AtMost("T16 full recomputation"+name, c.Total(), costSeconds*max(part, 0.1), "s"),
		harness.AtMost("T16 memory while recomputing"+name, c.Memory, costMB, "MB"),
		harness.AtMost("T16 one event", c.Event, costEventMS, "ms"),
		harness.AtMost(fmt.Sprintf("T16 one event at an agent of %d ratings", largeRatings), c.Large, costLargeMS,
			"ms"),
		harness.AtMost(fmt.Sprintf("score by a caller's hundred roots, %d ratings", edges), b.m.Personal, personalMS,
			"ms"))
	return nil
}
