package treasury_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts/bindings"
	"repute/contracts/bindings/fixtures"
	"repute/devnet"
	"repute/indexer/node"
	"repute/indexer/treasury"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/walletdb"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func n(v int64) *big.Int { return big.NewInt(v) }

func key(s string) common.Hash { return crypto.Keccak256Hash([]byte(s)) }

// world is a chain with a treasury, and a follower of it.
type world struct {
	t               *testing.T
	d               *devnet.Devnet
	db              *store.DB
	treasury, token common.Address
	f               *treasury.Follower
}

var abi = bindings.NewOpenFiTreasury()

func newWorld(t *testing.T) *world {
	t.Helper()
	d, err := devnet.Start(t.Context(), devnet.Options{Accounts: 4, UnsafeForks: true})
	ok(t, err)
	t.Cleanup(func() { _ = d.Close() })
	w := &world{t: t, d: d}
	w.db, err = store.Open(t.Context(), pgtest.New(t), store.Options{})
	ok(t, err)
	t.Cleanup(w.db.Close)
	owner, b := d.Account(0), d.Batch()
	b.Send(owner, nil, append(common.FromHex(bindings.OpenFiTreasuryMetaData.Bin), abi.PackConstructor(owner.Address)...))
	b.Send(owner, nil, common.FromHex(fixtures.TestTokenMetaData.Bin))
	w.treasury, w.token = crypto.CreateAddress(owner.Address, 0), crypto.CreateAddress(owner.Address, 1)
	b.Pay(owner, w.treasury, n(1000))
	b.Send(owner, &w.token, fixtures.NewTestToken().PackMint(w.treasury, n(1000)))
	b.Send(owner, &w.treasury, abi.PackSetPolicy(key("payer"), true, d.Account(1).Address, n(100), n(900), n(0)))
	b.Send(owner, &w.treasury, abi.PackSetCall(key("payer"), common.HexToAddress("0xaa"), [4]byte{}, true))
	b.Send(owner, &w.treasury, abi.PackSetToken(key("payer"), w.token, true, n(100), n(900)))
	_, err = b.Mine(t.Context())
	ok(t, err)
	one, err := node.New(d.RPCURL(), node.Options{})
	ok(t, err)
	pool := node.NewPool([]*node.Node{one}, node.PoolOptions{ChainID: d.Chain().ID})
	t.Cleanup(pool.Close)
	w.f = treasury.New(w.db, d.Chain().ID, w.treasury, 1, pool, treasury.Options{Depth: 8, Range: 5})
	return w
}

// pay has the operator move native coin and tokens for a run, in a block of their own.
func (w *world) pay(run string, wei int64) {
	w.t.Helper()
	b := w.d.Batch()
	b.Send(w.d.Account(1), &w.treasury, abi.PackExecuteCall(key("payer"), common.HexToAddress("0xaa"), n(wei), nil,
		key(run), key("task"), "fee \x00 <b>"))
	b.Send(w.d.Account(1), &w.treasury, abi.PackTransferERC20(key("payer"), w.token, common.HexToAddress("0xbb"), n(wei),
		key(run), key("task"), "tokens"))
	_, err := b.Mine(w.t.Context())
	ok(w.t, err)
}

// settle steps until nothing is new.
func (w *world) settle() (reorgs int) {
	w.t.Helper()
	for range 500 {
		err := w.f.Step(w.t.Context())
		switch {
		case errors.Is(err, repute.ErrReorged):
			reorgs++
		case errors.Is(err, treasury.ErrNothingNew):
			return reorgs
		case err != nil:
			w.t.Fatal(err)
		}
	}
	w.t.Fatal("it never settled")
	return 0
}

// compare wants the stored events to be those that the chain has.
func (w *world) compare() []walletdb.TreasuryEvent {
	w.t.Helper()
	var chain []types.Log
	for i := uint64(1); i <= w.d.Head().Number; i++ {
		b, err := w.d.Client().BlockByNumber(w.t.Context(), new(big.Int).SetUint64(i))
		ok(w.t, err)
		for _, tx := range b.Transactions() {
			r, err := w.d.Client().TransactionReceipt(w.t.Context(), tx.Hash())
			ok(w.t, err)
			for _, l := range r.Logs {
				if l.Address == w.treasury {
					chain = append(chain, *l)
				}
			}
		}
	}
	stored, err := walletdb.TreasuryEvents(w.t.Context(), w.db, w.d.Chain().ID, w.treasury, common.Hash{}, 1<<62, 0, 1000)
	ok(w.t, err)
	if len(stored) != len(chain) {
		w.t.Fatalf("%d events are stored, the chain has %d", len(stored), len(chain))
	}
	for i, l := range chain {
		e := stored[len(stored)-1-i]
		if e.Tx != l.TxHash || e.Block.Number != l.BlockNumber || e.Block.Hash != l.BlockHash ||
			uint(e.LogIndex) != l.Index || e.Kind == "Unreadable" || e.Block.Time.IsZero() {
			w.t.Fatalf("event %d is %+v, the chain has %+v", i, e, l)
		}
	}
	return stored
}

