package verify

import (
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
	"repute/indexer"
	"repute/indexer/node"
	"repute/internal/livedin"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/verifydb"
)

// rated mines blocks with a rating each and makes all but the newest two final. Block 1
// holds the agent.
func rated(c *rpctest.Chain, blocks int) {
	if c.Head().Number() == 0 {
		c.Mine(c.Register(0, rpctest.Account(1_000), "https://a"))
	}
	for range blocks {
		n := c.Head().Number() - 1
		c.Mine(c.Feedback(0, rpctest.Account(n%40), 1+n/40, int64(n), "x"))
	}
	head := c.Head().Number()
	c.Finalize(head-2, head-2)
}

// A log that a node leaves out of its answers, of the receipts too, and that no state
// shows, stays missing. The header's root tells, and the chain is never complete.
func TestLogLostEverywhereIsUnproven(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	c := dn.Chain()
	set := logsByKind(t, nodeAt(t, dn.RPCURL()), c)[repute.KindMetadataSet]
	d := rpctest.NewProxy(t, dn.RPCURL())
	d.Lose(only(set[len(set)-1]), true, true)
	db := openStore(t)
	n := nodeAt(t, d.URL)
	indexFrom(t, db, c, n)
	v := verifierOf(db, c, n)
	for range 400 {
		if errors.Is(v.Step(t.Context(), store.Lease{}), ErrNothingNew) {
			break
		}
		if s := status(t, db); s.Completeness.Status == repute.Complete {
			t.Fatalf("complete without an event: %+v", s.Completeness)
		}
	}
	s := status(t, db).Completeness
	if number := fmt.Sprint(set[len(set)-1].BlockNumber); s.Status != repute.Unproven ||
		!strings.Contains(s.Reason, "receipts") || !strings.Contains(s.Reason, number) {
		t.Fatalf("%+v, want unproven for the receipts of block %s", s, number)
	}
	for _, k := range s.Kinds {
		if k.Status != repute.Unproven || k.Reason == "" {
			t.Errorf("%s is %s: %s", k.Kind, k.Status, k.Reason)
		}
	}
	d.Lose(nil, false, false)
	v.unprovenRetry.next = time.Time{} // its time has come
	settleDown(t, v)
	wantComplete(t, db)
}

// Logs that get lost above what was compared leave the chain without a word of complete
// until they are back.
func TestNeverCompleteBeforeRepaired(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{BlockTime: 30})
	rated(c, 100)
	d := rpctest.NewProxy(t, c.URL())
	db, n := openStore(t), nodeAt(t, d.URL)
	indexFrom(t, db, chainOf(c), n)
	v := New(db, chainOf(c), func() []*node.Node { return []*node.Node{n} }, Options{Rate: 1e6, Window: 20})
	settleDown(t, v)
	if s := status(t, db).Completeness; s.Status != repute.Complete {
		t.Fatalf("at first: %+v", s)
	}
	lost := 0
	d.Lose(func(l types.Log) bool { return l.BlockNumber > 110 && l.BlockNumber%30 == 17 }, true, false)
	rated(c, 350)
	for _, b := range c.Blocks() {
		for _, l := range b.Logs() {
			if d.Loses(l) {
				lost++
			}
		}
	}
	honest := openStore(t)
	indexFrom(t, honest, chainOf(c), newNode(t, c, node.Options{}))
	want := dump(t, honest)
	catchUp(t, indexer.NewFollower(db, chainOf(c), n, indexer.Options{Bloom: indexer.BloomOff}))
	if lost != 11 || dump(t, db) == want {
		t.Fatalf("%d logs lost", lost)
	}
	for range 500 {
		if s := status(t, db).Completeness; s.Status == repute.Complete && dump(t, db) != want {
			t.Fatalf("complete without all events: %+v", s)
		}
		if errors.Is(v.Step(t.Context(), store.Lease{}), ErrNothingNew) {
			break
		}
	}
	wantSame(t, dump(t, db), want)
	if s := status(t, db).Completeness; s.Status != repute.Complete {
		t.Errorf("at last: %+v", s)
	}
}

// Two thousand blocks with events cost one request for each five of them, and one for
// fifty headers: at the default rate that is less than a minute.
func TestBusyBlocksAreCheap(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	rated(c, 2_000)
	d := rpctest.NewProxy(t, c.URL())
	db, n := openStore(t), nodeAt(t, d.URL)
	indexFrom(t, db, chainOf(c), n)
	v := verifierOf(db, chainOf(c), n)
	v.tasks[2].next = time.Now().Add(time.Hour) // the chain has no state
	before := d.Requests()
	settleDown(t, v)
	if s := status(t, db).Completeness; s.Status != repute.Complete || s.VerifiedTo != c.Head().Number()-2 {
		t.Fatalf("%+v", s)
	}
	const most = 2_000/receiptsAtOnce + 2_000/50 + 40
	if requests, receipts := d.Requests()-before, d.Count("eth_getBlockReceipts"); requests > most || receipts > 2_001 {
		t.Errorf("%d requests, %d receipts, want at most %d and one for each block", requests, receipts, most)
	}
	if most > 25*60/2 {
		t.Errorf("%d requests take more than half a minute", most)
	}
}

