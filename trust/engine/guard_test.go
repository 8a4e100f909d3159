package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"repute"
	"repute/store/trustdb"
	"repute/trust/flow"
	"repute/trust/rows"
)

// All agents of an accountable identity are limited: those that were registered ahead and lie unused, one that it
// bought, and one that somebody vouched for rated long ago.
func TestAgeDoesNotFree(t *testing.T) {
	t.Parallel()
	l := newLedger(99)
	db, _ := l.fresh(t)
	s := l.state()
	l.mine(s, append(append(append(s.mint(person(8)), s.mint(person(8))...), s.mint(person(20))...),
		s.mint(person(8))...)...)
	s = l.state()
	l.mine(s, s.rate(3, person(0), 99), s.rate(1, person(500), 99)) // the other is of a fresh wallet
	l.later = 91 * 24 * time.Hour
	s = l.state()
	var words []repute.Event
	for i := range rooted {
		words = append(words, s.rate(0, person(i), int64(11+i)), s.rate(3, person(i), int64(90+i)))
	}
	l.mine(s, words...)
	l.give(2, person(8)) // bought by the accountable owner
	s = l.state()
	words = nil
	for i := range rooted {
		words = append(words, s.rate(1, person(i), int64(90+i)), s.rate(2, person(i), int64(90+i)))
	}
	l.mine(s, words...)
	l.pad(60)
	l.run(t, db)
	if bad := newest(t, db, 0); bad.High >= -10_000 {
		t.Fatalf("the bad agent: %+v", bad)
	}
	for agent, what := range map[uint64]string{1: "never used since it was registered 91 days ago",
		2: "registered 91 days ago by another, bought today", 3: "in use for 91 days"} {
		if a := newest(t, db, agent); guardOf(t, a).Holder != person(8) || a.Tier != 0 || a.High >= -10_000 {
			t.Errorf("agent %d of the accountable owner, %s: %+v, limited by %+v", agent, what, a, guardOf(t, a))
		}
	}
	replayAll(t, db)
}

// words are what some of the roots say of an agent: first and a little more.
func (s *state) words(agent uint64, first, from, to int) (out []repute.Event) {
	for i := from; i < to; i++ { // equal words in one block were one opinion
		out = append(out, s.rate(agent, person(i), int64(first+i)))
	}
	return out
}

// An owner that gives an agent away as its ratings come, or before, is accountable for it. An owner that merely got it
// is not, nor is any owner of an agent that it registered.
func TestDroppingAnAgentDoesNotFree(t *testing.T) {
	t.Parallel()
	for _, first := range []int{2, 0} { // words before the gift
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			t.Parallel()
			l := newLedger(99)
			db, _ := l.fresh(t)
			s := l.state()
			l.mine(s, slices.Concat(s.mint(person(8)), s.mint(person(8)), s.mint(person(9)), s.mint(person(9)),
				s.mint(person(9)))...)
			l.give(3, person(14)) // customers of person(9), who registers for others
			l.give(4, person(15))
			l.later = 20 * time.Minute
			s = l.state()
			l.mine(s, slices.Concat(s.words(1, 90, 0, rooted), s.words(2, 90, 0, rooted), s.words(3, 90, 0, rooted),
				s.words(0, 11, 0, first))...)
			l.give(0, person(9))
			l.mine(l.state(), repute.Approval{Owner: person(9), Approved: person(40), TokenID: token(0)}) // a listing
			l.later += 5 * 24 * time.Hour
			s = l.state()
			l.mine(s, s.words(0, 11, first, rooted)...)
			l.pad(60)
			l.run(t, db)
			if bad := newest(t, db, 0); bad.High >= -10_000 {
				t.Fatalf("the bad agent: %+v", bad)
			}
			if a := newest(t, db, 1); guardOf(t, a).Holder != person(8) || a.Tier != 0 {
				t.Errorf("the giver's other agent has %d, tier %d, limited by %+v", a.Score, a.Tier, guardOf(t, a))
			}
			for _, of := range []uint64{2, 3} {
				if a := newest(t, db, of); guardOf(t, a) != (limit{}) || a.Score < 50_000 {
					t.Errorf("agent %d, of who merely got the bad one or of his customer: %d, limited by %+v", of,
						a.Score,
						guardOf(t, a))
				}
			}
			if limited(t, db, 4) {
				t.Errorf("agent 4, of a customer: limited by %+v", guardOf(t, newest(t, db, 4)))
			}
			s = l.state()
			l.mine(s, repute.URIUpdated{TokenID: token(0), URI: "https://x/1", UpdatedBy: person(9)})
			l.store(t, db, 60)
			await(t, "who uses a bad agent is accountable for it",
				func() bool { return guardOf(t, newest(t, db, 2)).Holder == person(9) })
			replayAll(t, db)
		})
	}
}

