package engine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/query"
	"repute/store/rootdb"
	"repute/store/scoredb"
	"repute/trust"
)

// pair is a settled ledger with two new agents of one owner: a good one, and one that
// eight roots condemn in the last block alone.
func pair(t *testing.T) (l *ledger, db *store.DB, good, bad uint64) {
	t.Helper()
	l, db = praised(t)
	s := l.state()
	good, bad = uint64(len(s.owners)), uint64(len(s.owners)+1)
	l.mine(s, append(append(s.mint(person(23)), s.mint(person(23))...), s.rate(good, person(0), 95))...)
	s = l.state()
	var ratings []repute.Event
	for i := range rooted { // equal words in one block were one opinion {
		ratings = append(ratings, s.rate(bad, person(i), int64(11+i)))
	}
	l.mine(s, ratings...)
	l.store(t, db, 60)
	await(t, "the bad agent limits the good one", func() bool { return limited(t, db, good) })
	return l, db, good, bad
}

func limited(t *testing.T, db *store.DB, agent uint64) bool {
	t.Helper()
	var result []byte
	ok(t, db.Pool().QueryRow(t.Context(), `select coalesce((select result from trust_scores where token_id = $1), '')`,
		agent).Scan(&result))
	return bytes.Contains(result, []byte(`"guard"`))
}

// limit is a trust.GuardView as a reader of the stored result has it.
type limit struct {
	Agent  string
	Score  float64
	Tier   int
	Holder common.Address
	Role   trust.Role
}

// guardOf is what limits an agent's score, empty for nothing.
func guardOf(t *testing.T, s repute.Score) (g limit) {
	t.Helper()
	var r struct{ Guard *limit }
	if len(s.Result) > 0 {
		ok(t, json.Unmarshal(s.Result, &r))
	}
	if r.Guard != nil {
		g = *r.Guard
	}
	return g
}

// give hands an agent over.
func (l *ledger) give(agent uint64, to common.Address) {
	s := l.state()
	from := s.owners[agent]
	s.owners[agent] = to
	l.mine(s, repute.MetadataSet{TokenID: token(agent), Key: "agentWallet"},
		repute.Transfer{From: from, To: to, TokenID: token(agent)})
}

// caught is a ledger on which agent 0 of person(8) is bad and agents 1 of the same owner and 2
// of person(9) are good, and its database.
func caught(t *testing.T) (*ledger, *store.DB) {
	t.Helper()
	l := newLedger(99)
	db, _ := l.fresh(t)
	s := l.state()
	l.mine(s, append(append(s.mint(person(8)), s.mint(person(8))...), s.mint(person(9))...)...)
	s = l.state()
	var words []repute.Event
	for i := range rooted { // equal words in one block were one opinion
		words = append(words, s.rate(0, person(i), int64(11+i)), s.rate(1, person(i), int64(90+i)),
			s.rate(2, person(i), int64(90+i)))
	}
	l.mine(s, words...)
	return l, db
}

// run stores the ledger as final up to its tip, and scores it.
func (l *ledger) run(t *testing.T, db *store.DB) {
	t.Helper()
	l.store(t, db, l.tip().Number)
	start(t, db)
	settle(t, db, 9, l.tip().Number/10*10)
}

