package operate_test

import (
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts/bindings"
	"repute/contracts/bindings/fixtures"
	"repute/devnet"
	"repute/internal/pgtest"
	"repute/orchestrator"
	"repute/orchestrator/operate"
	"repute/orchestrator/wallet"
	"repute/policy"
	"repute/store"
)

// Accounts of the devnet by what they do in these tests.
const (
	ownerAccount = iota
	operatorAccount
	payerAccount
	raterAccount
)

// world is a chain with a treasury of 1,000 wei and 1,000 units of a token, of which the
// agent "payer" may move 100 at once and 250 a day.
type world struct {
	t               *testing.T
	d               *devnet.Devnet
	db              *store.DB
	w               *wallet.Wallet
	treasury, token common.Address
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

func n(v int64) *big.Int { return big.NewInt(v) }

func newWorld(t *testing.T) *world {
	t.Helper()
	d, err := devnet.Start(t.Context(), devnet.Options{Accounts: 8, UnsafeForks: true})
	ok(t, err)
	t.Cleanup(func() { _ = d.Close() })
	w := &world{t: t, d: d}
	key, owner, b := crypto.Keccak256Hash([]byte("payer")), d.Account(ownerAccount), d.Batch()
	treasuryABI, tokenABI := bindings.NewOpenFiTreasury(), fixtures.NewTestToken()
	b.Send(owner, nil, append(common.FromHex(bindings.OpenFiTreasuryMetaData.Bin), treasuryABI.PackConstructor(owner.Address)...))
	b.Send(owner, nil, common.FromHex(fixtures.TestTokenMetaData.Bin))
	w.treasury, w.token = crypto.CreateAddress(owner.Address, 0), crypto.CreateAddress(owner.Address, 1)
	b.Pay(owner, w.treasury, n(1000))
	b.Send(owner, &w.token, tokenABI.PackMint(w.treasury, n(1000)))
	b.Send(owner, &w.treasury, treasuryABI.PackSetPolicy(key, true, d.Account(operatorAccount).Address, n(100), n(250), n(0)))
	b.Send(owner, &w.treasury, treasuryABI.PackSetCall(key, somebody, [4]byte{}, true))
	b.Send(owner, &w.treasury, treasuryABI.PackSetToken(key, w.token, true, n(100), n(250)))
	_, err = b.Mine(t.Context())
	ok(t, err)
	d.SetPeriod(20 * time.Millisecond)
	t.Cleanup(func() { d.SetPeriod(0) })
	w.db, err = store.Open(t.Context(), pgtest.New(t), store.Options{})
	ok(t, err)
	t.Cleanup(w.db.Close)
	w.w, err = wallet.Open(t.Context(), w.db, wallet.Config{Chains: []wallet.ChainConfig{w.config()}})
	ok(t, err)
	t.Cleanup(w.w.Close)
	for _, slug := range []string{"payer", "rater"} {
		ok(t, w.db.SaveModule(t.Context(), repute.Module{Slug: slug, Manifest: json.RawMessage(`{"slug":"` + slug + `"}`)}))
	}
	return w
}

func (w *world) config() wallet.ChainConfig {
	c := w.d.Chain()
	key := func(account int) wallet.SignerConfig {
		path := filepath.Join(w.t.TempDir(), "key")
		ok(w.t, os.WriteFile(path, []byte(hex.EncodeToString(crypto.FromECDSA(w.d.Account(account).Key))), 0o600))
		return wallet.SignerConfig{KeyFile: path}
	}
	return wallet.ChainConfig{ChainID: c.ID, RPC: []string{w.d.RPCURL()}, Treasury: w.treasury,
		Registries: orchestrator.Registries{Identity: c.Identity, Reputation: c.Reputation, Validations: c.Validations},
		Operator:   key(operatorAccount), Owner: key(ownerAccount), Identities: map[string]wallet.SignerConfig{"payer": key(payerAccount), "rater": key(raterAccount)},
		Confirmations: 1, StuckAfter: time.Hour, Poll: 10 * time.Millisecond, Patience: 10 * time.Second}
}

// operator acts under a policy's text.
func (w *world) operator(text string) *operate.Operator {
	w.t.Helper()
	return w.with(text, operate.Options{Wait: 30 * time.Second})
}

// with is operator with options of its own.
func (w *world) with(text string, o operate.Options) *operate.Operator {
	w.t.Helper()
	p, err := policy.Parse([]byte(text))
	ok(w.t, err)
	id := w.d.Chain().ID
	if o.Policy == nil {
		o.Policy = func() *policy.Policy { return p }
	}
	o.Lenient, o.TrustChain, o.ExecutionChain, o.PublicURL = true, id, id, "https://repute.example"
	return operate.New(w.db, w.w, o)
}

func (w *world) balance(of common.Address) int64 {
	w.t.Helper()
	v, err := w.d.Client().BalanceAt(w.t.Context(), of, nil)
	ok(w.t, err)
	return v.Int64()
}
