package attack

import (
	"math"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust"
	"repute/trust/accountable"
	"repute/trust/graph"
	"repute/trust/rating"
)

// GuardCase is one way to be accountable for a bad agent, or not to be, seen from both sides. All agents but the bad
// one are praised by three raters of full weight.
type GuardCase struct {
	Accountable string  `json:"accountable"` // whose other agent has Score
	Bystander   string  `json:"bystander"`   // whose agent has Unlimited
	Bad         float64 `json:"bad_score"`   // of the bad agent, by the ratings that the former is accountable for
	Score       float64 `json:"score"`
	Free        float64 `json:"free_score"` // of the bystander's agent without the bad one
	Unlimited   float64 `json:"bystander_score"`
}

// cases measures who is accountable.
func (s *washing) cases() []GuardCase {
	return []GuardCase{s.paidCase(), s.domainCase(), s.agedCase(), s.platformCase(), s.listedCase(), s.movedCase(),
		s.strawmanCase()}
}

// change makes another history of the bad agent, whose first negative rating is in block first.
type change func(e *trust.Evidence, first uint64)

// penalties are those of the bad agent with another history than being registered and kept by its owner.
func (s *washing) penalties(change change) trust.Penalties {
	e := s.engine.Evidence(s.old)
	e.Agent.TokenID.SetUint64(2)
	e.Registrar = e.Owner
	e.Tenures = []rating.Tenure{{To: math.MaxUint64, Began: s.World.Now - 200*secondsDay, Owner: e.Owner}}
	change(&e, e.Rows[0].Block)
	own, out := s.engine.scorer.Score(e), trust.Penalties{}
	out.Add(s.engine.scorer.Penalties(e, &own)...)
	return out
}

// give appends a tenure: an owner has the agent from a block on, and since so many seconds after the tenure before.
func give(e *trust.Evidence, to int, from uint64, later int64) {
	last := &e.Tenures[len(e.Tenures)-1]
	last.To, last.Ended = from-1, last.Began+later
	e.Owner = Address(to)
	e.Tenures = append(e.Tenures, rating.Tenure{From: from, To: math.MaxUint64, Began: last.Ended, Owner: e.Owner})
}

// launched is the history of an agent that a launchpad registered for its owner, who never acts.
func (s *washing) launched(e *trust.Evidence, first uint64) {
	e.Registrar = Address(s.next + 5)
	e.Tenures[0].Owner = e.Registrar
	give(e, s.old, first-1, 60)
}

// judge fills the scores of a case: of an agent of the bad one's owner and of bystanders', where one agent of each
// identity is known.
func (s *washing) judge(c GuardCase, penalties trust.Penalties, mine trust.Evidence, others trust.Penalties,
	bystanders ...trust.Evidence) GuardCase {
	if c.Bad == 0 {
		c.Bad = points(s.bad.Score)
	}
	c.Score = held(s.ask(penalties, true, 1, mine))
	c.Free, c.Unlimited = held(s.ask(nil, true, 1, trust.Evidence{Owner: Address(s.other)})), 100
	for _, e := range bystanders {
		c.Unlimited = min(c.Unlimited, held(s.ask(others, true, 1, e)))
	}
	return c
}

// paidCase is of an owner that never acts after a launchpad's transfer: customers paid it. Nobody is accountable
// because a file names it as payee, or because strangers send it money.
func (s *washing) paidCase() GuardCase {
	pay := func(e *trust.Evidence, payee int) {
		for i := range 3 {
			e.Rows[i].Payee, e.Rows[i].PaidAt = Address(payee), s.World.Now-secondsDay/2
		}
	}
	penalties := s.penalties(func(e *trust.Evidence, first uint64) {
		s.launched(e, first)
		pay(e, s.old)
	})
	named := s.penalties(func(e *trust.Evidence, first uint64) {
		s.launched(e, first)
		pay(e, s.other)
	})
	gifted := s.penalties(func(e *trust.Evidence, first uint64) {
		s.launched(e, first)
		give(e, s.next, first, secondsDay)
		for i := range 10 {
			row := RowOf(len(s.World.Ratings)+badRatings+i, Rating{s.next + 10 + i, s.old, -1, s.World.Now})
			row.Payee, row.PaidAt = Address(s.next), s.World.Now-1
			e.Rows = append(e.Rows, row)
		}
	})
	c := s.judge(GuardCase{Accountable: "owner that customers paid, and that never acts after a launchpad's transfer",
		Bystander: "payee that only the bad one's file names, and of an owner that got it and is paid by strangers"},
		penalties,
		trust.Evidence{Owner: Address(s.old)}, named, trust.Evidence{Owner: Address(s.other)})
	c.Unlimited = min(c.Unlimited, held(s.ask(gifted, true, 1, trust.Evidence{Owner: Address(s.next)})))
	return c
}

