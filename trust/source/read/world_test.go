package read

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/indexer/node"
	"repute/internal/chainserver"
	"repute/internal/rpctest"
	"repute/trust/source"
)

// contract is a scripted contract: what it answers, its code and what its EIP-1967 slot holds.
type contract struct {
	call func(data []byte) (bool, []byte)
	code []byte
	slot common.Address
}

// world is a scripted chain with contracts, behind one endpoint or two.
type world struct {
	*rpctest.Chain
	t *testing.T

	mu        sync.Mutex
	contracts map[common.Address]*contract
	most      int          // calls that aggregate3 makes before it has no gas left; 0: any number
	first     rpctest.Rule // is asked before the contracts
}

var multicallAddress = common.HexToAddress("0xcA11bde05977b3631167028862bE2a173976CA11")

func newWorld(t *testing.T, chain uint64) *world {
	w := &world{Chain: rpctest.New(t, rpctest.Options{ChainID: chain, BlockTime: 10}), t: t,
		contracts: map[common.Address]*contract{multicallAddress: {code: []byte{1}}}}
	w.Inject(w.rule(nil))
	return w
}

// second is another endpoint of the same chain; change may replace what one call is answered.
func (w *world) second(change func(to common.Address, data []byte) []byte) *rpctest.Chain {
	c := w.Second(w.t)
	c.Inject(w.rule(change))
	return c
}

// rule answers for state.
func (w *world) rule(change func(common.Address, []byte) []byte) rpctest.Rule {
	return func(c rpctest.Call) *rpctest.Answer {
		w.mu.Lock()
		first := w.first
		w.mu.Unlock()
		if first != nil {
			if a := first(c); a != nil {
				return a
			}
		}
		var address common.Address
		switch c.Method {
		case "eth_call":
			var call struct {
				To   common.Address
				Data hexutil.Bytes
			}
			w.check(json.Unmarshal(c.Params[0], &call))
			return w.aggregate(call.To, call.Data, change)
		case "eth_getCode", "eth_getStorageAt":
			w.check(json.Unmarshal(c.Params[0], &address))
		default:
			return nil
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		k := w.contracts[address]
		if k == nil {
			k = &contract{}
		}
		if c.Method == "eth_getCode" {
			return &rpctest.Answer{Result: hexutil.Bytes(k.code)}
		}
		return &rpctest.Answer{Result: common.BytesToHash(k.slot[:])}
	}
}

// answer makes the endpoints answer one method with something else.
func (w *world) answer(method string, a rpctest.Answer) {
	w.set(func() { w.first = rpctest.On(method, rpctest.Always(a)) })
}

func (w *world) check(err error) {
	if err != nil {
		w.t.Error(err)
	}
}

// aggregate is aggregate3 of Multicall3.
func (w *world) aggregate(to common.Address, data []byte, change func(common.Address, []byte) []byte) *rpctest.Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := w.contracts[multicallAddress]; to != multicallAddress || k == nil {
		return &rpctest.Answer{Result: "0x"}
	}
	made := 0
	packed, err := chainserver.Aggregate3(data, func(to common.Address, data []byte) (ok bool, out []byte) {
		made++
		if k := w.contracts[to]; k != nil && k.call != nil {
			ok, out = k.call(data)
		}
		if change != nil {
			if other := change(to, data); other != nil {
				return true, other
			}
		}
		return ok, out
	})
	w.check(err)
	if w.most > 0 && made > w.most {
		return &rpctest.Answer{Error: &rpctest.Error{Code: -32000, Message: "out of gas"}}
	}
	return &rpctest.Answer{Result: hexutil.Bytes(packed)}
}

// put places a contract of a source: answers by the name of the function, given the first argument.
func (w *world) put(at common.Address, answers map[string]func(argument common.Hash) (bool, []byte)) *contract {
	w.mu.Lock()
	defer w.mu.Unlock()
	bySelector := map[[4]byte]func(common.Hash) (bool, []byte){}
	for name, answer := range answers {
		bySelector[[4]byte(crypto.Keccak256([]byte(name)))] = answer
	}
	k := &contract{code: []byte{1}, call: func(data []byte) (bool, []byte) {
		if answer := bySelector[[4]byte(data)]; answer != nil {
			return answer(common.BytesToHash(data[4:36]))
		}
		return false, nil
	}}
	w.contracts[at] = k
	return k
}

