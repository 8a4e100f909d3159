package operate_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
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
	"repute/indexer"
	"repute/indexer/node"
	"repute/indexer/verify"
	"repute/internal/pgtest"
	"repute/orchestrator/operate"
	"repute/orchestrator/safety"
	"repute/orchestrator/wallet"
	"repute/orchestrator/wallet/keys"
	"repute/policy"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/rundb"
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
	b.Send(owner, nil, append(common.FromHex(bindings.OpenFiTreasuryMetaData.Bin),
		treasuryABI.PackConstructor(owner.Address)...))
	b.Send(owner, nil, common.FromHex(fixtures.TestTokenMetaData.Bin))
	w.treasury, w.token = crypto.CreateAddress(owner.Address, 0), crypto.CreateAddress(owner.Address, 1)
	b.Pay(owner, w.treasury, n(1000))
	b.Send(owner, &w.token, tokenABI.PackMint(w.treasury, n(1000)))
	b.Send(owner, &w.treasury, treasuryABI.PackSetPolicy(key, true, d.Account(operatorAccount).Address, n(100), n(250),
		n(0)))
	b.Send(owner, &w.treasury, treasuryABI.PackSetCall(key, somebody, [4]byte{}, true))
	b.Send(owner, &w.treasury, treasuryABI.PackSetToken(key, w.token, true, n(100), n(250)))
	_, err = b.Mine(t.Context())
	ok(t, err)
	d.SetPeriod(20 * time.Millisecond)
	t.Cleanup(func() { d.SetPeriod(0) })
	w.db, err = store.Open(t.Context(), pgtest.New(t), store.Options{})
	ok(t, err)
	t.Cleanup(w.db.Close)
	w.w = w.open(w.config())
	w.followOf(w.treasury)
	for _, slug := range []string{"payer", "rater"} {
		ok(t, rundb.SaveModule(t.Context(), w.db,
			repute.Module{Slug: slug, Manifest: json.RawMessage(`{"slug":"` + slug + `"}`)}))
	}
	return w
}

// open is a wallet of a configuration.
func (w *world) open(c wallet.ChainConfig) *wallet.Wallet {
	w.t.Helper()
	out, err := wallet.Open(w.db, wallet.Config{Chains: []wallet.ChainConfig{c}})
	ok(w.t, err)
	w.t.Cleanup(out.Close)
	return out
}

// followOf indexes a treasury's events until the test ends.
func (w *world) followOf(treasuryAt common.Address) {
	one, err := node.New(w.d.RPCURL(), node.Options{})
	ok(w.t, err)
	pool := node.NewPool([]*node.Node{one}, node.PoolOptions{ChainID: w.d.Chain().ID})
	chain := repute.Chain{ID: w.d.Chain().ID}
	ok(w.t, chaindb.WatchTreasury(w.t.Context(), w.db, chain.ID, repute.WatchedContract{Address: treasuryAt, From: 1}))
	f := indexer.NewFollower(w.db, chain, pool, indexer.Options{Poll: 10 * time.Millisecond,
		Verifier: verify.New(w.db, chain, pool.Nodes,
			verify.Options{HistoryOnly: true, Rate: 1000, Poll: 10 * time.Millisecond})})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = f.Run(ctx) }()
	w.t.Cleanup(func() { cancel(); <-done; pool.Close() })
}

// liar is an endpoint that changes the text of answers of some methods.
func (w *world) liar(change func(method string, answer []byte) []byte) string {
	w.t.Helper()
	one := func(ctx context.Context, raw []byte) []byte {
		var q struct{ Method string }
		_ = json.Unmarshal(raw, &q)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.d.RPCURL(), bytes.NewReader(raw))
		if err != nil {
			return nil
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return change(q.Method, body)
	}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		rw.Header().Set("Content-Type", "application/json")
		var many []json.RawMessage
		if json.Unmarshal(raw, &many) != nil {
			_, _ = rw.Write(one(r.Context(), raw))
			return
		}
		for i := range many {
			many[i] = one(r.Context(), many[i])
		}
		_ = json.NewEncoder(rw).Encode(many)
	}))
	w.t.Cleanup(s.Close)
	return s.URL
}

func (w *world) config() wallet.ChainConfig {
	c := w.d.Chain()
	key := func(account int) keys.Config {
		path := filepath.Join(w.t.TempDir(), "key")
		ok(w.t, os.WriteFile(path, []byte(hex.EncodeToString(crypto.FromECDSA(w.d.Account(account).Key))), 0o600))
		return keys.Config{KeyFile: path}
	}
	return wallet.ChainConfig{ChainID: c.ID, RPC: []string{w.d.RPCURL()}, Treasury: w.treasury,
		Registries: safety.Registries{Identity: c.Identity, Reputation: c.Reputation, Validations: c.Validations},
		Operator:   key(operatorAccount), Owner: key(ownerAccount),
		Identities:    map[string]keys.Config{"payer": key(payerAccount), "rater": key(raterAccount)},
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
