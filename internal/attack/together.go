package attack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"slices"

	"repute/trust"
	"repute/trust/fixed"
	"repute/trust/rating"
	"repute/trust/source"
)

// Batch is T22: twelve roots praise an agent in the same words in one block, as a bundler writes, and then so do six
// hundred wallets.
type Batch struct {
	Paths   int     `json:"paths"`   // of the twelve
	Apart   float64 `json:"apart"`   // mean where each says it in a block of its own
	Mean    float64 `json:"mean"`    // in one block
	Copied  float64 `json:"copied"`  // with the wallets
	Trusted int     `json:"trusted"` // raters that count
}

// Batch measures T22.
func (b *Bench) Batch() Batch {
	const roots, copies = 12, 600
	target := b.World.Next()
	ask := func(block, copies int) trust.Result {
		e := NewEngine(b.World, b.Params)
		ev := e.Evidence(target)
		for i := range roots + copies {
			from := target + 1 + i
			if i < roots {
				from = b.World.Roots[i]
			}
			row := RowOf(len(b.World.Ratings)+i*block, Rating{from, target, 1, b.World.Now})
			row.LogIndex = uint32(i)
			ev.Rows = append(ev.Rows, row)
		}
		return e.scorer.Score(ev)
	}
	apart, one, copied := ask(1, 0), ask(0, 0), ask(0, copies)
	return Batch{one.PathsFor, points(apart.Mean), points(one.Mean), points(copied.Mean), one.TrustedFor}
}

// SourceBounds is what random trials of the rules of sources found: S6.
type SourceBounds struct {
	Trials int     `json:"trials"`
	Opened int     `json:"opened"`  // times that sources opened a gate of value, or lifted an agent above tier 2
	Kept   int     `json:"kept"`    // times that sources moved an agent into or out of a gate that keeps out
	Raised int     `json:"raised"`  // times that taking a credential away raised an agent that its holder praised
	Drop   float64 `json:"drop"`    // most points that blame by all sources took
	Moved  float64 `json:"praised"` // most points that praise by all sources gave
}

// SourceBounds tries random parts of the ratings of random parties, with credentials for strangers and for some
// raters.
func (b *Bench) SourceBounds(s *Sources, trials int) (out SourceBounds) {
	t := &trial{b: b, rng: b.rng(), engine: NewEngine(b.World, b.Params)}
	dummy := b.World.Next()
	holders := hold(dummy+1, 30, s.of("")...)
	pool := *b.Params
	pool.Evidence.Pool = 0
	worlds := []*Engine{NewEngine(b.World.With(b.by(holders, dummy, -1)...), b.Params),
		NewEngine(b.World.With(b.by(holders, dummy, -1)...), &pool)}
	for p := range t.engine.about {
		t.parties = append(t.parties, p)
	}
	slices.Sort(t.parties)
	out.Trials = trials
	for range trials {
		t.sources(s, worlds, holders, &out)
	}
	return out
}

// sources is one trial.
func (t *trial) sources(s *Sources, worlds []*Engine, holders []holding, out *SourceBounds) {
	const most = 80
	t.engine = worlds[0]
	e := t.evidence()
	held := slices.Clone(holders)
	t.rng.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
	held = held[:1+t.rng.IntN(most)]
	value, blamers := 1.0, 0
	if t.rng.IntN(2) == 0 {
		value = -1
	} else {
		blamers = t.rng.IntN(len(held))
	}
	if e.Rows = slices.Clone(e.Rows); t.rng.IntN(3) == 0 && len(e.Rows) > 0 { // compromised roots that nobody outvotes
		for i, root := range t.b.World.Roots[:1+t.rng.IntN(2)] {
			e.Rows = append(e.Rows, RowOf(1<<30+i, Rating{root, 0, 1, t.b.World.Now}))
		}
	}
	before := worlds[0].credited(s, nil, 1).ask(e)
	for i, h := range held {
		v := value
		if i < blamers/4 {
			v = -1
		}
		e.Rows = append(e.Rows, RowOf(1<<31+i, Rating{h.party, 0, v, t.b.World.Now - t.rng.Int64N(100*secondsDay)}))
	}
	for i := range e.Rows { // some of the others hold something too
		if t.rng.IntN(8) == 0 && len(e.Rows)-len(held) > i {
			ids := s.of("")
			held = append(held, holding{party: partyOf(&e.Rows[i]), source: ids[t.rng.IntN(len(ids))]})
		}
	}
	without, with := worlds[0].credited(s, nil, 1).ask(e), worlds[0].credited(s, held, 1).ask(e)
	for i := range with.Gates {
		a, b := &with.Gates[i], &without.Gates[i]
		switch {
		case a.Direction == rating.Admits && a.Passed && !b.Passed:
			out.Opened++
		case a.Direction == rating.KeepsOut && a.Passed != b.Passed:
			out.Kept++
		}
	}
	if with.Tier > max(2, without.Tier) {
		out.Opened++
	}
	out.Drop, out.Moved = max(out.Drop, points(before.Mean-with.Mean)), max(out.Moved, points(with.Mean-before.Mean))
	if value > 0 && blamers/4 < blamers {
		t.takeAway(s, worlds[1], held, blamers/4, e, out)
	}
}

