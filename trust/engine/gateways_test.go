package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/chaindb"
	"repute/store/scoredb"
	"repute/trust/explain"
	"repute/trust/rating"
	"repute/trust/replay"
)

// A rating that came through a gateway counts as its payer's, and one without a ticket as nobody's: otherwise the
// gateway would have one vote for all who paid.
func TestRatingsThroughAGateway(t *testing.T) {
	t.Parallel()
	l := newLedger(12)
	l.chain.Gateways = []repute.WatchedContract{{Address: gateway, From: 1}}
	db, _ := l.fresh(t)
	s := l.state()
	l.mine(s, append(s.mint(person(9)), s.mint(person(10))...)...)
	paid := func(agent uint64, payer int) []repute.Event {
		return []repute.Event{s.rate(agent, gateway, 90),
			repute.TicketConsumed{Payer: person(payer), TokenID: token(agent)}}
	}
	l.mine(s, append(paid(0, 0), paid(0, 1)...)...) // two roots
	l.mine(s, s.rate(0, gateway, 90))
	l.mine(s, paid(0, 9)...) // its owner
	l.mine(s, s.rate(1, person(0), 90))
	l.mine(s, s.rate(1, person(1), 90))
	l.pad(20)
	l.store(t, db, 20)
	start(t, db)
	settle(t, db, 9, 20)
	r, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	explain := func(agent uint64) explain.Account {
		t.Helper()
		a, err := r.Explain(t.Context(), repute.AgentID{ChainID: 9, TokenID: token(agent)},
			repute.At{Finality: repute.Finalized}, nil)
		ok(t, err)
		return a
	}
	through, directly := explain(0), explain(1)
	if d := through.Score.Mean - directly.Score.Mean; through.Score.Mean <= 0 || max(d, -d) > 20 {
		t.Errorf("through the gateway %v, directly %v", through.Score.Mean, directly.Score.Mean)
	}
	if through.ByReason[rating.ReasonGateway] != 1 || through.ByReason[rating.ReasonSelf] != 1 ||
		len(through.Excluded) != 2 {
		t.Errorf("left out: %v", through.ByReason)
	}
	seen := 0
	for _, c := range through.Contributions {
		for _, row := range c.Rows {
			seen++
			if row.Via == nil || *row.Via != gateway || row.Rater != person(0) && row.Rater != person(1) {
				t.Errorf("row %+v", row)
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d rows through the gateway", seen)
	}
	_, err = r.Replay(t.Context(), through.Score.Agent, 20)
	ok(t, err)
}

// A gateway that is listed, or no longer, makes a run at once, whose final scores can be made again; those of the run
// before are gone from the replay, with the list that they follow from.
func TestListOfGatewaysMakesARun(t *testing.T) {
	t.Parallel()
	l := newLedger(12)
	l.chain.Gateways = []repute.WatchedContract{{Address: gateway, From: 1}}
	db, _ := l.fresh(t)
	s := l.state()
	l.mine(s, s.mint(person(9))...)
	for i := range rooted {
		l.mine(s, s.rate(0, gateway, 90), repute.TicketConsumed{Payer: person(i), TokenID: token(0)})
	}
	l.pad(20)
	l.store(t, db, 20)
	stop := start(t, db)
	first := settle(t, db, 9, 20)
	with := newest(t, db, 0)
	if with.Score <= 0 {
		t.Fatalf("score %s through the gateway", with.Score)
	}
	if body, err := scoredb.ReadInput(t.Context(), db, first.Gateways); err != nil ||
		string(body) != fmt.Sprintf(`{"chain":9,"gateways":[%q]}`, strings.ToLower(gateway.Hex())) {
		t.Errorf("the run's list of gateways is %q, %v", body, err)
	}
	r, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	last := first.Run
	for i, list := range [][]repute.WatchedContract{nil, l.chain.Gateways} {
		c := l.chain
		c.Gateways = list
		ok(t, chaindb.AddChain(t.Context(), db, c))
		var run scoredb.Run
		await(t, "another run", func() bool {
			var err error
			run, err = scoredb.ReadRun(t.Context(), db, 9, 0)
			ok(t, err)
			return run.Run > last && !run.Closed.IsZero()
		})
		last = run.Run
		if run.Gateways != replay.HashGateways(9, addressesOf(list)) || (run.Gateways == first.Gateways) != (i == 1) {
			t.Errorf("list %v: the run names %s, the first run %s", list, run.Gateways, first.Gateways)
		}
		now := newest(t, db, 0)
		if back := i == 1; (now.Score == with.Score) != back {
			t.Errorf("list %v: score %s, at first %s", list, now.Score, with.Score)
		}
		replayAll(t, db)
	}
	// A list that differs from the run's is found at once, though no other run is stored yet.
	stop()
	_, err = db.Pool().Exec(t.Context(), "update chains set gateways = '{}' where chain_id = 9")
	ok(t, err)
	var pruned *replay.PrunedError
	if _, err := r.Replay(t.Context(), with.Agent, 20); !errors.As(err, &pruned) ||
		!strings.Contains(err.Error(), first.Gateways.Hex()) {
		t.Errorf("replay by another list: %v", err)
	}
}

// addressesOf returns the addresses of a list of gateways.
func addressesOf(list []repute.WatchedContract) (out []common.Address) {
	for _, g := range list {
		out = append(out, g.Address)
	}
	return out
}
