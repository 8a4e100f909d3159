package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/agent"
	"repute/agent/capability"
	"repute/agent/registry"
	"repute/agent/signed"
	"repute/internal/paytest"
	"repute/internal/pgtest"
	"repute/store/agentdb"
	"repute/x402"
	"repute/x402/facilitator"
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
	s := open(t, pgtest.New(t), agent.Options{Governor: strict{},
		Services: []*agent.Service{service(t, "echo", h, nil, nil)}})
	p := &signed.Promise{PaymentReceipt: signed.PaymentReceipt{From: common.Address{1}, Amount: common.Big1,
		Currency: "ETH"},
		Signature: []byte{1}}
	for name, q := range map[string]agent.Request{"nothing": {}, "promise": {Promise: p},
		"payment": {Payment: &x402.Payment{}}} {
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
	o := agent.Options{Payments: w.payments(wordy{localFacilitator(t, database(t, w.url), w.chain(t))})}
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

// remote is a facilitator of others, confirmed on the chain.
func (w *world) remote(t *testing.T, h http.Handler) *x402.Confirmed {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	client, err := facilitator.NewClient(nil, 10*time.Second, server.URL)
	ok(t, err)
	chain, err := registry.Open(registry.Options{ID: repute.AgentID{ChainID: w.Chain().ID}, RPC: []string{w.RPCURL()}})
	ok(t, err)
	t.Cleanup(chain.Close)
	return &x402.Confirmed{Facilitator: client, Verifier: &x402.Verifier{Chain: chain}, History: chain,
		Wait: 2 * time.Second}
}

// TestLostSettlement: where the answer of a facilitator to a settlement is lost, and it refuses to
// settle again, the payment that was charged is answered, and no other one is asked for.
func TestLostSettlement(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	honest := facilitator.NewHandler(localFacilitator(t, database(t, w.url), w.chain(t)))
	var settled atomic.Int32
	f := w.remote(t, http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.HasSuffix(r.URL.Path, "/settle"):
			honest.ServeHTTP(out, r)
		case settled.Add(1)%2 == 1:
			honest.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		default:
			out.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(out, `{"success":false,"errorReason":%q,"transaction":"","network":"eip155:31337"}`,
				x402.ReasonNonceUsed)
		}
	}))
	for _, c := range []struct {
		name   string
		change func(*capability.Definition)
		pay    x402.Requirements
		status int
	}{
		{"after", nil, w.Requirements(10), http.StatusOK},
		{"before", func(d *capability.Definition) { d.SideEffects = true }, w.Requirements(10), http.StatusOK},
		{"permit", nil, w.PlainRequirements(10), http.StatusOK},
	} {
		h := &echo{}
		s := w.open(t, agent.Options{Payments: w.payments(f)}, service(t, c.name, h, w.price(), c.change))
		head, had := header(t, w.Pay(t, c.pay)), w.paid(t)
		settled.Store(0)
		for range 2 {
			got := s.send(t, c.name, hello, head)
			if got.status != c.status || h.count() != 1 || w.paid(t) != had+10 {
				t.Errorf("%s: %d %s, %d runs, paid %d", c.name, got.status, got.body, h.count(), w.paid(t)-had)
			}
		}
	}
}

// TestUsedBefore: an authorization that was used for something else pays for nothing, whatever the
// localFacilitator says.
func TestUsedBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, local := w.Pay(t, w.Requirements(10)), localFacilitator(t, database(t, w.url), w.chain(t))
	first, err := local.Settle(t.Context(), p, w.Requirements(10))
	if err != nil || !first.Success {
		t.Fatalf("%+v %v", first, err)
	}
	f := w.remote(t, &liar{verify: says(fmt.Sprintf(`{"isValid":true,"payer":%q}`,
		w.Account(paytest.PayerAccount).Address.Hex())),
		settle: says(fmt.Sprintf(`{"success":true,"transaction":%q,"network":"eip155:31337"}`, first.Transaction))})
	h := &echo{}
	s := w.open(t, agent.Options{Payments: w.payments(f)}, service(t, "echo", h, w.price(), nil))
	if got := s.send(t, "echo", hello, header(t, p)); got.status != http.StatusPaymentRequired || h.count() != 0 {
		t.Errorf("%d %s, %d runs", got.status, got.body, h.count())
	}
}

