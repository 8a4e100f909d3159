package verify

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/indexer/node"
	"repute/indexer/verify/witness"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/verifydb"
)

// lostFeedback is a chain of which the index lacks one event, and nothing but the
// block's bloom tells.
func lostFeedback(t *testing.T) (c *rpctest.Chain, db *store.DB, number uint64) {
	t.Helper()
	c = rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1), "https://a"))
	c.Mine(c.Feedback(0, rpctest.Account(2), 1, 5, "x"))
	b := c.Mine(c.Feedback(0, rpctest.Account(3), 1, 5, "x"))
	c.MineEmpty(5)
	c.Finalize(8, 8)
	db = openStore(t)
	p := rpctest.NewProxy(t, c.URL())
	p.Lose(func(l types.Log) bool { return l.BlockNumber == b.Number() }, true, true)
	indexFrom(t, db, chainOf(c), nodeAt(t, p.URL))
	return c, db, b.Number()
}

// withoutBloom is a lie: no block holds anything, and the hashes stay.
func withoutBloom(call rpctest.ProxyCall, a map[string]json.RawMessage) {
	if call.Method == "eth_getBlockByNumber" && a["result"] != nil {
		a["result"] = rpctest.Edited(a["result"], map[string]string{"logsBloom": "0x" + strings.Repeat("0", 512)})
	}
}

// Headers that one endpoint shows prove nothing where another shows others.
func TestHeadersOfOneAreNoProof(t *testing.T) {
	t.Parallel()
	c, db, number := lostFeedback(t)
	p := rpctest.NewProxyAt(t, "127.0.0.2", c.URL())
	p.Lie = withoutBloom
	liar, honest := nodeAt(t, p.URL), newNode(t, c, node.Options{})
	all := repute.BlockRange{From: 1, To: 8}
	alone, err := verifierOf(db, chainOf(c), liar).readWindow(t.Context(), all)
	if err != nil || len(alone.denying) == 0 {
		t.Fatalf("%+v, %v: want blooms that deny what is stored", alone, err)
	}
	w, err := verifierOf(db, chainOf(c), liar, honest).readWindow(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	if !contains(w.suspects, number) {
		t.Errorf("%v: block %d, whose bloom only one shows, is not looked at", w.suspects, number)
	}
	other := rpctest.New(t, rpctest.Options{Start: 1_700_000_500})
	other.MineEmpty(8)
	if _, err := verifierOf(db, chainOf(c), honest,
		nodeAt(t, rpctest.NewProxyAt(t, "127.0.0.2", other.URL()).URL)).readWindow(t.Context(), all); !errors.Is(err,
		witness.ErrDisagree) {
		t.Errorf("headers of another chain: %v", err)
	}
}

func contains(list []uint64, n uint64) bool {
	for _, x := range list {
		if x == n {
			return true
		}
	}
	return false
}

// A hash that a node made up of a block without events does not stay.
func TestInventedHashOfAnEmptyBlockGoes(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1), "https://a"))
	c.MineEmpty(8)
	c.Finalize(8, 8)
	db := openStore(t)
	n := newNode(t, c, node.Options{})
	indexFrom(t, db, chainOf(c), n) // the newest final header is stored
	tag, err := db.Pool().Exec(t.Context(), `update blocks set hash = decode(repeat('09', 32), 'hex') where number = 8`)
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatal(tag, err)
	}
	stepOn(t, verifierOf(db, chainOf(c), n))
	known, err := verifydb.Headers(t.Context(), db, 31337, []uint64{8})
	if err != nil || known[8].Hash != c.Blocks()[8].Hash() {
		t.Errorf("block 8 is %s, %v, want %s", known[8].Hash, err, c.Blocks()[8].Hash())
	}
}
