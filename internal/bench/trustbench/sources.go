package trustbench

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/internal/attack"
	"repute/internal/bench/harness"
	"repute/trust/fixed"
	"repute/trust/source"
)

// TrustSources is what credentials of raters give to agents.
type TrustSources struct {
	Policy   common.Hash          `json:"policy"` // of sources, the shipped one
	Coverage []ChainCoverage      `json:"coverage"`
	Prices   []attack.SourcePrice `json:"prices"` // G4, G5
	Lag      attack.Lag           `json:"lag"`    // G7
	Digests  []string             `json:"digests"`
	Calls    SourceCalls          `json:"calls"` // G9
}

// ChainCoverage is who would be rated on a chain with the published marginals: G1 to G3.
type ChainCoverage struct {
	attack.Marginals
	Rows  []attack.Coverage `json:"rows"`
	Lines []RatedLine       `json:"lines"` // the choice of what makes an agent rated
}

// RatedLine is one choice of RatedParams, and the share of agents with three honest reviewers that are rated by it,
// where three in ten honest raters hold something and reviewed writers are roots.
type RatedLine struct {
	Units float64 `json:"units"`
	Each  float64 `json:"each"`
	Rated float64 `json:"rated"`
}

// SourceAttacks is what credentials reach on one world.
type SourceAttacks struct {
	Outcomes []attack.Outcome    `json:"outcomes"` // S1 to S4
	Drops    []attack.Drop       `json:"drops"`    // S5
	Bounds   attack.SourceBounds `json:"bounds"`   // S6
	Sway     attack.Sway         `json:"sway"`     // G6
}

// What sources may move, in points.
const (
	swayUp, swayDown = 37.5, 26 // by one issuer that lies about everybody
	least50          = 300      // dollars that a mean of 50 costs at least, by credentials alone
	mostSourceCalls  = 20       // eth_call for 10,000 raters and a source
)

// sources judges what credentials reach on a world. The classes are tried one by one and then together, "".
func (b *trustBench) sources(a *attack.Bench, out *TrustWorld) {
	w, s := a.World, attack.NewSources(b.policy)
	x := &out.Sources
	try := func(outcomes ...attack.Outcome) {
		best := slices.MaxFunc(outcomes, func(x, y attack.Outcome) int { return cmp.Compare(x.Tier, y.Tier) })
		opened := slices.ContainsFunc(outcomes, func(o attack.Outcome) bool { return o.Opens })
		x.Outcomes = append(x.Outcomes, outcomes...)
		b.judge(harness.AtMost(in(w, best.Attack+": tier"), float64(best.Tier), 2, ""),
			harness.Holds(in(w, best.Attack+": no gate of value opens"), !opened))
	}
	for _, class := range []string{"A", "B", "C", ""} {
		var praise []attack.Outcome
		for _, n := range []int{1, 3, 10, 100} {
			praise = append(praise, a.BoughtPraise(s, class, n))
		}
		try(praise...)
		b.drops(a, out, swayDown, a.BoughtSlander(s, class, 0))
	}
	// Credentials in addition to what an attacker has already: roots or raters of full weight.
	try(a.BoughtWithRoots(s, 1), a.BoughtWithRoots(s, 2))
	try(a.BoughtWithRaters(s, 1), a.BoughtWithRaters(s, 2))
	x.Drops = append(x.Drops, a.BoughtSlander(s, "", 1)) // measured, not judged
	kyc := b.policy.Sources[0].ID
	alone, three := a.ThreeWallets(s, kyc, true), a.ThreeWallets(s, kyc, false)
	x.Outcomes = append(x.Outcomes, alone, three)
	var most float64
	for _, agents := range []int{20, 200, 2000} {
		o := a.Budget(s, kyc, agents)
		x.Outcomes = append(x.Outcomes, o)
		most = max(most, o.Units*float64(agents))
	}
	b.judge(harness.AtMost(in(w, "S4 units that six holders give 20, 200 or 2,000 agents together"), most,
		6*20*0.5, ""))
	x.Bounds, x.Sway = a.SourceBounds(s, b.o.Trials/4), a.Sway(s)
	never := func(what string, times int) {
		b.judge(harness.AtMost(in(w, "S6 times that "+what), float64(times), 0, ""))
	}
	never("sources opened a gate of value or gave more than tier 2", x.Bounds.Opened)
	never("sources moved an agent into or out of a gate that keeps out", x.Bounds.Kept)
	never("losing a credential raised an agent that its holder praised", x.Bounds.Raised)
	b.judge(
		harness.AtMost(in(w, "S6 most that blame by all sources took"), x.Bounds.Drop, swayDown, "points"),
		harness.AtMost(in(w, "G6 one hostile issuer: up"), x.Sway.Up, swayUp, "points"),
		harness.AtMost(in(w, "G6 one hostile issuer: down"), x.Sway.Down, swayDown, "points"),
		harness.AtMost(in(w, "G6 one issuer gone: down"), x.Sway.Gone, swayUp, "points"))
}

