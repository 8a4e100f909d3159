package verify

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/indexer"
	"repute/indexer/node"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
)

// nodeAt is a witness behind a URL.
func nodeAt(t *testing.T, url string) *node.Node {
	t.Helper()
	n, err := node.New(url, node.Options{Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

func verifierOf(db *store.DB, c repute.Chain, nodes ...*node.Node) *Verifier {
	return New(db, c, func() []*node.Node { return nodes },
		Options{Rate: 1e6, RetryMin: time.Millisecond, RetryMax: time.Hour})
}

// onceOf is verifierOf, and searches once for each event that is missing.
func onceOf(db *store.DB, c repute.Chain, nodes ...*node.Node) *Verifier {
	return New(db, c, func() []*node.Node { return nodes },
		Options{Rate: 1e6, RetryMin: time.Hour, RetryMax: time.Hour})
}

// withoutBlocks leaves the comparison of blocks out: what is missing must show in the state.
func withoutBlocks(v *Verifier) {
	v.dense = true
	v.tasks[len(v.tasks)-1].next = time.Now().Add(time.Hour)
}

// settleDown steps until there is nothing to do; failed searches wait for long.
func settleDown(t *testing.T, v *Verifier) {
	t.Helper()
	for range 2_000 {
		err := v.Step(t.Context(), store.Lease{})
		switch {
		case errors.Is(err, ErrNothingNew):
			return
		case err != nil:
			t.Fatalf("verify: %v", err)
		}
	}
	t.Fatal("no end after 2,000 steps")
}

// indexFrom indexes the whole chain as a node shows it.
func indexFrom(t *testing.T, db *store.DB, c repute.Chain, n *node.Node) {
	t.Helper()
	if err := chaindb.AddChain(t.Context(), db, c); err != nil {
		t.Fatal(err)
	}
	catchUp(t, indexer.NewFollower(db, c, n, indexer.Options{StartRange: 500}))
}

func wantSame(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("the index differs from one of an honest node:\n%s", firstDifference(got, want))
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d of %d/%d\n got %s\nwant %s", i+1, len(g), len(w), g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines instead of %d", len(g), len(w))
}

// The case of the peers: 300 blocks of ten ratings each by as many clients, and a
// node that leaves 11 of the 3,000 logs out, however it is asked for logs. It has
// no state to compare with.
func TestLostLogsComeBack(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1_000), "https://a"))
	given := map[uint64]uint64{}
	for n := range uint64(300) {
		var txs [][]types.Log
		for i := range uint64(10) {
			client := (n*7 + i*3) % 40
			given[client]++
			txs = append(txs, c.Tx(repute.NewFeedback{TokenID: rpctest.Token(0), Client: rpctest.Account(client),
				Index: given[client],
				Value: big.NewInt(int64(n)), Tag1: fmt.Sprint(i)}))
		}
		c.Mine(txs...)
	}
	c.MineEmpty(4)
	c.Finalize(304, 303)
	honest := openStore(t)
	indexFrom(t, honest, chainOf(c), newNode(t, c, node.Options{}))
	d := rpctest.NewProxy(t, c.URL())
	lost := 0
	d.Lose(func(l types.Log) bool {
		return l.Address == c.Reputation && (l.BlockNumber*10+uint64(l.Index))%273 == 5
	}, true, false)
	for _, b := range c.Blocks() {
		for _, l := range b.Logs() {
			if d.Loses(l) {
				lost++
			}
		}
	}
	db := openStore(t)
	indexFrom(t, db, chainOf(c), nodeAt(t, d.URL))
	if n := status(t, db).Feedback; n == 3_000 || lost != 11 {
		t.Fatalf("%d ratings stored, %d lost: the node is not lossy", n, lost)
	}
	settleDown(t, verifierOf(db, chainOf(c), nodeAt(t, d.URL)))
	wantSame(t, dump(t, db), dump(t, honest))
	s := status(t, db)
	if s.Feedback != 3_000 || s.Completeness.Status != repute.Complete {
		t.Errorf("%d ratings, %+v", s.Feedback, s.Completeness)
	}
	if s.Completeness.VerifiedTo != 303 {
		t.Errorf("%+v, want every block proven to block 303", s.Completeness)
	}
	t.Logf("%d headers, %d receipts, %d log queries", d.Count("eth_getBlockByNumber"), d.Count("eth_getBlockReceipts"),
		d.Count("eth_getLogs"))
}
