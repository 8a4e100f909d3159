package verify

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/indexer"
	"repute/indexer/node"
	"repute/internal/livedin"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/verifydb"
)

// stepOn steps until nothing is to do, whatever fails on the way.
func stepOn(t *testing.T, v *Verifier) {
	t.Helper()
	for range 400 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		err := v.Step(ctx, store.Lease{})
		cancel()
		if errors.Is(err, ErrNothingNew) {
			return
		}
		if err != nil {
			t.Logf("verify: %v", err)
		}
	}
}

// A registry's count that cannot be one leaves the agents' number unverified, and the rest is still verified.
func TestImpossibleAgentCount(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	for _, answer := range []string{
		`"0x000000000000000000000000000000000000000000000001000000000000000a"`, // beyond 64 bits
		`"0x000000000000000000000000000000000000000000000000ffffffffffffffff"`, // beyond 63
		`"0x000000000000000000000000000000000000000000000000000000e8d4a51000"`, // 10^12
	} {
		d := rpctest.NewProxy(t, dn.RPCURL())
		d.Lie = func(c rpctest.ProxyCall, a map[string]json.RawMessage) {
			if c.Method == "eth_getStorageAt" {
				a["result"] = json.RawMessage(answer)
			}
		}
		db, n := openStore(t), nodeAt(t, d.URL)
		indexFrom(t, db, dn.Chain(), n)
		settleDown(t, verifierOf(db, dn.Chain(), n))
		for _, k := range status(t, db).Completeness.Kinds {
			counted := k.Kind == repute.KindTransfer || k.Kind == repute.KindRegistered
			if slices.Contains(stateKinds(), k.Kind) && counted == (k.VerifiedTo > 0) || k.Open > 0 {
				t.Errorf("count %s: %+v", answer, k)
			}
		}
	}
}

// What was read of a contract's history stays read when a question fails.
func TestHistoryGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1), ""))
	c.MineEmpty(60)
	c.Finalize(61, 61)
	before := chainOf(c)
	before.Validations = nil
	db, n := openStore(t), newNode(t, c, node.Options{})
	indexFrom(t, db, before, n)
	if err := chaindb.AddChain(t.Context(), db, chainOf(c)); err != nil {
		t.Fatal(err)
	}
	due, err := chaindb.DueGaps(t.Context(), db, chainOf(c).ID, 1)
	if err != nil || len(due) != 1 && len(due) != 2 {
		t.Fatalf("%v, %v", due, err)
	}
	c.Inject(rpctest.LimitRange(10, rpctest.Error{Code: -32602, Message: "exceed maximum block range 10"}))
	asked := 0
	c.Inject(rpctest.On("eth_getLogs", func(rpctest.Call) *rpctest.Answer {
		if asked++; asked > 5 {
			return &rpctest.Answer{Status: 503, Raw: []byte("busy")}
		}
		return nil
	}))
	v := verifierOf(db, chainOf(c), n)
	at, err := verifydb.ReadStanding(t.Context(), db, chainOf(c).ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.settle(t.Context(), store.Lease{}, at, due[0]); err != nil {
		t.Fatal(err)
	}
	for _, k := range status(t, db).Completeness.Kinds {
		if k.Kind == due[0].Kind && (len(k.Gaps) != 1 || k.Gaps[0].Blocks.From <= due[0].Blocks.From ||
			k.Gaps[0].Tries != 1) {
			t.Errorf("%+v, want a gap that begins above block %d", k.Gaps, due[0].Blocks.From)
		}
	}
}

// One failed request, or one wrong bloom, does not end the proof of a chain's
// blocks, no matter which process continues it.
func TestProofOutlivesOneFailure(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(rpctest.ProxyCall, map[string]json.RawMessage) bool{
		"receipts": func(c rpctest.ProxyCall, a map[string]json.RawMessage) bool {
			if !strings.Contains(c.Method, "Receipt") {
				return false
			}
			delete(a, "result")
			a["error"] = json.RawMessage(`{"code":-32000,"message":"oops"}`)
			return true
		},
		"bloom": func(c rpctest.ProxyCall, a map[string]json.RawMessage) bool {
			if c.Method != "eth_getBlockByNumber" || string(c.Params[0]) != `"0x1"` {
				return false
			}
			a["result"] = rpctest.Edited(a["result"], map[string]string{"logsBloom": "0x" + strings.Repeat("0", 512)})
			return true
		},
	} {
		t.Run(name, func(t *testing.T) { proofOutlives(t, fault) })
	}
}