// A bad agent that goes through several hands, with few words in each, penalizes who
// registered it, before and after it is back.
func TestSplittingAnAgentDoesNotFree(t *testing.T) {
	t.Parallel()
	l := newLedger(99)
	db, _ := l.fresh(t)
	s := l.state()
	l.mine(s, append(s.mint(person(8)), s.mint(person(8))...)...)
	l.later = time.Hour
	for i := 0; i < rooted; i += 2 {
		s := l.state()
		l.mine(s, s.words(0, 11, i, i+2)...)
		l.give(0, person(100+i))
	}
	l.pad(60)
	l.run(t, db)
	for _, back := range []bool{false, true} {
		if back {
			l.give(0, person(8))
			l.pad(70)
			l.store(t, db, 70)
			settle(t, db, 9, 70)
		}
		if bad := newest(t, db, 0); bad.High >= -10_000 {
			t.Fatalf("the bad agent: %+v", bad)
		}
		if g := guardOf(t, newest(t, db, 1)); g.Holder != person(8) {
			t.Errorf("back %v: the other agent of who registered it is limited by %+v", back, g)
		}
	}
}

// Who registers an agent and hands it on in the same block is known, and is not behind it
// until he has it again.
func TestHandedOnAtOnce(t *testing.T) {
	t.Parallel()
	l, db := caught(t)
	s := l.state()
	events := s.mint(person(8)) // 3
	s.owners[3] = person(13)
	l.mine(s, append(events, repute.MetadataSet{TokenID: token(3), Key: "agentWallet"},
		repute.Transfer{From: person(8), To: person(13), TokenID: token(3)})...)
	l.pad(60)
	l.run(t, db)
	if !limited(t, db, 1) || limited(t, db, 3) {
		t.Errorf("limited: the accountable owner's agent %v, its customer's %v", limited(t, db, 1), limited(t, db, 3))
	}
	of, err := trustdb.ReadEvidence(t.Context(), db, newestID(3), repute.At{Finality: repute.Latest}, nil)
	ok(t, err)
	e := rows.EvidenceOf(of, flow.NewGraphBuilder().Build().Walk(nil, flow.Params{}), nil)
	if e.Registrar != person(8) || e.Tenures[0].Owner != person(13) || len(e.Actions) > 0 {
		t.Errorf("registered by %s, first had by %s, actions %v", e.Registrar, e.Tenures[0].Owner, e.Actions)
	}
	l.give(3, person(8))
	l.store(t, db, 60)
	await(t, "the agent is limited", func() bool { return limited(t, db, 3) })
}

func newestID(agent uint64) repute.AgentID {
	return repute.AgentID{ChainID: 9, TokenID: token(agent)}
}

// Two bad agents of one owner do not make each other follow for ever: the run ends.
func TestTwoBadAgentsOfOneOwnerSettle(t *testing.T) {
	t.Parallel()
	l, db := caught(t)
	s := l.state()
	l.mine(s, s.mint(person(8))...) // 3
	s = l.state()
	var words []repute.Event
	for i := range rooted {
		words = append(words, s.rate(3, person(i), int64(11+i)))
	}
	l.mine(s, words...)
	l.pad(60)
	l.run(t, db)
	if !limited(t, db, 0) || !limited(t, db, 3) {
		t.Errorf("limited: %v and %v, each by the other", limited(t, db, 0), limited(t, db, 3))
	}
}
