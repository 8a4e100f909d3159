package store_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
)

func kindOf(t *testing.T, db *store.DB, kind repute.EventKind) (repute.KindCompleteness, repute.CompletenessStatus) {
	t.Helper()
	c := chainsOf(t, db)[0].Completeness
	for _, k := range c.Kinds {
		if k.Kind == kind {
			return k, c.Status
		}
	}
	t.Fatalf("no completeness of %s in %+v", kind, c)
	return repute.KindCompleteness{}, ""
}

func TestCompletenessByKind(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 52)
	w.grow(20)
	w.store(t, db, w.tip().Number)
	check := func(what string, kind repute.EventKind, want, overall repute.CompletenessStatus) {
		t.Helper()
		if k, all := kindOf(t, db, kind); k.Status != want || all != overall {
			t.Errorf("%s: %+v of %s, want %s of %s", what, k, all, want, overall)
		}
	}
	check("before any comparison", repute.KindNewFeedback, repute.Partial, repute.Partial)
	sqlExec(t, db, "insert into verifications values (7, 9, 110, 0), (7, 5, 0, 108)")
	check("compared", repute.KindNewFeedback, repute.Complete, repute.Partial)
	check("every block proven", repute.KindMetadataUpdate, repute.Complete, repute.Partial)
	check("another kind", repute.KindTransfer, repute.Partial, repute.Partial)
	if k, _ := kindOf(t, db, repute.KindNewFeedback); k.VerifiedTo != 110 || k.LogsTo != 0 {
		t.Errorf("verified: %+v", k)
	}
	sqlExec(t, db, "insert into pending values (7, 106, 0, 0, 'unknown_feedback')")
	check("one waits", repute.KindNewFeedback, repute.Incomplete, repute.Incomplete)
	check("one of another kind waits", repute.KindMetadataUpdate, repute.Complete, repute.Incomplete)
	sqlExec(t, db, "delete from pending; update covered set from_block = 101")
	check("begun too late", repute.KindNewFeedback, repute.Partial, repute.Partial)
}

// verifyTo says of all kinds that the state tells of that they were compared at a
// block.
func verifyTo(t *testing.T, db *store.DB, chain, block uint64) {
	t.Helper()
	v := store.Verified{VerifiedTo: block}
	for k := repute.KindTransfer; k < repute.KindUndecoded; k++ {
		if k.HasState() {
			v.Kinds = append(v.Kinds, k)
		}
	}
	ok(t, db.SetVerified(t.Context(), chain, store.Lease{}, v))
}

// A chain is complete up to the block at which the last of its kinds was compared,
// as long as that is not a week of blocks ago.
func TestCompleteMeansCompared(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 52)
	w.grow(20)
	tip := w.tip().Number
	w.store(t, db, tip)
	check := func(what string, want repute.CompletenessStatus, to uint64) {
		t.Helper()
		if c := chainsOf(t, db)[0].Completeness; c.Status != want || c.VerifiedTo != to {
			t.Errorf("%s: %s, verified to %d, want %s and %d", what, c.Status, c.VerifiedTo, want, to)
		}
	}
	check("not compared", repute.Partial, 0)
	verifyTo(t, db, 7, 110)
	check("compared", repute.Complete, 110)
	sqlExec(t, db, "update verifications set logs_to = 105")
	check("a lower block is the only one proven of logs", repute.Complete, 110)
	sqlExec(t, db, "delete from verifications where kind = 9")
	check("one kind never compared", repute.Partial, 0)
	verifyTo(t, db, 7, 110)
	sqlExec(t, db, "update chains set finalized_block = cursor_block")
	check("some blocks ago", repute.Complete, 110)
	sqlExec(t, db, "update blocks set time = '2026-01-01'::timestamptz + (number - 100) * interval '1 day'")
	sqlExec(t, db, "update chains set cursor_time = '2026-01-01'::timestamptz + (cursor_block - 100) * interval '1 day'")
	check("days ago", repute.Partial, 110)
	verifyTo(t, db, 7, tip-6)
	check("within a week", repute.Complete, tip-6)
	verifyTo(t, db, 7, tip-8)
	check("not within a week", repute.Partial, tip-8)
}