// batches judges T22.
func (b *trustBench) batches(a *attack.Bench, out *TrustWorld) {
	out.Batch = a.Batch()
	x := out.Batch
	b.judge(harness.AtLeast(in(a.World, "T22 twelve roots in one block: paths"), float64(x.Paths), 12, ""),
		harness.AtMost(in(a.World, "T22 twelve roots in one block: loss against blocks of their own"),
			x.Apart-x.Mean, 0,
			"points"),
		harness.AtMost(in(a.World, "T22 change by 600 copies without weight"), max(x.Copied-x.Mean, x.Mean-x.Copied), 0,
			"points"))
}

// coverage judges G1 to G5 and G7 to G9.
func (b *trustBench) coverage(ctx context.Context, generated *attack.World) error {
	out := &TrustSources{Policy: b.policy.Hash()}
	b.m.Sources = out
	const draws = 10
	for _, m := range attack.ChainMarginals() {
		b.Say("who is rated on %s", m.Name)
		c, chain := m.Population(harness.Seed), ChainCoverage{Marginals: m}
		for _, share := range []float64{0.1, 0.3, 0.5} {
			for _, writers := range []bool{false, true} {
				chain.Rows = append(chain.Rows, c.Cover(b.p, b.policy, share, writers, draws))
			}
		}
		chain.Lines = b.lines(c)
		out.Coverage = append(out.Coverage, chain)
		for _, r := range chain.Rows[2:4] { // three in ten honest raters hold a credential
			by := map[bool]string{false: "by sources alone", true: "by sources and reviewed writers"}[r.Writers]
			name := fmt.Sprintf("G2 %s, %s: agents with ", m.Name, by)
			b.judge(harness.AtLeast(name+"three honest reviewers that are rated", r.Rated, 0.6, ""),
				harness.AtLeast(name+"honest feedback that are at least thin", r.Thin, 0.5, ""))
		}
	}
	a, s := attack.NewBench(generated, b.p, harness.Seed), attack.NewSources(b.policy)
	for _, chain := range append(chains(b.policy), 0) { // 0 stands for chains without sources of their own
		p := a.SourcePrice(s, chain)
		out.Prices = append(out.Prices, p)
		b.judge(harness.Holds(fmt.Sprintf("G4 chain %d: a mean of 50 costs $%d or is out of reach", chain, least50),
			p.To50 == 0 || p.To50 >= least50),
			harness.Holds(fmt.Sprintf("G5 chain %d: sources alone open no gate of value", chain), !p.Opens))
	}
	out.Lag = a.Lag(s, b.policy.Sources[0].ID)
	b.judge(harness.AtMost("G7 epochs from a revocation to its effect", float64(out.Lag.Epochs), 1, ""))
	for i := range uint64(4) {
		digest, err := a.SourcedDigest(ctx, s, i)
		if err != nil {
			return fmt.Errorf("digest with sources: %w", err)
		}
		if !slices.Contains(out.Digests, digest) {
			out.Digests = append(out.Digests, digest)
		}
	}
	b.judge(harness.AtMost("G8 different results of four orders of ratings and credentials",
		float64(len(out.Digests)), 1,
		""))
	var err error
	if out.Calls, err = sourceCalls(ctx, b.policy, 10_000); err != nil {
		return fmt.Errorf("calls of sources: %w", err)
	}
	b.judge(harness.AtMost("G9 calls of a node for 10,000 raters and the source with most", float64(out.Calls.Calls),
		mostSourceCalls, "calls"))
	return nil
}

// lines compares what may make an agent rated: units in total, and units that each of its raters gives at least.
func (b *trustBench) lines(c *attack.Chain) (out []RatedLine) {
	const draws = 3
	for _, l := range []RatedLine{{1.25, 0.02, 0}, {0.4, 0.02, 0}, {0.25, 0.02, 0}, {0.1, 0.05, 0}, {0.1, 0.02, 0}} {
		p := *b.p
		units := fixed.Ratio(int64(l.Units*100), 100)
		p.Rated.Confidence = units.Div(p.Evidence.Base + units)
		p.Rated.Each = fixed.Ratio(int64(l.Each*100), 100)
		l.Rated = c.Cover(&p, b.policy, 0.3, true, draws).Rated
		out = append(out, l)
	}
	return out
}

// chains are those that a policy has sources for.
func chains(p *source.Policy) (list []uint64) {
	for _, d := range p.Defaults {
		list = append(list, d.Chain)
	}
	slices.Sort(list)
	return list
}

// sourcePolicy is the one that scores are made with by default. One without sources is refused: every target of sources
// would be met by it.
func sourcePolicy() (*source.Policy, error) {
	p, err := source.Default()
	if err != nil {
		return nil, fmt.Errorf("the shipped sources: %w", err)
	}
	if len(p.Sources) == 0 {
		return nil, repute.Invalid("sources", "there is none", "at least one source")
	}
	return p, nil
}