func proofOutlives(t *testing.T, fault func(rpctest.ProxyCall, map[string]json.RawMessage) bool) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1), "https://a"), c.Feedback(0, rpctest.Account(2), 1, 5, "x"))
	c.MineEmpty(6)
	c.Finalize(6, 6)
	for faults := range 4 { // how often it fails before it works
		db := openStore(t)
		indexFrom(t, db, chainOf(c), newNode(t, c, node.Options{}))
		d := rpctest.NewProxy(t, c.URL())
		n := nodeAt(t, d.URL)
		left := faults
		d.Lie = func(call rpctest.ProxyCall, a map[string]json.RawMessage) {
			if left > 0 && fault(call, a) {
				left--
			}
		}
		v := verifierOf(db, chainOf(c), n)
		for range 20 {
			if stepOn(t, v); status(t, db).Completeness.VerifiedTo == 6 {
				break
			}
			v.unprovenRetry.next = time.Time{} // its time has come
		}
		if c := status(t, db).Completeness; c.VerifiedTo != 6 || c.Status != repute.Complete || left > 0 {
			t.Errorf("after %d failures: %+v", faults-left, c)
		}
	}
}

// What a node made up, beside a true log or in its place, goes once
// the block is proven, and the true log comes.
func TestInventedLogsGo(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(c *rpctest.Chain, l *types.Log){
		"content": func(c *rpctest.Chain, l *types.Log) {
			*l = inPlaceOf(*l, c.Feedback(0, rpctest.Account(9), 1, 99, "made up")[0])
		},
		"index": func(_ *rpctest.Chain, l *types.Log) { l.Index += 7 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := rpctest.New(t, rpctest.Options{})
			c.Mine(c.Register(0, rpctest.Account(1), "https://a"))
			b := c.Mine(c.Feedback(0, rpctest.Account(2), 1, 5, "x"))
			c.MineEmpty(8)
			c.Finalize(9, 9)
			honest, db := openStore(t), openStore(t)
			indexFrom(t, honest, chainOf(c), newNode(t, c, node.Options{}))
			undo := c.MapLogs(rpctest.Corrupt(rpctest.AtBlock(b.Number()), func(l *types.Log) { change(c, l) }))
			if err := chaindb.AddChain(t.Context(), db, chainOf(c)); err != nil {
				t.Fatal(err)
			}
			// Where blooms are off, nothing refuses the logs when they come.
			catchUp(t, indexer.NewFollower(db, chainOf(c), newNode(t, c, node.Options{}),
				indexer.Options{Bloom: indexer.BloomOff}))
			undo()
			if dump(t, db) == dump(t, honest) {
				t.Fatal("nothing was made up")
			}
			stepOn(t, verifierOf(db, chainOf(c), newNode(t, c, node.Options{})))
			wantSame(t, dump(t, db), dump(t, honest))
			if c := status(t, db).Completeness; c.VerifiedTo != 9 || c.Status != repute.Complete {
				t.Errorf("%+v, want every block proven to block 9", c)
			}
		})
	}
}

// inPlaceOf gives a log the place of another.
func inPlaceOf(place, l types.Log) types.Log {
	l.BlockNumber, l.BlockHash, l.BlockTimestamp = place.BlockNumber, place.BlockHash, place.BlockTimestamp
	l.TxHash, l.TxIndex, l.Index = place.TxHash, place.TxIndex, place.Index
	return l
}

// A node that has had enough is not asked for a block's receipts one by one.
func TestRefusedReceiptsAreNotAskedOneByOne(t *testing.T) {
	t.Parallel()
	c, b := ratedOnce(t)
	d := rpctest.NewProxy(t, c.URL())
	d.Lie = func(call rpctest.ProxyCall, a map[string]json.RawMessage) {
		if call.Method == "eth_getBlockReceipts" {
			delete(a, "result")
			a["error"] = json.RawMessage(`{"code":-32005,"message":"rate limit exceeded"}`)
		}
	}
	_, err := nodeAt(t, d.URL).Receipts(t.Context(), repute.Block{Number: b.Number(), Hash: b.Hash()}, nil)
	if n := d.Count("eth_getTransactionReceipt"); err == nil || n > 0 {
		t.Errorf("%d receipts asked for, %v", n, err)
	}
}
