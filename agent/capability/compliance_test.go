package capability_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/agent/compliance"
	"repute/agent/signed"
	"repute/orchestrator/wallet/keys"
	"repute/x402"
	"repute/x402/facilitator"
)

// ledger is a facilitator that accepts payments whose signature is their payer's, each once.
type ledger struct {
	mu      sync.Mutex
	settled map[common.Hash]bool
}

func (l *ledger) signed(p *x402.Payment, r *x402.Requirements) (common.Hash, bool) {
	a := p.Payload.Authorization
	extra, err := r.Terms()
	if a == nil || err != nil || a.Value.Cmp(r.Amount) != 0 || a.To != r.PayTo {
		return common.Hash{}, false
	}
	id, err := signed.Digest(x402.AuthorizationData(*a, 84532, r.Asset, extra.Name, extra.Version))
	if err != nil {
		return id, false
	}
	by, err := signed.Recover(id, p.Payload.Signature)
	return id, err == nil && by == a.From
}

// Verify implements x402.Facilitator.
func (l *ledger) Verify(_ context.Context, p x402.Payment, r x402.Requirements) (x402.Verification, error) {
	_, good := l.signed(&p, &r)
	return x402.Verification{IsValid: good, InvalidReason: map[bool]x402.Reason{false: x402.ReasonSignature}[good]}, nil
}

// Settle implements x402.Facilitator.
func (l *ledger) Settle(_ context.Context, p x402.Payment, r x402.Requirements) (x402.Settlement, error) {
	id, good := l.signed(&p, &r)
	if !good {
		return x402.Settlement{ErrorReason: x402.ReasonSignature, Network: r.Network}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled[id] = true
	return x402.Settlement{Success: true, Transaction: id.Hex(), Network: r.Network,
		Payer: p.Payload.Payer().Hex()}, nil
}

// Supported implements x402.Facilitator.
func (l *ledger) Supported(context.Context) (x402.Supported, error) { return x402.Supported{}, nil }

// TestMinimalRuntimeComplies runs the checks against the example in TypeScript. It passes all of those for what it
// offers, and is paid once.
func TestMinimalRuntimeComplies(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	if _, err := os.Stat(runtimeExample); err != nil {
		t.Skip("the examples are not compiled: run make examples")
	}
	l := &ledger{settled: map[common.Hash]bool{}}
	f := httptest.NewServer(facilitator.NewHandler(l))
	t.Cleanup(f.Close)
	base, signer := startRuntime(t, node, f.URL)
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	report, err := compliance.Run(t.Context(), compliance.Options{URL: base, MaxBody: 1 << 20, MaxPay: 1000,
		Payer: keys.Local{Key: key}, Input: json.RawMessage(`{"text":"one  two"}`), Chain: onChain{signer}})
	if err != nil {
		t.Fatal(err)
	}
	var skipped []string
	for _, c := range report.Checks {
		switch {
		case c.Skipped:
			skipped = append(skipped, c.ID)
		case !c.OK:
			t.Errorf("%s: %s", c.ID, c.Detail)
		}
	}
	want := []string{"registration-file", "agent-card", "mcp", "x402-v1", "free", "receipts", "metadata", "policy"}
	if !slices.Equal(skipped, want) || len(l.settled) != 1 || report.Exit() != 2 {
		t.Errorf("skipped %q, wanted %q; %d settlements", skipped, want, len(l.settled))
	}
}

// onChain says that an account owns the agent.
type onChain struct{ owner common.Address }

// Agent implements compliance.Chain.
func (c onChain) Agent(context.Context, repute.AgentID) (compliance.Registered, error) {
	return compliance.Registered{Owner: c.owner}, nil
}
