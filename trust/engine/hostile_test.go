package engine_test

import (
	"maps"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust"
	"repute/trust/explain"
	"repute/trust/rating"
)

// Ratings in the block in which an agent is transferred are about the former owner.
func TestPraiseInTheBlockOfATransfer(t *testing.T) {
	t.Parallel()
	l := newLedger(99)
	db, _ := l.fresh(t)
	s := l.state()
	l.mine(s, s.mint(person(8))...)
	transfer := []repute.Event{repute.MetadataSet{TokenID: token(0), Key: "agentWallet"},
		repute.Transfer{From: person(8), To: person(9), TokenID: token(0)}}
	s = l.state()
	s.owners[0] = person(9)
	var events []repute.Event
	for i := range rooted {
		if i == rooted/2 {
			events = append(events, transfer...)
		}
		events = append(events, s.rate(0, person(i), int64(90+i)))
	}
	l.mine(s, events...)
	l.store(t, db, l.tip().Number)
	if got, edges := scoreOf(t, l, db, token(0)); got.Rows != 0 || got.Excluded != rooted || got.Score != 0 ||
		edges != 0 {
		t.Errorf("%d edges, %+v", edges, got)
	}
	s = l.state()
	l.mine(s, s.rate(0, person(0), 90))
	l.store(t, db, l.tip().Number)
	if got, edges := scoreOf(t, l, db, token(0)); got.Rows != 1 || edges != 1 {
		t.Errorf("a block later: %d edges, %+v", edges, got)
	}
}

// What anybody can write on the chain comes through database and engine as what it is:
// listed with its reason, and without any effect on the score.
func TestHostileRowsMoveNothing(t *testing.T) {
	t.Parallel()
	l := newLedger(3)
	db, _ := l.fresh(t)
	s := l.state()
	births := append(append(s.mint(person(8)), s.mint(person(8))...), s.mint(person(9))...)
	for agent := range uint64(2) { // 0 is left alone, 1 is attacked
		births = append(births, s.rate(agent, person(0), 90), s.rate(agent, person(1), 80))
	}
	l.mine(s, births...)
	most := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 127), big.NewInt(1))
	write := func(client int, value *big.Int, decimals uint8, tag string) repute.Event {
		e := s.rate(1, person(client), 0).(repute.NewFeedback)
		e.Value, e.Decimals, e.Tag1, e.Tag2 = value, decimals, tag, tag
		return e
	}
	l.mine(s, write(2, most, 0, "starred"), write(3, new(big.Int).Neg(most), 18, "starred"),
		write(4, most, 18, "starred"),
		write(5, big.NewInt(90), 0, ""), write(6, big.NewInt(90), 0, strings.Repeat("starred", 150_000)),
		write(7, big.NewInt(90), 0, "starred\x00"),
		// 8 and 9 own them, nobody has 77
		s.rate(1, person(8), 100), s.rate(1, person(12), 100), s.rate(2, person(9), 100), s.rate(77, person(2), 100))
	// a client becomes the wallet
	l.mine(s, repute.MetadataSet{TokenID: token(1), Key: "agentWallet", Value: person(12).Bytes()})
	ask := common.Hash{9}
	l.mine(s, repute.ValidationRequest{Validator: person(2), TokenID: token(0), RequestHash: ask}) // without an answer
	l.pad(20)
	l.store(t, db, 20)
	start(t, db)
	settle(t, db, 9, 20)
	r, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	explain := func(agent uint64) explain.Account {
		t.Helper()
		a, err := r.Explain(t.Context(), repute.AgentID{ChainID: 9, TokenID: token(agent)},
			repute.At{Finality: repute.Latest}, nil)
		ok(t, err)
		return a
	}
	alone, attacked := explain(0), explain(1)
	if want := (map[rating.Reason]int{rating.ReasonRange: 3, rating.ReasonUnknownTag: 3,
		rating.ReasonSelf: 2}); !maps.Equal(attacked.ByReason, want) {
		t.Errorf("excluded %v, want %v", attacked.ByReason, want)
	}
	if alone.Score.Score != attacked.Score.Score || alone.Score.Mean != attacked.Score.Mean ||
		alone.Result.Pool != attacked.Result.Pool {
		t.Errorf("attacked %+v, left alone %+v", attacked.Score, alone.Score)
	}
	if own := explain(2); own.Score.Status != trust.Unrated || own.Score.Score != 0 ||
		own.ByReason[rating.ReasonSelf] != 1 {
		t.Errorf("praised by its owner alone: %+v", own.Score)
	}
	// The client that became the wallet gets the agent too. Both signed to be one identity: the agent keeps its
	// history, and what either said of it stays out.
	s.owners[1] = person(12)
	l.mine(s, repute.MetadataSet{TokenID: token(1), Key: "agentWallet"},
		repute.Transfer{From: person(8), To: person(12), TokenID: token(1)})
	l.pad(30)
	l.store(t, db, 30)
	settle(t, db, 9, 30)
	if got := explain(1); got.ByReason[rating.ReasonSelf] != 2 || got.ByReason[rating.ReasonEarlier] != 0 ||
		got.Result.Rows != attacked.Result.Rows {
		t.Errorf("the wallet became the owner: %v, %d rows of %d", got.ByReason, got.Result.Rows, attacked.Result.Rows)
	}
}