// Beside a chain that goes on, each unit of work keeps up with the blocks of a minute.
func TestVerifierKeepsUp(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{BlockTime: 2})
	rated(c, 30)
	db, n := openStore(t), newNode(t, c, node.Options{})
	f := indexer.NewFollower(db, chainOf(c), n, indexer.Options{})
	if err := chaindb.AddChain(t.Context(), db, chainOf(c)); err != nil {
		t.Fatal(err)
	}
	catchUp(t, f)
	v := verifierOf(db, chainOf(c), n)
	settleDown(t, v)
	for range 20 {
		rated(c, 30)
		catchUp(t, f)
		for range blocksShare { // one of them is for the agents
			if err := v.Step(t.Context(), store.Lease{}); err != nil && !errors.Is(err, ErrNothingNew) {
				t.Fatal(err)
			}
		}
		if s := status(t, db); s.Completeness.Status != repute.Complete || s.Completeness.VerifiedTo != s.Finalized {
			t.Fatalf("at block %d: %+v", s.Finalized, s.Completeness)
		}
	}
}

func proofs(t *testing.T, db *store.DB) (out []repute.BlockRange) {
	t.Helper()
	all, err := verifydb.BlockProofs(t.Context(), db, 31337)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		out = append(out, p.Blocks)
	}
	return out
}

// New blocks are compared before old ones, and the passes join.
func TestNewBlocksComeFirst(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	rated(c, 101)
	db, n := openStore(t), newNode(t, c, node.Options{})
	indexFrom(t, db, chainOf(c), n)
	v := New(db, chainOf(c), func() []*node.Node { return []*node.Node{n} }, Options{Rate: 1e6, Window: 20})
	step := func(want ...repute.BlockRange) {
		t.Helper()
		at, err := verifydb.ReadStanding(t.Context(), db, 31337)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.sweepBlocks(t.Context(), store.Lease{}, at); err != nil {
			t.Fatal(err)
		}
		if got := proofs(t, db); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("compared are %v, want %v", got, want)
		}
	}
	step(repute.BlockRange{From: 81, To: 100})
	rated(c, 30)
	catchUp(t, indexer.NewFollower(db, chainOf(c), n, indexer.Options{}))
	step(repute.BlockRange{From: 81, To: 100}, repute.BlockRange{From: 111, To: 130})
	step(repute.BlockRange{From: 81, To: 130})
	step(repute.BlockRange{From: 61, To: 130})
}

// A node cannot pass headers of another chain off as those of old blocks.
func TestOldHeadersAreTied(t *testing.T) {
	t.Parallel()
	c, other := rpctest.New(t, rpctest.Options{}), rpctest.New(t, rpctest.Options{Start: 1_700_000_777})
	rated(c, 39) // one by each client: no other shows that one is missing
	c.MineEmpty(41)
	c.Finalize(79, 79)
	other.MineEmpty(81)
	d := rpctest.NewProxy(t, c.URL())
	d.Lose(func(l types.Log) bool { return l.BlockNumber == 10 }, true, true)
	db, n := openStore(t), nodeAt(t, d.URL)
	indexFrom(t, db, chainOf(c), n)
	blocks := other.Blocks()
	d.Lie = func(call rpctest.ProxyCall, a map[string]json.RawMessage) {
		var tag string
		if call.Method != "eth_getBlockByNumber" || json.Unmarshal(call.Params[0], &tag) != nil {
			return
		}
		if number, err := hexutil.DecodeUint64(tag); err == nil && number <= 40 {
			raw, _ := blocks[number].Header.MarshalJSON()
			hash, _ := json.Marshal(blocks[number].Hash())
			a["result"] = append(append(append(raw[:len(raw)-1:len(raw)-1], `,"transactions":[],"hash":`...),
				hash...), '}')
		}
	}
	v := New(db, chainOf(c), func() []*node.Node { return []*node.Node{n} }, Options{Rate: 1e6, Window: 20})
	calmDownFor(t, v, 60)
	for _, r := range proofs(t, db) {
		if r.From <= 40 {
			t.Errorf("blocks %d to %d count as compared", r.From, r.To)
		}
	}
	if s := status(t, db).Completeness; s.Status != repute.Verifying || s.Reason == "" {
		t.Errorf("%+v", s)
	}
}