// domainCase is of an owner that never acts after a launchpad's transfer, and serves the agent and its next one at a
// domain of its own. A host of others' agents as well makes nobody accountable, nor does a domain that somebody else
// has.
func (s *washing) domainCase() GuardCase {
	at := func(e *trust.Evidence, named, alsoOf int) {
		e.Domains = e.OwnDomains([]trust.DomainProof{{Domain: "a.example", Named: []common.Address{Address(named)},
			Owners: []common.Address{e.Owner, Address(alsoOf)}}})
	}
	served := func(owner, named, alsoOf int) trust.Evidence {
		e := trust.Evidence{Owner: Address(owner), Weights: s.engine.weights}
		at(&e, named, alsoOf)
		return e
	}
	penalties := s.penalties(func(e *trust.Evidence, first uint64) {
		s.launched(e, first)
		at(e, s.old, s.old)
	})
	shared := s.penalties(func(e *trust.Evidence, first uint64) {
		s.launched(e, first)
		at(e, s.old, s.other)
	})
	return s.judge(GuardCase{Accountable: "owner whose domain proves both agents, and that never acts after a launchpad's transfer",
		Bystander: "owner with another domain, or on a host that it shares with others"}, penalties,
		served(s.old, s.old, s.old), shared, served(s.old, s.old, s.other), trust.Evidence{Owner: Address(s.other)})
}

// agedCase is of agents that were praised long ago.
func (s *washing) agedCase() GuardCase {
	score := func(owner int) float64 {
		e := s.engine.Evidence(s.fresh)
		e.Owner, e.Agent = Address(owner), repute.AgentID{ChainID: 1}
		for i, p := range append(s.praise, s.praise...) {
			e.Rows = append(e.Rows, RowOf(len(s.World.Ratings)+i,
				Rating{p, s.fresh, 1, s.World.Now - 200*secondsDay*int64(i%2)}))
		}
		e.Agent.TokenID.SetUint64(1)
		e.Related = s.kept.Related(&e, s.Params, func(common.Address) int { return 1 })
		return held(s.engine.scorer.Score(e))
	}
	free := score(s.other + 7)
	return GuardCase{Accountable: "owner of an agent that was praised 200 days ago and since",
		Bystander: "owner of such an agent, not of the bad one", Bad: points(s.bad.Score), Score: score(s.old),
		Free:      free,
		Unlimited: score(s.other)}
}

// platformCustomers is how many agents a platform registered for customers.
const platformCustomers = 1000

// platformCase is of a platform that registers agents and hands them over after eleven minutes.
func (s *washing) platformCase() GuardCase {
	const eleven = 11 * 60
	platform := s.next + 5
	handed := func(e *trust.Evidence, first uint64) {
		e.Registrar = Address(platform)
		e.Tenures[0].Owner = e.Registrar
		give(e, s.old, first-2, eleven)
	}
	acted := s.penalties(func(e *trust.Evidence, first uint64) {
		handed(e, first)
		e.Actions = []accountable.Action{{Block: first - 1, By: Address(s.old)}}
	})
	idle := s.penalties(func(e *trust.Evidence, first uint64) {
		handed(e, first)
		e.Tenures[0].Ended, e.Tenures[1].Began = s.World.Now-secondsDay, s.World.Now-secondsDay
		e.Tenures[0].Began = s.World.Now - secondsDay - eleven
	})
	customer := trust.Evidence{Owner: Address(s.other), Registrar: Address(platform)}
	c := s.judge(GuardCase{Accountable: "customer that acts, after a platform handed over in eleven minutes",
		Bystander: "other customer of that platform, or of one with 1,000 known agents whose bad customer never acts"},
		acted,
		trust.Evidence{Owner: Address(s.old)}, acted, customer)
	c.Unlimited = min(c.Unlimited, held(s.ask(idle, true, s.known(platform), customer)))
	return c
}