// An owner stays accountable for an agent that it gives away, and the receiver is not. What
// happens after a final score's block does not change it.
func TestPenaltyStaysWithTheGiver(t *testing.T) {
	t.Parallel()
	l, db := caught(t)
	l.pad(60)
	l.run(t, db)
	before := finals(t, l, db, 60)
	l.give(0, person(9))
	l.store(t, db, 60)
	settle(t, db, 9, 60)
	again, _ := l.fresh(t)
	l.store(t, again, 60)
	start(t, again)
	settle(t, again, 9, 60)
	same(t, "newest scores", dump(t, db, " now "), dump(t, again, " now "))
	same(t, "final scores after the gift", finals(t, l, db, 60), before)
	same(t, "final scores of who comes later", finals(t, l, again, 60), before)
	l.pad(70)
	l.store(t, db, 70)
	settle(t, db, 9, 70)
	want := limit{Agent: newest(t, db, 0).Agent.String(), Score: float64(newest(t, db, 1).Score) / 1000,
		Holder: person(8), Role: trust.RoleOwner}
	if got := guardOf(t, newest(t, db, 1)); got != want || got.Score > -10 {
		t.Errorf("the giver's other agent is limited by %+v, want %+v", got, want)
	}
	if tier := newest(t, db, 1).Tier; tier != 0 {
		t.Errorf("the giver's other agent has tier %d, the bad one 0", tier)
	}
	if got := newest(t, db, 2); guardOf(t, got) != (limit{}) || got.Score < 20_000 {
		t.Errorf("who merely received the bad agent has another with %d, limited by %+v", got.Score, guardOf(t, got))
	}
	replayAll(t, db)
	replayAll(t, again)
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(want) == 0 || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// finalScores are those of all agents as of the epoch that ended with a block.
func finalScores(t *testing.T, l *ledger, db *store.DB, block uint64) (out []repute.Score) {
	t.Helper()
	for agent := range l.state().owners {
		s, _, err := query.ScoreOf(t.Context(), db, repute.AgentID{ChainID: 9, TokenID: token(uint64(agent))},
			repute.At{Block: block})
		var missing *repute.MissingError
		if errors.As(err, &missing) {
			continue // registered since
		}
		if !errors.Is(err, repute.ErrNotFound) {
			ok(t, err)
		}
		out = append(out, s)
	}
	return out
}

// finals are these in short.
func finals(t *testing.T, l *ledger, db *store.DB, block uint64) (out []string) {
	t.Helper()
	for _, s := range finalScores(t, l, db, block) {
		out = append(out, fmt.Sprintf("%s %v tier %d score %d %d %d guard %+v", s.Agent.TokenID.Dec(), s.Status,
			s.Tier, s.Score, s.Low, s.High, guardOf(t, s)))
	}
	return out
}

// isScored reports whether a score rests on anything.
func isScored(s *repute.Score) bool { return s.Status == trust.Rated || s.Status == trust.Thin }

// sameFinals expects final scores of two databases to be equal but for the tolerance, those of one
// block by the same evidence, and of
// the same agents but for those that nobody judged: where one of these was limited before,
// that it is not any more is stored.
func sameFinals(t *testing.T, l *ledger, one, other *store.DB, block uint64) {
	t.Helper()
	got, want := finalScores(t, l, one, block), finalScores(t, l, other, block)
	if len(got) != len(want) || len(want) == 0 {
		t.Fatalf("%d final scores at block %d, want %d", len(got), block, len(want))
	}
	for i, w := range want {
		g := got[i]
		far := max(g.Score-w.Score, w.Score-g.Score, g.Low-w.Low, w.Low-g.Low, g.High-w.High, w.High-g.High)
		if (g.Run == 0) != (w.Run == 0) && (isScored(&g) || isScored(&w) || far > 0) || g.Run != 0 && w.Run != 0 &&
			g.Block == w.Block && g.Evidence != w.Evidence {
			t.Errorf("final score at block %d: run %d, evidence %s; want run %d, %s\n%s\n%s", block, g.Run, g.Evidence,
				w.Run,
				w.Evidence, g.Result, w.Result)
		}
		if far >= scoredb.Tolerance || isScored(&g) != isScored(&w) || isScored(&g) && g.Status != w.Status ||
			g.Tier != w.Tier || guardOf(t, g) != guardOf(t, w) {
			t.Errorf("final score at block %d: got\n%+v %s\nwant\n%+v %s", block, g, g.Result, w, w.Result)
		}
	}
}

// A penalty reaches a new agent through its owner, its wallet, its registrar and imported links, judged or not.
func TestPenaltyReachesNewAgents(t *testing.T) {
	t.Parallel()
	l, db := caught(t)
	ok(t, rootdb.AddLinks(t.Context(), db, 9,
		[]repute.TrustLink{{A: person(8), B: person(12), Reason: "one funder", Source: "test"}}, false))
	s := l.state()
	l.mine(s, append(append(s.mint(person(8)), s.mint(person(12))...), s.mint(person(8))...)...) // 3, 4, 5
	s = l.state()
	l.mine(s, s.mint(person(15))...) // 6, of nobody concerned
	l.later = time.Hour
	l.give(5, person(13))
	l.pad(60)
	l.run(t, db)
	l.pad(70)
	l.store(t, db, 70)
	settle(t, db, 9, 70)
	for agent, role := range map[uint64]trust.Role{1: trust.RoleOwner, 3: trust.RoleOwner, 4: trust.RoleOwner,
		5: trust.RoleRegistrar} {
		for what, at := range map[string]repute.At{"newest": {Finality: repute.Latest}, "final": {Block: 60}} {
			got, _, err := query.ScoreOf(t.Context(), db, repute.AgentID{ChainID: 9, TokenID: token(agent)}, at)
			ok(t, err)
			if g := guardOf(t, got); g.Role != role || g.Holder != person(8) ||
				float64(got.High) != math.Round(g.Score*1000) || got.Tier != 0 {
				t.Errorf("%s score of agent %d: high %d, tier %d, limited by %+v, want as the %s", what, agent,
					got.High,
					got.Tier, g, role)
			}
		}
	}
	if _, _, err := query.ScoreOf(t.Context(), db, repute.AgentID{ChainID: 9, TokenID: token(6)},
		repute.At{Finality: repute.Latest}); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("agent 6, of nobody accountable and not rated: %v", err)
	}
	s = l.state()
	mint := s.mint(person(20)) // 7, whose wallet the epoch's graph does not know
	l.mine(s, append(mint, repute.MetadataSet{TokenID: token(7), Key: "agentWallet", Value: person(12).Bytes()})...)
	l.store(t, db, 70)
	await(t, "a registration is limited", func() bool { return limited(t, db, 7) })
	if g := guardOf(t, newest(t, db, 7)); g.Role != trust.RoleWallet {
		t.Errorf("agent 7 is limited by %+v, want through its wallet", g)
	}
	replayAll(t, db)
}

