package verify

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
	"repute/internal/livedin"
	"repute/internal/rpctest"
	"repute/store"
)

// logsByKind are the logs that a node shows of a chain.
func logsByKind(t *testing.T, n *node.Node, c repute.Chain) map[repute.EventKind][]types.Log {
	t.Helper()
	heads, err := n.Heads(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := contracts.NewDecoder(c)
	logs, err := n.Matching(t.Context(), repute.BlockRange{From: 1, To: heads.Latest.Number}, d.Addresses, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[repute.EventKind][]types.Log{}
	for _, l := range logs {
		if e, err := contracts.Decode(l); err == nil {
			out[e.Kind()] = append(out[e.Kind()], l)
		}
	}
	return out
}

func only(lost ...types.Log) func(types.Log) bool {
	return func(l types.Log) bool {
		for i := range lost {
			if l.BlockNumber == lost[i].BlockNumber && l.Index == lost[i].Index {
				return true
			}
		}
		return false
	}
}

// repairs counts the changes that say so.
func repairs(t *testing.T, db *store.DB) (n int) {
	t.Helper()
	changes, _, err := db.Changes(t.Context(), "", 10_000, store.ChangeFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if c.Kind == "repaired" {
			n++
		}
	}
	return n
}

// Every event of every kind that a node can lose, the first, one in the middle and
// the last one, comes back although no question for logs ever shows it.
func TestEveryKindComesBack(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	c := dn.Chain()
	direct := nodeAt(t, dn.RPCURL())
	honest := openStore(t)
	indexFrom(t, honest, c, direct)
	want := dump(t, honest)
	kinds := logsByKind(t, direct, c)
	for kind := repute.KindTransfer; kind <= repute.KindValidationResponse; kind++ {
		logs := kinds[kind]
		if kind == repute.KindBatchMetadataUpdate {
			continue // the registry does not emit it
		}
		if len(logs) < 3 {
			t.Fatalf("%d logs of %s", len(logs), kind)
		}
		for place, i := range map[string]int{"first": 0, "middle": len(logs) / 2, "last": len(logs) - 1} {
			t.Run(kind.String()+"/"+place, func(t *testing.T) {
				t.Parallel()
				d := rpctest.NewProxy(t, dn.RPCURL())
				d.Lose(only(logs[i]), true, false)
				db := openStore(t)
				n := nodeAt(t, d.URL)
				indexFrom(t, db, c, n)
				if dump(t, db) == want {
					t.Fatal("nothing was lost")
				}
				settleDown(t, verifierOf(db, c, n))
				wantSame(t, dump(t, db), want)
				wantComplete(t, db)
				eventually(t, "a change says repaired", func() bool { return repairs(t, db) > 0 })
			})
		}
	}
}

func wantComplete(t *testing.T, db *store.DB) {
	t.Helper()
	s := status(t, db)
	if s.Completeness.Status != repute.Complete || s.Completeness.Pending != 0 ||
		s.Completeness.VerifiedTo != s.Finalized {
		t.Errorf("%+v", s.Completeness)
	}
	for _, k := range s.Completeness.Kinds {
		if k.Status != repute.Complete || k.Open > 0 {
			t.Errorf("%s is %+v", k.Kind, k)
		}
	}
}

// What no question for logs shows is in the state: every event that it counts or links,
// and of the others the newest. The blocks are not looked at here.
func TestStateShowsWhatIsMissing(t *testing.T) {
	t.Parallel()
	everywhere, last := []string{"first", "middle", "last"}, []string{"last"}
	testLost(t, withoutBlocks, map[repute.EventKind][]string{
		repute.KindTransfer: everywhere, repute.KindRegistered: everywhere, repute.KindURIUpdated: last,
		repute.KindNewFeedback:     everywhere,
		repute.KindFeedbackRevoked: everywhere, repute.KindResponseAppended: everywhere,
		repute.KindValidationRequest:  everywhere,
		repute.KindValidationResponse: last, repute.KindApproval: last, repute.KindApprovalForAll: last,
	})
}

// Where blooms prove nothing the receipts of every block do, without any state.
func TestReceiptsShowWhatIsMissing(t *testing.T) {
	t.Parallel()
	middle := []string{"middle"}
	testLost(t, func(v *Verifier) {
		v.opts.NoBloom = true
		v.tasks[2].next = time.Now().Add(time.Hour)
	}, map[repute.EventKind][]string{
		repute.KindURIUpdated: {"first", "middle"}, repute.KindMetadataUpdate: {"first", "middle", "last"},
		repute.KindMetadataSet:        {"last"},
		repute.KindValidationResponse: middle, repute.KindApproval: middle, repute.KindApprovalForAll: middle,
	})
}

// testLost loses single logs and has a verifier find them.
func testLost(t *testing.T, restrict func(*Verifier), lost map[repute.EventKind][]string) {
	t.Helper()
	dn := livedin.New(t)
	c := dn.Chain()
	direct := nodeAt(t, dn.RPCURL())
	honest := openStore(t)
	indexFrom(t, honest, c, direct)
	want := dump(t, honest)
	kinds := logsByKind(t, direct, c)
	for kind, places := range lost {
		for _, place := range places {
			logs := kinds[kind]
			one := logs[map[string]int{"first": 0, "middle": len(logs) / 2, "last": len(logs) - 1}[place]]
			t.Run(kind.String()+"/"+place, func(t *testing.T) {
				t.Parallel()
				d := rpctest.NewProxy(t, dn.RPCURL())
				d.Lose(only(one), true, false)
				db := openStore(t)
				n := nodeAt(t, d.URL)
				indexFrom(t, db, c, n)
				v := verifierOf(db, c, n)
				restrict(v)
				settleDown(t, v)
				wantSame(t, dump(t, db), want)
			})
		}
	}
}

// A log that no node shows anywhere stays a gap with a name, and the search goes on.
func TestHiddenLogIsAGap(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	c := dn.Chain()
	kinds := logsByKind(t, nodeAt(t, dn.RPCURL()), c)
	revoked := kinds[repute.KindFeedbackRevoked]
	d := rpctest.NewProxy(t, dn.RPCURL())
	d.Lose(only(revoked[len(revoked)-1]), true, true)
	db := openStore(t)
	n := nodeAt(t, d.URL)
	indexFrom(t, db, c, n)
	v := verifierOf(db, c, n)
	settleDown(t, v)
	s := status(t, db)
	if s.Completeness.Status != repute.Incomplete {
		t.Fatalf("%+v", s.Completeness)
	}
	found := false
	for _, k := range s.Completeness.Kinds {
		for _, g := range k.Gaps {
			found = found || g.Kind == repute.KindFeedbackRevoked && g.Agent != nil && g.Agent.IsZero() && g.Tries > 0
		}
		if k.Kind != repute.KindFeedbackRevoked && k.Open > 0 {
			t.Errorf("%s: %+v", k.Kind, k.Gaps)
		}
	}
	if !found {
		t.Fatalf("no gap of agent 0's revocation in %+v", s.Completeness.Kinds)
	}
	// Once a node shows it, the gap closes at its next try.
	d.Lose(nil, false, false)
	if _, err := db.Pool().Exec(t.Context(), "update gaps set next_try = now()"); err != nil {
		t.Fatal(err)
	}
	settleDown(t, v)
	if s := status(t, db); s.Completeness.Status != repute.Complete {
		t.Errorf("after the node showed it: %+v", s.Completeness)
	}
}

// Hints and administrative events have no state at all: the blocks tell.
func TestEventsWithoutStateComeBack(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	lost := []types.Log{}
	for i := range uint64(9) {
		c.Mine(c.Register(i, rpctest.Account(i), ""),
			c.Tx(repute.BatchMetadataUpdate{From: rpctest.Token(0), To: rpctest.Token(i)},
				repute.OwnershipTransferred{New: rpctest.Account(i)},
				repute.Upgraded{Implementation: rpctest.Account(i)},
				repute.Initialized{Version: i}, repute.EIP712DomainChanged{}))
	}
	c.MineEmpty(3)
	c.Finalize(11, 11)
	for _, b := range c.Blocks() {
		for _, l := range b.Logs() {
			if n := b.Number(); (n == 2 || n == 5 || n == 10) && l.TxIndex == 1 && uint64(l.Index)%3 == n%3 {
				lost = append(lost, l)
			}
		}
	}
	honest, db := openStore(t), openStore(t)
	indexFrom(t, honest, chainOf(c), newNode(t, c, node.Options{}))
	d := rpctest.NewProxy(t, c.URL())
	d.Lose(only(lost...), true, false)
	indexFrom(t, db, chainOf(c), nodeAt(t, d.URL))
	if len(lost) < 4 || dump(t, db) == dump(t, honest) {
		t.Fatalf("%d logs lost", len(lost))
	}
	settleDown(t, verifierOf(db, chainOf(c), nodeAt(t, d.URL)))
	wantSame(t, dump(t, db), dump(t, honest))
	if got := status(t, db).Completeness; got.Status != repute.Complete ||
		strings.Contains(fmt.Sprint(got.Kinds), "incomplete") {
		t.Errorf("%+v", got)
	}
}
