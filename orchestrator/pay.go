package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"go.opentelemetry.io/otel/attribute"

	"repute"
	"repute/orchestrator/journal"
	"repute/orchestrator/outbound"
	"repute/orchestrator/pending"
	"repute/orchestrator/quote"
	"repute/orchestrator/transaction"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
)

// Payer asks servers and pays for their answers by x402 (package payer). It MUST make at most one
// payment for the call that a purchase names, however often and by however many processes it is asked.
type Payer interface {
	quote.Payer
	Pay(ctx context.Context, s policy.Spending, p outbound.Purchase) (outbound.PaidResponse, error)
}

// Pay sends a request to a public address, and pays for the answer if the server demands it by x402,
// within the payments of the policy. The agent that is paid MUST be trusted as they say. The request
// counts as a tool call. It is journaled before it is sent and paid once, however often the step runs:
// after a crash the server is asked again with the same payment. repute.ErrInvalid: nothing was paid,
// and why; repute.ErrLimited: a cap or the budget would be passed; outbound.ErrPaymentOpen: the step
// ends here, and a retry of the task asks with the same payment.
func (c *Context) Pay(ctx context.Context, q outbound.PaidRequest) (out outbound.PaidResponse, err error) {
	shown, err := c.mayPay(&q)
	if err != nil {
		return out, err
	}
	key, err := c.next(repute.CallPayment, q.Key)
	if err != nil {
		return out, err
	}
	if c.w.databaseFailed() != nil { // nothing that happens after is stored
		return out, ErrAway
	}
	r := requested(repute.CallPayment, &q.HTTPRequest, shown)
	r.Run, r.Step, r.Key = c.RunID, c.step, key
	journaled, known, err := rundb.BeginCall(ctx, c.w.e.db, c.w.lease, r,
		rundb.Charge{ToolCalls: 1, MostOfRun: int(c.w.info.Manifest.Budget().ToolCalls)})
	if err != nil {
		return out, c.w.lost(err)
	}
	c.leaves(journaled.ID)
	switch {
	case known && !sameJSON(journaled.Request, r.Request):
		return out, transaction.Refuse("another",
			"the step paid for another request as %q before it was interrupted", key)
	case known && journaled.Done && journaled.Error != "":
		return out, journal.Replayed(journaled.Error)
	case known && journaled.Done:
		return out, json.Unmarshal(journaled.Result, &out)
	}
	return c.w.purchase(ctx, &journaled, q)
}

// mayPay refuses a request that no policy lets an agent pay for. It returns the address as it is shown.
func (c *Context) mayPay(q *outbound.PaidRequest) (*url.URL, error) {
	shown, err := shownURL(q.URL)
	switch {
	case err != nil:
		return nil, err
	case c.phase != repute.PhaseExecute:
		return nil, transaction.Refuse("phase", "answers are paid for in Execute alone, not in %s", c.phase)
	case c.w.e.o.Payer == nil:
		return nil, &repute.MissingError{What: "payer",
			Why: "is not configured: agents that pay need a key in orchestrator.wallets"}
	case !c.w.e.o.Policy().Spending().Allowed():
		return nil, transaction.Refuse("payments", "the policy lets no agent pay for answers (payments)")
	}
	return shown, nil
}

// sameJSON reports whether two stored requests are equal.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil &&
		journal.Digest(journal.JSON(x)) == journal.Digest(journal.JSON(y))
}

// purchase pays for a journaled call and journals its end. An open payment stays open in the journal.
func (w *work) purchase(ctx context.Context, r *repute.Receipt, q outbound.PaidRequest) (out outbound.PaidResponse,
	err error) {
	ctx, end := w.e.trace.Start(ctx, string(r.Kind), attribute.String("ref", r.Ref), attribute.String("step", r.Step),
		attribute.String("key", r.Key))
	p := w.e.o.Policy()
	out, err = w.e.o.Payer.Pay(ctx, p.SpendingOf(w.terms.Budget),
		outbound.Purchase{PaidRequest: q, Call: pending.IntentID(r),
			Agent: w.Run.Agent, Task: w.Run.Task, Still: w.mayStillPay,
			Judge: func(ctx context.Context, asked *policy.Payment) error {
				return w.paymentAllowed(ctx, p, r.Step+"/"+r.Key, asked)
			}})
	end(err)
	var waits *ApprovalError
	if err != nil && (errors.Is(err, outbound.ErrPaymentOpen) || errors.Is(err, store.ErrDatabase) ||
		errors.Is(err, repute.ErrFenced) || errors.As(err, &waits) || ctx.Err() != nil) {
		return outbound.PaidResponse{}, w.lost(err)
	}
	o := rundb.CallOutcome{Result: journal.JSON(out)}
	if p := out.Payment; p != nil {
		o.Ref, o.Summary = p.Transaction, fmt.Sprintf("paid %s dollars to %s: %s", p.Dollars, cmp.Or(p.Agent, p.To),
			r.Summary)
	}
	if err != nil {
		o.Error, o.Result = err.Error(), nil
	}
	if stored := rundb.EndCall(ctx, w.e.db, w.lease, r.ID, o); stored != nil {
		return outbound.PaidResponse{}, w.lost(stored)
	}
	return out, err
}

// paymentAllowed asks the rules of the policy and, if required, a person about a payment before it is signed.
func (w *work) paymentAllowed(ctx context.Context, p *policy.Policy, call string, asked *policy.Payment) error {
	in := w.paymentInput(p, asked)
	d := p.Decide(ctx, &in)
	stored, err := w.stored(ctx, p, rundb.Decision{Phase: repute.PhaseExecute, Kind: repute.DecisionCall,
		Subject: "payment " + call + " " + journal.Digest(journal.JSON(asked.Terms())), Input: journal.JSON(in)}, d)
	if err != nil {
		return err
	}
	if d.Effect == policy.RequireApproval {
		d.Reasons = append(d.Reasons, policy.Reason{ID: "payment", Effect: policy.RequireApproval, Text: fmt.Sprintf(
			"%s dollars (%s of %s on %s) to %s, agent %s, for an answer of %s", asked.Micros(), asked.Amount,
			asked.Asset,
			asked.Network, asked.To, cmp.Or(asked.Payee, "unknown"), asked.Host)})
	}
	return w.enforce(ctx, stored, d, nil)
}

// paymentInput returns the input of the rules about a payment.
func (w *work) paymentInput(p *policy.Policy, asked *policy.Payment) policy.Input {
	in := w.policyInput(p)
	in.Phase, in.Payment = "payment", *asked
	return in
}

// quoteAll quotes the payments of a dry run. The reasons forbid Execute.
func (w *work) quoteAll(ctx context.Context, planned []quote.Planned) ([]quote.Quote, []policy.Reason) {
	p := w.e.o.Policy()
	r := quote.Rules{Payer: w.e.o.Payer, Spending: p.SpendingOf(w.terms.Budget), Most: w.root().Run.Limits.ToolCalls,
		Purchase: outbound.Purchase{Agent: w.Run.Agent, Task: w.Run.Task},
		Decide: func(ctx context.Context, asked *policy.Payment) policy.Decision {
			in := w.paymentInput(p, asked)
			return p.Decide(ctx, &in)
		}}
	return r.All(ctx, planned)
}

// mayStillPay is asked before a payment is signed: the lease of the run MUST be held, and the agent
// and those that it works for MUST be allowed to act.
func (w *work) mayStillPay(ctx context.Context) error {
	if err := rundb.CheckLease(ctx, w.e.db, w.lease); err != nil {
		return err
	}
	return w.standing(ctx)
}
