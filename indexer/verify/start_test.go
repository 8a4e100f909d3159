package verify

import (
	"strings"
	"sync/atomic"
	"testing"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/verifydb"
)

// A chain indexed from above the deployment of its registry says what it lacks,
// wherever a node can tell.
func TestStartAboveDeployment(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		answer rpctest.Answer
		open   int
	}{
		"older":         {rpctest.Answer{Result: "0x6080"}, 1},
		"not older":     {rpctest.Answer{Result: "0x"}, 0},
		"state is gone": {rpctest.Answer{Error: &rpctest.Error{Code: -32000, Message: "missing trie node 0x12"}}, 0},
		"cannot be asked": {rpctest.Answer{Error: &rpctest.Error{Code: -32601,
			Message: "the method eth_getCode does not exist"}}, 0},
	} {
		c := rpctest.New(t, rpctest.Options{})
		c.MineEmpty(5)
		c.Mine(c.Register(0, rpctest.Account(1), "https://a"))
		c.MineEmpty(4)
		c.Finalize(10, 10)
		var answer atomic.Pointer[rpctest.Answer]
		answer.Store(&x.answer)
		c.Inject(rpctest.On("eth_getCode", func(rpctest.Call) *rpctest.Answer { return answer.Load() }))
		late, db := chainOf(c), openStore(t)
		late.StartBlock = 6
		indexFrom(t, db, late, newNode(t, c, node.Options{}))
		settleDown(t, verifierOf(db, late, newNode(t, c, node.Options{})))
		gaps := startGaps(t, db)
		if len(gaps) != x.open {
			t.Errorf("%s: %d gaps, want %d", name, len(gaps), x.open)
		}
		if x.open == 0 {
			continue
		}
		if s := status(t, db); s.Completeness.Status != repute.Incomplete ||
			gaps[0].Blocks != (repute.BlockRange{From: 1, To: 5}) ||
			!strings.Contains(gaps[0].Reason, "start_block 6") {
			t.Errorf("%s: %s, %+v", name, s.Completeness.Status, gaps[0])
		}
		// A node that was wrong, or a chain that begins earlier now.
		answer.Store(&rpctest.Answer{Result: "0x"})
		v := verifierOf(db, late, newNode(t, c, node.Options{}))
		if err := v.settle(t.Context(), store.Lease{}, verifydb.Standing{},
			gap{Gap: gaps[0], Subject: startSubject}); err != nil {
			t.Fatal(err)
		}
		if left := startGaps(t, db); len(left) != 0 {
			t.Errorf("%s: the gap stays open: %+v", name, left)
		}
	}
}

// Of a known network the deployment's block is known: nobody has to keep the state of
// then.
func TestStartAboveKnownDeployment(t *testing.T) {
	t.Parallel()
	d, err := contracts.FindDeployment("base")
	if err != nil || !d.StartVerified {
		t.Fatalf("%+v, %v", d, err)
	}
	for start, want := range map[uint64]bool{d.StartBlock - 1: false, d.StartBlock: false, d.StartBlock + 1: true} {
		c := d.Chain()
		c.StartBlock = start
		if early, err := New(nil, c, func() []*node.Node { return nil },
			Options{}).deployedEarlier(t.Context()); early != want || err == nil != want {
			t.Errorf("start_block %d: too late %t, %v", start, early, err)
		}
	}
	c := d.Chain()
	c.StartBlock, c.Identity = d.StartBlock+1, rpctest.Account(1)
	if knownEarlier(c) {
		t.Error("another registry's deployment counts")
	}
}

func startGaps(t *testing.T, db *store.DB) (gaps []repute.Gap) {
	t.Helper()
	for _, k := range status(t, db).Completeness.Kinds {
		for _, g := range k.Gaps {
			if strings.Contains(g.Reason, "start_block") {
				gaps = append(gaps, g)
			}
		}
	}
	return gaps
}