func TestFollow(t *testing.T) {
	w := newWorld(t)
	w.pay("run_1", 10)
	w.pay("run_2", 20)
	_, err := w.d.Mine(t.Context())
	ok(t, err)
	if reorgs := w.settle(); reorgs != 0 {
		t.Errorf("%d reorganizations, wanted none", reorgs)
	}
	w.compare()
	events, err := walletdb.TreasuryEventsOfRun(t.Context(), w.db, key("run_2"))
	ok(t, err)
	if len(events) != 2 || events[0].Kind != "NativeExecuted" || events[1].Kind != "ERC20Transferred" ||
		events[0].Agent != key("payer") || events[0].Task != key("task") || events[0].Final {
		t.Fatalf("events of the run %+v", events)
	}
	var native, token map[string]any
	ok(t, errors.Join(json.Unmarshal(events[0].Fields, &native), json.Unmarshal(events[1].Fields, &token)))
	if native["value"] != "20" || native["operator"] != w.d.Account(1).Address.Hex() ||
		native["selector"] != "0x00000000" || native["caller"] != w.d.Account(1).Address.Hex() || token["amount"] != "20" ||
		token["token"] != w.token.Hex() {
		t.Errorf("fields %v, %v", native, token)
	}
	for w.d.Finalized().Number < 4 {
		_, err = w.d.Mine(t.Context())
		ok(t, err)
	}
	w.settle()
	if events, err = walletdb.TreasuryEventsOfRun(t.Context(), w.db, key("run_2")); err != nil || !events[0].Final {
		t.Errorf("not final: %+v, %v", events, err)
	}
	w.compare()
}

// After any reorganization the stored events are those of the chain that is left.
func TestRewind(t *testing.T) {
	w := newWorld(t)
	for i := range 4 {
		w.pay(fmt.Sprint("run_", i), int64(i+1))
		w.settle()
	}
	ok(t, w.d.Reorg(t.Context(), 2, 3))
	if reorgs := w.settle(); reorgs != 1 {
		t.Errorf("%d reorganizations, wanted 1", reorgs)
	}
	w.compare()
	w.pay("run_9", 9)
	w.settle()
	events := w.compare()
	again, err := walletdb.TreasuryEventsOfRun(t.Context(), w.db, key("run_9"))
	if err != nil || len(again) != 2 || len(events) == 0 {
		t.Errorf("after the reorganization: %+v, %v", again, err)
	}
	s, err := walletdb.ReadTreasury(t.Context(), w.db, w.d.Chain().ID, w.treasury)
	if err != nil || s.Reorgs != 1 || s.Cursor.Number != w.d.Head().Number {
		t.Errorf("cursor %+v, %v", s, err)
	}
}

// Two followers of one treasury do not disturb each other, and one that begins earlier
// begins anew.
func TestTwoFollowers(t *testing.T) {
	w := newWorld(t)
	w.pay("run_1", 10)
	w.settle()
	err := walletdb.SaveTreasury(t.Context(), w.db, walletdb.TreasuryBatch{ChainID: w.d.Chain().ID, Address: w.treasury,
		To: repute.Block{Number: 3, Hash: key("x")}})
	if !errors.Is(err, repute.ErrFenced) {
		t.Errorf("a slower process stored: %v", err)
	}
	id, other := w.d.Chain().ID, common.HexToAddress("0xcc")
	s, err := walletdb.AddTreasury(t.Context(), w.db, id, other, 9)
	if err != nil || s.Cursor.Number != 8 {
		t.Fatalf("%+v, %v", s, err)
	}
	ok(t, walletdb.SaveTreasury(t.Context(), w.db, walletdb.TreasuryBatch{ChainID: id, Address: other, Parent: s.Cursor,
		To: repute.Block{Number: 20, Hash: key("x")}, Blocks: []repute.Block{{Number: 20, Hash: key("x")}}}))
	if s, err = walletdb.AddTreasury(t.Context(), w.db, id, other, 5); err != nil || s.Start != 5 ||
		s.Cursor.Number != 4 || (s.Cursor.Hash != common.Hash{}) {
		t.Errorf("begun anew %+v, %v", s, err)
	}
	if blocks, err := walletdb.TreasuryBlocks(t.Context(), w.db, id, other, 9); err != nil || len(blocks) != 0 {
		t.Errorf("%d blocks are left, %v", len(blocks), err)
	}
}
