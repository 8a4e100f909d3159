package wallet_test

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
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts/bindings"
	"repute/contracts/bindings/fixtures"
	"repute/devnet"
	"repute/internal/pgtest"
	"repute/orchestrator/safety"
	"repute/orchestrator/transaction"
	"repute/orchestrator/wallet"
	"repute/orchestrator/wallet/keys"
	"repute/store"
)

var (
	treasuryABI   = bindings.NewOpenFiTreasury()
	identityABI   = bindings.NewIdentityRegistry()
	reputationABI = bindings.NewReputationRegistry()
	tokenABI      = fixtures.NewTestToken()
	payeeABI      = fixtures.NewPayee()
)

// Accounts of the devnet by what they do in these tests.
const (
	ownerAccount = iota
	operatorAccount
	identityAccount
	agentOwner
	strangerAccount
)

var (
	origin   = transaction.Origin{Agent: "payer", Run: "run_1", Task: "task_1"}
	agentKey = crypto.Keccak256Hash([]byte("payer"))
)

// world is a chain with a treasury of 1,000 wei and 1,000 units of a token, of which the
// agent "payer" may move 100 at once and 250 a day.
type world struct {
	t                      *testing.T
	d                      *devnet.Devnet
	url                    string // of the database
	treasury, token, payee common.Address
	rpcs                   []string        // of the engine; the devnet's own when empty
	agent                  *repute.AgentID // identity of the payer; nil: it has none
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	d, err := devnet.Start(t.Context(), devnet.Options{Accounts: 8, UnsafeForks: true})
	ok(t, err)
	t.Cleanup(func() { _ = d.Close() })
	w := &world{t: t, d: d, url: pgtest.New(t)}
	owner, b := d.Account(ownerAccount), d.Batch()
	b.Send(owner, nil, append(common.FromHex(bindings.OpenFiTreasuryMetaData.Bin),
		treasuryABI.PackConstructor(owner.Address)...))
	b.Send(owner, nil, common.FromHex(fixtures.TestTokenMetaData.Bin))
	b.Send(owner, nil, common.FromHex(fixtures.PayeeMetaData.Bin))
	for i, at := range []*common.Address{&w.treasury, &w.token, &w.payee} {
		*at = crypto.CreateAddress(owner.Address, uint64(i))
	}
	b.Pay(owner, w.treasury, n(1000))
	b.Send(owner, &w.token, tokenABI.PackMint(w.treasury, n(1000)))
	b.Send(owner, &w.treasury, treasuryABI.PackSetPolicy(agentKey, true, d.Account(operatorAccount).Address, n(100),
		n(250), n(0)))
	for _, data := range [][]byte{make([]byte, 4), payeeABI.PackPay(n(0)), payeeABI.PackFail(),
		payeeABI.PackCallback(common.Address{}, nil), {1, 2, 3, 4}} {
		b.Send(owner, &w.treasury, treasuryABI.PackSetCall(agentKey, w.payee, [4]byte(data), true))
	}
	b.Send(owner, &w.treasury, treasuryABI.PackSetToken(agentKey, w.token, true, n(100), n(250)))
	_, err = b.Mine(t.Context())
	ok(t, err)
	return w
}

func n(v int64) *big.Int { return big.NewInt(v) }

// keyFile is a file with an account's key.
func (w *world) keyFile(account int) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "key")
	ok(w.t, os.WriteFile(path, []byte(hex.EncodeToString(crypto.FromECDSA(w.d.Account(account).Key))), 0o600))
	return path
}

func (w *world) config(rpcs ...string) wallet.ChainConfig {
	c := w.d.Chain()
	if len(rpcs) == 0 {
		rpcs = []string{w.d.RPCURL()}
	}
	return wallet.ChainConfig{ChainID: c.ID, RPC: rpcs, Treasury: w.treasury,
		Registries:    safety.Registries{Identity: c.Identity, Reputation: c.Reputation, Validations: c.Validations},
		Operator:      keys.Config{KeyFile: w.keyFile(operatorAccount)},
		Identities:    map[string]keys.Config{"payer": {KeyFile: w.keyFile(identityAccount)}},
		Confirmations: 1, StuckAfter: time.Hour, Poll: 10 * time.Millisecond, Patience: 10 * time.Second}
}

// open is a wallet with a database connection of its own: a process.
func (w *world) open(c wallet.ChainConfig) (*wallet.Wallet, *store.DB) {
	w.t.Helper()
	db, err := store.Open(w.t.Context(), w.url, store.Options{})
	ok(w.t, err)
	w.t.Cleanup(db.Close)
	out, err := wallet.Open(db, wallet.Config{Chains: []wallet.ChainConfig{c}})
	ok(w.t, err)
	w.t.Cleanup(out.Close)
	return out, db
}

