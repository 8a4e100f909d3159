package attack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"runtime"
	"slices"

	"repute/trust"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
)

// Bounds is what random trials of the rules that always hold found: T8 and T14.
type Bounds struct {
	Trials int `json:"trials"`
	// Strangers is the most that unvouched raters moved a mean, as a share of what the
	// pool allows; MostMoved the same in points.
	Strangers  float64 `json:"strangers_share_of_bound"`
	MostMoved  float64 `json:"strangers_points"`
	Lowered    int     `json:"praise_lowered"`    // times that one more rater of +1 lowered the mean
	Unrestored int     `json:"revoke_unrestored"` // times that taking the row away did not restore the result exactly
}

// Bounds tries both rules on random agents of the world. The same seed tries the same agents. What it finds is compared
// with limits by the caller.
func (b *Bench) Bounds(trials int) (out Bounds) {
	t := &trial{b: b, rng: b.rng(), engine: NewEngine(b.World, b.Params), next: b.World.Next()}
	for p := range t.engine.about {
		t.parties = append(t.parties, p)
	}
	slices.Sort(t.parties)
	out.Trials = trials
	for range trials {
		e := t.evidence()
		before := t.engine.scorer.Score(e)
		t.strangers(e, before, &out)
		t.praise(e, before, &out)
	}
	return out
}

// trial draws random agents, ratings and raters of a world. The parties are sorted, since maps have no order that a
// seed could repeat.
type trial struct {
	b       *Bench
	rng     *rand.Rand
	engine  *Engine
	parties []int
	next    int
}

// evidence is a random part of the ratings of a random party.
func (t *trial) evidence() trust.Evidence {
	e := t.engine.Evidence(t.parties[t.rng.IntN(len(t.parties))])
	keep := t.rng.Float64()
	e.Rows = slices.DeleteFunc(e.Rows, func(rating.Row) bool { return t.rng.Float64() > keep })
	return e
}

// strangers say anything, some of it in the same block and words as others do.
func (t *trial) strangers(e trust.Evidence, before trust.Result, out *Bounds) {
	rows := slices.Clone(e.Rows)
	for i := range 1 + t.rng.IntN(60) {
		row := RowOf(len(t.b.World.Ratings)+t.rng.IntN(20),
			Rating{0, 0, 2*t.rng.Float64() - 1, t.b.World.Now - t.rng.Int64N(200*secondsDay)})
		if len(e.Rows) > 0 && t.rng.IntN(2) == 0 {
			row = e.Rows[t.rng.IntN(len(e.Rows))]
		}
		row.Rater, row.LogIndex = Address(t.next+t.rng.IntN(40)), uint32(i+1)
		row.Paid = fixed.Int(t.rng.IntN(1000))
		rows = append(rows, row)
	}
	e.Rows = rows
	after := t.engine.scorer.Score(e)
	pool, base := float64(t.b.Params.Evidence.Pool), float64(t.b.Params.Evidence.Base)
	most := 100 * 2 * pool / (base + float64(before.Positive+before.Negative) + pool)
	moved := max(points(after.Mean-before.Mean), points(before.Mean-after.Mean))
	out.Strangers, out.MostMoved = max(out.Strangers, (moved-0.002)/most), max(out.MostMoved, moved)
}

// praise adds a row of +1 from a rater with none before, and takes it away.
func (t *trial) praise(e trust.Evidence, before trust.Result, out *Bounds) {
	rater := t.rng.IntN(t.next + 20)
	if slices.ContainsFunc(e.Rows, func(r rating.Row) bool { return r.Rater == Address(rater) }) {
		return
	}
	row := RowOf(len(t.b.World.Ratings), Rating{rater, 0, 1, t.b.World.Now - t.rng.Int64N(200*secondsDay)})
	if len(e.Rows) > 0 && t.rng.IntN(2) == 0 {
		row.Block = e.Rows[t.rng.IntN(len(e.Rows))].Block
	}
	with := e
	with.Rows = append(slices.Clone(e.Rows), row)
	if t.engine.scorer.Score(with).Mean < before.Mean {
		out.Lowered++
	}
	with.Rows = slices.DeleteFunc(with.Rows, func(r rating.Row) bool { return r.Rater == row.Rater })
	if !bytes.Equal(encode(t.engine.scorer.Score(with)), encode(before)) {
		out.Unrestored++
	}
}

// encode is a result as bytes: two results are the same where all of their fields are.
func encode(r trust.Result) []byte {
	raw, _ := json.Marshal(r) // numbers and texts: it does not fail
	return raw
}

// Digest is the sha256 of the results of all parties, in their order: with edges and rows
// in an order that seed shuffles, on so many processors, by Score or in one pass.
func (w *World) Digest(ctx context.Context, p *rating.Params, seed uint64, processors int, pass bool) (string, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
	rng := rand.New(rand.NewPCG(seed, 15))
	order := rng.Perm(len(w.Ratings))
	b := flow.NewGraphBuilder()
	for _, i := range order {
		r := w.Ratings[i]
		if from, to := b.Add(Address(r.From)), b.Add(Address(r.To)); r.Value > 0 {
			b.Vouch(from, to, p.Walk.Edge(FixedOf(r.Value), fixed.One))
		}
	}
	e := &Engine{w: w, p: p, about: map[int][]int{}}
	for _, i := range order {
		e.about[w.Ratings[i].To] = append(e.about[w.Ratings[i].To], i)
	}
	e.weights = b.Build().Walk(e.roots(), p.Walk)
	e.scorer = trust.NewScorer(e.weights, p)
	return e.digest(ctx, rng.Perm(w.Next()), pass)
}

// digest takes parties in any order.
func (e *Engine) digest(ctx context.Context, order []int, pass bool) (string, error) {
	results := make([][]byte, len(order))
	ledger := trust.NewLedger(e.weights, blockAt(e.w.Now), e.p)
	for _, party := range order {
		ev := e.Evidence(party)
		ev.Agent.TokenID.SetUint64(uint64(party))
		if pass {
			ledger.Add(ev)
			continue
		}
		results[party] = encode(e.scorer.Score(ev))
	}
	err := ledger.Score(ctx, func(r *trust.Result) {
		results[r.Agent.TokenID.Uint64()] = encode(*r)
	})
	h := sha256.New()
	for _, r := range results {
		h.Write(r)
	}
	return hex.EncodeToString(h.Sum(nil)), err
}
