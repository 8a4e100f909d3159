package attack

import (
	"math"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust"
	"repute/trust/rating"
)

// Whitewash is T10: what a new agent gets when somebody behind it had one that is surely
// bad. All but those that say otherwise are praised by three raters of full weight.
type Whitewash struct {
	Old        float64 `json:"old_score"`         // of the bad agent
	SameOwner  float64 `json:"same_owner_score"`  // of a new one of its owner
	SameWallet float64 `json:"same_wallet_score"` // of another's whose verified wallet is the owner of the bad one
	Registered float64 `json:"registered_score"`  // of another's that the owner of the bad one registered
	// of a new one whose owner is linked to the bad one's by an imported link
	SameIdentity float64 `json:"same_identity_score"`
	GivenAway    float64 `json:"given_away_score"` // of a new one of its owner, who gave the bad one away before
	Dropped      float64 `json:"dropped_score"`    // of a new one of its owner, who gave it away a day before the ratings
	// of a new one of its owner, who passed the bad one on to three owners during the ratings and took it back
	Split       float64 `json:"split_score"`
	Unjudged    float64 `json:"unjudged_high"`      // upper bound of a new one of its owner that nobody rated
	BestTier    int     `json:"best_tier"`          // of all these
	Gifted      float64 `json:"gifted_score"`       // of a new one of somebody who was given the bad one
	GiftedFirst float64 `json:"gifted_first_score"` // of a new one of somebody who was given it before the ratings
	Customer    float64 `json:"customer_score"`     // of one that the same registered for another
	Unlinked    float64 `json:"unlinked_score"`     // of a new one without any link and without praise
	Service     bool    `json:"unlinked_served"`    // whether the unlinked one passes the gate of full service
	Praised     float64 `json:"unlinked_praised"`   // of one without any link
	// Shared is what an agent of an identity that is accountable for the bad one has where so many of its agents are
	// known.
	Shared []SharedPenalty `json:"shared"`
	Cases  []GuardCase     `json:"cases"`
}

// SharedPenalty is the score of an agent, praised by three raters of full weight, of an identity with so many known
// agents of which one is surely bad.
type SharedPenalty struct {
	Known int     `json:"known_agents"`
	Score float64 `json:"score"`
}

// Worst is the best that a new agent of the bad one's identity got, which is the worst for everybody else.
func (w Whitewash) Worst() float64 {
	return max(w.SameOwner, w.SameWallet, w.Registered, w.SameIdentity, w.GivenAway, w.Dropped, w.Split, w.Unjudged)
}

// washing is a bad agent with all who may be behind new ones. The numbers are of parties that no rating but the bad
// agent's names: old is the bad agent and its owner, fresh the agent that is asked about, alias the party that is
// linked to old, other a stranger, and next the one that gets the bad agent.
type washing struct {
	*Bench
	engine                         *Engine
	old, fresh, alias, other, next int
	praise                         []int
	// penalties when the bad agent stays, is given to next after its ratings or before, and is spread and taken back
	kept, given, dropped, split trust.Penalties
	bad                         trust.Result
}

// Whitewash measures T10 by the functions that the engine uses.
func (b *Bench) Whitewash() (w Whitewash) {
	s := b.washing()
	owner, other := Address(s.old), Address(s.other)
	ask := func(penalties trust.Penalties, praised bool, e trust.Evidence) trust.Result {
		r := s.ask(penalties, praised, 1, e)
		if e.Owner != other || e.Wallet != (common.Address{}) || e.Registrar != (common.Address{}) {
			w.BestTier = max(w.BestTier, r.Tier)
		}
		return r
	}
	w.Old = points(s.bad.Score)
	w.SameOwner = held(ask(s.kept, true, trust.Evidence{Owner: owner}))
	w.SameWallet = held(ask(s.kept, true, trust.Evidence{Owner: other, Wallet: owner}))
	w.Registered = held(ask(s.kept, true, trust.Evidence{Owner: other, Registrar: owner}))
	w.SameIdentity = held(ask(s.kept, true, trust.Evidence{Owner: Address(s.alias)}))
	w.GivenAway = held(ask(s.given, true, trust.Evidence{Owner: owner}))
	w.Dropped = held(ask(s.dropped, true, trust.Evidence{Owner: owner}))
	w.Split = held(ask(s.split, true, trust.Evidence{Owner: owner}))
	w.Unjudged = points(ask(s.kept, false, trust.Evidence{Owner: owner}).High)
	gifted := Address(s.next)
	w.Gifted = held(s.ask(s.given, true, 1, trust.Evidence{Owner: gifted}))
	w.GiftedFirst = held(s.ask(s.dropped, true, 1, trust.Evidence{Owner: gifted}))
	w.Customer = held(s.ask(s.dropped, true, 1, trust.Evidence{Owner: other, Registrar: gifted}))
	unlinked := ask(s.kept, false, trust.Evidence{Owner: other})
	w.Unlinked = points(unlinked.Score)
	for _, g := range unlinked.Gates {
		w.Service = w.Service || g.ID == "service" && g.Passed
	}
	w.Praised = held(ask(s.kept, true, trust.Evidence{Owner: other}))
	for _, known := range []int{1, 4, 10, 100, 1000} {
		w.Shared = append(w.Shared, SharedPenalty{known,
			held(s.ask(s.kept, true, known, trust.Evidence{Owner: owner}))})
	}
	w.Cases = s.cases()
	return w
}

