package read

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute/indexer/node"
	"repute/internal/rpctest"
	"repute/trust/source"
)

// Who is known counts from the block of the log that says so, also where the address was bound again since.
func TestRead(t *testing.T) {
	t.Parallel()
	w, s, _ := booked(t)
	w.Mine([]types.Log{bound(s.Home(8453).Contracts["book"].Address, numbered(3), 77)})
	head := w.Head()
	r := one(t, w.reader(8453), 8453, at(head), s, addresses(12), source.Past{})
	want(t, r, source.StatusOK)
	if len(r.Credentials) != 10 || r.Block != head.Number() || r.Hash != head.Hash() || len(r.Unknown) != 0 {
		t.Fatalf("%+v", r)
	}
	for i, c := range r.Credentials {
		if c.Rater != numbered(i) || c.Subject != common.BytesToHash(word(uint64(i)+1000)) ||
			c.Issued != w.Blocks()[i+1].Header.Time || c.Read != head.Header.Time || c.Hash != head.Hash() {
			t.Errorf("%d: %+v", i, c)
		}
	}
}

// chip is a registry that gives every address what three calls ask for.
func chip(t *testing.T) (*world, *source.Source) {
	s := shipped(t).Source("self-agent-id")
	w := newWorld(t, 42220)
	w.put(s.Homes[0].Contracts["registry"].Address, map[string]func(common.Hash) (bool, []byte){
		"getAgentId(bytes32)":         func(a common.Hash) (bool, []byte) { return true, word(numberOf(a) + 1) },
		"isProofFresh(uint256)":       func(common.Hash) (bool, []byte) { return true, word(1) },
		"getHumanNullifier(uint256)":  func(a common.Hash) (bool, []byte) { return true, word(a.Big().Uint64() + 5) },
		"anything else that is asked": nil,
	})
	return w, s
}

// The source that asks for most, of which everybody has a credential: at most 20 calls for 10,000 raters, and fewer
// than 200 for 100,000. With each call the endpoint is asked which block it has, so that requests of all kinds are
// about twice as many.
func TestNumberOfCalls(t *testing.T) {
	t.Parallel()
	w, s := chip(t)
	w.MineEmpty(3)
	r := w.reader(42220)
	sizes := map[int]int{10_000: 20, 100_000: 199}
	if testing.Short() {
		delete(sizes, 100_000)
	}
	for raters, most := range sizes {
		before, all := w.Calls("eth_call"), w.requests()
		got := one(t, r, 42220, at(w.Head()), s, addresses(raters), source.Past{})
		want(t, got, source.StatusOK)
		if n := w.requests() - all; n > 2*most+10 {
			t.Errorf("%d requests of all kinds for %d raters", n, raters)
		}
		if calls := w.Calls("eth_call") - before; len(got.Credentials) != raters || calls > most ||
			calls < raters/5000 {
			t.Errorf("%d credentials of %d raters by %d calls, want at most %d", len(got.Credentials), raters,
				calls, most)
		}
	}
}

// An endpoint that has less gas gets fewer calls at once, and none is lost.
func TestFewerCallsAtOnce(t *testing.T) {
	t.Parallel()
	w, s := chip(t)
	w.MineEmpty(3)
	w.set(func() { w.most = 300 })
	got := one(t, w.reader(42220), 42220, at(w.Head()), s, addresses(3000), source.Past{})
	want(t, got, source.StatusOK)
	if calls := w.Calls("eth_call"); len(got.Credentials) != 3000 || calls > 80 {
		t.Errorf("%d credentials by %d calls", len(got.Credentials), calls)
	}
	w.answer("eth_call", rpctest.Answer{Error: &rpctest.Error{Code: -32000, Message: "out of gas"}})
	before := w.Calls("eth_call")
	got = one(t, w.reader(42220), 42220, at(w.Head()), s, addresses(3000), source.Past{})
	want(t, got, source.StatusIncomplete, "out of gas")
	if calls := w.Calls("eth_call") - before; calls > 2*maxRefused || len(got.Unknown) != 3000 {
		t.Errorf("%d calls to an endpoint that refuses all, %d unknown", calls, len(got.Unknown))
	}
}

