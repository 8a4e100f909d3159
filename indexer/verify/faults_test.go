package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/devnet"
	"repute/indexer"
	"repute/indexer/node"
	"repute/indexer/verify/missing"
	"repute/internal/livedin"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/query"
	"repute/store/verifydb"
)

// A node whose answers over ranges lack every third log, and whose answers about
// single blocks are whole.
func TestRangesThatLie(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	c := dn.Chain()
	honest, db := openStore(t), openStore(t)
	indexFrom(t, honest, c, nodeAt(t, dn.RPCURL()))
	d := rpctest.NewProxy(t, dn.RPCURL())
	d.Lose(func(l types.Log) bool { return (l.BlockNumber+uint64(l.Index))%3 == 0 }, false, false)
	n := nodeAt(t, d.URL)
	indexFrom(t, db, c, n)
	before := status(t, db)
	settleDown(t, verifierOf(db, c, n))
	wantSame(t, dump(t, db), dump(t, honest))
	wantComplete(t, db)
	if before.Completeness.Pending == 0 {
		t.Error("no event waited: the node is not lossy")
	}
}

// lyingOwner answers ownerOf with another address.
func lyingOwner(c rpctest.ProxyCall, a map[string]json.RawMessage) {
	const ownerOf = "0x6352211e"
	if c.Method == "eth_call" && strings.Contains(string(c.Params[0]), ownerOf) && a["result"] != nil {
		a["result"] = json.RawMessage(`"0x0000000000000000000000001111111111111111111111111111111111111111"`)
	}
}

// What one witness says alone is a suspicion; two others that agree with the index
// end it. One other leaves it undecided, and nothing is called verified. A liar
// without witnesses is believed to be right: the index says that something is
// missing, and goes on.
func TestWitnessesMustAgree(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	c := dn.Chain()
	d := rpctest.NewProxyAt(t, "127.0.0.2", dn.RPCURL())
	d.Lie = lyingOwner
	honest, liar := nodeAt(t, dn.RPCURL()), nodeAt(t, d.URL)
	db := openStore(t)
	indexFrom(t, db, c, honest)
	want := dump(t, db)
	settleDown(t, verifierOf(db, c, liar, honest, nodeAt(t, rpctest.NewProxyAt(t, "127.0.0.3", dn.RPCURL()).URL)))
	wantComplete(t, db)
	divided := openStore(t)
	indexFrom(t, divided, c, honest)
	settleDown(t, onceOf(divided, c, liar, honest))
	k := status(t, divided).Completeness.Kinds[0]
	if k.VerifiedTo > 0 || len(k.Gaps) == 0 || !strings.HasPrefix(k.Gaps[0].Reason, "witnesses disagree") {
		t.Errorf("two witnesses disagree: %+v", k)
	}
	wantSame(t, dump(t, divided), want)
	alone := openStore(t)
	indexFrom(t, alone, c, honest)
	settleDown(t, onceOf(alone, c, liar))
	s := status(t, alone)
	if s.Completeness.Status != repute.Incomplete || s.Completeness.Kinds[0].Open == 0 {
		t.Errorf("a difference that stays is no gap: %+v", s.Completeness)
	}
	wantSame(t, dump(t, alone), want)
}

// A node that keeps the state of its newest blocks only is asked about those.
func TestPrunedNodeIsAskedAboutItsNewestBlocks(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	c := dn.Chain()
	head := dn.Head().Number
	d := rpctest.NewProxy(t, dn.RPCURL())
	d.Lie = func(c rpctest.ProxyCall, a map[string]json.RawMessage) {
		at := map[string]int{"eth_call": 1, "eth_getStorageAt": 2}[c.Method]
		if at == 0 {
			return
		}
		var tag string
		_ = json.Unmarshal(c.Params[at], &tag)
		if n, err := hexutil.DecodeUint64(tag); err != nil || n < head {
			delete(a, "result")
			a["error"] = json.RawMessage(`{"code":-32000,"message":"missing trie node 0123 (path ) state 0x01 is not available"}`)
		}
	}
	kinds := logsByKind(t, nodeAt(t, dn.RPCURL()), c)
	d.Lose(only(kinds[repute.KindURIUpdated][2], kinds[repute.KindFeedbackRevoked][2]), true, false)
	honest, db := openStore(t), openStore(t)
	indexFrom(t, honest, c, nodeAt(t, dn.RPCURL()))
	n := nodeAt(t, d.URL)
	indexFrom(t, db, c, n)
	v := verifierOf(db, c, n)
	withoutBlocks(v)
	settleDown(t, v)
	wantSame(t, dump(t, db), dump(t, honest))
	if k, _ := status(t, db), head; k.Completeness.Kinds[0].VerifiedTo == 0 {
		t.Errorf("%+v", k.Completeness.Kinds[0])
	}
}

