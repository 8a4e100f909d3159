package serve_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute/agent"
	"repute/agent/signed"
	"repute/internal/pgtest"
	"repute/x402"
)

// strict is a policy by which all requests are paid.
type strict struct{ agent.Open }

// Decide implements agent.Governor.
func (strict) Decide(_ context.Context, q agent.Question) agent.Decision {
	return agent.Decision{Allow: q.Paid, Reasons: []string{"every request must be paid"}}
}

// TestPaymentOfFree: a payment for what costs nothing is verified by nobody, and makes no request a
// paid one.
func TestPaymentOfFree(t *testing.T) {
	t.Parallel()
	h := &echo{}
	s := open(t, pgtest.New(t), agent.Options{Governor: strict{}, Services: []*agent.Service{service(t, "echo", h, nil, nil)}})
	p := &signed.Promise{PaymentReceipt: signed.PaymentReceipt{From: common.Address{1}, Amount: common.Big1, Currency: "ETH"},
		Signature: []byte{1}}
	for name, q := range map[string]agent.Request{"nothing": {}, "promise": {Promise: p}, "payment": {Payment: &x402.Payment{}}} {
		q.Capability, q.Input = "echo", json.RawMessage(hello)
		if got := s.router.Do(t.Context(), q); got.Status != http.StatusForbidden || h.count() != 0 {
			t.Errorf("%s: %d, %d runs", name, got.Status, h.count())
		}
	}
}

// wordy is a facilitator that adds much to what it settles.
type wordy struct{ x402.Facilitator }

// Settle implements x402.Facilitator.
func (f wordy) Settle(ctx context.Context, p x402.Payment, r x402.Requirements) (x402.Settlement, error) {
	s, err := f.Facilitator.Settle(ctx, p, r)
	s.ErrorText = "secret"
	raw, _ := json.Marshal(strings.Repeat("secret ", 10_000))
	s.Extensions = x402.Extensions{"note": raw}
	return s, err
}

// TestWordyFacilitator: a payment that was charged is answered whatever the facilitator adds, and
// nothing of it is shown.
func TestWordyFacilitator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := agent.Options{Payments: w.payments(wordy{facilitator(t, database(t, w.url), w.chain(t))})}
	s := w.open(t, o, service(t, "echo", &echo{}, w.price(), nil))
	head := header(t, w.Pay(t, w.Requirements(10)))
	for range 2 {
		got := s.send(t, "echo", hello, head)
		settled, found := x402.SettlementOf(got.header)
		if got.status != http.StatusOK || !found || settled.Transaction == "" || len(settled.Extensions) != 1 ||
			settled.ErrorText != "" {
			t.Fatalf("%d %.300s %+v", got.status, got.body, settled)
		}
	}
	if w.paid(t) != 10 {
		t.Errorf("paid %d", w.paid(t))
	}
}
