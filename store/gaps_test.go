package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/verifydb"
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
	check("before any comparison", repute.KindNewFeedback, repute.Verifying, repute.Verifying)
	ok(t, verifydb.SetVerified(t.Context(), db, 7, store.Lease{}, []repute.EventKind{repute.KindNewFeedback}, 110))
	check("only the state was compared", repute.KindNewFeedback, repute.Verifying, repute.Verifying)
	if k, _ := kindOf(t, db, repute.KindNewFeedback); k.VerifiedTo != 110 || k.Reason == "" {
		t.Errorf("verified: %+v", k)
	}
	proveTo(t, db, 7, 100, w.tip().Number)
	check("every block proven", repute.KindMetadataUpdate, repute.Complete, repute.Complete)
	sqlExec(t, db, "insert into pending values (7, 106, 0, 0, 'unknown_feedback')")
	check("one waits", repute.KindNewFeedback, repute.Incomplete, repute.Incomplete)
	check("one of another kind waits", repute.KindMetadataUpdate, repute.Complete, repute.Incomplete)
	sqlExec(t, db, "delete from pending; update chains set covered = covered * '{[101,)}'")
	check("begun too late", repute.KindNewFeedback, repute.Partial, repute.Partial)
}

// proveTo says that all blocks of a range were compared and proven, and that they are final.
func proveTo(t *testing.T, db *store.DB, chain, from, to uint64) {
	t.Helper()
	sqlExec(t, db,
		fmt.Sprintf("delete from block_proofs where chain_id = %d; update chains set finalized_block = greatest(finalized_block, %d) where chain_id = %d", chain, to, chain))
	var hash []byte
	ok(t, db.Pool().QueryRow(t.Context(),
		"select coalesce((select hash from blocks where chain_id = $1 and number = $2), '')", chain, to).Scan(&hash))
	ok(t, verifydb.SaveBlockProof(t.Context(), db, chain, store.Lease{},
		verifydb.BlockProof{Blocks: repute.BlockRange{From: from, To: to}, Hash: common.BytesToHash(hash)}))
}

// A chain is complete while every final block is proven, but for those of ten minutes.
func TestCompleteMeansProven(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 52)
	w.grow(20)
	w.store(t, db, w.tip().Number)
	sqlExec(t, db,
		"update chains set cursor_block = 9000, covered = '{[100,9001)}'; delete from blocks where number > 100")
	set := func(final uint64, blockTime string) {
		t.Helper()
		sqlExec(t, db,
			fmt.Sprintf("update chains set finalized_block = %d, cursor_time = (select time from blocks where number = 100) + 8900 * interval '%s'", final, blockTime))
	}
	check := func(what string, want repute.CompletenessStatus, to uint64, reason string) {
		t.Helper()
		if c := chainsOf(t, db)[0].Completeness; c.Status != want || c.VerifiedTo != to ||
			!strings.Contains(c.Reason, reason) || (c.Reason == "") != (want == repute.Complete) {
			t.Errorf("%s: %s, proven to %d, %q; want %s and %d, %q", what, c.Status, c.VerifiedTo, c.Reason, want, to,
				reason)
		}
	}
	check("no final block", repute.Verifying, 0, "no final block")
	set(2_000, "12 seconds")
	check("not compared", repute.Verifying, 0, "0 of 1901 final blocks")
	proveTo(t, db, 7, 100, 2_000)
	check("compared", repute.Complete, 2_000, "")
	for blockTime, lag := range map[string]uint64{"12 seconds": 50, "1 minute": 32, "1 second": 600,
		"10 milliseconds": 4_096} {
		set(2_000+lag, blockTime)
		check("within ten minutes of "+blockTime, repute.Complete, 2_000, "")
		set(2_001+lag, blockTime)
		check("not within ten minutes of "+blockTime, repute.Verifying, 2_000, "1901 of")
	}
	set(6_097, "12 seconds")
	ok(t, verifydb.SaveBlockProof(t.Context(), db, 7, store.Lease{},
		verifydb.BlockProof{Blocks: repute.BlockRange{From: 2_500, To: 6_097}}))
	check("with a hole", repute.Verifying, 2_000, "of 5998 final blocks")
	_, err := verifydb.AskForBlocks(t.Context(), db, 7, []uint64{1_500, 1_501})
	ok(t, err)
	check("asked", repute.Verifying, 2_000, "2 blocks are to be compared again")
	sqlExec(t, db,
		"delete from block_proofs where from_block = 2500; delete from cursors where job = 'requested block'; update block_proofs set unproven = '{[200,203),[700,701)}', reason = 'no receipts'")
	set(2_000, "12 seconds")
	check("unproven", repute.Unproven, 199, "4 final blocks could not be proven, the newest is 700: no receipts")
	sqlExec(t, db, "update block_proofs set unproven = '{[100,101)}'")
	check("the first is unproven", repute.Unproven, 0, "newest is 100")
}

