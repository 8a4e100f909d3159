package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/agent"
	"repute/agent/capability"
	"repute/agent/signed"
	"repute/internal/paytest"
	"repute/x402"
)

const hello = `{"text":"hello"}`

// demandOf reads the demand of a 402 answer.
func demandOf(t *testing.T, got reply) x402.PaymentRequired {
	t.Helper()
	d, _, err := x402.DemandOf(got.header, []byte(got.body))
	ok(t, err)
	return d
}

// TestPaid: one 402 for all clients; bad input is refused before; each token and version is paid,
// settled on the chain and signed for; the same payment gets the same answer.
func TestPaid(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &echo{}
	before := func(d *capability.Definition) { d.SideEffects = true }
	s := w.open(t, agent.Options{}, service(t, "echo", h, w.price(), nil), service(t, "change", h, w.price(), before))
	if got := s.send(t, "echo", `{"txt":1}`, nil); got.status != http.StatusBadRequest ||
		got.header.Get(x402.HeaderRequired) != "" {
		t.Errorf("bad input is answered with %d", got.status)
	}
	asked := s.send(t, "echo", hello, nil)
	task, err := s.router.Service("echo").TaskHash("42", json.RawMessage(hello))
	ok(t, err)
	if asked.status != http.StatusPaymentRequired || !strings.Contains(asked.body, `"error":"payment_required"`) ||
		asked.header.Get("X-Payment-TaskHash") != task.Hex() || asked.header.Get("X-Payment-Amount") != "0.00001" ||
		asked.header.Get("X-Payment-Address") != w.Payee().Hex() || asked.header.Get("X-Payment-Currency") != "USDC" {
		t.Fatalf("%+v", asked)
	}
	d := demandOf(t, asked)
	var offered struct{ Info struct{ Offers []any } }
	ok(t, json.Unmarshal(d.Extensions[x402.ExtensionOfferReceipt], &offered))
	if len(d.Accepts) != 2 || len(offered.Info.Offers) != 2 || d.Extensions[x402.ExtensionBazaar] == nil ||
		h.count() != 0 {
		t.Fatalf("%+v", d)
	}
	runs, paid := 0, int64(0)
	for _, name := range []string{"echo", "change"} {
		for i, version := range []int{x402.V2, x402.V2, x402.V1} {
			r := d.Accepts[i%2]
			p, err := x402.Pay(t.Context(), w.Signer(paytest.PayerAccount), &d, version, r, time.Now())
			ok(t, err)
			head := header(t, p)
			if version == x402.V1 {
				head = http.Header{http.CanonicalHeaderKey(x402.HeaderPaymentV1): head[http.CanonicalHeaderKey(x402.HeaderPayment)]}
			}
			first := s.send(t, name, hello, head)
			runs, paid = runs+1, paid+10
			settled, given := x402.SettlementOf(first.header)
			if first.status != http.StatusOK || !given || !settled.Success || w.paid(t) != paid || h.count() != runs {
				t.Fatalf("%s %d: %+v: %d units, %d runs", name, version, first, w.paid(t), h.count())
			}
			receipt, given, err := settled.Receipt()
			ok(t, err)
			if by, err := paytest.ReceiptSigner(&receipt); err != nil || !given || by != w.Payee() ||
				receipt.Payload.Transaction != settled.Transaction {
				t.Errorf("%+v by %s: %v", receipt, by, err)
			}
			again := s.send(t, name, hello, head)
			if again.body != first.body || again.signed.Timestamp != first.signed.Timestamp || w.paid(t) != paid ||
				h.count() != runs {
				t.Errorf("again: %+v", again)
			}
			if other := s.send(t, name, `{"text":"other"}`, head); other.status != http.StatusConflict ||
				h.count() != runs {
				t.Errorf("another request with the payment: %+v", other)
			}
		}
	}
	receiptsShown(t, w, s, runs)
}

// receiptsShown: strangers see hashes, the client everything.
func receiptsShown(t *testing.T, w *world, s *shop, n int) {
	t.Helper()
	var public, own []map[string]any
	ok(t, json.Unmarshal([]byte(s.ask(t, http.MethodGet, "/agent/42/receipts", "", nil).body), &public))
	task, err := capability.TaskHash("42", "receipts", "1.0.0", []byte(`{}`))
	ok(t, err)
	got := s.ask(t, http.MethodGet, "/agents/31337:42/receipts?limit=100", "",
		s.proof(t, w.Signer(paytest.PayerAccount), task))
	ok(t, json.Unmarshal([]byte(got.body), &own))
	if len(public) != n || len(own) != n || public[0]["amount"] != nil || public[0]["clientSignature"] != nil ||
		own[0]["amount"] != "0.00001" || own[0]["settlement"] != "x402" || own[0]["transaction"] == nil ||
		own[0]["clientSignature"] == nil || own[0]["agentSignature"] == nil {
		t.Errorf("public %v, own %v", public, own)
	}
	stranger := s.ask(t, http.MethodGet, "/agent/42/receipts", "", s.proof(t, w.Signer(paytest.StrangerAccount), task))
	if strings.Contains(stranger.body, "clientSignature") {
		t.Errorf("a stranger sees %s", stranger.body)
	}
}

