package serve_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/agent"
	"repute/agent/capability"
	"repute/store/agentdb"
	"repute/x402"
)

// errAway is a handler's error while it cannot be reached.
var errAway = fmt.Errorf("no route: %w", repute.ErrUnavailable)

// fails changes what a handler answers.
func (e *echo) fails(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fail = err
}

// effects is a capability that is settled before it runs.
func effects(d *capability.Definition) { d.SideEffects = true }

// TestTermsHold: a payment that was claimed is answered, and finished, on the terms of its claim, whatever the
// capability costs since then; new ones pay what it costs now.
func TestTermsHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := agent.Options{Payments: w.payments(localFacilitator(t, database(t, w.url), w.chain(t)))}
	dearer, token, payee := w.price(), w.price(), w.price()
	dearer.Amount, dearer.Ways[0] = "0.00002", agent.Way{Requirements: w.Requirements(20), Symbol: "USDC", Decimals: 6}
	token.Ways = token.Ways[1:]
	payee.Ways[0].PayTo = common.HexToAddress("0xfee")
	for name, price := range map[string]*agent.Price{"dearer": dearer, "another token": token, "another payee": payee,
		"free": nil} {
		h := &echo{}
		serve := func(p *agent.Price) *shop {
			one := service(t, "echo", h, p, effects)
			one.Repeatable = true
			return w.open(t, o, one)
		}
		before, after, had := serve(w.price()), serve(price), w.paid(t)
		done, begun := header(t, w.Pay(t, w.Requirements(10))), header(t, w.Pay(t, w.Requirements(10)))
		first := before.send(t, "echo", hello, done)
		h.fails(errAway)
		if got := before.send(t, "echo", hello, begun); got.status != http.StatusServiceUnavailable {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		h.fails(nil)
		if got := after.send(t, "echo", hello, done); got.status != http.StatusOK || got.body != first.body {
			t.Errorf("%s, done: %d %s", name, got.status, got.body)
		}
		got := after.send(t, "echo", hello, begun)
		settled, found := x402.SettlementOf(got.header)
		if got.status != http.StatusOK || !found || settled.Amount.String() != "10" || w.paid(t) != had+20 {
			t.Errorf("%s, begun: %d %s: paid %d", name, got.status, got.body, w.paid(t)-had)
		}
		fresh := after.send(t, "echo", hello, header(t, w.Pay(t, w.Requirements(10))))
		if want := map[bool]int{true: 200, false: 402}[price == nil]; fresh.status != want || w.paid(t) != had+20 {
			t.Errorf("%s, new: %d %s", name, fresh.status, fresh.body)
		}
	}
}

// TestOwedInAllModes: who paid before gets the answer, or the work that is left, in every mode; nobody gets new
// work done.
func TestOwedInAllModes(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &echo{}
	one := service(t, "echo", h, w.price(), effects)
	one.Repeatable = true
	stuck := &echo{block: make(chan struct{}), begun: make(chan struct{}, 1)}
	s := w.open(t, agent.Options{Concurrency: 1, Degraded: 1, Patience: -1}, one, service(t, "stuck", stuck, nil, nil))
	done := header(t, w.Pay(t, w.Requirements(10)))
	first := s.send(t, "echo", hello, done)
	var all sync.WaitGroup
	all.Go(func() { s.send(t, "stuck", hello, nil) })
	<-stuck.begun // no place is left
	for i, m := range []agent.Mode{agent.Normal, agent.Degraded, agent.Maintenance, agent.Shutdown} {
		s.router.SetMode(t.Context(), agent.Normal, "test")
		if m == agent.Shutdown {
			close(stuck.block)
			all.Wait()
		}
		charged := header(t, w.Pay(t, w.Requirements(10)))
		if m == agent.Shutdown {
			h.fails(errAway)
			s.send(t, "echo", hello, charged) // the money moves, the handler cannot be reached
			h.fails(nil)
		}
		s.router.SetMode(t.Context(), m, "test")
		runs := h.count()
		if got := s.send(t, "echo", hello, done); got.status != http.StatusOK || got.body != first.body ||
			h.count() != runs {
			t.Errorf("%s, done: %d %s", m, got.status, got.body)
		}
		if got := s.send(t, "echo", `{"text":"other"}`, done); got.status < 400 || h.count() != runs {
			t.Errorf("%s, another request: %d %s", m, got.status, got.body)
		}
		for _, head := range []http.Header{nil, header(t, w.Pay(t, w.Requirements(10)))} {
			got := s.send(t, "echo", hello, head)
			if got.status != http.StatusServiceUnavailable && got.status != http.StatusTooManyRequests ||
				h.count() != runs {
				t.Errorf("%s, new: %d %s", m, got.status, got.body)
			}
		}
		if m != agent.Shutdown {
			continue
		}
		if got := s.send(t, "echo", hello, charged); got.status != http.StatusOK || h.count() != runs+1 ||
			w.paid(t) != 20 {
			t.Errorf("%d %s, charged: %d %s, paid %d", i, m, got.status, got.body, w.paid(t))
		}
	}
}