func TestGapsAreKeptUntilClosed(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 52)
	w.grow(20)
	w.store(t, db, w.tip().Number)
	token, client := tokenID(3), common.Address{1}
	g := chaindb.Gap{Gap: repute.Gap{Kind: repute.KindNewFeedback, Agent: &token, Client: &client,
		Blocks: repute.BlockRange{From: 101, To: 110}, Reason: "getLastIndex is 5\x00\xff"}, Subject: "3/01/5"}
	ctx := t.Context()
	ok(t, chaindb.OpenGaps(ctx, db, 7, store.Lease{}, []chaindb.Gap{g}))
	k, status := kindOf(t, db, repute.KindNewFeedback)
	if status != repute.Incomplete || k.Status != repute.Incomplete || k.Open != 1 || len(k.Gaps) != 1 {
		t.Fatalf("open: %+v, %s", k, status)
	}
	got := k.Gaps[0]
	if *got.Agent != token || *got.Client != client || got.Blocks != g.Blocks || got.Reason != "getLastIndex is 5" ||
		got.Since.IsZero() {
		t.Errorf("listed: %+v", got)
	}
	due, err := chaindb.DueGaps(ctx, db, 7, 10)
	ok(t, err)
	if len(due) != 1 || due[0].Subject != g.Subject || *due[0].Client != client {
		t.Fatalf("due: %+v", due)
	}
	ok(t, chaindb.PostponeGap(ctx, db, 7, store.Lease{}, g, time.Hour))
	ok(t, chaindb.OpenGaps(ctx, db, 7, store.Lease{}, []chaindb.Gap{g})) // found again: the pause goes on
	if due, err = chaindb.DueGaps(ctx, db, 7, 10); err != nil || len(due) != 0 {
		t.Errorf("due while postponed: %+v, %v", due, err)
	}
	if k, _ = kindOf(t, db, repute.KindNewFeedback); k.Gaps[0].Tries != 1 ||
		time.Until(k.Gaps[0].Next) < 50*time.Minute {
		t.Errorf("postponed: %+v", k.Gaps[0])
	}
	ok(t, chaindb.CloseGap(ctx, db, 7, store.Lease{}, g))
	if k, status = kindOf(t, db, repute.KindNewFeedback); status != repute.Verifying || k.Open != 0 ||
		len(k.Gaps) != 0 {
		t.Errorf("closed: %+v, %s", k, status)
	}
}

func TestGapsAreBounded(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 52)
	w.grow(20)
	w.store(t, db, w.tip().Number)
	gaps := make([]chaindb.Gap, 1100)
	for i := range gaps {
		gaps[i] = chaindb.Gap{Gap: repute.Gap{Kind: repute.KindURIUpdated, Reason: "tokenURI"}, Subject: fmt.Sprint(i)}
	}
	if err := chaindb.OpenGaps(t.Context(), db, 7, store.Lease{}, gaps); !errors.Is(err, chaindb.ErrGapsFull) {
		t.Errorf("1,100 gaps: %v", err)
	}
	ok(t, chaindb.OpenGaps(t.Context(), db, 7, store.Lease{}, gaps[:1000])) // all known
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
	_, _, stored, err := verifydb.AbsentAgents(t.Context(), db, 7, block, 1, 10)
	ok(t, err)
	if stored < 2 {
		t.Fatalf("%d agents are too few", stored)
	}
	ids, where, _, err := verifydb.AbsentAgents(t.Context(), db, 7, block, 1_000_000_000_000_000, 6)
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
