package evmtest

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/ethclient/simulated"
	"github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/rpc"

	"repute"
	"repute/contracts"
	"repute/contracts/bindings"
)

// The accounts every local development chain funds, so that recorded logs fit
// without mapping them.
var (
	owner     = account("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
	client    = account("59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d")
	validator = account("5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a")
	stranger  = account("7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6")
	wallet    = account("47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a")
	admin     = account("8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba")
)

// The bindings, parsed once.
var (
	identityABI   = bindings.NewIdentityRegistry()
	reputationABI = bindings.NewReputationRegistry()
	validationABI = bindings.NewValidationRegistry()
	bootstrapABI  = bindings.NewMinimalUUPS()
	proxyABI      = bindings.NewERC1967Proxy()
	treasuryABI   = bindings.NewOpenFiTreasury()
)

// party is an account that can send.
type party struct {
	key  *ecdsa.PrivateKey
	addr common.Address
}

func account(hex string) party {
	key, err := crypto.HexToECDSA(hex)
	if err != nil {
		panic(err)
	}
	return party{key, crypto.PubkeyToAddress(key.PublicKey)}
}

// chain is the one EVM that all tests share, with the implementations that all
// proxies of the tests point at.
type chain struct {
	backend                                               *simulated.Backend
	client                                                simulated.Client
	minimal, identityImpl, reputationImpl, validationImpl common.Address
}

var shared chain

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	rich := new(big.Int).Lsh(big.NewInt(1), 100)
	alloc := types.GenesisAlloc{}
	for _, p := range []party{owner, client, validator, stranger, wallet, admin} {
		alloc[p.addr] = types.Account{Balance: rich}
	}
	shared.backend = simulated.NewBackend(alloc, deployedRules)
	shared.client = shared.backend.Client()
	defer func() { _ = shared.backend.Close() }()
	return m.Run()
}

// deployedRules turns off the forks that no public network has yet: they change
// what storage costs.
func deployedRules(_ *node.Config, conf *ethconfig.Config) {
	rules := *conf.Genesis.Config
	rules.AmsterdamTime, rules.BogotaTime = nil, nil
	conf.Genesis.Config = &rules
}

// world is one set of registries on the shared chain.
type world struct {
	*chain
	t                                *testing.T
	identity, reputation, validation common.Address
}

// newWorld puts three fresh proxies on the chain and initializes them the way
// the public ones were: through the bootstrap implementation.
func newWorld(t *testing.T) *world {
	w := &world{chain: &shared, t: t}
	w.implementations()
	w.identity = w.proxy(shared.identityImpl, identityABI.PackInitialize())
	w.reputation = w.proxy(shared.reputationImpl, reputationABI.PackInitialize(w.identity))
	w.validation = w.proxy(shared.validationImpl, validationABI.PackInitialize(w.identity))
	return w
}

func (w *world) implementations() {
	if w.minimal != (common.Address{}) {
		return
	}
	shared.minimal = w.deploy(bindings.MinimalUUPSMetaData.Bin, nil)
	shared.identityImpl = w.deploy(bindings.IdentityRegistryMetaData.Bin, nil)
	shared.reputationImpl = w.deploy(bindings.ReputationRegistryMetaData.Bin, nil)
	shared.validationImpl = w.deploy(bindings.ValidationRegistryMetaData.Bin, nil)
}

// bootstrapped deploys a proxy that has an owner and nothing else.
func (w *world) bootstrapped() common.Address {
	w.implementations()
	return w.deploy(bindings.ERC1967ProxyMetaData.Bin,
		proxyABI.PackConstructor(w.minimal, bootstrapABI.PackInitialize(admin.addr)))
}

func (w *world) proxy(implementation common.Address, initialize []byte) common.Address {
	at := w.bootstrapped()
	w.send(admin, at, identityABI.PackUpgradeToAndCall(implementation, initialize))
	return at
}

func (w *world) deploy(bin string, arguments []byte) common.Address {
	w.t.Helper()
	r := w.transact(admin, nil, append(common.FromHex(bin), arguments...))
	return r.ContractAddress
}

// send makes a call that must succeed, in a block of its own.
func (w *world) send(from party, to common.Address, data []byte) *types.Receipt {
	w.t.Helper()
	return w.transact(from, &to, data)
}

