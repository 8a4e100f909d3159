package indexer

import (
	"errors"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
	"repute/internal/rpctest"
	"repute/store"
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
	if err := db.AddChain(t.Context(), chainOf(a)); err != nil {
		t.Fatal(err)
	}
	return NewFollower(db, chainOf(a), poolOf(t, PoolOptions{}, urls...), Options{})
}

// An endpoint that calls its head final is not believed against another one: an
// ordinary reorganisation must not stop the chain.
func TestPoolFinalityOfTwo(t *testing.T) {
	t.Parallel()
	for name, delay := range map[string]time.Duration{"slower": 3 * time.Millisecond, "too slow to be waited for": 2 * lookTogether} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := twoOf(t, 20)
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
			await(t, "the finality of both", func() bool {
				f.heads.SeenAt = time.Time{}
				stepUntilDone(t, f)
				return status(t, db).Finalized == 10
			})
			a.Fork(a.Head().Number() - 1)
			a.MineEmpty(3)
			await(t, "the new head", func() bool {
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
	a, b := twoOf(t, 20)
	a.Finalize(10, 10)
	b.Inject(tagging(func() map[string]any {
		return map[string]any{"number": "0xf4240", "hash": common.Hash{1}, "parentHash": common.Hash{2}, "timestamp": "0x6553f100"}
	}, "latest", "finalized"))
	db := openStore(t)
	f := overPool(t, db, a, a.URL(), b.URL())
	await(t, "block 60", func() bool {
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
	a, _ := twoOf(t, 20)
	undo := a.Inject(tagging(func() map[string]any {
		return map[string]any{"number": "0xf4240", "hash": common.Hash{1}, "parentHash": common.Hash{2}, "timestamp": "0x6553f100"}
	}, "latest"))
	db := openStore(t)
	f := follow(t, db, a, Options{})
	if err := f.Step(t.Context(), store.Lease{}); Judge(err).Fault != FaultBehind {
		t.Fatalf("%v, want a block that is not there", err)
	}
	undo()
	stepUntilDone(t, f)
	if c := cursorOf(t, db); c.Number != 20 {
		t.Errorf("block %d is stored, want 20", c.Number)
	}
}

func TestSeconded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		named   []uint64
		missing bool
		want    uint64
	}{
		{nil, false, 0}, {[]uint64{9}, false, 9}, {[]uint64{9}, true, 0},
		{[]uint64{9, 5}, false, 5}, {[]uint64{5, 9}, true, 5}, {[]uint64{1, 100, 9}, false, 9},
	} {
		if got := seconded(tt.named, tt.missing); got != tt.want {
			t.Errorf("%v, missing %t: %d, want %d", tt.named, tt.missing, got, tt.want)
		}
	}
}

// A chain whose endpoint calls its head final has the finality that is configured.
func TestDepthBeatsFinalHead(t *testing.T) {
	t.Parallel()
	a, _ := twoOf(t, 20)
	a.Finalize(20, 20)
	for depth, want := range map[uint64]uint64{5: 15, 0: 20} {
		db := openStore(t)
		catchUp(t, follow(t, db, a, Options{Depth: depth}))
		if s := status(t, db); s.Finalized != want {
			t.Errorf("depth %d: finalized %d, want %d", depth, s.Finalized, want)
		}
	}
}
