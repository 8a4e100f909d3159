package registry_test

import (
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"repute"
	"repute/agent/registry"
	"repute/devnet"
	"repute/internal/paytest"
	"repute/orchestrator/wallet/keys"
	"repute/x402"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

func open(t *testing.T, w *paytest.World, id uint64, rpc ...string) *registry.Registry {
	t.Helper()
	c := w.Chain()
	r, err := registry.Open(registry.Options{ID: repute.AgentID{ChainID: c.ID, Registry: c.Identity,
		TokenID: *uint256.NewInt(id)},
		Reputation: c.Reputation, Validations: c.Validations, RPC: rpc})
	ok(t, err)
	t.Cleanup(r.Close)
	return r
}

// TestAgent: the chain says who an agent is and what happens to it; a second node answers where the
// first one does not, and no error shows a URL.
func TestAgent(t *testing.T) {
	t.Parallel()
	w := paytest.New(t, devnet.Options{})
	broken := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		http.Error(out, "<html>", http.StatusBadGateway)
	}))
	t.Cleanup(broken.Close)
	owner, other := w.Account(paytest.OwnerAccount), w.Account(paytest.StrangerAccount)
	b := w.Batch()
	b.Register(owner, "https://a.example/0")
	b.Register(other, "https://a.example/1")
	_, err := b.Mine(t.Context())
	ok(t, err)
	r := open(t, w, 0, broken.URL, w.RPCURL())
	a, err := r.Agent(t.Context())
	ok(t, err)
	if a.Owner != owner.Address || a.Wallet != owner.Address || a.URI != "https://a.example/0" {
		t.Errorf("%+v", a)
	}
	if _, err := open(t, w, 9, w.RPCURL()).Agent(t.Context()); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("%v", err)
	}
	_, err = open(t, w, 0, broken.URL+"/secret").Agent(t.Context())
	host := strings.TrimPrefix(broken.URL, "http://")
	if !errors.Is(err, repute.ErrUnavailable) || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	_, err = open(t, w, 0, broken.URL+"/secret").ChainID(t.Context())
	if !errors.Is(err, repute.ErrUnavailable) || strings.Contains(err.Error(), "secret") ||
		!strings.HasPrefix(err.Error(), "chain 31337: agent.rpc: node 1 of 1 ("+host+") does not answer") {
		t.Errorf("%v", err)
	}
	unknown, err := registry.Open(registry.Options{RPC: []string{broken.URL + "/secret"}})
	ok(t, err)
	defer unknown.Close()
	if _, err := unknown.ChainID(t.Context()); err == nil ||
		!strings.HasPrefix(err.Error(), "agent.rpc: node 1 of 1 ("+host+")") {
		t.Errorf("the chain is not known: %v", err)
	}
	none, next, err := r.Events(t.Context(), 0)
	ok(t, err)
	b = w.Batch()
	b.SetAgentURI(owner, 0, "https://a.example/new")
	b.SetAgentURI(other, 1, "https://a.example/other")
	b.GiveFeedback(other, devnet.Rating{Agent: 0, Value: big.NewInt(80)})
	b.ValidationRequest(owner, other.Address, 0, "https://a.example/request", common.Hash{1})
	_, err = b.Mine(t.Context())
	ok(t, err)
	events, after, err := r.Events(t.Context(), next)
	ok(t, err)
	kinds := ""
	for _, e := range events {
		kinds += e.Event.Kind().String() + " "
	}
	if len(none) != 0 || kinds != "URIUpdated NewFeedback ValidationRequest " || after <= next {
		t.Errorf("%s from %d to %d", kinds, next, after)
	}
	if again, _, err := r.Events(t.Context(), after); err != nil || len(again) != 0 {
		t.Errorf("%v %v", again, err)
	}
}

// TestWallets: contract wallets sign by ERC-1271, and by ERC-6492 before they are deployed.
func TestWallets(t *testing.T) {
	t.Parallel()
	w := paytest.New(t, devnet.Options{})
	v := &x402.Verifier{Chain: open(t, w, 0, w.RPCURL())}
	digest := crypto.Keccak256Hash([]byte("x"))
	sign := func(k keys.Local) []byte {
		sig, err := crypto.Sign(digest[:], k.Key)
		ok(t, err)
		sig[64] += 27
		return sig
	}
	good, bad := sign(w.Signer(paytest.PayerAccount)), sign(w.Signer(paytest.StrangerAccount))
	for name, c := range map[string]struct {
		wallet common.Address
		sig    []byte
		want   bool
	}{
		"deployed":                  {w.Wallet, good, true},
		"deployed, stranger":        {w.Wallet, bad, false},
		"not deployed":              {w.Unborn, w.Undeployed(good), true},
		"not deployed, stranger":    {w.Unborn, w.Undeployed(bad), false},
		"not deployed, not wrapped": {w.Unborn, good, false},
		"no contract":               {w.Account(paytest.StrangerAccount).Address, w.Undeployed(good), false},
		"malformed":                 {w.Unborn, w.Undeployed(good)[100:], false},
	} {
		if got, err := v.ValidSignature(t.Context(), w.Chain().ID, c.wallet, digest, c.sig); err != nil ||
			got != c.want {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
}
