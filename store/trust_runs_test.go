package store_test

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/query"
	"repute/store/scoredb"
	"repute/store/trustdb"
)

// A run is read as it was stored, with all that it names of sources and of verified blocks, and the chain's status
// shows that of the newest closed one.
func TestRunNamesSources(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 53)
	w.grow(20)
	w.store(t, db, 119)
	readings := `[{"source":"club","chain":7,"status":"incomplete","reason":"no route","block":110,"time":9,"complete":5,"kept":2,"implementations":{"a":"0x00000000000000000000000000000000000000aa"}}]`
	run := scoredb.Run{ChainID: 7, Run: 1, Epoch: 11, Boundary: 110, Block: repute.Block{Number: 110}, Scorer: "test",
		Params: common.Hash{1}, Tags: common.Hash{2}, Roots: common.Hash{3}, Links: common.Hash{4},
		Validations: common.Hash{5},
		Weights:     common.Hash{6}, Sources: common.Hash{7}, Credentials: common.Hash{8}, Gateways: common.Hash{9},
		Readings: readings, VerifiedTo: 112,
		Coverage: repute.Coverage{BySource: map[string]int64{"club": 3},
			ToFifty: &repute.LiftPrice{Cents: 100, Units: 5000, Priced: []string{"club"}, Unpriced: []string{}}}}
	ok(t, scoredb.AddRun(t.Context(), db, run))
	sqlExec(t, db, "update trust_runs set closed_at = now()")
	second := scoredb.Run{ChainID: 7, Run: 2, Epoch: 12, Boundary: 120, Scorer: "test", VerifiedTo: 119}
	ok(t, scoredb.AddRun(t.Context(), db, second))
	got, err := scoredb.ReadRun(t.Context(), db, 7, 1)
	ok(t, err)
	if got.Sources != run.Sources || got.Gateways != run.Gateways || got.Credentials != run.Credentials ||
		got.Readings != readings || got.VerifiedTo != 112 ||
		!got.Verified() || !reflect.DeepEqual(got.Inputs(), run.Inputs()) {
		t.Errorf("stored %+v, read %+v", run, got)
	}
	if got, err = scoredb.ReadRun(t.Context(), db, 7, 2); err != nil || got.Sources != (common.Hash{}) ||
		got.Verified() ||
		slices.Contains(got.Inputs(), common.Hash{}) {
		t.Errorf("a run without sources, beyond what is verified: %+v, %v", got, err)
	}
	chains, err := query.Chains(t.Context(), db)
	ok(t, err)
	s := chains[0].Scoring
	want := repute.SourceState{Source: "club", Chain: 7, Status: "incomplete", Reason: "no route", Block: 110, Time: 9,
		Complete: 5, Kept: 2}
	if !s.Verified || s.VerifiedTo != 112 || !slices.Equal(s.Sources, []repute.SourceState{want}) ||
		s.Coverage.BySource["club"] != 3 || s.Coverage.ToFifty.Cents != 100 {
		t.Errorf("scoring %+v", s)
	}
}

// Pins are those of the newest run that names any, of each source and chain.
func TestReadPins(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 54)
	w.grow(5)
	w.store(t, db, 104)
	for i, readings := range []string{
		`[{"source":"a","chain":1,"implementations":{"x":"old"}},{"source":"a","chain":2,"implementations":{"x":"elsewhere"}}]`,
		`[{"source":"a","chain":1,"implementations":{"x":"new"}},{"source":"b","chain":1}]`, "",
		`[{"source":"a","chain":1}]`,
	} {
		ok(t, scoredb.AddRun(t.Context(), db,
			scoredb.Run{ChainID: 7, Run: uint64(i + 1), Scorer: "test", Readings: readings}))
	}
	pins, err := trustdb.ReadPins(t.Context(), db, 7)
	ok(t, err)
	var got []string
	for _, body := range pins {
		var pin struct{ Implementations map[string]string }
		ok(t, json.Unmarshal(body, &pin))
		got = append(got, pin.Implementations["x"])
	}
	if slices.Sort(got); !slices.Equal(got, []string{"elsewhere", "new"}) {
		t.Errorf("pins %v", got)
	}
	if pins, err := trustdb.ReadPins(t.Context(), db, 8); err != nil || len(pins) > 0 {
		t.Errorf("of another chain: %s, %v", pins, err)
	}
}

// The raters of a view are those with a live rating then, each once and in order.
func TestRatersOfAView(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 55)
	w.grow(60)
	w.store(t, db, 159)
	for _, block := range []uint64{99, 120, 140, 159} {
		got, err := trustdb.Raters(t.Context(), db, 7, block, nil)
		ok(t, err)
		want := map[common.Address]bool{}
		ok(t, trustdb.ReadSnapshot(t.Context(), db, 7, block, func(ctx context.Context, s *trustdb.Snapshot) error {
			return s.Ratings(ctx, nil, -1, func(r *trustdb.SnapshotRating) error {
				want[r.Client] = true
				return nil
			})
		}))
		if len(got) != len(want) || !slices.IsSortedFunc(got, common.Address.Cmp) ||
			slices.ContainsFunc(got, func(a common.Address) bool { return !want[a] }) {
			t.Errorf("block %d: %v, want %v", block, got, want)
		}
		if block == 159 && len(got) < 3 {
			t.Errorf("only %d raters", len(got))
		}
	}
}
