package store_test

import (
	"errors"
	"testing"

	"repute"
)

// Without a trust engine agents have no score, and that is said as such.
func TestScoreOfNobodyRated(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 52)
	w.grow(20)
	w.store(t, db, 119)
	id := repute.AgentID{ChainID: 7}
	for _, at := range []repute.At{{Finality: repute.Latest}, {Block: 110}} {
		_, asOf, err := db.ScoreOf(t.Context(), id, at)
		var missing *repute.MissingError
		if !errors.Is(err, repute.ErrNotFound) || errors.As(err, &missing) || asOf.ChainID != 7 {
			t.Errorf("at %v: %v, %+v", at, err, asOf)
		}
	}
	_, _, err := db.ScoreOf(t.Context(), repute.AgentID{ChainID: 7, TokenID: *new(repute.TokenID).SetUint64(1 << 40)}, repute.At{Finality: repute.Latest})
	var missing *repute.MissingError
	if !errors.As(err, &missing) {
		t.Errorf("of no agent: %v", err)
	}
	if _, err := db.TrustRun(t.Context(), 7, 0); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("run: %v", err)
	}
}