func (w *world) transact(from party, to *common.Address, data []byte) *types.Receipt {
	w.t.Helper()
	return w.mine(from, &types.DynamicFeeTx{To: to, Data: data, Gas: 10_000_000,
		Nonce: w.nonce(from), GasFeeCap: big.NewInt(5e10), GasTipCap: big.NewInt(1e9)})
}

func (w *world) nonce(from party) uint64 {
	w.t.Helper()
	n, err := w.client.PendingNonceAt(context.Background(), from.addr)
	w.check(err)
	return n
}

func (w *world) mine(from party, inner types.TxData) *types.Receipt {
	w.t.Helper()
	tx, err := types.SignNewTx(from.key, types.LatestSignerForChainID(w.chainID()), inner)
	w.check(err)
	w.check(w.client.SendTransaction(context.Background(), tx))
	w.backend.Commit()
	r, err := w.client.TransactionReceipt(context.Background(), tx.Hash())
	w.check(err)
	if r.Status != types.ReceiptStatusSuccessful {
		w.t.Fatalf("failed, having used %d of %d gas", r.GasUsed, tx.Gas())
	}
	return r
}

func (w *world) chainID() *big.Int {
	w.t.Helper()
	id, err := w.client.ChainID(context.Background())
	w.check(err)
	return id
}

// now is the time of the newest block.
func (w *world) now() *big.Int {
	w.t.Helper()
	head, err := w.client.HeaderByNumber(context.Background(), nil)
	w.check(err)
	return new(big.Int).SetUint64(head.Time)
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// events decodes all logs of a receipt in order.
func (w *world) events(r *types.Receipt) (events []repute.Event) {
	w.t.Helper()
	for _, l := range r.Logs {
		e, err := contracts.Decode(*l)
		w.check(err)
		events = append(events, e)
	}
	return events
}

// read makes a view call that must succeed.
func (w *world) read(to common.Address, data []byte) []byte {
	w.t.Helper()
	out, err := w.client.CallContract(context.Background(), ethereum.CallMsg{To: &to, Data: data}, nil)
	w.check(err)
	return out
}

// get reads and unpacks the answer.
func get[T any](w *world, to common.Address, data []byte, unpack func([]byte) (T, error)) T {
	w.t.Helper()
	v, err := unpack(w.read(to, data))
	w.check(err)
	return v
}

// revert makes a call that must fail and gives the reason: the string, the
// custom error with its arguments, or "" for a plain revert.
func (w *world) revert(from party, to common.Address, data []byte) string {
	w.t.Helper()
	_, err := w.client.CallContract(context.Background(), ethereum.CallMsg{From: from.addr, To: &to, Data: data}, nil)
	var coded rpc.DataError
	if !errors.As(err, &coded) {
		w.t.Fatalf("no revert but %v", err)
	}
	hex, _ := coded.ErrorData().(string)
	return reason(common.FromHex(hex))
}

func reason(data []byte) string {
	if s, err := abi.UnpackRevert(data); err == nil {
		return s
	}
	if len(data) < 4 {
		return ""
	}
	e := customError([4]byte(data[:4]))
	if e == nil {
		return hexutil.Encode(data)
	}
	values, err := e.Inputs.Unpack(data[4:])
	if err != nil {
		return err.Error()
	}
	var words []string
	for _, v := range values {
		words = append(words, text(v))
	}
	return e.Name + "(" + strings.Join(words, ",") + ")"
}

// customError finds an error that one of the contracts declares, nil for none.
func customError(id [4]byte) *abi.Error {
	for _, parsed := range []abi.ABI{identityABI.GetABI(), treasuryABI.GetABI()} {
		if e, err := parsed.ErrorByID(id); err == nil {
			return e
		}
	}
	return nil
}

func text(v any) string {
	switch v := v.(type) {
	case *big.Int:
		return v.String()
	case common.Address:
		return v.Hex()
	}
	return "?"
}

// wantRevert checks the reason a call fails with.
func (w *world) wantRevert(want string, from party, to common.Address, data []byte) {
	w.t.Helper()
	if got := w.revert(from, to, data); got != want {
		w.t.Errorf("reverted with %q, want %q", got, want)
	}
}

// word reads a storage slot.
func (w *world) word(at common.Address, slot common.Hash) common.Hash {
	w.t.Helper()
	v, err := w.client.StorageAt(context.Background(), at, slot, nil)
	w.check(err)
	return common.BytesToHash(v)
}
