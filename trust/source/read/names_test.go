package read

import (
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute/indexer/node"
	"repute/internal/rpctest"
	"repute/trust/source"
)

// named is a world with the shipped source of ENS names, in which three addresses have alice.eth as their primary name
// and the first one owns it.
func named(t *testing.T) (*world, *source.Source) {
	s := shipped(t).Source("ens")
	contracts := s.Home(1).Contracts
	w := newWorld(t, 1)
	resolver := contracts["resolver2"].Address
	for _, c := range contracts {
		w.put(c.Address, nil)
	}
	fixed := func(h common.Hash) func(common.Hash) (bool, []byte) {
		return func(common.Hash) (bool, []byte) { return true, h.Bytes() }
	}
	w.put(contracts["registry"].Address, map[string]func(common.Hash) (bool, []byte){
		"resolver(bytes32)": fixed(hashOf(resolver))})
	w.put(resolver, map[string]func(common.Hash) (bool, []byte){
		"name(bytes32)": func(common.Hash) (bool, []byte) { return true, text("alice.eth") },
		"addr(bytes32)": fixed(hashOf(numbered(0)))})
	w.put(contracts["registrar"].Address, map[string]func(common.Hash) (bool, []byte){
		"nameExpires(uint256)": fixed(common.BytesToHash(word(1 << 40))),
		"ownerOf(uint256)":     fixed(hashOf(numbered(0)))})
	w.MineEmpty(int(min(s.Home(1).FromBlock, 1)))
	s.Homes[0].FromBlock = 0 // the scripted chain is shorter than Ethereum
	w.Mine([]types.Log{{Address: contracts["registrar"].Address,
		Topics: []common.Hash{crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)")), {},
			hashOf(numbered(0)), crypto.Keccak256Hash([]byte("alice"))}}})
	w.MineEmpty(3)
	return w, s
}

// text encodes a string as a contract returns it.
func text(s string) []byte {
	return slices.Concat(word(32), word(uint64(len(s))), []byte(s), make([]byte, -len(s)&31))
}

// A name is found by six requests for any number of raters, since each step asks about all of them at once.
func TestNamesInSteps(t *testing.T) {
	t.Parallel()
	w, s := named(t)
	got := one(t, w.reader(1), 1, at(w.Head()), s, addresses(1_000), source.Past{})
	want(t, got, source.StatusOK)
	if len(got.Credentials) != 1 || got.Credentials[0].Rater != numbered(0) || got.Credentials[0].Expires != 1<<40 ||
		got.Credentials[0].Subject != crypto.Keccak256Hash([]byte("alice")) {
		t.Errorf("%+v", got.Credentials)
	}
	if n := w.Calls("eth_call"); n != 6 {
		t.Errorf("%d requests for calls", n)
	}
}

// An endpoint that lies about a name is found out by a second one, and the source says which endpoints differ.
func TestLyingAboutNames(t *testing.T) {
	t.Parallel()
	w, s := named(t)
	selector := crypto.Keccak256([]byte("name(bytes32)"))[:4]
	other := w.second(func(_ common.Address, data []byte) []byte {
		if slices.Equal(data[:4], selector) {
			return text("mallory.eth")
		}
		return nil
	})
	r := readerOf(t, map[uint64]*node.Pool{1: poolOf(t, 1, w.URL(), other.URL())})
	got := one(t, r, 1, at(w.Head()), s, addresses(3), source.Past{})
	want(t, got, source.StatusIncomplete, "say different things of a contract")
	if len(got.Unknown) != 3 || len(got.Credentials) != 0 {
		t.Errorf("%+v", got)
	}
}

// A name of 10 MB is no name. An endpoint that refuses so long an answer leaves only that rater unknown.
func TestLongNames(t *testing.T) {
	t.Parallel()
	w, s := named(t)
	resolver := w.contracts[s.Home(1).Contracts["resolver2"].Address]
	honest, long := resolver.call, text(strings.Repeat("a", 10<<20)+".eth")
	selector := crypto.Keccak256([]byte("name(bytes32)"))[:4]
	asked := 0
	w.set(func() {
		resolver.call = func(data []byte) (bool, []byte) {
			if asked++; slices.Equal(data[:4], selector) && asked == 2 {
				return true, long
			}
			return honest(data)
		}
	})
	got := one(t, w.reader(1), 1, at(w.Head()), s, addresses(3), source.Past{})
	want(t, got, source.StatusOK)
	if len(got.Credentials) != 1 || got.Credentials[0].Rater != numbered(0) {
		t.Errorf("%+v", got)
	}
	w.answer("eth_call", rpctest.Answer{Error: &rpctest.Error{Code: -32000, Message: "out of gas"}})
	if got := one(t, w.reader(1), 1, at(w.Head()), s, addresses(3),
		source.Past{}); got.Status != source.StatusIncomplete ||
		len(got.Unknown) != 3 {
		t.Errorf("%+v", got)
	}
}