// proof are the headers by which a client signs a request.
func (s *shop) proof(t *testing.T, by x402.Signer, task common.Hash) http.Header {
	t.Helper()
	r := signed.TaskRequest{AgentID: s.router.ID().TokenID, Client: by.Address(), TaskHash: task,
		Timestamp: uint64(time.Now().Unix())}
	return proofOf(t, by, signed.DomainOf(s.router.ID()), &r)
}

// TestParallel: a payment that is sent fifty times at once, to two processes, is worked for once.
func TestParallel(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &echo{}
	one := w.open(t, agent.Options{Concurrency: 50}, service(t, "echo", h, w.price(), nil))
	two := w.open(t, agent.Options{Concurrency: 50}, service(t, "echo", h, w.price(), nil))
	head := header(t, w.Pay(t, w.Requirements(10)))
	var all sync.WaitGroup
	var mu sync.Mutex
	bodies := map[string]int{}
	for i := range 50 {
		all.Go(func() {
			s := []*shop{one, two}[i%2]
			for {
				got := s.send(t, "echo", hello, head)
				if got.status == http.StatusServiceUnavailable &&
					strings.Contains(got.body, "send the same payment again") {
					time.Sleep(200 * time.Millisecond)
					continue
				}
				mu.Lock()
				bodies[got.body]++
				mu.Unlock()
				return
			}
		})
	}
	all.Wait()
	if len(bodies) != 1 || bodies[`{"run":1,"text":{"text":"hello"}}`] != 50 || h.count() != 1 || w.paid(t) != 10 {
		t.Errorf("%v: %d runs, %d units", bodies, h.count(), w.paid(t))
	}
}

// TestUpto: the output says what is charged, and not more than was signed.
func TestUpto(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &echo{out: `{"usage":{"price":"0.000004"}}`}
	price := &agent.Price{Amount: "0.00001", Currency: "PLAIN", Decimals: 6, ChargeFrom: "/usage/price",
		Ways: []agent.Way{{Requirements: w.UptoRequirements(10), Symbol: "PLAIN", Decimals: 6}}}
	s := w.open(t, agent.Options{}, service(t, "echo", h, price,
		func(d *capability.Definition) { d.Scheme = capability.UpTo }))
	got := s.send(t, "echo", hello, header(t, w.Pay(t, w.UptoRequirements(10))))
	if settled, _ := x402.SettlementOf(got.header); got.status != http.StatusOK || w.paid(t) != 4 ||
		settled.Amount.String() != "4" {
		t.Errorf("%+v: %d units", got, w.paid(t))
	}
	h.out = `{"usage":{"price":"0.000011"}}`
	if got := s.send(t, "echo", hello, header(t,
		w.Pay(t, w.UptoRequirements(10)))); got.status != http.StatusInternalServerError ||
		w.paid(t) != 4 {
		t.Errorf("%+v: %d units", got, w.paid(t))
	}
}