// A former leader's verifier changes nothing.
func TestFencedVerifierStops(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	c := dn.Chain()
	d := rpctest.NewProxy(t, dn.RPCURL())
	d.Lose(func(l types.Log) bool { return l.BlockNumber == 7 }, true, false)
	db := openStore(t)
	n := nodeAt(t, d.URL)
	indexFrom(t, db, c, n)
	lost, err := db.Acquire(t.Context(), "chain:31337", "first", time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the lease passes on", func() bool {
		_, err := db.Acquire(t.Context(), "chain:31337", "second", time.Hour)
		return err == nil
	})
	before := dump(t, db)
	if err := verifierOf(db, c, n).Run(t.Context(), lost, nil); !errors.Is(err, repute.ErrFenced) {
		t.Errorf("%v, want %v", err, repute.ErrFenced)
	}
	wantSame(t, dump(t, db), before)
}

// Beside a follower that runs, what is lost comes back while the chain goes on.
func TestVerifierBesideFollower(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	c := dn.Chain()
	d := rpctest.NewProxy(t, dn.RPCURL())
	d.Lose(func(l types.Log) bool { return (l.BlockNumber*5+uint64(l.Index))%7 == 3 }, true, false)
	db := openStore(t)
	n := nodeAt(t, d.URL)
	v := New(db, c, func() []*node.Node { return []*node.Node{n} }, Options{Rate: 1e6, Poll: 20 * time.Millisecond,
		Every: 50 * time.Millisecond, RetryMin: 10 * time.Millisecond, RetryMax: 50 * time.Millisecond})
	f := indexer.NewFollower(db, c, n, indexer.Options{Poll: 10 * time.Millisecond, Verifier: v})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	for i := range 4 {
		b := dn.Batch()
		b.Register(dn.Account(40+i), "https://late")
		b.GiveFeedback(dn.Account(30), devnet.Rating{Agent: 0, Value: hexutil.MustDecodeBig("0x5"), Tag1: "late"})
		if _, err := b.Mine(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 6 {
		if _, err := dn.Mine(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	honest := openStore(t)
	indexFrom(t, honest, c, nodeAt(t, dn.RPCURL()))
	want := dump(t, honest)
	eventually(t, "everything is there", func() bool {
		s, err := query.Chains(t.Context(), db)
		return err == nil && len(s) == 1 && s[0].Completeness.Status == repute.Complete && dump(t, db) == want
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The state of a stopped comparison is kept: another process goes on with it.
func TestSweepGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	c := dn.Chain()
	db := openStore(t)
	d := rpctest.NewProxy(t, dn.RPCURL())
	n := nodeAt(t, d.URL)
	indexFrom(t, db, c, n)
	for range 40 {
		v := New(db, c, func() []*node.Node { return []*node.Node{n} }, Options{Rate: 1e6, Agents: 2, Window: 20})
		if err := v.Step(t.Context(), store.Lease{}); err != nil && !errors.Is(err, ErrNothingNew) {
			t.Fatal(err)
		}
	}
	wantComplete(t, db)
}

// One witness shows what is missing and the other repeats what is stored: the event
// is found, and its kind was never called whole before.
func TestDisagreementIsNoProof(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	c := dn.Chain()
	direct := nodeAt(t, dn.RPCURL())
	approvals := logsByKind(t, direct, c)[repute.KindApprovalForAll]
	d := rpctest.NewProxyAt(t, "127.0.0.2", dn.RPCURL())
	d.Lose(only(approvals[len(approvals)-1]), true, true)
	honest, db := openStore(t), openStore(t)
	indexFrom(t, honest, c, direct)
	indexFrom(t, db, c, nodeAt(t, d.URL))
	const isApprovedForAll = "0xe985e9c5"
	d.Lie = func(call rpctest.ProxyCall, a map[string]json.RawMessage) {
		if call.Method == "eth_call" && strings.Contains(string(call.Params[0]), isApprovedForAll) &&
			a["result"] != nil {
			a["result"] = json.RawMessage(`"0x0000000000000000000000000000000000000000000000000000000000000000"`)
		}
	}
	v := verifierOf(db, c, direct, nodeAt(t, d.URL))
	withoutBlocks(v) // the receipts do not find it
	stepOn(t, v)
	if dump(t, db) == dump(t, honest) {
		return
	}
	for _, k := range status(t, db).Completeness.Kinds {
		if k.Kind == repute.KindApprovalForAll && (k.Status == repute.Complete || k.VerifiedTo > 0 || k.Open == 0) {
			t.Errorf("the witnesses disagree and an event is missing: %+v", k)
		}
	}
}

// Where no block is proven, a witness that repeats what is stored does not verify it:
// another one is asked, and none is called verified when no other can answer.
func TestOneWordIsNoProof(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	c := dn.Chain()
	direct := nodeAt(t, dn.RPCURL())
	approvals := logsByKind(t, direct, c)[repute.KindApprovalForAll]
	d := rpctest.NewProxyAt(t, "127.0.0.2", dn.RPCURL())
	lost := approvals[len(approvals)-1]
	owner := strings.TrimPrefix(common.BytesToAddress(lost.Topics[1][:]).Hex(), "0x")
	d.Lose(only(lost), true, true)
	const isApprovedForAll = "0xe985e9c5"
	d.Lie = func(call rpctest.ProxyCall, a map[string]json.RawMessage) {
		if call.Method == "eth_call" && strings.Contains(string(call.Params[0]), isApprovedForAll) &&
			strings.Contains(string(call.Params[0]), strings.ToLower(owner)) && a["result"] != nil {
			a["result"] = json.RawMessage(`"0x0000000000000000000000000000000000000000000000000000000000000000"`)
		}
	}
	stateless := rpctest.NewProxy(t, dn.RPCURL())
	stateless.Refuse("eth_call")
	stateless.Lie = func(call rpctest.ProxyCall, a map[string]json.RawMessage) {
		if call.Method == "eth_call" {
			a["error"] = json.RawMessage(`{"code":-32000,"message":"missing trie node 0x12"}`)
		}
	}
	for name, second := range map[string]*node.Node{"honest": direct, "without state": nodeAt(t, stateless.URL)} {
		db, liar := openStore(t), nodeAt(t, d.URL)
		indexFrom(t, db, c, liar)
		v := New(db, c, func() []*node.Node { return []*node.Node{liar, second} },
			Options{Rate: 1e6, NoBloom: true, RetryMin: time.Hour, RetryMax: time.Hour})
		stepOn(t, v)
		for _, k := range status(t, db).Completeness.Kinds {
			if k.Kind == repute.KindApprovalForAll && k.VerifiedTo > 0 && k.Open == 0 {
				t.Errorf("beside a second witness that is %s an event is missing: %+v", name, k)
			}
		}
	}
}

// More gaps than are listed leave their kinds unverified.
func TestOverfullGapsAreNotVerified(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	c := dn.Chain()
	db, n := openStore(t), nodeAt(t, dn.RPCURL())
	approvals := logsByKind(t, n, c)[repute.KindApprovalForAll]
	d := rpctest.NewProxy(t, dn.RPCURL())
	d.Lose(only(approvals[len(approvals)-1]), true, true)
	lossy := nodeAt(t, d.URL)
	indexFrom(t, db, c, lossy)
	full := make([]chaindb.Gap, 1_001)
	for i := range full {
		full[i] = missing.New(repute.KindNewFeedback, fmt.Sprint("lost/", i), repute.BlockRange{From: 1, To: 2}, "test")
	}
	if err := chaindb.OpenGaps(t.Context(), db, c.ID, store.Lease{}, full); !errors.Is(err, chaindb.ErrGapsFull) {
		t.Fatal(err)
	}
	at, err := verifydb.ReadStanding(t.Context(), db, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	v := verifierOf(db, c, lossy)
	for range 10 {
		if err := v.sweepAgents(t.Context(), store.Lease{}, at); err != nil && !errors.Is(err, ErrNothingNew) {
			t.Fatal(err)
		}
	}
	s := status(t, db)
	verified := 0
	for _, k := range s.Completeness.Kinds {
		if k.VerifiedTo > 0 {
			verified++
		}
		if k.Kind == repute.KindApprovalForAll && k.VerifiedTo > 0 {
			t.Errorf("a gap that is not listed is called verified: %+v", k)
		}
	}
	if verified == 0 || s.Completeness.Status != repute.Incomplete {
		t.Errorf("%d kinds are verified and the chain is %s, want the others verified, and incomplete", verified,
			s.Completeness.Status)
	}
}
