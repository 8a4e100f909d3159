package capability

import (
	"encoding/json"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Call is one execution of a capability, as its handler sees it.
type Call struct {
	AgentID    string // decimal
	Capability string
	Version    string
	RequestID  string
	// Correlation is the id that the client or a proxy gave the request, else RequestID. It is for logs:
	// others may use the same one.
	Correlation string
	Client      common.Address // zero when the client is not known
	Payment     *Payment       // nil for a call that is not paid
	Time        time.Time      // when the request was accepted
	Input       json.RawMessage
}

// Payment is what paid for a call.
type Payment struct {
	// Transaction is the hash of the settlement. It is zero where the call runs before its payment
	// is settled, and for signed promises, which move no money.
	Transaction common.Hash
	Payer       common.Address
	Amount      string // in minor units, decimal
	Asset       string // address of the token, or the currency of a promise
	Network     string // CAIP-2
}

// callJSON is the form of a Call on the wire.
type callJSON struct {
	AgentID     string          `json:"agentId"`
	Capability  string          `json:"capability"`
	Version     string          `json:"version"`
	RequestID   string          `json:"requestId"`
	Correlation string          `json:"correlationId,omitempty"`
	Client      string          `json:"clientAddress,omitempty"`
	Payment     *paymentJSON    `json:"payment,omitempty"`
	Time        time.Time       `json:"timestamp"`
	Input       json.RawMessage `json:"input"`
}

// paymentJSON is the form of a Payment on the wire.
type paymentJSON struct {
	Transaction string `json:"transaction,omitempty"`
	Payer       string `json:"payer"`
	Amount      string `json:"amount"`
	Asset       string `json:"asset"`
	Network     string `json:"network"`
}

// MarshalJSON writes the form that handlers outside this process read: addresses are checksummed,
// what is not known is absent.
func (c Call) MarshalJSON() ([]byte, error) {
	out := callJSON{AgentID: c.AgentID, Capability: c.Capability, Version: c.Version, RequestID: c.RequestID,
		Correlation: c.Correlation, Time: c.Time.UTC(), Input: c.Input}
	if c.Client != (common.Address{}) {
		out.Client = c.Client.Hex()
	}
	if p := c.Payment; p != nil {
		out.Payment = &paymentJSON{Payer: p.Payer.Hex(), Amount: p.Amount, Asset: p.Asset, Network: p.Network}
		if p.Transaction != (common.Hash{}) {
			out.Payment.Transaction = p.Transaction.Hex()
		}
	}
	return json.Marshal(out)
}