// Of endpoints of two hosts both must say the same. One alone is believed only where one alone is configured.
func TestTwoEndpoints(t *testing.T) {
	t.Parallel()
	w, s, _ := booked(t)
	honest := w.second(nil)
	lies := w.second(func(_ common.Address, data []byte) []byte {
		if common.BytesToHash(data[4:]) == hashOf(numbered(11)) {
			return word(1) // somebody who is not known
		}
		return nil
	})
	head := at(w.Head())
	reader := func(urls ...string) *Reader {
		return readerOf(t, map[uint64]*node.Pool{8453: poolOf(t, 8453, urls...)})
	}
	r := one(t, reader(w.URL(), honest.URL()), 8453, head, s, addresses(12), source.Past{})
	want(t, r, source.StatusOK)
	r = one(t, reader(w.URL(), lies.URL()), 8453, head, s, addresses(12), source.Past{})
	want(t, r, source.StatusIncomplete, "127.0.0.1", "127.0.0.3", "different")
	if len(r.Credentials) != 0 || len(r.Unknown) != 12 {
		t.Errorf("%+v", r)
	}
	undo := honest.Inject(rpctest.On("eth_getLogs", rpctest.Always(rpctest.Answer{Result: []any{}})))
	r = one(t, reader(w.URL(), honest.URL()), 8453, head, s, addresses(12), source.Past{})
	want(t, r, source.StatusIncomplete, "127.0.0.2", "logs")
	undo()
	honest.GoDark(true)
	r = one(t, reader(w.URL(), honest.URL()), 8453, head, s, addresses(12), source.Past{})
	want(t, r, source.StatusIncomplete, "127.0.0.2")
	r = one(t, reader(lies.URL()), 8453, head, s, addresses(11), source.Past{})
	want(t, r, source.StatusOK)
}

// What fails is never "no".
func TestFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(w *world, k *contract)
		status source.Status
		part   string
	}{
		"no contract": {func(w *world, k *contract) { w.set(func() { k.code = nil }) }, source.StatusOff,
			"no contract book"},
		"a proxy": {func(w *world, k *contract) { w.set(func() { k.slot = numbered(5) }) }, source.StatusOff,
			"implementation"},
		"no Multicall3": {func(w *world, _ *contract) { w.set(func() { delete(w.contracts, multicallAddress) }) },
			source.StatusIncomplete, "no Multicall3"},
		"returns nothing":  {answers(true, nil), source.StatusOff, "not of the declared type"},
		"returns too much": {answers(true, make([]byte, 64)), source.StatusOff, "not of the declared type"},
		"reverts":          {answers(false, []byte{1, 2, 3, 4}), source.StatusIncomplete, "failed"},
		"endpoint fails": {func(w *world, _ *contract) {
			w.answer("eth_call", rpctest.Answer{Status: 502, Raw: []byte("bad gateway")})
		}, source.StatusIncomplete, "502"},
		"garbage": {func(w *world, _ *contract) {
			w.answer("eth_call", rpctest.Answer{Result: "0xdeadbeef"})
		}, source.StatusIncomplete, "something else"},
		"no state": {func(w *world, _ *contract) {
			w.answer("eth_getCode", rpctest.Answer{Error: &rpctest.Error{Code: -32000, Message: "missing trie node"}})
		}, source.StatusIncomplete, "state of the block"},
		"logs are refused": {func(w *world, _ *contract) {
			w.answer("eth_getLogs", rpctest.Answer{Error: &rpctest.Error{Code: -32601,
				Message: "the method eth_getLogs does not exist"}})
		}, source.StatusIncomplete, "eth_getLogs"},
		"logs are lost": {func(w *world, _ *contract) { w.MapLogs(rpctest.Drop(rpctest.AtBlock(4))) },
			source.StatusIncomplete, "since when"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s, k := booked(t)
			c.change(w, k)
			r := one(t, w.reader(8453), 8453, at(w.Head()), s, addresses(12), source.Past{})
			want(t, r, c.status, c.part)
			if name == "logs are lost" {
				if len(r.Credentials) != 9 || !slices.Equal(r.Unknown, []common.Address{numbered(3)}) {
					t.Errorf("%d credentials, unknown %s", len(r.Credentials), r.Unknown)
				}
				return
			}
			if len(r.Credentials) != 0 || c.status == source.StatusIncomplete && len(r.Unknown) != 12 {
				t.Errorf("%d credentials, %d unknown", len(r.Credentials), len(r.Unknown))
			}
		})
	}
}

// answers makes a contract answer every call alike.
func answers(success bool, data []byte) func(*world, *contract) {
	return func(w *world, k *contract) {
		w.set(func() { k.call = func([]byte) (bool, []byte) { return success, data } })
	}
}