// attempts is a facilitator whose settlements end as a test says, one after the other.
type attempts struct {
	x402.Facilitator
	mu   sync.Mutex
	ends []func(ctx context.Context, p x402.Payment, r x402.Requirements) (x402.Settlement, error)
}

// Settle implements x402.Facilitator.
func (a *attempts) Settle(ctx context.Context, p x402.Payment, r x402.Requirements) (x402.Settlement, error) {
	a.mu.Lock()
	end := a.ends[0]
	a.ends = a.ends[1:]
	a.mu.Unlock()
	return end(ctx, p, r)
}

// unknownEnd is an attempt that is not answered.
func unknownEnd(context.Context, x402.Payment, x402.Requirements) (x402.Settlement, error) {
	return x402.Settlement{}, x402.ErrUnknownEnd
}

// refusal is an attempt that is refused; dead tells that the chain proves that the payment is over.
func refusal(dead bool) func(context.Context, x402.Payment, x402.Requirements) (x402.Settlement, error) {
	return func(_ context.Context, _ x402.Payment, r x402.Requirements) (x402.Settlement, error) {
		return x402.Settlement{ErrorReason: x402.ReasonNonceUsed, Network: r.Network, Dead: dead}, nil
	}
}

// TestUnknownThenRefused: once the end of an attempt is not known, its payer is not told to pay anew, also where a
// later attempt is refused, until the chain proves that the payment is over.
func TestUnknownThenRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	local := localFacilitator(t, database(t, w.url), w.chain(t))
	for name, change := range map[string]func(*capability.Definition){"after": nil, "before": effects} {
		f, h := &attempts{Facilitator: local}, &echo{}
		s := w.open(t, agent.Options{Payments: w.payments(f)}, service(t, "echo", h, w.price(), change))
		f.ends = append(f.ends, unknownEnd, refusal(false), refusal(false), local.Settle, unknownEnd, refusal(true))
		for i, head := range []http.Header{header(t, w.Pay(t, w.Requirements(10))),
			header(t, w.Pay(t, w.Requirements(10)))} {
			for _, want := range [][]int{{503, 503, 503, 200, 200}, {503, 402}}[i] {
				got := s.send(t, "echo", hello, head)
				if got.status != want || want == 503 && !strings.Contains(got.body, "never another one") {
					t.Errorf("%s, payment %d: %d %s, want %d", name, i, got.status, got.body, want)
				}
			}
		}
		if len(f.ends) != 0 {
			t.Errorf("%s: %d attempts were not made", name, len(f.ends))
		}
	}
	if w.paid(t) != 20 {
		t.Errorf("paid %d", w.paid(t))
	}
}