// calmDownFor steps some times, whatever fails on the way.
func calmDownFor(t *testing.T, v *Verifier, steps int) {
	t.Helper()
	for range steps {
		if err := v.Step(t.Context(), store.Lease{}); err != nil {
			for i := range v.tasks {
				v.tasks[i].next = time.Time{}
			}
		}
	}
}

// What hangs on a header that nobody vouches for is compared again once it is known.
func TestAlteredHeaderProvesNothingBelow(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	rated(c, 80)
	d := rpctest.NewProxy(t, c.URL())
	db, n := openStore(t), nodeAt(t, d.URL)
	indexFrom(t, db, chainOf(c), n)
	asked := map[string]int{}
	d.Lie = func(call rpctest.ProxyCall, a map[string]json.RawMessage) {
		if call.Method == "eth_getBlockByNumber" {
			asked[string(call.Params[0])]++
		}
		if call.Method == "eth_getBlockByNumber" && string(call.Params[0]) == `"0x32"` {
			a["result"] = rpctest.Edited(a["result"], map[string]string{"extraData": "0x07"})
		}
	}
	v := New(db, chainOf(c), func() []*node.Node { return []*node.Node{n} },
		Options{Rate: 1e6, Window: 20, RetryMin: time.Hour})
	settleDown(t, v)
	s := status(t, db).Completeness
	if s.Status != repute.Unproven || !strings.Contains(s.Reason, "50") || s.VerifiedTo != 49 {
		t.Fatalf("%+v", s)
	}
	d.Lie, asked = func(call rpctest.ProxyCall, _ map[string]json.RawMessage) {
		if call.Method == "eth_getBlockByNumber" {
			asked[string(call.Params[0])]++
		}
	}, map[string]int{}
	v.unprovenRetry.next = time.Time{}
	settleDown(t, v)
	if s := status(t, db).Completeness; s.Status != repute.Complete || asked[`"0x1"`] == 0 || asked[`"0x40"`] > 0 {
		t.Errorf("%+v; block 1 was read %d times again, block 64 %d times", s, asked[`"0x1"`], asked[`"0x40"`])
	}
}

// Blooms that lack the logs of their blocks exclude nothing, whatever was proven before.
func TestBloomsThatLackLogsProveNothing(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{Bloomless: true})
	rated(c, 60)
	d := rpctest.NewProxy(t, c.URL())
	d.Lose(func(l types.Log) bool { return l.BlockNumber == 33 }, true, false)
	honest, db := openStore(t), openStore(t)
	for url, to := range map[string]*store.DB{c.URL(): honest, d.URL: db} {
		if err := chaindb.AddChain(t.Context(), to, chainOf(c)); err != nil {
			t.Fatal(err)
		}
		catchUp(t, indexer.NewFollower(to, chainOf(c), nodeAt(t, url), indexer.Options{Bloom: indexer.BloomOff}))
	}
	v := verifierOf(db, chainOf(c), nodeAt(t, d.URL))
	settleDown(t, v)
	wantSame(t, dump(t, db), dump(t, honest))
	if s := status(t, db).Completeness; s.Status != repute.Complete {
		t.Errorf("%+v", s)
	}
	at, err := verifydb.ReadStanding(t.Context(), db, 31337)
	if err != nil || !at.Bloomless {
		t.Errorf("nobody will know: %+v, %v", at, err)
	}
}

// Where no root can be recomputed, one endpoint proves nothing and two of different hosts
// do by showing the same logs.
func TestTwoHostsProve(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	rated(c, 30)
	foreign := func(call rpctest.ProxyCall, a map[string]json.RawMessage) {
		if strings.HasPrefix(call.Method, "eth_getBlockBy") && len(a["result"]) > len("null") {
			a["result"] = rpctest.Edited(a["result"],
				map[string]string{"extraData": "0x07", "receiptsRoot": common.Hash{7}.Hex()})
		}
	}
	one, port, two := rpctest.NewProxy(t, c.URL()), rpctest.NewProxy(t, c.URL()),
		rpctest.NewProxyAt(t, "127.0.0.2", c.URL())
	one.Lie, port.Lie, two.Lie = foreign, foreign, foreign
	db, first := openStore(t), nodeAt(t, one.URL)
	indexFrom(t, db, chainOf(c), first)
	v := verifierOf(db, chainOf(c), first, nodeAt(t, port.URL), nodeAt(t, one.URL)) // all of the same host
	settleDown(t, v)
	if s := status(t, db).Completeness; s.Status != repute.Unproven || s.VerifiedTo != 0 {
		t.Fatalf("one host: %+v", s)
	}
	v = verifierOf(db, chainOf(c), first, nodeAt(t, port.URL), nodeAt(t, one.URL), nodeAt(t, two.URL))
	for range 20 {
		v.unprovenRetry.next = time.Time{}
		settleDown(t, v)
	}
	if s := status(t, db).Completeness; s.Status != repute.Complete {
		t.Errorf("two hosts: %+v", s)
	}
}