// TestLogOfStrangers: who sends what is refused fills the log with no long signatures, and writes nothing
// into it in the name of others.
func TestLogOfStrangers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t, agent.Options{}, service(t, "echo", &echo{}, w.price(), nil))
	p := w.Pay(t, w.Requirements(10))
	p.Payload.Signature = make([]byte, 16<<10)
	if got := s.send(t, "echo", hello, header(t, p)); got.status != http.StatusPaymentRequired {
		t.Fatalf("%d %s", got.status, got.body)
	}
	list, err := agentdb.Entries(t.Context(), s.db, agentdb.Query{Agent: s.router.ID().String()})
	if err != nil || len(list) == 0 {
		t.Fatalf("%v %v", list, err)
	}
	for _, e := range list {
		if len(e.ClientSignature) > 0 || e.Client != (common.Address{}) {
			t.Errorf("%s %s: client %s, %d bytes", e.Kind, e.Outcome, e.Client, len(e.ClientSignature))
		}
	}
}

// fickle is a policy that refuses everybody from a time on.
type fickle struct {
	agent.Open
	refuses *atomic.Bool
}

// Decide implements agent.Governor.
func (f fickle) Decide(context.Context, agent.Question) agent.Decision {
	return agent.Decision{Allow: !f.refuses.Load()}
}

// TestPolicyChangesAfterPayment: a payer that was charged gets the answer although the policy refuses it
// by now.
func TestPolicyChangesAfterPayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refuses, h := &atomic.Bool{}, &echo{}
	s := w.open(t, agent.Options{Governor: fickle{refuses: refuses}}, service(t, "echo", h, w.price(), nil))
	head := header(t, w.Pay(t, w.Requirements(10)))
	for i, c := range []struct {
		head   http.Header
		input  string
		status int
	}{{head, hello, 200}, {head, hello, 200}, {head, `{"text":"other"}`, 403},
		{header(t, w.Pay(t, w.Requirements(10))), hello, 403}} {
		if got := s.send(t, "echo", c.input, c.head); got.status != c.status {
			t.Errorf("%d: %d %s", i, got.status, got.body)
		}
		refuses.Store(true)
	}
	if h.count() != 1 || w.paid(t) != 10 {
		t.Errorf("%d runs, paid %d", h.count(), w.paid(t))
	}
}

// TestHandlerComesBack: a payment that was charged before its handler could not be reached is answered
// when the handler is back, where it may be called again.
func TestHandlerComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := &echo{fail: fmt.Errorf("no route: %w", repute.ErrUnavailable)}
	one := service(t, "echo", h, w.price(), func(d *capability.Definition) { d.SideEffects = true })
	one.Repeatable = true
	s := w.open(t, agent.Options{}, one)
	head := header(t, w.Pay(t, w.Requirements(10)))
	if got := s.send(t, "echo", hello, head); got.status != http.StatusServiceUnavailable ||
		got.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", got.status, got.body)
	}
	h.mu.Lock()
	h.fail = nil
	h.mu.Unlock()
	for range 2 {
		if got := s.send(t, "echo", hello, head); got.status != http.StatusOK || h.count() != 2 || w.paid(t) != 10 {
			t.Errorf("%d %s, %d runs, paid %d", got.status, got.body, h.count(), w.paid(t))
		}
	}
}

// TestShortAuthorization: nothing is run for an authorization that can end before the handler does.
func TestShortAuthorization(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := &echo{}
	s := w.open(t, agent.Options{}, service(t, "echo", h, w.price(), nil))
	for _, r := range []x402.Requirements{w.Requirements(10), w.PlainRequirements(10)} {
		r.MaxTimeoutSeconds = 15
		if got := s.send(t, "echo", hello, header(t, w.Pay(t, r))); got.status != http.StatusPaymentRequired ||
			h.count() != 0 {
			t.Errorf("%d %s, %d runs", got.status, got.body, h.count())
		}
	}
}