// TestStalledOwner: a process that was stalled while another one took its payment over does not tell the payer to
// pay anew, because its own attempt is refused.
func TestStalledOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	local, entered, wake := localFacilitator(t, database(t, w.url),
		w.chain(t)), make(chan struct{}), make(chan struct{})
	f := &attempts{Facilitator: local}
	f.ends = append(f.ends, func(ctx context.Context, p x402.Payment, r x402.Requirements) (x402.Settlement, error) {
		close(entered)
		<-wake
		return refusal(false)(ctx, p, r)
	}, local.Settle)
	h := &echo{}
	one := w.open(t, agent.Options{Payments: w.payments(f), Lease: time.Hour}, service(t, "echo", h, w.price(), nil))
	two := w.open(t, agent.Options{Payments: w.payments(f), Lease: time.Hour}, service(t, "echo", h, w.price(), nil))
	head, stalled := header(t, w.Pay(t, w.Requirements(10))), make(chan reply, 1)
	go func() { stalled <- one.send(t, "echo", hello, head) }()
	<-entered
	_, err := one.db.Pool().Exec(t.Context(), `update agent_payments set expires_at = clock_timestamp()`)
	ok(t, err)
	if got := two.send(t, "echo", hello, head); got.status != http.StatusOK || w.paid(t) != 10 {
		t.Errorf("%d %s", got.status, got.body)
	}
	close(wake)
	if got := <-stalled; got.status != http.StatusServiceUnavailable ||
		!strings.Contains(got.body, "with the same payment") {
		t.Errorf("the stalled one: %d %s", got.status, got.body)
	}
	if got := one.send(t, "echo", hello, head); got.status != http.StatusOK || h.count() != 1 {
		t.Errorf("at last: %d %s", got.status, got.body)
	}
}

// generous is a policy by which payments of failed calls are owed back.
type generous struct{ agent.Open }

// Decide implements agent.Governor.
func (generous) Decide(context.Context, agent.Question) agent.Decision {
	return agent.Decision{Allow: true, Refund: true}
}

// TestRefunds: what was charged for a call that failed is owed back by the policy, once, and stays in the list
// until its repayment is stored; what was not charged is not owed.
func TestRefunds(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &echo{}
	s := w.open(t, agent.Options{Governor: generous{}}, service(t, "echo", h, w.price(), nil),
		service(t, "change", h, w.price(), effects))
	due := func() []agentdb.Payment {
		list, err := agentdb.Refunds(t.Context(), s.db, s.router.ID().String(), 10)
		ok(t, err)
		return list
	}
	for i, out := range []string{"[]", ""} { // an output that is not of the schema, and an error
		h.out = out
		h.fails(map[bool]error{true: errors.New("broken")}[out == ""])
		for name, says := range map[string]string{"echo": "nothing was charged", "change": "owes it back"} {
			head := header(t, w.Pay(t, w.Requirements(10)))
			for range 2 {
				if got := s.send(t, name, hello, head); got.status != http.StatusInternalServerError ||
					!strings.Contains(got.body, says) {
					t.Errorf("%s: %d %s", name, got.status, got.body)
				}
			}
		}
		if len(due()) != i+1 {
			t.Fatalf("due: %+v", due())
		}
	}
	ok(t, agentdb.PrunePayments(t.Context(), s.db, s.router.ID().String(), 0))
	first := due()[0]
	ok(t, agentdb.SetRefunded(t.Context(), s.db, first, common.Hash{1}))
	if err := agentdb.SetRefunded(t.Context(), s.db, first, common.Hash{2}); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("twice: %v", err)
	}
	if list := due(); len(list) != 1 || list[0].ID == first.ID || list[0].Payer != w.Account(1).Address {
		t.Errorf("due: %+v", list)
	}
	entries, err := agentdb.Entries(t.Context(), s.db,
		agentdb.Query{Agent: s.router.ID().String(), Kind: agentdb.Verification})
	ok(t, err)
	counts := map[string]int{}
	for _, e := range entries {
		counts[e.Outcome]++
	}
	if counts["refund due"] != 2 || counts["refunded"] != 1 {
		t.Errorf("the log has %v", counts)
	}
}
