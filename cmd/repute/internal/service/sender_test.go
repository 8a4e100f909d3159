package service

import (
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/spf13/pflag"

	"repute"
	"repute/cmd/repute/internal/config"
	"repute/internal/pgtest"
	"repute/store"
)

const walletFile = `chains:
  - {name: mine, id: 31337, identity: "0x8004a169fb4a3325136eb29fa0ceb6d2e539a432", reputation: "0x8004baa17c55a88189ae136b182e5fda19de9b63", start_block: 7, rpc: "http://127.0.0.1:1/secret-key"}
orchestrator:
  wallets:
    - chain: mine
      treasury: "0x00000000000000000000000000000000000000aa"
      operator: env:TEST_OPERATOR_KEY
      owner: file:OWNER
      identities:
        payer: file:PAYER
    - {chain: base, rpc: ["http://127.0.0.1:1/other"], max_fee_per_gas: 0.5 gwei, max_transaction_fee: "0.001 ether"}
`

// loaded is the configuration that a YAML file gives, on a database.
func loaded(t *testing.T, text, database string) config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "repute.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var f config.Flags
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Database(set)
	if err := set.Parse([]string{"--config", path, "--database-url", database}); err != nil {
		t.Fatal(err)
	}
	c, err := f.Load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// keyed is the file with two new keys in it.
func keyed(t *testing.T) string {
	t.Helper()
	text := walletFile
	for _, name := range []string{"OWNER", "PAYER"} {
		key, err := crypto.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(hex.EncodeToString(crypto.FromECDSA(key))), 0o600); err != nil {
			t.Fatal(err)
		}
		text = strings.ReplaceAll(text, name, path)
	}
	return text
}

func TestWalletsConfigured(t *testing.T) {
	c := loaded(t, keyed(t), pgtest.New(t))
	list, err := c.Wallets()
	if err != nil || len(list) != 2 {
		t.Fatalf("%d wallets, %v", len(list), err)
	}
	if w := list[0]; w.ChainID != 31337 || len(w.RPC) != 1 || w.Treasury != common.HexToAddress("0xaa") ||
		w.Registries.Identity == (common.Address{}) {
		t.Errorf("wallet %+v", w)
	}
	if w := list[1]; w.ChainID != 8453 || w.Registries.Reputation == (common.Address{}) {
		t.Errorf("wallet of a known network %+v", w)
	} else if most := w.Ceilings; most.MaxFeePerGas.Int64() != 5e8 || most.MaxTransactionFee.Int64() != 1e15 {
		t.Errorf("ceilings %+v", most)
	}
	if trust, execution := c.TwoChains(list); trust != 31337 || execution != 31337 {
		t.Errorf("trust chain %d, execution chain %d", trust, execution)
	}
	db, err := store.Open(t.Context(), c.Database, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := New(c, db, slog.New(slog.DiscardHandler))
	defer s.Close()
	var wrong *repute.InputError
	if _, err := s.openSender(t.Context()); !errors.As(err, &wrong) ||
		wrong.Field != "orchestrator.wallets[0].operator" {
		t.Fatalf("without the variable: %v", err)
	}
	t.Setenv("TEST_OPERATOR_KEY", "0123 no key")
	if _, err := s.openSender(t.Context()); err == nil || strings.Contains(err.Error(), "0123") ||
		strings.Contains(err.Error(), "secret-key") {
		t.Fatalf("with what is no key: %v", err)
	}
	t.Setenv("TEST_OPERATOR_KEY", strings.Repeat("01", 32))
	h, err := s.openSender(t.Context())
	if err != nil || h.chain() == nil || h.operator == nil || len(h.registries) != 2 {
		t.Fatalf("%+v, %v", h, err)
	}
	h.close()
}

// opened returns a service of a configuration, with what it sends transactions by.
func opened(t *testing.T, text string) (*Service, sender) {
	t.Helper()
	c := loaded(t, text, pgtest.New(t))
	db, err := store.Open(t.Context(), c.Database, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	t.Setenv("TEST_OPERATOR_KEY", strings.Repeat("01", 32))
	s := New(c, db, slog.New(slog.DiscardHandler))
	t.Cleanup(s.Close)
	h, err := s.openSender(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	return s, h
}

// The wallet asks the pool that the other loops of the process ask: its failures are theirs.
func TestPoolsAreShared(t *testing.T) {
	s, h := opened(t, keyed(t))
	if _, err := h.wallet.Read(t.Context(), 31337, common.HexToAddress("0xaa"), nil); !errors.Is(err,
		repute.ErrUnavailable) {
		t.Errorf("read without an endpoint that answers: %v", err)
	}
	for _, treasury := range h.treasuries {
		pool, err := s.pool(treasury.chain.ID, treasury.rpc)
		if err != nil {
			t.Fatal(err)
		}
		if health := pool.Health(); len(health) != 1 || health[0].Failures == 0 {
			t.Errorf("the pool of the treasury's loop does not know of the wallet's failures: %+v", health)
		}
	}
	if len(h.treasuries) != 1 || len(s.pools.byURLs) != 2 {
		t.Errorf("%d treasuries, %d pools, want 1 and one for each wallet", len(h.treasuries), len(s.pools.byURLs))
	}
}

// Approvals name amounts of the tokens that the entry of a chain lists, and of those that are
// known of its network.
func TestApprovalsNameTokens(t *testing.T) {
	text := strings.Replace(keyed(t), "start_block: 7,",
		`start_block: 7, stablecoins: ["0x00000000000000000000000000000000000000cc USDX 2"],`, 1)
	s, h := opened(t, text)
	o, err := s.engineOptions(h)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]repute.Stablecoin{
		"of the entry": {ChainID: 31337, Address: common.HexToAddress("0xcc"), Symbol: "USDX", Decimals: 2},
		"of the network": {ChainID: 8453, Address: common.HexToAddress("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
			Symbol: "USDC", Decimals: 6}}
	for name, coin := range want {
		if !slices.Contains(o.Tokens, coin) {
			t.Errorf("%s: the engine does not know %+v of %+v", name, coin, o.Tokens)
		}
	}
}
