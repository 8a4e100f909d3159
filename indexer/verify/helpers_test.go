package verify

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
	"repute/indexer"
	"repute/indexer/documents"
	"repute/indexer/node"
	"repute/internal/pgtest"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/importdb"
	"repute/store/query"
)

func openStore(t *testing.T) *store.DB {
	t.Helper()
	return openStoreAt(t, pgtest.New(t))
}

func openStoreAt(t *testing.T, url string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{Classify: documents.Classify, Decode: contracts.Read,
		MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func chainOf(c *rpctest.Chain) repute.Chain {
	return repute.Chain{ID: 31337, Name: "scripted", Identity: c.Identity, Reputation: c.Reputation,
		Validations: []common.Address{c.Validation}, StartBlock: 1}
}

func newNode(t *testing.T, c *rpctest.Chain, o node.Options) *node.Node {
	t.Helper()
	n, err := node.New(c.URL(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// catchUp steps until there is nothing new and counts the reorganizations.
func catchUp(t *testing.T, f *indexer.Follower) (reorgs int) {
	t.Helper()
	for range 10_000 {
		err := f.Step(t.Context(), store.Lease{})
		switch {
		case errors.Is(err, indexer.ErrNothingNew):
			return reorgs
		case errors.Is(err, repute.ErrReorged):
			reorgs++
		case err != nil:
			t.Fatalf("step: %v", err)
		}
	}
	t.Fatal("no end after 10,000 steps")
	return 0
}

func dump(t *testing.T, db *store.DB) string {
	t.Helper()
	var b strings.Builder
	if err := importdb.Dump(t.Context(), db, &b, 0); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func cursorOf(t *testing.T, db *store.DB) repute.Block {
	t.Helper()
	b, err := chaindb.Cursor(t.Context(), db, 31337)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// eventually waits for a condition; the time limit only ends a failed test.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

func status(t *testing.T, db *store.DB) repute.ChainStatus {
	t.Helper()
	list, err := query.Chains(t.Context(), db)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d chains, %v", len(list), err)
	}
	return list[0]
}
