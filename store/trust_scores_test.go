package store_test

import (
	"errors"
	"testing"

	"repute"
	"repute/store/query"
	"repute/store/scoredb"
)

// Without a trust engine agents have no score, and that is said as such.
func TestScoreOfNobodyRated(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 52)
	w.grow(20)
	w.store(t, db, 119)
	id := repute.AgentID{ChainID: 7}
	for _, at := range []repute.At{{Finality: repute.Latest}, {Block: 110}} {
		_, asOf, err := query.ScoreOf(t.Context(), db, id, at)
		var missing *repute.MissingError
		if !errors.Is(err, repute.ErrNotFound) || errors.As(err, &missing) || asOf.ChainID != 7 {
			t.Errorf("at %v: %v, %+v", at, err, asOf)
		}
	}
	_, _, err := query.ScoreOf(t.Context(), db,
		repute.AgentID{ChainID: 7, TokenID: *new(repute.TokenID).SetUint64(1 << 40)},
		repute.At{Finality: repute.Latest})
	var missing *repute.MissingError
	if !errors.As(err, &missing) {
		t.Errorf("of no agent: %v", err)
	}
	if _, err := scoredb.ReadRun(t.Context(), db, 7, 0); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("run: %v", err)
	}
}
