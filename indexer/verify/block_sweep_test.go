package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
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
	"repute/store/verifydb"
)

// sweep makes one call of sweepBlocks.
func sweep(t *testing.T, v *Verifier) error {
	t.Helper()
	at, err := verifydb.ReadStanding(t.Context(), v.db, 31337)
	if err != nil {
		t.Fatal(err)
	}
	return v.sweepBlocks(t.Context(), store.Lease{}, at)
}

// Old blocks are compared after a bounded number of sweeps, also where each sweep finds new
// final blocks.
func TestNewBlocksDoNotStarveOldOnes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c := rpctest.New(t, rpctest.Options{BlockTime: 30})
		rated(c, 151)
		db, n := openStore(t), newNode(t, c, node.Options{})
		indexFrom(t, db, chainOf(c), n)
		f := indexer.NewFollower(db, chainOf(c), n, indexer.Options{})
		v := New(db, chainOf(c), func() []*node.Node { return []*node.Node{n} }, Options{Rate: 1e6, Window: 20})
		const sweeps = 2 * (150/20 + 2)
		for range sweeps {
			rated(c, 1+rng.IntN(3))
			catchUp(t, f)
			if err := sweep(t, v); err != nil {
				t.Fatal(err)
			}
		}
		got := proofs(t, db)
		if final := c.Head().Number() - 2; len(got) == 0 || got[0].From > 1 || got[0].To < 150 ||
			got[len(got)-1].To+6 < final {
			t.Errorf("seed %d: after %d sweeps %v are compared of blocks up to %d", seed, sweeps, got, final)
		}
	}
}

// The ranges that uncompared returns are all blocks that no proof covers, and each has the hash
// that the range above it names as its parent.
func TestUncompared(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	for range 2_000 {
		all := repute.BlockRange{From: 1 + rng.Uint64N(4), To: 5 + rng.Uint64N(40)}
		covered, parents := map[uint64]bool{}, map[uint64]common.Hash{all.To: {99}}
		var list []verifydb.BlockProof
		for from := 1 + rng.Uint64N(8); from <= all.To; {
			p := verifydb.BlockProof{Blocks: repute.BlockRange{From: from, To: min(all.To, from+rng.Uint64N(6))},
				Parent: common.Hash{byte(from)}}
			list, parents[from-1] = append(list, p), p.Parent
			for n := p.Blocks.From; n <= p.Blocks.To; n++ {
				covered[n] = true
			}
			from = p.Blocks.To + 1 + rng.Uint64N(8)
		}
		before := all.To + 1
		for _, r := range uncompared(list, all, common.Hash{99}) {
			if r.blocks.From > r.blocks.To || r.blocks.To >= before || r.hash != parents[r.blocks.To] {
				t.Fatalf("%v of %v in %v", r, list, all)
			}
			for n := r.blocks.From; n <= r.blocks.To; n++ {
				if covered[n] {
					t.Fatalf("block %d is covered by %v", n, list)
				}
				covered[n] = true
			}
			before = r.blocks.From
		}
		for n := all.From; n <= all.To; n++ {
			if !covered[n] {
				t.Fatalf("block %d of %v is left out beside %v", n, all, list)
			}
		}
	}
}

// A requested block that cannot be proven any more is unproven, with the reason.
func TestRequestedBlockWithoutProofIsUnproven(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	rated(c, 30)
	d := rpctest.NewProxy(t, c.URL())
	db, n := openStore(t), nodeAt(t, d.URL)
	indexFrom(t, db, chainOf(c), n)
	v := New(db, chainOf(c), func() []*node.Node { return []*node.Node{n} }, Options{Rate: 1e6, RetryMin: time.Hour})
	settleDown(t, v)
	d.Lie = func(call rpctest.ProxyCall, a map[string]json.RawMessage) {
		if strings.Contains(call.Method, "Receipt") {
			delete(a, "result")
			a["error"] = json.RawMessage(`{"code":-32000,"message":"pruned"}`)
		}
	}
	if _, err := verifydb.AskForBlocks(t.Context(), db, 31337, []uint64{12}); err != nil {
		t.Fatal(err)
	}
	settleDown(t, v)
	s := status(t, db).Completeness
	if s.Status != repute.Unproven || s.VerifiedTo != 11 || !strings.Contains(s.Reason, "newest is 12") ||
		!strings.Contains(s.Reason, "pruned") {
		t.Errorf("%+v, want block 12 unproven", s)
	}
	d.Lie, v.unprovenRetry.next = nil, time.Time{}
	settleDown(t, v)
	if s := status(t, db).Completeness; s.Status != repute.Complete {
		t.Errorf("with receipts again: %+v", s)
	}
}

// refusing makes an endpoint refuse all questions about the content of some blocks, as a plan
// without old blocks does.
func refusing(numbers map[uint64]common.Hash) func(rpctest.ProxyCall, map[string]json.RawMessage) {
	return func(call rpctest.ProxyCall, a map[string]json.RawMessage) {
		for _, hash := range numbers {
			if (call.Method == "eth_getBlockReceipts" || call.Method == "eth_getLogs") &&
				strings.Contains(string(call.Params[0]), hash.Hex()) {
				delete(a, "result")
				a["error"] = json.RawMessage(`{"code":-32000,"message":"access denied: upgrade your plan"}`)
			}
		}
	}
}

