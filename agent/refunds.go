package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/agentdb"
	"repute/x402"
)

// Owed is a payment that was charged for a call that failed, and that the policy of its agent owes back. The runtime
// sends it to nobody: the money is in the account that is paid, whose key it need not have.
type Owed struct {
	Payment     string         `json:"payment"` // names it, see agentdb.Payment
	Payer       common.Address `json:"payer"`   // is paid back
	Amount      string         `json:"amount"`  // whole units
	Currency    string         `json:"currency"`
	Asset       common.Address `json:"asset"`
	Network     string         `json:"network"`
	Transaction string         `json:"transaction"` // charged it
	Capability  string         `json:"capability"`
	RequestID   string         `json:"requestId"`
	Time        time.Time      `json:"time"` // of the payment
}

// maxOwed bounds how many refunds are read at once: those that are paid back are not due any more.
const maxOwed = 1000

// Refunds are the payments to an agent that are owed back, the oldest first, a thousand at most.
func Refunds(ctx context.Context, db *store.DB, id repute.AgentID) ([]Owed, error) {
	list, err := agentdb.Refunds(ctx, db, id.String(), maxOwed)
	if err != nil {
		return nil, err
	}
	out := []Owed{}
	for i := range list {
		one, err := owedOf(&list[i])
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// owedOf reads what was charged by a stored payment.
func owedOf(p *agentdb.Payment) (o Owed, err error) {
	t, err := termsOf(p)
	if err != nil {
		return o, err
	}
	var s x402.Settlement
	if err := json.Unmarshal(p.Settled, &s); err != nil {
		return o, fmt.Errorf("stored settlement: %w", err)
	}
	amount := t.Requirements.Amount
	if s.Amount != nil {
		amount = *s.Amount // less than the terms say, in the scheme upto
	}
	return Owed{Payment: p.ID, Payer: p.Payer, Amount: amount.Decimal(t.Decimals), Currency: t.Currency,
		Asset: t.Requirements.Asset, Network: t.Requirements.Network, Transaction: s.Transaction, Capability: p.Capability, RequestID: p.RequestID,
		Time: p.Created.UTC()}, nil
}

// PaidBack stores that a transaction paid a payment back. repute.ErrNotFound where it is not owed, or not any more.
func PaidBack(ctx context.Context, db *store.DB, id repute.AgentID, payment string, tx common.Hash) error {
	p, err := agentdb.ReadPayment(ctx, db, payment)
	if err != nil {
		return err
	}
	if p.Agent != id.String() {
		return &repute.MissingError{What: "payment " + payment, Why: "is another agent's"}
	}
	return agentdb.SetRefunded(ctx, db, p, tx)
}
