package attack

import (
	"cmp"
	"math"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust"
)

// Whitewash is T10: what a new agent gets when somebody behind it had one that is surely
// bad. All but those that say otherwise are praised by three raters of full weight.
type Whitewash struct {
	Old        float64 `json:"old_score"`         // of the bad agent
	SameOwner  float64 `json:"same_owner_score"`  // of a new one of its owner
	SameWallet float64 `json:"same_wallet_score"` // of another's whose verified wallet is the owner of the bad one
	Registered float64 `json:"registered_score"`  // of another's that the owner of the bad one registered
	SameParty  float64 `json:"same_party_score"`  // of a new one whose owner is linked to the bad one's by an imported link
	GivenAway  float64 `json:"given_away_score"`  // of a new one of its owner, who gave the bad one away before
	Unjudged   float64 `json:"unjudged_high"`     // upper bound of a new one of its owner that nobody rated
	Sleeper    float64 `json:"sleeper_score"`     // of one that its owner registered ahead of the guard's days and never used
	BestTier   int     `json:"best_tier"`         // of all these
	Gifted     float64 `json:"gifted_score"`      // of a new one of somebody who was given the bad one
	Unlinked   float64 `json:"unlinked_score"`    // of a new one without any link and without praise
	Service    bool    `json:"unlinked_served"`   // whether the unlinked one passes the gate of full service
	Praised    float64 `json:"unlinked_praised"`  // of one without any link
	AfterGuard float64 `json:"after_guard_score"` // of one of the same owner that was first rated before the guard's days
}

// Worst is the best that a new agent of the bad one's party got.
func (w Whitewash) Worst() float64 {
	return max(w.SameOwner, w.SameWallet, w.Registered, w.SameParty, w.GivenAway, w.Unjudged, w.Sleeper)
}

// washing is a bad agent with all who may be behind new ones.
type washing struct {
	*Bench
	engine                         *Engine
	old, fresh, alias, other, next int
	praise                         []int
	kept, given                    trust.Guilty // who is guilty when the bad agent stays, and when it is given to next
	bad                            trust.Result
}

// Whitewash measures T10 by the functions that the engine goes by.
func (b *Bench) Whitewash() (w Whitewash) {
	s := b.washing()
	owner, other := Address(s.old), Address(s.other)
	fresh := func(e trust.Evidence) trust.Evidence { e.Held = cmp.Or(e.Held, b.World.Now-secondsDay); return e }
	ask := func(guilty trust.Guilty, praised bool, e trust.Evidence) trust.Result {
		r := s.ask(guilty, praised, fresh(e))
		if e.Owner != other || e.Wallet != (common.Address{}) || e.Registrar != (common.Address{}) {
			w.BestTier = max(w.BestTier, r.Tier)
		}
		return r
	}
	w.Old = points(s.bad.Score)
	w.SameOwner = held(ask(s.kept, true, trust.Evidence{Owner: owner}))
	w.SameWallet = held(ask(s.kept, true, trust.Evidence{Owner: other, Wallet: owner}))
	w.Registered = held(ask(s.kept, true, trust.Evidence{Owner: other, Registrar: owner}))
	w.SameParty = held(ask(s.kept, true, trust.Evidence{Owner: Address(s.alias)}))
	w.GivenAway = held(ask(s.given, true, trust.Evidence{Owner: owner}))
	w.Unjudged = points(ask(s.kept, false, trust.Evidence{Owner: owner}).High)
	w.Gifted = held(s.ask(s.given, true, fresh(trust.Evidence{Owner: Address(s.next)})))
	unlinked := ask(s.kept, false, trust.Evidence{Owner: other})
	w.Unlinked = points(unlinked.Score)
	for _, g := range unlinked.Gates {
		w.Service = w.Service || g.ID == "service" && g.Passed
	}
	w.Praised = held(ask(s.kept, true, trust.Evidence{Owner: other}))
	long := b.World.Now - int64(b.Params.Guard.Days)*secondsDay
	w.AfterGuard = held(s.ask(s.kept, true, trust.Evidence{Owner: owner, Held: long, Rows: []trust.Row{rowOf(0, Rating{s.praise[0], s.fresh, 1, long})}}))
	w.Sleeper = held(ask(s.kept, true, trust.Evidence{Owner: owner, Held: long}))
	return w
}

func (b *Bench) washing() *washing {
	n := b.World.Next()
	s := &washing{Bench: b, old: n, fresh: n + 1, alias: n + 2, other: n + 3, next: n + 4, praise: b.fullRaters(23)[20:], kept: trust.Guilty{}, given: trust.Guilty{}}
	var more []Rating
	for _, p := range b.fullRaters(20) {
		more = append(more, Rating{p, s.old, -1, b.World.Now})
	}
	s.engine = newEngine(b.World.With(more...), b.Params, [2]int{s.old, s.alias})
	e := s.engine.Evidence(s.old)
	s.bad = s.engine.scorer.Score(e)
	const gift = 1 << 39
	e.Tenures = []trust.Tenure{{To: math.MaxUint64, Owner: e.Owner}}
	s.kept.Add(s.engine.scorer.Guilt(e, &s.bad)...)
	e.Tenures = []trust.Tenure{{To: gift, Owner: e.Owner}, {From: gift + 1, To: math.MaxUint64, Owner: Address(s.next)}}
	e.Owner = Address(s.next)
	now := s.engine.scorer.Score(e)
	s.given.Add(s.engine.scorer.Guilt(e, &now)...)
	return s
}

// ask scores a new agent of whom e says who is behind it and how old it is.
func (s *washing) ask(guilty trust.Guilty, praised bool, e trust.Evidence) trust.Result {
	base := s.engine.Evidence(s.fresh)
	e.Agent, e.Block, e.Weights = repute.AgentID{ChainID: 1}, base.Block, base.Weights
	e.Agent.TokenID.SetUint64(1)
	e.Kin = guilty.Kin(&e)
	for i, p := range s.praise {
		if praised {
			e.Rows = append(e.Rows, rowOf(len(s.World.Ratings)+i, Rating{p, s.fresh, 1, s.World.Now}))
		}
	}
	return s.engine.scorer.Score(e)
}

// held is what stands of a mean after the guard: unrated or not, as all means here.
func held(r trust.Result) float64 { return points(r.Held()) }

func points(p trust.Points) float64 { return float64(p) / 1000 }