// TestWrongPayments: none of them is settled or worked for.
func TestWrongPayments(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &echo{}
	s := w.open(t, agent.Options{}, service(t, "echo", h, w.price(), nil))
	r := w.Requirements(10)
	forged := w.Pay(t, r)
	forged.Payload.Signature[4] ^= 1
	cheap := w.Pay(t, w.Requirements(9))
	lied := w.Pay(t, w.Requirements(9))
	lied.Accepted = r
	for name, c := range map[string]struct {
		p      x402.Payment
		status int
	}{
		"forged":        {forged, 402},
		"another price": {cheap, 402},
		"price lied":    {lied, 402},
		"without funds": {w.PayAs(t, w.Signer(paytest.StrangerAccount), r), 402},
		"no allowance":  {w.PayAs(t, w.Signer(paytest.StrangerAccount), w.PlainRequirements(10)), 402},
	} {
		got := s.send(t, "echo", hello, header(t, c.p))
		if got.status != c.status && !(name == "no allowance" && got.status == http.StatusPreconditionFailed) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	for _, text := range []string{"", "x", "e30=", strings.Repeat("A", 40_000), strings.Repeat("A", 64<<10),
		strings.Repeat("A", 300<<10)} {
		got := s.send(t, "echo", hello, http.Header{http.CanonicalHeaderKey(x402.HeaderPayment): {text}})
		if want := http.StatusBadRequest; got.status != want && text != "" {
			t.Errorf("%.10q: %d %s", text, got.status, got.body)
		}
	}
	if h.count() != 0 || w.paid(t) != 0 {
		t.Errorf("%d runs, %d units", h.count(), w.paid(t))
	}
}

// TestNamedPayments: a name belongs to one payment, and may be demanded.
func TestNamedPayments(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &echo{}
	o := agent.Options{Payments: w.payments(localFacilitator(t, database(t, w.url), w.chain(t)))}
	o.Payments.RequireID = true
	s := w.open(t, o, service(t, "echo", h, w.price(), nil))
	d := demandOf(t, s.send(t, "echo", hello, nil))
	pay := func(id string) http.Header {
		p, err := x402.Pay(t.Context(), w.Signer(paytest.PayerAccount), &d, x402.V2, d.Accepts[0], time.Now())
		ok(t, err)
		p.Extensions = maps.Clone(p.Extensions)
		if id != "" {
			ok(t, p.Extensions.SetPaymentID(id))
		}
		return header(t, p)
	}
	first := pay("order-0000000001")
	for i, c := range []struct {
		head   http.Header
		status int
	}{{pay(""), 400}, {first, 200}, {first, 200}, {pay("order-0000000001"), 409}, {pay("order-0000000002"), 200}} {
		if got := s.send(t, "echo", hello, c.head); got.status != c.status {
			t.Errorf("%d: %d %s", i, got.status, got.body)
		}
	}
	if h.count() != 2 || w.paid(t) != 20 {
		t.Errorf("%d runs, %d units", h.count(), w.paid(t))
	}
}

// TestHandlerFails: nothing is charged for work that failed, and the payment is not worked for again;
// where it was charged before, the answer says so.
func TestHandlerFails(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &echo{fail: errors.New("secret")}
	s := w.open(t, agent.Options{}, service(t, "echo", h, w.price(), nil),
		service(t, "change", h, w.price(), func(d *capability.Definition) { d.SideEffects = true }))
	for i, c := range []struct {
		name, says string
		paid       int64
	}{{"echo", "nothing was charged", 0}, {"change", "the payment was charged", 10}} {
		head := header(t, w.Pay(t, w.Requirements(10)))
		for range 2 {
			got := s.send(t, c.name, hello, head)
			if got.status != http.StatusInternalServerError || !strings.Contains(got.body, c.says) ||
				strings.Contains(got.body, "secret") || w.paid(t) != c.paid || h.count() != i+1 {
				t.Errorf("%+v: %d units, %d runs", got, w.paid(t), h.count())
			}
		}
	}
}

// TestSpentMeanwhile: who spends the money while the work is done gets no content; the work is kept
// for when the payment can be settled.
func TestSpentMeanwhile(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &echo{}
	f := &gatedFacilitator{Facilitator: localFacilitator(t, database(t, w.url), w.chain(t)), refuse: 1}
	s := w.open(t, agent.Options{Payments: w.payments(f)}, service(t, "echo", h, w.price(), nil))
	head := header(t, w.Pay(t, w.Requirements(10)))
	got := s.send(t, "echo", hello, head)
	if got.status != http.StatusPaymentRequired || strings.Contains(got.body, "run") || w.paid(t) != 0 ||
		h.count() != 1 {
		t.Errorf("%+v", got)
	}
	if settled, given := x402.SettlementOf(got.header); !given || settled.Success {
		t.Errorf("%+v", settled)
	}
	got = s.send(t, "echo", hello, head)
	if got.status != http.StatusOK || w.paid(t) != 10 || h.count() != 1 {
		t.Errorf("%+v: %d runs", got, h.count())
	}
}

// gatedFacilitator refuses so many settlements.
type gatedFacilitator struct {
	x402.Facilitator
	mu     sync.Mutex
	refuse int
}

// Settle implements x402.Facilitator.
func (g *gatedFacilitator) Settle(ctx context.Context, p x402.Payment, r x402.Requirements) (x402.Settlement, error) {
	g.mu.Lock()
	refuse := g.refuse > 0
	g.refuse--
	g.mu.Unlock()
	if refuse {
		return x402.Settlement{ErrorReason: x402.ReasonInsufficientFunds, ErrorText: "<b>mine</b>",
			Network: r.Network}, nil
	}
	return g.Facilitator.Settle(ctx, p, r)
}

var _ = repute.ErrInvalid