// A block that an endpoint refuses to answer about does not keep others from being proven,
// whether it is new, requested or unproven already. After some tries it is unproven.
func TestRefusedBlockDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	rated(c, 60)
	refused := map[uint64]common.Hash{}
	for _, b := range c.Blocks() {
		if n := b.Number(); n == 20 || n == 47 {
			refused[n] = b.Hash()
		}
	}
	d := rpctest.NewProxy(t, c.URL())
	db, n := openStore(t), nodeAt(t, d.URL)
	indexFrom(t, db, chainOf(c), n)
	d.Lie = refusing(refused)
	v := New(db, chainOf(c), func() []*node.Node { return []*node.Node{n} },
		Options{Rate: 1e6, Window: 20, RetryMin: time.Millisecond, RetryMax: time.Hour})
	sweeps := func(most int) {
		t.Helper()
		for range most {
			if err := sweep(t, v); errors.Is(err, ErrNothingNew) {
				return
			}
		}
	}
	sweeps(60)
	if s := status(t, db).Completeness; s.Status != repute.Unproven || s.VerifiedTo != 19 ||
		!strings.Contains(s.Reason, "2 final blocks") || !strings.Contains(s.Reason, "access denied") {
		t.Fatalf("%+v, want blocks 20 and 47 unproven", s)
	}
	if got := fmt.Sprint(proofs(t, db)); got != "[{1 59}]" {
		t.Errorf("compared are %s", got)
	}
	// One of the two and another block are requested; the other unproven one can be proven.
	delete(refused, 47)
	if _, err := verifydb.AskForBlocks(t.Context(), db, 31337, []uint64{20, 33}); err != nil {
		t.Fatal(err)
	}
	v.unprovenRetry.next = time.Time{}
	for range 40 {
		time.Sleep(2 * time.Millisecond) // the pauses of the request are 1, 2, 4 and 8 ms
		sweeps(4)
	}
	s := status(t, db).Completeness
	if asked, err := verifydb.AskedBlocks(t.Context(), db, 31337, 10); err != nil || len(asked) > 0 {
		t.Errorf("still requested: %v, %v", asked, err)
	}
	if s.Status != repute.Unproven ||
		!strings.Contains(s.Reason, "1 final blocks could not be proven, the newest is 20") ||
		!strings.Contains(s.Reason, "access denied") {
		t.Errorf("%+v, want block 20 alone unproven", s)
	}
}

// Each block that endpoints refuse to answer about has its own count of tries, also where several
// of them are compared together: the tries of the newest one are tries of the others too.
func TestRefusedBlocksAreTriedTogether(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	rated(c, 60)
	refused := map[uint64]common.Hash{}
	for _, b := range c.Blocks() {
		if n := b.Number(); n >= 50 && n <= 52 {
			refused[n] = b.Hash()
		}
	}
	d := rpctest.NewProxy(t, c.URL())
	db, n := openStore(t), nodeAt(t, d.URL)
	indexFrom(t, db, chainOf(c), n)
	d.Lie = refusing(refused)
	v := New(db, chainOf(c), func() []*node.Node { return []*node.Node{n} }, Options{Rate: 1e6})
	for range answerTries {
		_ = sweep(t, v) // fails while the endpoint may still answer
	}
	got, err := verifydb.BlockProofs(t.Context(), db, 31337)
	if err != nil || len(got) != 1 || fmt.Sprint(got[0].Unproven) != "[{50 52}]" {
		t.Errorf("after %d tries: %+v, %v, want blocks 50 to 52 unproven", answerTries, got, err)
	}
}

// Where blooms count for nothing and no receipts prove anything, the headers that are kept of
// unproven blocks are bounded: the comparison waits.
func TestUnprovenBlocksAreBounded(t *testing.T) {
	t.Parallel()
	all := repute.BlockRange{From: 1, To: 50_000}
	s := &blockSweep{v: &Verifier{chain: repute.Chain{StartBlock: 1}},
		at: verifydb.Standing{Pin: repute.Block{Number: all.To}}}
	s.proofs = []verifydb.BlockProof{{Blocks: repute.BlockRange{From: 30_000, To: 49_000},
		Unproven: []repute.BlockRange{{From: 30_000, To: 30_000 + mostUnproven - 2}}}}
	s.v.bloomless = true
	if got := s.uncompared(); len(got) != 2 {
		t.Errorf("below the bound: %v", got)
	}
	s.proofs[0].Unproven[0].To++
	if got := s.uncompared(); len(got) != 0 {
		t.Errorf("at the bound: %v", got)
	}
	if s.v.bloomless = false; len(s.uncompared()) != 2 {
		t.Error("a chain with blooms waits")
	}
}

