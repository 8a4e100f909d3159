package engine_test

import (
	"reflect"
	"testing"

	"repute"
	"repute/trust/engine"
	"repute/trust/explain"
)

// A reader with the graphs of an engine explains scores as one that reads the ratings itself, and reads none.
func TestReaderSharesTheEnginesGraph(t *testing.T) {
	t.Parallel()
	_, db := village(t, 30)
	var graphs engine.Graphs
	startWith(t, db, engine.EngineOptions{Exact: true, Graphs: &graphs})
	settle(t, db, 9, 60)
	shared, err := explain.NewReader(db, explain.Options{Graphs: &graphs})
	ok(t, err)
	alone, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	for i := range 6 {
		id := repute.AgentID{ChainID: 9, TokenID: token(uint64(i + 1))}
		got, err := shared.Explain(t.Context(), id, repute.At{Finality: repute.Latest}, nil)
		ok(t, err)
		want, err := alone.Explain(t.Context(), id, repute.At{Finality: repute.Latest}, nil)
		ok(t, err)
		if !reflect.DeepEqual(got.Breakdown, want.Breakdown) || got.Score.Run == 0 { // the lag of views grows
			t.Errorf("agent %d: %+v, want %+v", i, got, want)
		}
	}
	own := explain.Own{Roots: []repute.TrustRoot{{Address: person(0), Weight: repute.RootUnit}}}
	id := repute.AgentID{ChainID: 9, TokenID: token(27)}
	admit := func() error { return nil }
	got, err := shared.Personal(t.Context(), id, own, admit)
	ok(t, err)
	want, err := alone.Personal(t.Context(), id, own, admit)
	ok(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("by own roots %+v, want %+v", got, want)
	}
}
