package documents

import (
	"errors"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
	"repute/indexer"
	"repute/indexer/node"
	"repute/internal/pgtest"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
)

func openStore(t *testing.T) *store.DB {
	t.Helper()
	return openAt(t, pgtest.New(t), store.Options{})
}

func openAt(t *testing.T, url string, o store.Options) *store.DB {
	t.Helper()
	o.Classify, o.Decode, o.MaxConns = Classify, contracts.Read, 8
	db, err := store.Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// index stores what the chain has.
func index(t *testing.T, db *store.DB, c *rpctest.Chain) {
	t.Helper()
	chain := repute.Chain{ID: 31337, Name: "scripted", Identity: c.Identity, Reputation: c.Reputation,
		Validations: []common.Address{c.Validation}, StartBlock: 1}
	if err := chaindb.AddChain(t.Context(), db, chain); err != nil {
		t.Fatal(err)
	}
	n, err := node.New(c.URL(), node.Options{Timeout: 20 * time.Second, OpenMin: 1, OpenMax: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	f := indexer.NewFollower(db, chain, n, indexer.Options{Poll: 10 * time.Millisecond})
	for range 10_000 {
		err := f.Step(t.Context(), store.Lease{})
		if errors.Is(err, indexer.ErrNothingNew) {
			return
		}
		if err != nil {
			t.Fatalf("step: %v", err)
		}
	}
	t.Fatal("no end after 10,000 steps")
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

func openFiles(t *testing.T, off bool) *store.DB {
	t.Helper()
	return openAt(t, pgtest.New(t), store.Options{NoFiles: off})
}
