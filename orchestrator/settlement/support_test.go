package settlement_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute/devnet"
	"repute/internal/paytest"
	"repute/internal/pgtest"
	"repute/orchestrator/safety"
	"repute/orchestrator/settlement"
	"repute/orchestrator/wallet"
	"repute/orchestrator/wallet/keys"
	"repute/store"
	"repute/x402"
)

// world is a chain, a database and any number of facilitators.
type world struct {
	*paytest.World
	url string
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{paytest.New(t, devnet.Options{UnsafeForks: true}), pgtest.New(t)}
}

// chain is the configuration of a wallet, with the keys of accounts by slug.
func (w *world) chain(t *testing.T, accounts map[string]int) wallet.ChainConfig {
	t.Helper()
	c := w.Chain()
	out := wallet.ChainConfig{ChainID: c.ID, RPC: []string{w.RPCURL()}, Tokens: []common.Address{w.Token, w.Plain},
		Registries: safety.Registries{Identity: c.Identity, Reputation: c.Reputation, Validations: c.Validations},
		Identities: map[string]keys.Config{}, Confirmations: 1, StuckAfter: time.Hour, Poll: 20 * time.Millisecond,
		Patience: 20 * time.Second}
	for slug, account := range accounts {
		path := filepath.Join(t.TempDir(), "key")
		ok(t, os.WriteFile(path, []byte(hex.EncodeToString(crypto.FromECDSA(w.Account(account).Key))), 0o600))
		out.Identities[slug] = keys.Config{KeyFile: path}
	}
	return out
}

// facilitator is one of a process of its own.
func (w *world) facilitator(t *testing.T) *x402.Local {
	t.Helper()
	f, err := open(t, w.url, w.chain(t, map[string]int{"settler": paytest.SettlerAccount}))
	ok(t, err)
	return f
}

func open(t *testing.T, url string, c wallet.ChainConfig) (*x402.Local, error) {
	db, err := store.Open(t.Context(), url, store.Options{})
	ok(t, err)
	t.Cleanup(db.Close)
	wl, err := wallet.Open(db, wallet.Config{Chains: []wallet.ChainConfig{c}})
	ok(t, err)
	t.Cleanup(wl.Close)
	return settlement.New(db, wl, options(c))
}

func options(c wallet.ChainConfig) settlement.Options {
	return settlement.Options{Settler: "settler", Chains: []uint64{c.ChainID},
		Tokens: map[uint64][]common.Address{c.ChainID: c.Tokens}}
}

// paid is what the payee has of both tokens.
func (w *world) paid(t *testing.T) int64 {
	t.Helper()
	return w.Balance(t, w.Token, w.Payee()) + w.Balance(t, w.Plain, w.Payee())
}

// sent is how many transactions the settler has on the chain.
func (w *world) sent(t *testing.T) uint64 {
	t.Helper()
	n, err := w.Client().NonceAt(t.Context(), w.Account(paytest.SettlerAccount).Address, nil)
	ok(t, err)
	return n
}