// pay is native coin to the payee.
func (w *world) pay(id, wei string) transaction.Intent {
	return transaction.Intent{ID: id, Origin: origin, MaxGasWei: "10000000000000000",
		Tx: transaction.Tx{ChainID: w.d.Chain().ID, Target: w.payee, Value: wei, Data: payeeABI.PackPay(n(7)),
			Purpose: "test"}}
}

// paid is what the payee got.
func (w *world) paid() int64 {
	w.t.Helper()
	v, err := w.d.Client().BalanceAt(w.t.Context(), w.payee, nil)
	ok(w.t, err)
	return v.Int64()
}

func (w *world) nonce() uint64 {
	w.t.Helper()
	v, err := w.d.Client().NonceAt(w.t.Context(), w.d.Account(operatorAccount).Address, nil)
	ok(w.t, err)
	return v
}

// owner has the owner call the treasury.
func (w *world) owner(data []byte) {
	w.t.Helper()
	b := w.d.Batch()
	b.Send(w.d.Account(ownerAccount), &w.treasury, data)
	_, err := b.Mine(w.t.Context())
	ok(w.t, err)
}

// mining makes blocks until the test ends.
func (w *world) mining() {
	w.d.SetPeriod(20 * time.Millisecond)
	w.t.Cleanup(func() { w.d.SetPeriod(0) })
}

// until waits for a condition.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// result is what Send gave.
type result struct {
	sent transaction.Sent
	err  error
}

// sending calls Send beside the test.
func sending(ctx context.Context, w *wallet.Wallet, in transaction.Intent) <-chan result {
	out := make(chan result, 1)
	go func() {
		sent, err := w.Send(ctx, in)
		out <- result{sent, err}
	}()
	return out
}

// message is a JSON-RPC request or answer.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// proxy stands before the devnet and changes what is said. Both functions may be nil.
type proxy struct {
	before func(method string) *message // an answer of its own, or nil to pass the request on
	after  func(method string, answer *message)
	target string
	mu     sync.Mutex
}

func (w *world) proxy(before func(string) *message, after func(string, *message)) string {
	w.t.Helper()
	s := httptest.NewServer(&proxy{before: before, after: after, target: w.d.RPCURL()})
	w.t.Cleanup(s.Close)
	return s.URL
}

func (p *proxy) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	var many []message
	if json.Unmarshal(body, &many) == nil {
		for i := range many {
			many[i] = p.one(r.Context(), many[i])
		}
		_ = json.NewEncoder(rw).Encode(many)
		return
	}
	var q message
	if json.Unmarshal(body, &q) == nil {
		_ = json.NewEncoder(rw).Encode(p.one(r.Context(), q))
	}
}

func (p *proxy) one(ctx context.Context, q message) (a message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.before != nil {
		if own := p.before(q.Method); own != nil {
			own.Version, own.ID = "2.0", q.ID
			return *own
		}
	}
	raw, err := json.Marshal(q)
	if err != nil {
		return a
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.target, bytes.NewReader(raw))
	if err != nil {
		return a
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return a
	}
	defer resp.Body.Close()
	_ = json.NewDecoder(resp.Body).Decode(&a)
	if p.after != nil {
		p.after(q.Method, &a)
	}
	return a
}

// transactions are those of the operator that the chain has, oldest first.
func (w *world) transactions() (out []*types.Transaction) {
	w.t.Helper()
	from := w.d.Account(operatorAccount).Address
	form := types.LatestSignerForChainID(new(big.Int).SetUint64(w.d.Chain().ID))
	for i := uint64(1); i <= w.d.Head().Number; i++ {
		b, err := w.d.Client().BlockByNumber(w.t.Context(), new(big.Int).SetUint64(i))
		ok(w.t, err)
		for _, tx := range b.Transactions() {
			if s, err := types.Sender(form, tx); err == nil && s == from {
				out = append(out, tx)
			}
		}
	}
	return out
}

// idHex is how the treasury's events show the id of a run.
func idHex(id string) string { return hex.EncodeToString(crypto.Keccak256([]byte(id))) }

// sendingOwner calls SendOwner beside the test.
func sendingOwner(ctx context.Context, w *wallet.Wallet, in transaction.Intent) <-chan result {
	out := make(chan result, 1)
	go func() {
		sent, err := w.SendOwner(ctx, in)
		out <- result{sent, err}
	}()
	return out
}
