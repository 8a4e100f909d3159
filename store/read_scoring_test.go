package store_test

import (
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/query"
	"repute/store/rootdb"
	"repute/store/scoredb"
)

// What operators see of scores: whether there could be some, whether anybody keeps
// them, and what waits.
func TestScoringSaysWhoWaits(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 52)
	w.grow(20)
	w.store(t, db, w.tip().Number)
	look := func() repute.Scoring {
		t.Helper()
		chains, err := query.Chains(t.Context(), db)
		ok(t, err)
		return chains[0].Scoring
	}
	exec := func(sql string) {
		t.Helper()
		_, err := db.Pool().Exec(t.Context(), sql)
		ok(t, err)
	}
	if s := look(); !reflect.DeepEqual(s, repute.Scoring{}) {
		t.Errorf("no block is final: %+v", s)
	}
	exec("update chains set finalized_block = cursor_block")
	if s := look(); !reflect.DeepEqual(s, repute.Scoring{Late: true}) {
		t.Errorf("nobody scores: %+v", s)
	}
	ok(t, rootdb.AddRoots(t.Context(), db, 7, repute.DefaultRoots, []repute.TrustRoot{
		{Address: common.Address{1}, Weight: 1, Reason: "lives"},
		{Address: common.Address{2}, Weight: 1, Reason: "gone",
			Expires: w.tip().Time}}, false))
	exec("update trust_roots set expires_at = now() - interval '1 day' where expires_at is not null")
	ok(t, scoredb.AddRun(t.Context(), db, scoredb.Run{ChainID: 7, Run: 1, Epoch: 4, Boundary: 110, Scorer: "test"}))
	for marked(t, db, 7) > 0 {
	}
	clear(t, db)
	markAll(t, db)
	s := look()
	if s.Run != 1 || s.Epoch != 4 || s.Block != 110 || s.Roots != 1 || s.Stale == 0 || s.StaleSince.IsZero() ||
		s.LookedAt.IsZero() || s.WalkedAt.IsZero() || s.Final || s.Late {
		t.Errorf("after a walk: %+v", s)
	}
	exec("update trust_stale set since = now() - interval '1 hour'")
	if look().Late {
		t.Error("an epoch's work is no delay")
	}
	exec("update trust_stale set cause = 0 where token_id = (select min(token_id) from trust_stale)")
	if !look().Late {
		t.Error("an event without effect is one")
	}
	exec("delete from trust_stale")
	exec("update cursors set begun = now() - interval '2 minutes' where job = 'marks'")
	if s := look(); !s.Late || s.Stale != 0 || !s.StaleSince.IsZero() {
		t.Errorf("nobody looks: %+v", s)
	}
	marked(t, db, 7)
	if s := look(); s.Late {
		t.Errorf("somebody looked: %+v", s)
	}
}