// washing makes the bad agent: twenty raters of full weight rate it as badly as can be. Three others, who praise the
// agents that are asked about, are none of them. The world MUST have 23 raters of full weight.
func (b *Bench) washing() *washing {
	n := b.World.Next()
	s := &washing{Bench: b, old: n, fresh: n + 1, alias: n + 2, other: n + 3, next: n + 4,
		praise: b.fullRaters(23)[20:]}
	var more []Rating
	for _, p := range b.fullRaters(badRatings) {
		more = append(more, Rating{p, s.old, -1, b.World.Now})
	}
	s.engine = NewEngine(b.World.With(more...), b.Params, [2]int{s.old, s.alias})
	s.bad = s.engine.scorer.Score(s.engine.Evidence(s.old))
	s.kept = s.givenTo()
	s.given = s.givenTo(handover{badRatings, s.next})
	s.dropped = s.givenTo(handover{0, s.next})
	s.split = s.givenTo(handover{5, s.next}, handover{10, s.next + 1}, handover{15, s.next + 2},
		handover{badRatings, s.old})
	return s
}

// badRatings is how many raters of full weight rate the bad agent negatively.
const badRatings = 20

// handover gives the bad agent to an identity after so many of its ratings.
type handover struct{ after, to int }

// givenTo returns the penalties of the bad agent, which its owner registered long ago and handed
// on. Nobody who gets it does anything with it. One that was dropped before its ratings was
// dropped a day before them; of one that is split none is so near that its tail counts.
func (s *washing) givenTo(handovers ...handover) trust.Penalties {
	e, now := s.engine.Evidence(s.old), s.World.Now
	first := e.Rows[0].Block // each word is in a block of its own
	e.Registrar = e.Owner
	e.Tenures = []rating.Tenure{{To: math.MaxUint64, Began: now - 200*secondsDay, Owner: e.Owner}}
	for _, h := range handovers {
		last := &e.Tenures[len(e.Tenures)-1]
		last.To = first + uint64(h.after) - 1
		if len(handovers) == 1 {
			last.Ended = now - secondsDay
		}
		e.Owner = Address(h.to)
		e.Tenures = append(e.Tenures, rating.Tenure{From: last.To + 1, To: math.MaxUint64, Began: now - secondsDay,
			Owner: e.Owner})
	}
	own, out := s.engine.scorer.Score(e), trust.Penalties{}
	out.Add(s.engine.scorer.Penalties(e, &own)...)
	return out
}

// ask scores an agent with the owner and wallet of e, where each identity has so many known agents. What else e says is
// kept. Without praise the agent has no ratings at all.
func (s *washing) ask(penalties trust.Penalties, praised bool, known int, e trust.Evidence) trust.Result {
	base := s.engine.Evidence(s.fresh)
	e.Agent, e.Block, e.Weights = repute.AgentID{ChainID: 1}, base.Block, base.Weights
	e.Agent.TokenID.SetUint64(1)
	e.Related = penalties.Related(&e, s.Params, func(common.Address) int { return known })
	for i, p := range s.praise {
		if praised {
			e.Rows = append(e.Rows, RowOf(len(s.World.Ratings)+i, Rating{p, s.fresh, 1, s.World.Now}))
		}
	}
	return s.engine.scorer.Score(e)
}

// held is the mean after the penalty, of rated and unrated agents alike.
func held(r trust.Result) float64 { return points(r.Held()) }

// points turns thousandths of a point, which scores are computed in, into points.
func points(p trust.Points) float64 { return float64(p) / 1000 }
