package indexer

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/indexer/node"
	"repute/internal/pgtest"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/query"
	"repute/store/walletdb"
)

// Two treasuries of the scripted chain.
var (
	treasury = common.HexToAddress("0x7ea5000000000000000000000000000000000001")
	second   = common.HexToAddress("0x7ea5000000000000000000000000000000000002")
)

// watch adds a treasury to those that are indexed.
func watch(t *testing.T, db *store.DB, at common.Address, from uint64) {
	t.Helper()
	if err := chaindb.WatchTreasury(t.Context(), db, 31337,
		repute.WatchedContract{Address: at, From: from}); err != nil {
		t.Fatal(err)
	}
}

// withTreasuries returns a follower that has read which treasuries are indexed, as Run does.
func withTreasuries(t *testing.T, f *Follower) *Follower {
	t.Helper()
	if err := f.readTreasuries(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

// withoutRegistries returns a follower of the chain's treasuries alone.
func withoutRegistries(t *testing.T, db *store.DB, c *rpctest.Chain, o Options) *Follower {
	t.Helper()
	o.Poll, o.RetryMin, o.RetryMax = 10*time.Millisecond, 5*time.Millisecond, 50*time.Millisecond
	return NewFollower(db, repute.Chain{ID: 31337}, newNode(t, c, node.Options{}), o)
}

// pay returns the transaction of a payment by a treasury for a run.
func pay(at common.Address, run string) []types.Log {
	return rpctest.Payment(at, crypto.Keccak256Hash([]byte(run)), int64(len(run)))
}

// missing returns how the stored events of a treasury differ from those of the chain; empty when they do not.
func missing(t *testing.T, db *store.DB, c *rpctest.Chain, at common.Address) string {
	t.Helper()
	stored, err := walletdb.TreasuryEvents(t.Context(), db, 31337, at, common.Hash{}, 1<<62, 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(stored)
	for _, b := range c.Blocks() {
		for _, l := range b.Logs() {
			if l.Address != at {
				continue
			}
			if len(stored) == 0 {
				return "an event is not stored"
			}
			e := stored[0]
			if stored = stored[1:]; e.Tx != l.TxHash || e.Block.Number != b.Number() || e.Block.Hash != b.Hash() ||
				uint(e.LogIndex) != l.Index || e.Kind != "NativeExecuted" || e.Block.Time.IsZero() {
				return "another event is stored"
			}
		}
	}
	if len(stored) > 0 {
		return "an event is stored that the chain does not have"
	}
	return ""
}

// wantTreasury wants the stored events of a treasury to be those of the chain.
func wantTreasury(t *testing.T, db *store.DB, c *rpctest.Chain, at common.Address) {
	t.Helper()
	if differs := missing(t, db, c, at); differs != "" {
		t.Fatalf("treasury %s: %s", at, differs)
	}
}

// The events of treasuries follow the chain through any reorganizations, with those of the registries: in the same
// ranges, under the same cursor.
func TestTreasuryForks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		c := rpctest.New(t, rpctest.Options{})
		w, rnd := newWorld(c, seed), rand.New(rand.NewPCG(seed, 7))
		db := openStore(t)
		f := follow(t, db, c, Options{StartRange: 1 + seed})
		watch(t, db, treasury, 1)
		withTreasuries(t, f)
		for range 12 {
			for range rnd.IntN(4) {
				c.Mine(pay(treasury, "run"), pay(second, "run"))
				w.after[c.Head().Number()] = w.now.clone()
				w.grow(rnd.IntN(3))
			}
			if head := c.Head().Number(); head > 4 && rnd.IntN(2) == 0 {
				w.fork(head-rnd.Uint64N(4), 1+rnd.IntN(4))
			}
			catchUp(t, f)
			wantTreasury(t, db, c, treasury)
		}
		if events, err := walletdb.TreasuryEvents(t.Context(), db, 31337, second, common.Hash{}, 1<<62, 0,
			1); err != nil ||
			len(events) > 0 {
			t.Errorf("a treasury that nobody added: %v, %v", events, err)
		}
		at, err := walletdb.ReadTreasury(t.Context(), db, 31337, treasury)
		if err != nil || at.Cursor.Hash != c.Head().Hash() || at.Start != 1 {
			t.Errorf("%+v, %v: want the head %d", at, err, c.Head().Number())
		}
		other := openStore(t)
		f = follow(t, other, c, Options{})
		watch(t, other, treasury, 1)
		catchUp(t, withTreasuries(t, f))
		if dump(t, db) != dump(t, other) {
			t.Error("the index differs from one of the chain as it is now")
		}
	}
}

// What an event says is stored: its names, the run that it is of, and whether it is final.
func TestTreasuryEventFields(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	db := openStore(t)
	f := follow(t, db, c, Options{})
	watch(t, db, treasury, 1)
	withTreasuries(t, f)
	bad := pay(treasury, "bad")
	bad[0].Data = bad[0].Data[:7]
	c.Mine(pay(treasury, "run_1"), bad)
	c.MineEmpty(2)
	c.Finalize(1, 1)
	catchUp(t, f)
	run := crypto.Keccak256Hash([]byte("run_1"))
	events, err := walletdb.TreasuryEventsOfRun(t.Context(), db, run)
	if err != nil || len(events) != 1 || events[0].Run != run || events[0].Agent != (common.Hash{1}) ||
		events[0].Task != (common.Hash{2}) || events[0].Treasury != treasury || !events[0].Final {
		t.Fatalf("%+v, %v", events, err)
	}
	all, err := walletdb.TreasuryEvents(t.Context(), db, 31337, treasury, common.Hash{}, 1<<62, 0, 10)
	if err != nil || len(all) != 2 || all[0].Kind != repute.TreasuryUnreadable {
		t.Errorf("a log that does not decode: %+v, %v", all, err)
	}
	c.Mine(pay(treasury, "run_2"))
	catchUp(t, f)
	if events, err = walletdb.TreasuryEventsOfRun(t.Context(), db, crypto.Keccak256Hash([]byte("run_2"))); err != nil ||
		len(events) != 1 || events[0].Final {
		t.Errorf("of a block that is not final: %+v, %v", events, err)
	}
}

// A chain without registries is indexed for its treasuries alone, and readers of agents do not see it.
func TestChainOfTreasuriesAlone(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	newWorld(c, 5).grow(10)
	c.Mine(pay(treasury, "run"), pay(second, "run"))
	db := openStore(t)
	watch(t, db, treasury, 1)
	f := withTreasuries(t, withoutRegistries(t, db, c, Options{}))
	catchUp(t, f)
	c.Mine(pay(treasury, "run"))
	catchUp(t, f)
	c.Fork(c.Head().Number() - 1)
	c.Mine(pay(treasury, "run"), pay(treasury, "run"))
	if reorgs := catchUp(t, f); reorgs != 1 {
		t.Errorf("%d reorganizations, want 1", reorgs)
	}
	wantTreasury(t, db, c, treasury)
	var others, changes int
	if err := db.Pool().QueryRow(t.Context(), `select (select count(*) from events where address <> $1),
		(select count(*) from changes)`, treasury[:]).Scan(&others, &changes); err != nil || others > 0 || changes > 0 {
		t.Errorf("%d events of other contracts, %d changes, %v", others, changes, err)
	}
	if list, err := query.Chains(t.Context(), db); err != nil || len(list) > 0 {
		t.Errorf("chains %+v, %v", list, err)
	}
	watch(t, db, second, 0) // from the same block on: no block is read again but for it
	if at, err := walletdb.ReadTreasury(t.Context(), db, 31337, second); err != nil || at.Cursor.Number != 0 {
		t.Errorf("%+v, %v: want a treasury of which nothing is read", at, err)
	}
	if at, err := walletdb.ReadTreasury(t.Context(), db, 31337, treasury); err != nil ||
		at.Cursor.Hash != c.Head().Hash() {
		t.Errorf("%+v, %v: want the other treasury where it was", at, err)
	}
}

// A process that has a chain's registries takes it over from one that indexes its treasuries alone, which stands by
// from then on. No event of the treasury is lost.
func TestRegistriesTakeOver(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	w := newWorld(c, 6)
	w.grow(10)
	c.Mine(pay(treasury, "run"))
	db := openStore(t)
	watch(t, db, treasury, 1)
	started(t, withoutRegistries(t, db, c, Options{TTL: time.Minute}))
	eventually(t, "the treasury is indexed", func() bool { return cursorOf(t, db).Hash == c.Head().Hash() })
	n := newNode(t, c, node.Options{})
	started(t, NewFollower(db, chainOf(c), n, Options{Poll: 10 * time.Millisecond, TTL: time.Minute}))
	eventually(t, "the registries are indexed", func() bool {
		list, err := query.Chains(t.Context(), db)
		return err == nil && len(list) == 1 && cursorOf(t, db).Hash == c.Head().Hash()
	})
	c.Mine(pay(treasury, "run"))
	eventually(t, "the next block", func() bool { return cursorOf(t, db).Hash == c.Head().Hash() })
	wantTreasury(t, db, c, treasury)
	other := openStore(t)
	f := follow(t, other, c, Options{})
	watch(t, other, treasury, 1)
	catchUp(t, withTreasuries(t, f))
	if dump(t, db) != dump(t, other) {
		t.Error("the index differs from one with registries from the start on")
	}
}

// Any number of processes index a chain with a treasury: when one dies at any moment another goes on, and a process
// that lost its lease stores nothing.
func TestTreasuryProcessesDie(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	w := newWorld(c, 8)
	db, url := (*store.DB)(nil), pgtest.New(t)
	db = openStoreAt(t, url)
	watch(t, db, treasury, 1)
	for range 8 {
		ctx, kill := context.WithCancel(t.Context())
		ended := make(chan struct{})
		own := openStoreAt(t, url) // of its own, as a process has
		for range 2 {
			f := NewFollower(own, chainOf(c), newNode(t, c, node.Options{}),
				Options{Poll: time.Millisecond, TTL: 200 * time.Millisecond, StartRange: 2})
			go func() { _ = f.Run(ctx); ended <- struct{}{} }()
		}
		c.Mine(pay(treasury, "run"))
		w.after[c.Head().Number()] = w.now.clone()
		w.grow(rand.IntN(5))
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
		kill()
		<-ended
		<-ended
	}
	started(t, NewFollower(db, chainOf(c), newNode(t, c, node.Options{}), Options{Poll: time.Millisecond}))
	eventually(t, "the head", func() bool { return cursorOf(t, db).Hash == c.Head().Hash() })
	wantTreasury(t, db, c, treasury)
	wantCursor(t, db, c.Head())
}

// A range that was fetched before a treasury was added cannot be stored afterwards: its blocks lack the treasury's
// events.
func TestTreasuryEndsLease(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(pay(treasury, "run"))
	db := openStore(t)
	f := follow(t, db, c, Options{})
	l, err := db.Acquire(t.Context(), chaindb.LeaseName(31337), "test", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	watch(t, db, treasury, 1)
	if err := f.Step(t.Context(), l); !errors.Is(err, repute.ErrFenced) {
		t.Errorf("a range without the treasury: %v", err)
	}
	if err := db.Renew(t.Context(), l, time.Minute); !errors.Is(err, repute.ErrFenced) {
		t.Errorf("the lease goes on: %v", err)
	}
	watch(t, db, treasury, 5) // nothing new
	if l, err = db.Acquire(t.Context(), chaindb.LeaseName(31337), "test", time.Minute); err != nil {
		t.Fatal(err)
	}
	watch(t, db, treasury, 1)
	if err := withTreasuries(t, f).Step(t.Context(), l); err != nil {
		t.Error(err)
	}
	wantTreasury(t, db, c, treasury)
}
