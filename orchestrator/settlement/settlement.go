package settlement

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/orchestrator/transaction"
	"repute/orchestrator/wallet"
	"repute/store"
	"repute/store/walletdb"
	"repute/x402"
)

// Run is what intents of settlements have as their run: they belong to none.
const Run = "x402"

// Options configure a facilitator.
type Options struct {
	// Settler is the slug of the identity whose key sends settlements and pays their gas.
	Settler string
	Chains  []uint64
	Tokens  map[uint64][]common.Address // accepted ones, by chain
	// Wait is for how long an answer waits for the end of a settlement; 45 s when 0.
	Wait time.Duration
}

// New returns the facilitator of a wallet. repute.ErrNotFound where the settler has no key on one
// of the chains.
func New(db *store.DB, w *wallet.Wallet, o Options) (*x402.Local, error) {
	accounts := map[uint64][]common.Address{}
	for _, id := range o.Chains {
		account, err := w.Identity(id, o.Settler)
		if err != nil {
			return nil, err
		}
		accounts[id] = []common.Address{account}
	}
	s := &settler{db: db, wallet: w, slug: o.Settler, wait: cmp.Or(o.Wait, 45*time.Second)}
	return &x402.Local{Settler: s, Chains: o.Chains, History: w,
		Verifier: &x402.Verifier{Chain: Chain{w}, Accounts: func(id uint64) []common.Address { return accounts[id] }},
		Tokens:   func(id uint64, token common.Address) bool { return slices.Contains(o.Tokens[id], token) }}, nil
}

// Chain reads contracts through a wallet, as an x402.Verifier needs it.
type Chain struct{ Wallet *wallet.Wallet }

// Call implements x402.Chain: at the newest block that two endpoints have.
func (c Chain) Call(ctx context.Context, chainID uint64, from, to common.Address, data []byte) ([]byte, error) {
	answer, err := c.Wallet.ReadFrom(ctx, chainID, from, to, data)
	if errors.Is(err, repute.ErrInvalid) {
		return nil, fmt.Errorf("%w: %w", x402.ErrReverted, err)
	}
	return answer, err
}

// settler sends the transactions of transfers.
type settler struct {
	db     *store.DB
	wallet *wallet.Wallet
	slug   string
	wait   time.Duration
}

// Outcome implements x402.Settler. What is stored is followed to its end.
func (s *settler) Outcome(ctx context.Context, t *x402.Transfer) (x402.Outcome, error) {
	in, err := walletdb.ReadIntent(ctx, s.db, t.ID())
	switch {
	case errors.Is(err, repute.ErrNotFound):
		return x402.Outcome{}, nil
	case err != nil:
		return x402.Outcome{}, fmt.Errorf("%w: %w", x402.ErrUnknownEnd, err)
	}
	return s.end(ctx, t, in.Agent, in.To, in.Data)
}

// Send implements x402.Settler.
func (s *settler) Send(ctx context.Context, t *x402.Transfer) (x402.Outcome, error) {
	out, err := s.end(ctx, t, s.slug, t.Target, t.Data)
	if errors.Is(err, repute.ErrConflict) { // another form of the payment was faster
		return s.Outcome(ctx, t)
	}
	return out, err
}

// end sends a transaction of a transfer, or follows the one that was sent, and waits for its end.
func (s *settler) end(ctx context.Context, t *x402.Transfer, slug string, target common.Address,
	data []byte) (out x402.Outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	charged, ok := x402.Charged(target, data)
	if !ok {
		return out, fmt.Errorf("intent %s settles no payment: %w", t.ID(), repute.ErrConflict)
	}
	out = x402.Outcome{Known: true, Amount: charged.Amount, Payee: charged.To, Token: charged.Token}
	sent, err := s.wallet.SendSettlement(ctx, transaction.Intent{ID: t.ID(),
		Origin: transaction.Origin{Agent: slug, Run: Run},
		Tx:     transaction.Tx{ChainID: t.ChainID, Target: target, Data: data, Purpose: "x402 payment"}})
	switch {
	case err == nil:
		out.Transaction = sent.Hash
		out.Paid, err = paid(t, &charged, &sent)
		return out, err
	case errors.Is(err, repute.ErrConflict):
		return s.failed(ctx, t, out, err)
	case errors.Is(err, repute.ErrInvalid):
		return out, &x402.Refusal{Reason: x402.ReasonTransactionState, Message: err.Error()}
	case errors.Is(err, repute.ErrLimited):
		return out, fmt.Errorf("%w: %w", x402.ErrUnavailable, err)
	}
	return out, fmt.Errorf("%w: %w", x402.ErrUnknownEnd, err)
}

// failed separates a transaction that can never be mined, which is an end, from one that is not the
// one that is asked for.
func (s *settler) failed(ctx context.Context, t *x402.Transfer, out x402.Outcome,
	conflict error) (x402.Outcome, error) {
	in, err := walletdb.ReadIntent(ctx, s.db, t.ID())
	switch {
	case err != nil:
		return out, fmt.Errorf("%w: %w", x402.ErrUnknownEnd, err)
	case in.State == walletdb.IntentFailed:
		return out, nil
	}
	return out, conflict
}

// paid reports whether a mined transaction moved what it charges.
func paid(t *x402.Transfer, charged *x402.Charge, sent *transaction.Sent) (bool, error) {
	if !sent.OK {
		return false, nil
	}
	var logs []types.Log
	if len(sent.Result) > 0 {
		if err := json.Unmarshal(sent.Result, &logs); err != nil {
			return false, fmt.Errorf("%w: logs of %s: %w", x402.ErrUnknownEnd, sent.Hash, err)
		}
	}
	moved := *t
	moved.Token, moved.To, moved.Amount = charged.Token, charged.To, charged.Amount
	return moved.Paid(logs), nil
}
