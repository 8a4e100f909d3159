package indexer

import (
	"errors"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
	"repute/indexer/node"
	"repute/indexer/node/jsonrpc"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
)

// tagging makes an endpoint answer some tags with a block of its own choice.
func tagging(block func() map[string]any, tags ...string) rpctest.Rule {
	return rpctest.On("eth_getBlockByNumber", func(call rpctest.Call) *rpctest.Answer {
		for _, tag := range tags {
			if string(call.Params[0]) == `"`+tag+`"` {
				return &rpctest.Answer{Result: block()}
			}
		}
		return nil
	})
}

// overPool makes a follower of a's chain over both endpoints.
func overPool(t *testing.T, db *store.DB, a *rpctest.Chain, urls ...string) *Follower {
	t.Helper()
	if err := chaindb.AddChain(t.Context(), db, chainOf(a)); err != nil {
		t.Fatal(err)
	}
	return NewFollower(db, chainOf(a), poolOver(t, urls...), Options{})
}

// poolOver is a pool whose endpoints are never left alone for long.
func poolOver(t *testing.T, urls ...string) *node.Pool {
	t.Helper()
	var nodes []*node.Node
	for _, url := range urls {
		n, err := node.New(url, node.Options{Timeout: 5 * time.Second, OpenMin: time.Millisecond,
			OpenMax: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	p := node.NewPool(nodes, node.PoolOptions{ChainID: 31337})
	t.Cleanup(p.Close)
	return p
}

// twoEndpoints is a chain of n blocks with an agent, behind two endpoints.
func twoEndpoints(t *testing.T, n int) (a, b *rpctest.Chain) {
	a = rpctest.New(t, rpctest.Options{})
	a.Mine(a.Register(0, rpctest.Account(1), ""))
	a.MineEmpty(n - 1)
	return a, a.Second(t)
}

// An endpoint that calls its head final is not believed against another one: an
// ordinary reorganization must not stop the chain.
func TestPoolFinalityOfTwo(t *testing.T) {
	t.Parallel()
	for name, delay := range map[string]time.Duration{"slower": 3 * time.Millisecond,
		"too slow to be waited for": 200 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := twoEndpoints(t, 20)
			a.Finalize(10, 10)
			a.Inject(rpctest.On("eth_chainId", rpctest.Always(rpctest.Answer{Delay: delay, Honest: true})))
			b.Inject(tagging(func() map[string]any {
				head := a.Head()
				return map[string]any{"number": hexutil.EncodeUint64(head.Number()), "hash": head.Hash(),
					"parentHash": head.Header.ParentHash, "timestamp": hexutil.EncodeUint64(head.Header.Time)}
			}, "finalized", "safe"))
			db := openStore(t)
			f := overPool(t, db, a, b.URL(), a.URL())
			for range 20 {
				a.MineEmpty(1)
				stepUntilDone(t, f)
			}
			if s := status(t, db); s.Finalized > 10 {
				t.Errorf("block %d counts as final, one of two says 10", s.Finalized)
			}
			eventually(t, "the finality of both", func() bool {
				f.heads.SeenAt = time.Time{}
				stepUntilDone(t, f)
				return status(t, db).Finalized == 10
			})
			a.Fork(a.Head().Number() - 1)
			a.MineEmpty(3)
			eventually(t, "the new head", func() bool {
				if err := f.Step(t.Context(), store.Lease{}); errors.Is(err, repute.ErrFinalized) {
					t.Fatal(err)
				}
				return cursorOf(t, db).Hash == a.Head().Hash()
			})
		})
	}
}

// A head that its endpoint does not have holds nothing up.
func TestPoolHeadNotShown(t *testing.T) {
	t.Parallel()
	a, b := twoEndpoints(t, 20)
	a.Finalize(10, 10)
	b.Inject(tagging(func() map[string]any {
		return map[string]any{"number": "0xf4240", "hash": common.Hash{1}, "parentHash": common.Hash{2},
			"timestamp": "0x6553f100"}
	}, "latest", "finalized"))
	db := openStore(t)
	f := overPool(t, db, a, a.URL(), b.URL())
	eventually(t, "block 60", func() bool {
		if a.Head().Number() < 60 {
			a.MineEmpty(1)
		}
		_ = f.Step(t.Context(), store.Lease{}) // what fails is tried again
		return cursorOf(t, db).Number == 60
	})
	if s := status(t, db); s.Head > 60 || s.Finalized > 10 {
		t.Errorf("head %d, finalized %d, want 60 and at most 10", s.Head, s.Finalized)
	}
}

// A head that is not there does not hold up a single endpoint for longer than it
// is named.
func TestHeadThatVanishes(t *testing.T) {
	t.Parallel()
	a, _ := twoEndpoints(t, 20)
	undo := a.Inject(tagging(func() map[string]any {
		return map[string]any{"number": "0xf4240", "hash": common.Hash{1}, "parentHash": common.Hash{2},
			"timestamp": "0x6553f100"}
	}, "latest"))
	db := openStore(t)
	f := follow(t, db, a, Options{})
	if err := f.Step(t.Context(), store.Lease{}); jsonrpc.Diagnose(err).Fault != jsonrpc.FaultBehind {
		t.Fatalf("%v, want a block that is not there", err)
	}
	undo()
	stepUntilDone(t, f)
	if c := cursorOf(t, db); c.Number != 20 {
		t.Errorf("block %d is stored, want 20", c.Number)
	}
}

// A chain whose endpoint calls its head final has the finality that is configured.
func TestDepthBeatsFinalHead(t *testing.T) {
	t.Parallel()
	a, _ := twoEndpoints(t, 20)
	a.Finalize(20, 20)
	for depth, want := range map[uint64]uint64{5: 15, 0: 0} {
		db := openStore(t)
		catchUp(t, follow(t, db, a, Options{Depth: depth}))
		if s := status(t, db); s.Finalized != want {
			t.Errorf("depth %d: finalized %d, want %d", depth, s.Finalized, want)
		}
	}
}

// TestFollowPool: with one endpoint that dies, one that lags and one on a fork of
// its own, the index is that of the chain.
func TestFollowPool(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	w := newWorld(c, 3)
	w.grow(200)
	b, stuck := c.Second(t), c.Second(t)
	c.Finalize(150, 140)
	db := openStore(t)
	p := poolOver(t, stuck.URL(), b.URL(), c.URL())
	if err := chaindb.AddChain(t.Context(), db, chainOf(c)); err != nil {
		t.Fatal(err)
	}
	f := NewFollower(db, chainOf(c), p, Options{StartRange: 50, Poll: 1, RetryMin: 1})
	follows := func() {
		t.Helper()
		eventually(t, "end", func() bool {
			if err := f.Step(t.Context(), store.Lease{}); errors.Is(err, repute.ErrConflict) ||
				errors.Is(err, repute.ErrFinalized) {
				t.Fatal(err)
			}
			cursor, err := chaindb.Cursor(t.Context(), db, 31337)
			return err == nil && cursor.Hash == c.Head().Hash()
		})
	}
	follows()
	stuck.Freeze(true)
	w.fork(195, 20)
	b.ServeHead(200)
	follows()
	c.GoDark(true)
	b.ServeAll()
	w.grow(10)
	follows()
	c.GoDark(false)
	wantFresh(t, db, c)
}
