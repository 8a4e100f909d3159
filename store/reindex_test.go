package store_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/contracts"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
	"repute/store/importdb"
)

// during runs what once, in the middle of a reindex.
func during(what func()) func(types.Log) (repute.Event, error) {
	once := sync.OnceFunc(what)
	return func(l types.Log) (repute.Event, error) {
		once()
		return contracts.Read(l)
	}
}

// indexed is a store with a small chain, and the chain.
func indexed(t *testing.T) (*store.DB, *ledger) {
	t.Helper()
	db, l := testDB(t), smallChain()
	ok(t, chaindb.AddChain(ctxOf(t), db, testChain(1)))
	ok(t, eventdb.Apply(ctxOf(t), db, batchOf(1, l.genesis, l.blocks)))
	return db, l
}

func TestReindexMendsDerivedRows(t *testing.T) {
	t.Parallel()
	db, _ := indexed(t)
	ctx := ctxOf(t)
	want := dump(t, ctx, db, 1)
	_, err := db.Pool().Exec(ctx, `
		update agents set feedback = 99, owner = '\x01'; delete from votes; delete from agent_states where from_block = 10;
		insert into pending values (1, 10, 0, 5, 'out_of_range')`)
	ok(t, err)
	ok(t, importdb.Reindex(ctx, db, 1, contracts.Read))
	equalDumps(t, "reindex", want, dump(t, ctx, db, 1))
}

func TestReindexLeavesOtherChainsAlone(t *testing.T) {
	t.Parallel()
	db, l := indexed(t)
	ctx := ctxOf(t)
	ok(t, chaindb.AddChain(ctx, db, testChain(2)))
	ok(t, eventdb.Apply(ctx, db, batchOf(2, l.genesis, l.blocks)))
	want := dump(t, ctx, db, 0)
	ok(t, importdb.Reindex(ctx, db, 2, contracts.Read))
	equalDumps(t, "reindex of chain 2", want, dump(t, ctx, db, 0))
	if err := importdb.Reindex(ctx, db, 3, contracts.Read); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("unknown chain: %v", err)
	}
}

// The chain's indexer goes on while the rows are rebuilt, and readers see the
// live rows meanwhile.
func TestReindexCatchesUpWithTheIndexer(t *testing.T) {
	t.Parallel()
	db, l := indexed(t)
	ctx := ctxOf(t)
	parent := l.head()
	rest := batchOf(1, parent,
		l.extend(txOf{repute.NewFeedback{TokenID: token(0), Client: rpctest.Account(4), Index: 1, Value: values[1]}}))
	live := ""
	ok(t, importdb.Reindex(ctx, db, 1, during(func() {
		ok(t, eventdb.Apply(ctx, db, rest))
		live = dump(t, ctx, db, 1)
	})))
	equalDumps(t, "after catching up", live, dump(t, ctx, db, 1))
	if a := rows(t, live, "agents")[0]; a.num("feedback") != 2 {
		t.Errorf("live rows during the reindex: %v", a)
	}
}

func TestReindexGivesWayToARewind(t *testing.T) {
	t.Parallel()
	db, l := indexed(t)
	ctx := ctxOf(t)
	l.fork(11)
	head := l.head()
	live := ""
	err := importdb.Reindex(ctx, db, 1, during(func() {
		ok(t, eventdb.Rewind(ctx, db, head, batchOf(1, head, nil)))
		live = dump(t, ctx, db, 1)
	}))
	if !errors.Is(err, repute.ErrFenced) {
		t.Errorf("reindex: %v", err)
	}
	equalDumps(t, "given way", live, dump(t, ctx, db, 1))
}

func TestOneRebuildAtATime(t *testing.T) {
	t.Parallel()
	db, l := indexed(t)
	ctx := ctxOf(t)
	var again, repair error
	ok(t, importdb.Reindex(ctx, db, 1, during(func() {
		again = importdb.Reindex(ctx, db, 1, contracts.Read)
		_, repair = importdb.Repair(ctx, db, 1, store.Lease{}, l.blocks[0].records, nil)
	})))
	if !errors.Is(again, repute.ErrHeld) || !errors.Is(repair, repute.ErrHeld) {
		t.Errorf("reindex: %v, repair: %v", again, repair)
	}
}

func TestReindexReportsWhatDoesNotDecode(t *testing.T) {
	t.Parallel()
	db, _ := indexed(t)
	ctx := ctxOf(t)
	want := dump(t, ctx, db, 1)
	refuse := errors.New("no such event")
	err := importdb.Reindex(ctx, db, 1, func(types.Log) (repute.Event, error) { return nil, refuse })
	if !errors.Is(err, refuse) {
		t.Errorf("reindex: %v", err)
	}
	equalDumps(t, "failed reindex", want, dump(t, ctx, db, 1))
}

// A gateway that is listed during a reindex is not lost: the new rows would say that its ratings are its own.
func TestReindexGivesWayToAGateway(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	l := twoAgents()
	l.extend(txOf{ticket(0, 7, 1), viaGateway(0, 1, rpctest.Gateway, 1)})
	listed, unlisted := testChain(1), testChain(1)
	unlisted.Gateways = nil
	ok(t, chaindb.AddChain(ctx, db, unlisted))
	ok(t, eventdb.Apply(ctx, db, batchOf(1, l.genesis, l.blocks)))
	err := importdb.Reindex(ctx, db, 1, during(func() { ok(t, chaindb.AddChain(ctx, db, listed)) }))
	if !errors.Is(err, repute.ErrFenced) {
		t.Errorf("reindex: %v", err)
	}
	wantPayers(t, dump(t, ctx, db, 1), []any{address(rpctest.Account(7))})
}
