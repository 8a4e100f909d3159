package agentbench

import (
	"context"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute/agent/signed"
	"repute/x402"
)

// ledger is a facilitator that keeps the balances itself. It lives in the benchmark's process, so that it knows what
// was paid however often the agent is killed.
type ledger struct {
	mu      sync.Mutex
	settled map[common.Hash]common.Hash // transaction by authorization
}

// check returns the name of the authorization of a payment whose signature is its payer's. The name is what was signed:
// two payments have one only where every member of them is the same.
func (l *ledger) check(p *x402.Payment, r *x402.Requirements) (id common.Hash, ok bool) {
	a := p.Payload.Authorization
	if a == nil || a.Value.Cmp(r.Amount) != 0 || a.To != r.PayTo {
		return id, false
	}
	id, err := signed.Digest(x402.AuthorizationData(*a, chainID, r.Asset, tokenName, tokenVersion))
	if err != nil {
		return id, false
	}
	by, err := signed.Recover(id, p.Payload.Signature)
	return id, err == nil && by == a.From
}

// Verify implements x402.Facilitator.
func (l *ledger) Verify(_ context.Context, p x402.Payment, r x402.Requirements) (x402.Verification, error) {
	if _, ok := l.check(&p, &r); !ok {
		return x402.Verification{InvalidReason: x402.ReasonSignature}, nil
	}
	return x402.Verification{IsValid: true, Payer: p.Payload.Payer().Hex()}, nil
}

// Settle implements x402.Facilitator. An authorization is settled once; settled again it has the same transaction, as
// facilitators must answer.
func (l *ledger) Settle(_ context.Context, p x402.Payment, r x402.Requirements) (x402.Settlement, error) {
	id, ok := l.check(&p, &r)
	if !ok {
		return x402.Settlement{ErrorReason: x402.ReasonSignature, Network: r.Network}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, done := l.settled[id]; !done {
		l.settled[id] = crypto.Keccak256Hash(id[:])
	}
	return x402.Settlement{Success: true, Transaction: l.settled[id].Hex(), Network: r.Network,
		Payer: p.Payload.Payer().Hex()}, nil
}

// Supported implements x402.Facilitator.
func (l *ledger) Supported(context.Context) (x402.Supported, error) { return x402.Supported{}, nil }

// moved is how many authorizations were settled.
func (l *ledger) moved() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.settled)
}
