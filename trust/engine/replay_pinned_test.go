package engine_test

import (
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/query"
	"repute/store/rootdb"
	"repute/store/scoredb"
	"repute/trust/explain"
	"repute/trust/replay"
)

// A score that somebody pinned is made again also when the epoch had another run since, by
// other roots.
func TestReplayPinnedAfterRootsChanged(t *testing.T) {
	t.Parallel()
	_, db := scene(t, 60)
	id := repute.AgentID{ChainID: 9, TokenID: token(1)}
	pin, _, err := query.ScoreOf(t.Context(), db, id, repute.At{Finality: repute.Finalized})
	ok(t, err)
	ok(t, rootdb.AddRoots(t.Context(), db, 9, repute.DefaultRoots,
		[]repute.TrustRoot{{Address: person(77), Weight: repute.RootUnit, Reason: "test"}}, false))
	await(t, "a run by other roots", func() bool {
		run, err := scoredb.ReadClosedRun(t.Context(), db, 9)
		ok(t, err)
		return run.Run > pin.Run
	})
	r, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	by := query.ScorePin{Agent: id, Block: pin.Block.Number, Params: pin.Params, Tags: pin.Tags, Roots: pin.Roots,
		Links:    pin.Links,
		Evidence: pin.Evidence, Outcome: replay.HashInput(pin.Result)}
	again, err := r.ReplayPinned(t.Context(), by)
	if err != nil || again.Run != pin.Run || again.Roots != pin.Roots || again.Score != pin.Score ||
		again.Block != pin.Block {
		t.Errorf("pinned %+v, replayed %+v, %v", pin, again, err)
	}
	by.Outcome = common.Hash{1}
	if s, err := r.ReplayPinned(t.Context(), by); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("a score that never was: %+v, %v", s, err)
	}
	if other, err := replayed(t, db, 1, pin.Block.Number); err != nil || other.Run == pin.Run {
		t.Errorf("run %d at the block, %v", other.Run, err)
	}
}