// known is how many agents are known of a platform that registered agents for customers, each of which three raters of
// full weight praise.
func (s *washing) known(platform int) int {
	token := func(n int) (id repute.TokenID) {
		id.SetUint64(uint64(n))
		return id
	}
	r := graph.NewReader(s.engine.Evidence(s.old).Block, s.engine.roots(), nil, s.Params)
	for p := range s.World.Next() {
		r.Agent(token(p), 0, Address(p), common.Address{})
	}
	first := platform + 1
	for i := range platformCustomers {
		r.Agent(token(first+i), 2, Address(first+i), common.Address{})
		r.Former(token(first+i), rating.Tenure{To: 1, Began: 1, Ended: 1 + 11*60, Owner: Address(platform)})
	}
	for i, of := range s.World.Ratings {
		r.Rating(token(of.To), RowOf(i, of))
	}
	for i := range platformCustomers {
		for n, p := range s.praise {
			r.Rating(token(first+i), RowOf(len(s.World.Ratings)+3*i+n, Rating{p, first + i, 1, s.World.Now}))
		}
	}
	_, known := r.Coverage(r.Build().Walk(s.engine.roots(), s.Params.Walk))
	return known.Of(Address(platform))
}

// listedCase is of a bad agent that is given away. The receiver approves a market, and an operator for all its agents.
func (s *washing) listedCase() GuardCase {
	given := func(e *trust.Evidence, first uint64) {
		give(e, s.next, first+badRatings, 199*secondsDay)
		e.Named = []common.Address{Address(s.next + 6), Address(s.next + 7)}
		_, e.Actions = accountable.ReadActions([]accountable.OwnerEvent{
			{Kind: repute.KindRegistered, To: Address(s.old)},
			{Block: first + badRatings, Kind: repute.KindTransfer, From: Address(s.old), To: Address(s.next)},
			{Block: first + badRatings + 1, Kind: repute.KindApproval, From: Address(s.next), To: Address(s.next + 6)},
			{Block: first + badRatings + 2, Kind: repute.KindApprovalForAll, From: Address(s.next),
				To: Address(s.next + 7)},
		})
	}
	penalties := s.penalties(given)
	return s.judge(GuardCase{Accountable: "owner that gave the bad one away",
		Bystander: "owner that got it, approved a market and an operator, and did nothing else"},
		penalties, trust.Evidence{Owner: Address(s.old)}, penalties, trust.Evidence{Owner: Address(s.next)})
}

// movedCase is of an owner that moves an agent to its verified wallet: the bad one, or a good one that keeps its
// praise.
func (s *washing) movedCase() GuardCase {
	moved := s.penalties(func(e *trust.Evidence, first uint64) {
		e.Tenures[0].Wallet = Address(s.next)
		give(e, s.next, first, 100*secondsDay)
		e.Actions = []accountable.Action{{Block: first, By: Address(s.next)}}
	})
	c := s.judge(GuardCase{Accountable: "owner that moved the bad one to its own wallet before the ratings",
		Bystander: "owner that moved a praised one to its own wallet"}, moved, trust.Evidence{Owner: Address(s.old)},
		moved, trust.Evidence{Owner: Address(s.other)})
	last := uint64(len(s.World.Ratings) + len(s.praise))
	tenures := []rating.Tenure{{To: last, Owner: Address(s.other), Wallet: Address(s.next)},
		{From: last + 1, To: math.MaxUint64, Owner: Address(s.next)}}
	e := trust.Evidence{Owner: Address(s.next), Tenures: tenures,
		Since: rating.PresentSince(tenures, s.engine.weights.Graph())}
	c.Unlimited = min(c.Unlimited, held(s.ask(nil, true, 1, e)))
	return c
}

// strawmanCase is of an owner that gives the agent to another one, who acts for it, after half of the negative ratings.
func (s *washing) strawmanCase() GuardCase {
	half := s.engine.Evidence(s.old)
	half.Rows = half.Rows[:badRatings/2]
	bad := s.engine.scorer.Score(half)
	before := s.penalties(func(e *trust.Evidence, first uint64) {
		give(e, s.next, first+badRatings/2, 200*secondsDay-60)
		e.Actions = []accountable.Action{{Block: first + badRatings/2 - 1, By: Address(s.next)}}
	})
	sold := s.penalties(func(e *trust.Evidence, first uint64) {
		give(e, s.next, first-1, 200*secondsDay-60)
		e.Actions = []accountable.Action{{Block: first - 1, By: Address(s.next)}}
	})
	return s.judge(GuardCase{Accountable: "owner that gave it away after half of the ratings to one that acts for it",
		Bystander: "owner that gave one away before the ratings to one that acts for it", Bad: points(bad.Score)},
		before,
		trust.Evidence{Owner: Address(s.old)}, sold, trust.Evidence{Owner: Address(s.old)})
}
