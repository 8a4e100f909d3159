package outbound

import (
	"context"
	"fmt"
	"time"

	"repute"
	"repute/policy"
)

// PaidRequest is a request whose answer may be paid for.
type PaidRequest struct {
	HTTPRequest
	// Key distinguishes the paid requests of a step: the same key is the same request, also after a
	// crash. Requests without a key are numbered.
	Key string `json:"key,omitempty"`
	// Max is the most that this answer may cost, in dollars, where that is below the policy's own cap; empty: its cap.
	Max string `json:"max,omitempty"`
}

// PaidResponse is an answer, and what was paid for it.
type PaidResponse struct {
	HTTPResponse
	Payment *Payment `json:"payment,omitempty"` // nil: the server demanded nothing
}

// Payment is a payment by x402 that a server accepted.
type Payment struct {
	ID          string    `json:"id"`    // of the stored purchase
	Agent       string    `json:"agent"` // that was paid, eip155:chain:registry:id; empty: unknown
	Score       float64   `json:"score"` // of the agent when it was paid
	Low         float64   `json:"low"`   // the bound of the score that was compared
	From        string    `json:"from"`
	To          string    `json:"to"`
	Network     string    `json:"network"` // eip155:chain
	Asset       string    `json:"asset"`   // contract of the token
	Amount      string    `json:"amount"`  // smallest units
	Dollars     string    `json:"dollars"`
	Transaction string    `json:"transaction"` // as the server says; empty where it names none
	At          time.Time `json:"at"`
}

// Purchase is a paid request in the name of a run.
type Purchase struct {
	PaidRequest
	Call        string // names the call of the run; one payment is made for a call
	Agent, Task string // slug of the agent that pays, and its task
	// Still is asked before a payment is signed: whether the run may still pay.
	Still func(ctx context.Context) error
	// Judge is asked before a payment is signed, after the payee is found to be trusted; an error refuses it. Nil
	// asks nothing.
	Judge func(ctx context.Context, p *policy.Payment) error
}

// ErrPaymentOpen is returned when a payment was sent and it is not known whether it was accepted. The
// same purchase is asked again with the same payment.
var ErrPaymentOpen = fmt.Errorf("a payment was sent, and its end is not known: %w", repute.ErrUnavailable)