// An unjudged agent is free again when the bad words about the other one are revoked, in
// the newest state at once and in final scores from the next epoch on.
func TestPenaltyEnds(t *testing.T) {
	t.Parallel()
	l, db := caught(t)
	s := l.state()
	l.mine(s, s.mint(person(8))...)
	l.pad(60)
	l.run(t, db)
	if !limited(t, db, 1) || !limited(t, db, 3) {
		t.Fatal("agents 1 and 3 are not limited")
	}
	var revoked []repute.Event
	for i := range rooted {
		revoked = append(revoked, repute.FeedbackRevoked{TokenID: token(0), Client: person(i), Index: 1})
	}
	l.mine(l.state(), revoked...)
	l.store(t, db, 60)
	await(t, "the agents are free", func() bool { return !limited(t, db, 1) && !limited(t, db, 3) })
	l.pad(70)
	l.store(t, db, 70)
	settle(t, db, 9, 70)
	again, _ := l.fresh(t)
	l.store(t, again, 70)
	start(t, again)
	settle(t, again, 9, 70)
	same(t, "newest scores", dump(t, db, " now "), dump(t, again, " now "))
	for _, line := range finals(t, l, db, 70) {
		if !strings.Contains(line, "guard {Agent: ") {
			t.Error("still limited: " + line)
		}
	}
	if then := finals(t, l, db, 60); len(then) != 4 || !strings.Contains(then[3], "guard {Agent:eip155") {
		t.Errorf("final scores of the first epoch: %s", strings.Join(then, "\n"))
	}
	replayAll(t, db)
}

// An agent is free of another one that nobody has judged any more, as its ratings were
// on blocks that were replaced.
func TestPenaltyEndsWithARewind(t *testing.T) {
	t.Parallel()
	l, db, good, _ := pair(t)
	l.fork(l.tip().Number - 1)
	l.mine(l.state())
	l.store(t, db, 60)
	await(t, "the good agent is free", func() bool { return !limited(t, db, good) })
}