func TestGapsAreKeptUntilClosed(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 52)
	w.grow(20)
	w.store(t, db, w.tip().Number)
	token, client := tokenID(3), common.Address{1}
	g := store.Gap{Gap: repute.Gap{Kind: repute.KindNewFeedback, Agent: &token, Client: &client,
		Blocks: repute.BlockRange{From: 101, To: 110}, Reason: "getLastIndex is 5\x00\xff"}, Subject: "3/01/5"}
	ctx := t.Context()
	ok(t, db.OpenGaps(ctx, 7, store.Lease{}, []store.Gap{g}))
	k, status := kindOf(t, db, repute.KindNewFeedback)
	if status != repute.Incomplete || k.Status != repute.Incomplete || k.Open != 1 || len(k.Gaps) != 1 {
		t.Fatalf("open: %+v, %s", k, status)
	}
	got := k.Gaps[0]
	if *got.Agent != token || *got.Client != client || got.Blocks != g.Blocks || got.Reason != "getLastIndex is 5" || got.Since.IsZero() {
		t.Errorf("listed: %+v", got)
	}
	due, err := db.DueGaps(ctx, 7, 10)
	ok(t, err)
	if len(due) != 1 || due[0].Subject != g.Subject || *due[0].Client != client {
		t.Fatalf("due: %+v", due)
	}
	ok(t, db.PostponeGap(ctx, 7, store.Lease{}, g, time.Hour))
	ok(t, db.OpenGaps(ctx, 7, store.Lease{}, []store.Gap{g})) // found again: the pause goes on
	if due, err = db.DueGaps(ctx, 7, 10); err != nil || len(due) != 0 {
		t.Errorf("due while postponed: %+v, %v", due, err)
	}
	if k, _ = kindOf(t, db, repute.KindNewFeedback); k.Gaps[0].Tries != 1 || time.Until(k.Gaps[0].Next) < 50*time.Minute {
		t.Errorf("postponed: %+v", k.Gaps[0])
	}
	ok(t, db.CloseGap(ctx, 7, store.Lease{}, g))
	if k, status = kindOf(t, db, repute.KindNewFeedback); status != repute.Partial || k.Open != 0 || len(k.Gaps) != 0 {
		t.Errorf("closed: %+v, %s", k, status)
	}
}

func TestGapsAreBounded(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 52)
	w.grow(20)
	w.store(t, db, w.tip().Number)
	gaps := make([]store.Gap, 1100)
	for i := range gaps {
		gaps[i] = store.Gap{Gap: repute.Gap{Kind: repute.KindURIUpdated, Reason: "tokenURI"}, Subject: fmt.Sprint(i)}
	}
	if err := db.OpenGaps(t.Context(), 7, store.Lease{}, gaps); !errors.Is(err, store.ErrGapsFull) {
		t.Errorf("1,100 gaps: %v", err)
	}
	ok(t, db.OpenGaps(t.Context(), 7, store.Lease{}, gaps[:1000])) // all known
	k, _ := kindOf(t, db, repute.KindURIUpdated)
	if k.Open != 1000 || len(k.Gaps) != repute.MaxGaps {
		t.Errorf("%d open, %d listed", k.Open, len(k.Gaps))
	}
}

// A count comes out of a node's storage: any number must cost what the stored
// agents cost.
func TestAbsentAgentsOfAnyCount(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 52)
	w.grow(20)
	w.store(t, db, w.tip().Number)
	block := w.tip().Number
	sqlExec(t, db, "delete from agents where chain_id = 7 and token_id in (0, 2)")
	_, _, stored, err := db.AbsentAgents(t.Context(), 7, block, 1, 10)
	ok(t, err)
	if stored < 2 {
		t.Fatalf("%d agents are too few", stored)
	}
	ids, where, _, err := db.AbsentAgents(t.Context(), 7, block, 1_000_000_000_000_000, 6)
	ok(t, err)
	want := []uint64{0, 2, stored + 2, stored + 3, stored + 4, stored + 5}
	if !slices.Equal(ids, want) {
		t.Errorf("absent %v, want %v", ids, want)
	}
	for i, r := range where {
		if r.To < r.From || i < 2 && r.To == block || i >= 2 && r.To != block {
			t.Errorf("agent %d was registered between %+v", ids[i], r)
		}
	}
}
