package indexer

import (
	"context"
	"math/big"
	"testing"
	"time"

	"repute"
	"repute/devnet"
	"repute/indexer/node"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/query"
)

// mined makes a block of the batch that fill adds to.
func mined(t *testing.T, d *devnet.Devnet, fill func(*devnet.Batch)) {
	t.Helper()
	b := d.Batch()
	fill(b)
	if _, err := b.Mine(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// followDevnet follows a real node, woken by hand and otherwise asleep.
func followDevnet(t *testing.T, db *store.DB, d *devnet.Devnet, wake <-chan struct{}) *Follower {
	t.Helper()
	node, err := node.New(d.RPCURL(), node.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	return NewFollower(db, d.Chain(), node, Options{Poll: time.Hour, Wake: wake, StartRange: 7, AnyValidation: true})
}

// A real go-ethereum node that reorganizes: the index follows, and equals one made
// from the final chain.
func TestDevnetForks(t *testing.T) {
	t.Parallel()
	d, err := devnet.Start(t.Context(), devnet.Options{SafeDepth: 8, FinalizedDepth: 16})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	rate := func(client int) func(*devnet.Batch) {
		return func(b *devnet.Batch) {
			b.GiveFeedback(d.Account(client), devnet.Rating{Agent: 0, Value: big.NewInt(int64(client)), Tag1: "t"})
		}
	}
	mined(t, d, func(b *devnet.Batch) { b.Register(d.Account(0), "ipfs://x") })
	for i := range 30 {
		mined(t, d, rate(1+i))
	}
	db, wake := openStore(t), make(chan struct{}, 1)
	started(t, followDevnet(t, db, d, wake))
	at := func() repute.Block {
		b, err := chaindb.Cursor(t.Context(), db, d.Chain().ID)
		if err != nil && t.Context().Err() == nil {
			return repute.Block{}
		}
		return b
	}
	caughtUp := func(what string) {
		t.Helper()
		signal(wake)
		head, err := d.Client().HeaderByNumber(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, what, func() bool { return at().Hash == head.Hash() })
	}
	caughtUp("the backfill")
	for round, depth := range []int{1, 3, 12} {
		if err := d.Fork(t.Context(), depth); err != nil {
			t.Fatal(err)
		}
		for i := range depth + 1 {
			mined(t, d, rate(100+20*round+i))
		}
		if err := d.Publish(t.Context()); err != nil {
			t.Fatal(err)
		}
		caughtUp("a fork") // nothing new comes after it
		if err := d.DropPool(); err != nil {
			t.Fatal(err)
		}
		mined(t, d, rate(50+round))
		caughtUp("the next block")
	}
	fresh := openStore(t)
	if err := chaindb.AddChain(t.Context(), fresh, d.Chain()); err != nil {
		t.Fatal(err)
	}
	catchUp(t, followDevnet(t, fresh, d, nil))
	if got, want := dump(t, db), dump(t, fresh); got != want {
		t.Error("the index differs from one made from the final chain")
	}
	list, err := query.Chains(t.Context(), db)
	if err != nil || list[0].Reorgs != 3 {
		t.Errorf("%+v reorganizations, %v, want 3", list, err)
	}
}