// A revert that is declared to mean "no" does, and says nothing of the source.
func TestDeclaredReverts(t *testing.T) {
	t.Parallel()
	s := shipped(t).Source("human-passport")
	w := newWorld(t, 10)
	w.put(s.Home(10).Contracts["decoder"].Address, map[string]func(common.Hash) (bool, []byte){
		"getScore(address)": func(a common.Hash) (bool, []byte) {
			switch numberOf(a) {
			case 0:
				return true, word(200_000)
			case 1:
				return true, word(199_999)
			case 2:
				return false, slices.Concat(crypto.Keccak256([]byte("AttestationExpired(uint64)"))[:4], word(5))
			}
			return false, crypto.Keccak256([]byte("AttestationNotFound()"))[:4]
		}})
	w.MineEmpty(3)
	r := one(t, w.reader(10), 10, at(w.Head()), s, addresses(5), source.Past{})
	want(t, r, source.StatusOK)
	if len(r.Credentials) != 1 || r.Credentials[0].Rater != numbered(0) ||
		r.Credentials[0].Issued != w.Head().Header.Time {
		t.Errorf("%+v", r.Credentials)
	}
}

// A reading is of one block. Where an endpoint has another one at that height, nothing counts.
func TestReorganised(t *testing.T) {
	t.Parallel()
	w, s, _ := booked(t)
	gone := at(w.Head())
	w.Fork(7)
	w.MineEmpty(5)
	r := one(t, w.reader(8453), 8453, gone, s, addresses(12), source.Past{})
	want(t, r, source.StatusIncomplete, "another block")
	if r.Hash != gone.Hash || len(r.Unknown) != 12 {
		t.Errorf("%+v", r)
	}
}

// The implementation that was found first stays pinned until the declaration names another one.
func TestUpgraded(t *testing.T) {
	t.Parallel()
	w, s := chip(t)
	w.MineEmpty(3)
	registry := w.contracts[s.Homes[0].Contracts["registry"].Address]
	old, other := numbered(1), numbered(2)
	w.set(func() { registry.slot = old })
	r := w.reader(42220)
	first := one(t, r, 42220, at(w.Head()), s, addresses(3), source.Past{})
	want(t, first, source.StatusOK)
	if first.Implementations["registry"] != old {
		t.Errorf("pinned %s", first.Implementations)
	}
	w.set(func() { registry.slot = other })
	past := source.Past{States: []source.State{first.State}}
	for range 2 {
		now := one(t, r, 42220, at(w.Head()), s, addresses(3), past)
		want(t, now, source.StatusOff, "registry", other.Hex())
		past.States[0] = now.State
	}
	s.Homes[0].Contracts["registry"] = source.Contract{Address: s.Homes[0].Contracts["registry"].Address,
		Implementations: []string{source.FirstSeen, other.Hex()}}
	now := one(t, r, 42220, at(w.Head()), s, addresses(3), past)
	want(t, now, source.StatusOK)
	if now.Implementations["registry"] != other {
		t.Errorf("pinned %s", now.Implementations)
	}
}

// At the deadline the sources that were read stay read, and the others are incomplete. A canceled reading is an error.
func TestDeadlineKeepsWhatWasRead(t *testing.T) {
	t.Parallel()
	w, book, _ := booked(t)
	slow := shipped(t).Source("basename")
	registrar := slow.Home(8453).Contracts["registrar"].Address
	w.put(registrar, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	w.set(func() {
		w.first = func(c rpctest.Call) *rpctest.Answer {
			if c.Method == "eth_getCode" && strings.Contains(strings.ToLower(string(c.Params[0])),
				strings.ToLower(registrar.Hex())) {
				<-ctx.Done()
			}
			return nil
		}
	})
	sources := []*source.Source{book, slow, shipped(t).Source("farcaster-pro")}
	got, err := w.reader(8453).Read(ctx, 8453, at(w.Head()), sources, addresses(12), source.Past{})
	if err != nil || len(got) != 3 {
		t.Fatalf("%d readings, %v", len(got), err)
	}
	want(t, got[0], source.StatusOK)
	if len(got[0].Credentials) != 10 {
		t.Errorf("%d credentials of the source that was read", len(got[0].Credentials))
	}
	for _, r := range got[1:] {
		want(t, r, source.StatusIncomplete, "deadline")
		if len(r.Unknown) != 12 || r.Time != w.Head().Header.Time {
			t.Errorf("%s: %d unknown, %+v", r.Source, len(r.Unknown), r.State)
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.reader(8453).Read(canceled, 8453, at(w.Head()), sources, addresses(2), source.Past{}); err == nil {
		t.Error("a canceled reading is none")
	}
}
