package verify

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/indexer"
	"repute/indexer/node"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/walletdb"
)

// treasury is a treasury of the scripted chain.
var treasury = common.HexToAddress("0x7ea5000000000000000000000000000000000001")

// payments returns a chain in which every block has a payment of the treasury, and every second one a rating.
func payments(t *testing.T, n int) *rpctest.Chain {
	t.Helper()
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1), "https://a"))
	for i := range n {
		txs := [][]types.Log{rpctest.Payment(treasury, common.Hash{1}, int64(i))}
		if i%2 == 0 {
			txs = append(txs, c.Feedback(0, rpctest.Account(3), uint64(i/2)+1, 1, "t"))
		}
		c.Mine(txs...)
	}
	c.MineEmpty(4)
	c.Finalize(c.Head().Number()-1, c.Head().Number()-1)
	return c
}

// watching returns the chain with the treasury among its contracts, which the store knows too.
func watching(t *testing.T, db *store.DB, c *rpctest.Chain) repute.Chain {
	t.Helper()
	added := repute.WatchedContract{Address: treasury, From: 1}
	if err := chaindb.WatchTreasury(t.Context(), db, 31337, added); err != nil {
		t.Fatal(err)
	}
	chain := chainOf(c)
	chain.Treasuries = []repute.WatchedContract{added}
	return chain
}

// historyReader returns a verifier that reads histories alone.
func historyReader(db *store.DB, c repute.Chain, nodes ...*node.Node) *Verifier {
	return New(db, c, func() []*node.Node { return nodes },
		Options{Rate: 1e6, RetryMin: time.Millisecond, RetryMax: time.Hour, HistoryOnly: true})
}

// reached returns the block up to which the treasury's events are stored.
func reached(t *testing.T, db *store.DB) repute.Block {
	t.Helper()
	at, err := walletdb.ReadTreasury(t.Context(), db, 31337, treasury)
	if err != nil {
		t.Fatal(err)
	}
	return at.Cursor
}

// rowsOf counts the rows of some tables together.
func rowsOf(t *testing.T, db *store.DB, tables ...string) (n int) {
	t.Helper()
	for _, table := range tables {
		var one int
		if err := db.Pool().QueryRow(t.Context(), "select count(*) from "+table).Scan(&one); err != nil {
			t.Fatal(err)
		}
		n += one
	}
	return n
}

// A treasury that is added to an indexed chain gets its history, a part at a time and by whichever process there is.
// Nothing that is said of agents changes meanwhile: not the completeness of the chain, not the feed, no score.
func TestTreasuryAddedLater(t *testing.T) {
	t.Parallel()
	c := payments(t, 900)
	db, other := openStore(t), openStore(t)
	if err := chaindb.AddChain(t.Context(), other, chainOf(c)); err != nil {
		t.Fatal(err)
	}
	catchUp(t, indexer.NewFollower(other, watching(t, other, c), newNode(t, c, node.Options{}), indexer.Options{}))
	n := newNode(t, c, node.Options{})
	indexFrom(t, db, chainOf(c), n)
	settleDown(t, verifierOf(db, chainOf(c), n))
	before, rows := status(t, db).Completeness, rowsOf(t, db, "changes", "trust_marks", "block_proofs")
	c.Inject(rpctest.LimitRange(10, rpctest.Error{Code: -32602, Message: "exceed maximum block range 10"}))
	chain := watching(t, db, c)
	if at := reached(t, db); at.Number != 0 || at.Hash != (common.Hash{}) {
		t.Errorf("events are stored up to %+v", at)
	}
	for steps, last := 0, uint64(0); reached(t, db).Number < c.Head().Number(); steps++ {
		if err := historyReader(db, chain, n).Step(t.Context(), store.Lease{}); err != nil {
			t.Fatal(err)
		}
		at := reached(t, db).Number
		if at <= last || steps == 0 && at == c.Head().Number() {
			t.Fatalf("step %d read from block %d to %d", steps, last, at)
		}
		last = at
		if after := status(t, db).Completeness; after.Status != before.Status || after.VerifiedTo != before.VerifiedTo {
			t.Fatalf("the chain is %+v, was %+v", after, before)
		}
	}
	if after := rowsOf(t, db, "changes", "trust_marks", "block_proofs"); after != rows {
		t.Errorf("%d changes, marks and proofs, were %d", after, rows)
	}
	wantSame(t, dump(t, db), dump(t, other))
	if got := rowsOf(t, db, "treasury_events"); got != 900 {
		t.Errorf("%d events, want 900", got)
	}
}

// What a node withholds of a treasury is found in the receipts of its blocks, as what it withholds of registries.
func TestTreasuryLogsLost(t *testing.T) {
	t.Parallel()
	c := payments(t, 40)
	db := openStore(t)
	p := rpctest.NewProxy(t, c.URL())
	p.Lose(func(l types.Log) bool { return l.Address == treasury && l.BlockNumber%3 == 0 }, true, false)
	if err := chaindb.AddChain(t.Context(), db, chainOf(c)); err != nil {
		t.Fatal(err)
	}
	chain := watching(t, db, c)
	indexFrom(t, db, chain, nodeAt(t, p.URL))
	if got := rowsOf(t, db, "treasury_events"); got >= 40 {
		t.Fatalf("%d events: the node lost none", got)
	}
	settleDown(t, verifierOf(db, chain, nodeAt(t, p.URL)))
	if got := rowsOf(t, db, "treasury_events"); got != 40 {
		t.Errorf("%d events, want 40", got)
	}
}

// A treasury may be added at any moment while the chain is indexed: no event is missing in the end.
func TestTreasuryAddedAnytime(t *testing.T) {
	t.Parallel()
	c := payments(t, 30)
	db := openStore(t)
	n := newNode(t, c, node.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	v := New(db, chainOf(c), func() []*node.Node { return []*node.Node{n} },
		Options{Rate: 1e6, Poll: time.Millisecond, HistoryOnly: true})
	f := indexer.NewFollower(db, chainOf(c), n, indexer.Options{Poll: time.Millisecond, StartRange: 3, Verifier: v})
	go func() { defer close(done); _ = f.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	added, total := 5+rand.IntN(20), 30
	for i := range 40 {
		if i == added {
			watching(t, db, c)
		}
		c.Mine(rpctest.Payment(treasury, common.Hash{1}, 1))
		total++
		time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
	}
	eventually(t, "all is read", func() bool { return reached(t, db).Hash == c.Head().Hash() })
	if got := rowsOf(t, db, "treasury_events"); got != total {
		t.Errorf("%d events, want %d", got, total)
	}
}
