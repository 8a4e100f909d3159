package payer

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"repute"
	"repute/orchestrator/outbound"
	"repute/policy"
	"repute/store"
	"repute/x402"
)

// RunOptions configure payments of runs.
type RunOptions struct {
	HTTP *http.Client // that reaches servers: the one that guards requests of agents
	// Keys returns the key with which an agent pays on a chain; repute.ErrNotFound where it has none.
	Keys  func(chainID uint64, slug string) (x402.Signer, error)
	Coins []repute.Stablecoin // that are paid with
	Log   *slog.Logger        // nil discards
}

// Runs pays for agents of the orchestrator, within the spending of a policy. It is safe for concurrent
// use.
type Runs struct {
	db *store.DB
	o  RunOptions
}

// ForRuns returns the payer of runs.
func ForRuns(db *store.DB, o RunOptions) *Runs { return &Runs{db: db, o: o} }

// Pay asks a server in the name of a run and pays for the answer where it demands that. Errors are
// those of Payer.Do. The call of the purchase is paid at most once.
func (r *Runs) Pay(ctx context.Context, s policy.Spending, b outbound.Purchase) (out outbound.PaidResponse, err error) {
	if b.Max != "" {
		most, err := repute.ParseDollars("max", b.Max)
		if err != nil {
			return out, err
		}
		s.MaxCall = min(s.MaxCall, most)
	}
	p, err := r.payer(s, &b)
	if err != nil {
		return out, err
	}
	a, err := p.Do(ctx, request(&b))
	if err != nil {
		return out, err
	}
	if out.Payment = paymentOf(a.Receipt); len(a.Body) > outbound.MaxAnswer {
		return out, repute.Invalid("answer", fmt.Sprintf("has more than %d bytes", outbound.MaxAnswer), "a shorter one")
	}
	out.HTTPResponse = outbound.HTTPResponse{Status: a.Status, Header: outbound.Harmless(a.Header), Body: a.Body,
		At:        a.At,
		ElapsedMS: a.Elapsed.Milliseconds()}
	return out, nil
}

// Quote asks a server in the name of a run what it demands, and pays nothing. Errors are those of Payer.Quote.
func (r *Runs) Quote(ctx context.Context, s policy.Spending, b outbound.Purchase) (*policy.Payment, error) {
	p, err := r.payer(s, &b)
	if err != nil {
		return nil, err
	}
	return p.Quote(ctx, request(&b))
}

// payer pays within the spending of a policy in the name of a run.
func (r *Runs) payer(s policy.Spending, b *outbound.Purchase) (*Payer, error) {
	return New(r.db, Options{Index: s.Index, HTTP: r.o.HTTP, Coins: r.o.Coins, Agent: b.Agent,
		By: "task " + b.Task, Task: b.Task, MaxCall: s.MaxCall, MaxTask: s.MaxTask, MaxHost: s.MaxHost,
		MaxDay:   s.MaxDay,
		MinScore: s.MinScore, AllowUnknown: s.AllowUnknown, Log: r.o.Log,
		Keys: func(chainID uint64) (x402.Signer, error) { return r.o.Keys(chainID, b.Agent) }})
}

// request is what is asked of the server of a purchase.
func request(b *outbound.Purchase) Request {
	header := http.Header{}
	if b.Call != "" {
		header.Set("Idempotency-Key", b.Call)
	}
	for name, values := range b.Header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	return Request{Method: b.Method, URL: b.URL, Body: b.Body, Header: header, Call: b.Call, Still: b.Still,
		Judge: b.Judge}
}

// paymentOf is what a run keeps of a receipt; nil of none.
func paymentOf(r *Receipt) *outbound.Payment {
	if r == nil {
		return nil
	}
	p := &outbound.Payment{ID: r.ID, From: r.Payer, To: r.PayTo, Network: r.Network, Asset: r.Asset, Amount: r.Amount,
		Dollars: r.Dollars, Transaction: r.Transaction, At: r.Time}
	if r.Payee != nil {
		p.Agent, p.Score, p.Low = r.Payee.Agent, r.Payee.Score, r.Payee.Low
	}
	return p
}