// Blocks whose blooms lack logs are counted until the blooms of the chain count for nothing.
func TestWrongBloomsAreNotCollectedForever(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{Bloomless: true})
	rated(c, 60)
	db := openStore(t)
	if err := chaindb.AddChain(t.Context(), db, chainOf(c)); err != nil {
		t.Fatal(err)
	}
	n := newNode(t, c, node.Options{})
	catchUp(t, indexer.NewFollower(db, chainOf(c), n, indexer.Options{Bloom: indexer.BloomOff}))
	v := verifierOf(db, chainOf(c), n)
	settleDown(t, v)
	if !v.bloomless || len(v.wrongBlooms) > 0 {
		t.Errorf("bloomless %t, %d blocks are kept", v.bloomless, len(v.wrongBlooms))
	}
}

// Two hosts that have deleted old logs agree that a block holds none. Where its bloom, which its
// hash authenticates, admits events, only receipts prove that.
func TestAgreementOnNoLogsIsNoProof(t *testing.T) {
	t.Parallel()
	for name, altered := range map[string]bool{"true headers": false, "a header with another bloom": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agreementIsNoProof(t, altered)
		})
	}
}

func agreementIsNoProof(t *testing.T, altered bool) {
	t.Helper()
	c := rpctest.New(t, rpctest.Options{})
	rated(c, 40)
	pruned := func(call rpctest.ProxyCall, a map[string]json.RawMessage) {
		if strings.Contains(call.Method, "Receipt") {
			delete(a, "result")
			a["error"] = json.RawMessage(`{"code":-32000,"message":"pruned"}`)
		}
	}
	one, two := rpctest.NewProxy(t, c.URL()), rpctest.NewProxyAt(t, "127.0.0.2", c.URL())
	for _, d := range []*rpctest.Proxy{one, two} {
		d.Lose(func(l types.Log) bool { return l.BlockNumber == 25 }, true, false)
		d.Lie = pruned
	}
	if altered {
		two.Lie = func(call rpctest.ProxyCall, a map[string]json.RawMessage) {
			pruned(call, a)
			emptyBloom(a, 25)
		}
	}
	db, first := openStore(t), nodeAt(t, one.URL)
	if err := chaindb.AddChain(t.Context(), db, chainOf(c)); err != nil {
		t.Fatal(err)
	}
	catchUp(t, indexer.NewFollower(db, chainOf(c), first, indexer.Options{Bloom: indexer.BloomOff}))
	v := verifierOf(db, chainOf(c), first, nodeAt(t, two.URL))
	for range 3 {
		v.unprovenRetry.next = time.Time{}
		calmDown(t, v)
	}
	s := status(t, db).Completeness
	if s.Status != repute.Unproven || s.VerifiedTo != 24 || !strings.Contains(s.Reason, "1 final blocks") ||
		!strings.Contains(s.Reason, "newest is 25") || !strings.Contains(s.Reason, "bloom") {
		t.Fatalf("%+v, want block 25 alone unproven", s)
	}
	two.Lie = nil // it has receipts
	v.unprovenRetry.next = time.Time{}
	calmDown(t, v)
	honest := openStore(t)
	indexFrom(t, honest, chainOf(c), newNode(t, c, node.Options{}))
	wantSame(t, dump(t, db), dump(t, honest))
	if s := status(t, db).Completeness; s.Status != repute.Complete {
		t.Errorf("with receipts: %+v", s)
	}
}

// emptyBloom empties the bloom of a block's header.
func emptyBloom(a map[string]json.RawMessage, block uint64) {
	var header map[string]json.RawMessage
	if json.Unmarshal(a["result"], &header) != nil || string(header["number"]) != fmt.Sprintf(`"%#x"`, block) {
		return
	}
	header["logsBloom"] = json.RawMessage(`"0x` + strings.Repeat("00", types.BloomByteLength) + `"`)
	a["result"], _ = json.Marshal(header) // it was read just now
}

// A log that one port of the only host leaves out is not taken for one that the block lacks.
func TestPortsOfTheOnlyHostAreAddedUp(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	rated(c, 40)
	db, one := openStore(t), newNode(t, c, node.Options{})
	two := nodeAt(t, rpctest.NewProxy(t, c.URL()).URL)
	indexFrom(t, db, chainOf(c), one)
	v := verifierOf(db, chainOf(c), one, two)
	stored, _, err := verifydb.Logs(t.Context(), db, chainOf(c).ID, repute.BlockRange{From: 25, To: 25}, 1)
	if err != nil || len(stored) == 0 {
		t.Fatal(err, len(stored))
	}
	shown := node.Evidence{Logs: stored}
	for name, words := range map[string][]answer{
		"the first lacks it":  {{node.Evidence{}, one.Host()}, {shown, two.Host()}},
		"the second lacks it": {{shown, one.Host()}, {node.Evidence{}, two.Host()}},
	} {
		h := inquiry{v: v, nodes: []*node.Node{one, two}, number: 25, stored: stored}
		if j := h.unproven(words); !j.settled() {
			t.Errorf("%s: %d absent, %d extra", name, len(j.absent), len(j.extra))
		}
		h.stored = nil
		if j := h.unproven(words); len(j.absent) != len(stored) {
			t.Errorf("%s: %d absent of %d", name, len(j.absent), len(stored))
		}
	}
}