// set changes a contract.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func word(n uint64) []byte { return common.BigToHash(new(big.Int).SetUint64(n)).Bytes() }

func numbered(n int) common.Address { return common.BigToAddress(big.NewInt(int64(n) + 1<<40)) }

func addresses(n int) (out []common.Address) {
	for i := range n {
		out = append(out, numbered(i))
	}
	return out
}

func hashOf(a common.Address) common.Hash { return common.BytesToHash(a[:]) }

// numberOf is n of numbered(n).
func numberOf(h common.Hash) uint64 { return h.Big().Uint64() - 1<<40 }

// at is a block as the index knows it.
func at(b *rpctest.Block) repute.Block {
	return repute.Block{Number: b.Number(), Hash: b.Hash(), Time: time.Unix(int64(b.Header.Time), 0).UTC()}
}

// poolOf asks endpoints; their URLs hold a key.
func poolOf(t *testing.T, chain uint64, urls ...string) *node.Pool {
	t.Helper()
	var nodes []*node.Node
	for _, u := range urls {
		n, err := node.New(u+"/v2/secretkey", node.Options{})
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	p := node.NewPool(nodes, node.PoolOptions{ChainID: chain})
	t.Cleanup(p.Close)
	return p
}

func readerOf(t *testing.T, pools map[uint64]*node.Pool) *Reader {
	t.Helper()
	r, err := New(multicallAddress, pools)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// reader asks the world at one endpoint.
func (w *world) reader(chain uint64) *Reader {
	return readerOf(w.t, map[uint64]*node.Pool{chain: poolOf(w.t, chain, w.URL())})
}

func shipped(t *testing.T) *source.Policy {
	t.Helper()
	p, err := source.Default()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// one reads one source.
func one(t *testing.T, r *Reader, chain uint64, b repute.Block, s *source.Source, raters []common.Address,
	past source.Past) source.Reading {
	t.Helper()
	got, err := r.Read(t.Context(), chain, b, []*source.Source{s}, raters, past)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(got[0].Reason, "secretkey") {
		t.Errorf("the reason holds a key: %s", got[0].Reason)
	}
	return got[0]
}

// want compares the state of a reading, and its reason with parts of one.
func want(t *testing.T, r source.Reading, status source.Status, parts ...string) {
	t.Helper()
	if r.Status != status || (status == source.StatusOK) != (r.Reason == "") {
		t.Errorf("%s: %q, want %s", r.Status, r.Reason, status)
	}
	for _, p := range parts {
		if !strings.Contains(r.Reason, p) {
			t.Errorf("the reason %q does not say %q", r.Reason, p)
		}
	}
}

// human is what AgentBook knows of an address: its number plus 1000, of the first ten.
func human(rater common.Hash) (bool, []byte) {
	if n := numberOf(rater); n < 10 {
		return true, word(n + 1000)
	}
	return true, word(0)
}

// booked is a world with AgentBook and the logs of those that it knows, in blocks 1 to 10.
func booked(t *testing.T) (*world, *source.Source, *contract) {
	s := shipped(t).Source("agentbook")
	w := newWorld(t, 8453)
	book := s.Home(8453).Contracts["book"].Address
	k := w.put(book, map[string]func(common.Hash) (bool, []byte){"lookupHuman(address)": human})
	for i := range 10 {
		w.Mine([]types.Log{bound(book, numbered(i), uint64(i)+1000)})
	}
	return w, s, k
}

// bound is AgentBook's log.
func bound(book, rater common.Address, human uint64) types.Log {
	return types.Log{Address: book,
		Topics: []common.Hash{crypto.Keccak256Hash([]byte("AgentRegistered(address,uint256)")),
			hashOf(rater), common.BytesToHash(word(human))}}
}

// same compares credentials.
func same(a, b []source.Credential) bool { return slices.Equal(a, b) }