// takeAway takes the credentials of a party that praised.
func (t *trial) takeAway(s *Sources, e *Engine, held []holding, blamers int, ev trust.Evidence, out *SourceBounds) {
	who := held[blamers].party
	fewer := slices.DeleteFunc(slices.Clone(held), func(h holding) bool { return h.party == who })
	with, without := e.credited(s, held, 1).ask(ev), e.credited(s, fewer, 1).ask(ev)
	if without.Mean > with.Mean+1 { // a thousandth of a point is rounding
		out.Raised++
	}
}

// ask scores evidence by the engine's weights, whatever weights the evidence came with.
func (e *Engine) ask(ev trust.Evidence) trust.Result {
	ev.Weights = e.weights
	return e.scorer.Score(ev)
}

// partyOf is the party of a row's rater: the inverse of Address.
func partyOf(r *rating.Row) int { return int(r.Rater.Big().Int64()) - 1 }

// Lag is how many epochs after a revocation on chain the rater still has weight, and the change of the score that it
// gave: G7.
type Lag struct {
	Epochs int     `json:"epochs"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	Never  float64 `json:"never"` // without the credentials from the start
}

// Lag revokes the credentials of six holders after they praised a new agent. An epoch is an hour here, and the
// revocation comes in the middle of the first one. It gives up after ten epochs, which no target allows.
func (b *Bench) Lag(s *Sources, id string) (out Lag) {
	const holders, hour = 6, 60 * 60
	target := b.World.Next()
	held := hold(target+1, holders, id)
	of := s.policy.Source(id)
	now := uint64(b.World.Now)
	credentials := make([]source.Credential, len(held))
	for i, h := range held {
		credentials[i] = source.Credential{Source: id, Version: of.Version, Class: of.Class, Rater: Address(h.party),
			Issued: now - 30*secondsDay, Revoked: now + hour/2}
	}
	w := b.World.With(b.by(held, target, 1)...)
	at := func(epoch int) float64 {
		var left []holding
		for _, r := range s.policy.Raters(credentials, now+uint64(epoch*hour)) {
			left = append(left, holding{party: int(r.Address.Big().Int64()) - 1, source: id})
		}
		return points(NewEngine(w, b.Params).credited(s, left, 1).Score(target).Mean)
	}
	out.Before, out.Never = at(0), points(NewEngine(w, b.Params).credited(s, nil, 1).Score(target).Mean)
	for out.Epochs = 1; at(out.Epochs) != out.Never && out.Epochs < 10; out.Epochs++ {
	}
	out.After = at(out.Epochs)
	return out
}

// SourcedDigest is the sha256 of the results of all parties, where every tenth rater holds something, with ratings and
// credentials in an order that seed shuffles: G8.
func (b *Bench) SourcedDigest(ctx context.Context, s *Sources, seed uint64) (string, error) {
	rng := rand.New(rand.NewPCG(seed, 8))
	var held []holding
	ids := s.of("")
	for p := 0; p < b.World.Next(); p += 10 {
		held = append(held, holding{party: p, source: ids[p/10%len(ids)]},
			holding{party: p, source: ids[(p/10+1)%len(ids)]})
	}
	rng.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
	e := NewEngine(b.World, b.Params).credited(s, held, 1)
	h := sha256.New()
	for party := range b.World.Next() {
		ev := e.Evidence(party)
		rng.Shuffle(len(ev.Rows), func(i, j int) { ev.Rows[i], ev.Rows[j] = ev.Rows[j], ev.Rows[i] })
		h.Write(encode(e.scorer.Score(ev)))
	}
	return hex.EncodeToString(h.Sum(nil)), ctx.Err()
}

// unitsOf turns dollars or units into a float, for reports only: what decides is computed in Fixed.
func unitsOf(f fixed.Fixed) float64 { return float64(f) / float64(fixed.One) }
