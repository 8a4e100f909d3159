// Package quote says what the payments that an agent plans would cost, which accounts they would pay, and whether they
// would be made: by the payments and the rules of a policy. Nothing is paid.
//
// It serves the dry run: Rules.All asks each server for its demand, without a payment, and compares it with the caps,
// the score of the payee and the rules. A planned payment that would be refused ends the run before Execute, and so
// do payments that pass the cap of the task together. Execute is not bound to what was quoted: prices change, and
// each payment is judged again when it is made.
//
// A server that is not asked, or does not answer, has the verdict unknown, which forbids nothing. Only requests by
// GET are asked, because a server may do its work for any other method; an agent that knows better sets Planned.Ask.
package quote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"repute"
	"repute/orchestrator/journal"
	"repute/orchestrator/outbound"
	"repute/policy"
)

// Payer asks a server what it demands for an answer. repute.ErrInvalid: a payment would be refused, and why.
// A nil payment is that of a server that demands none.
type Payer interface {
	Quote(ctx context.Context, s policy.Spending, p outbound.Purchase) (*policy.Payment, error)
}

// Verdicts on planned payments.
const (
	Pays     = "pay"
	Asks     = "approval" // a person must approve of it first
	Refuses  = "refuse"
	Free     = "free"    // the server demands nothing
	NotKnown = "unknown" // the server was not asked, or does not answer
)

// Planned is a request that an agent means to pay for in Execute.
type Planned struct {
	outbound.HTTPRequest
	Times int `json:"times,omitempty"` // how often it is paid for; 0 counts as 1
	// Ask has a request of another method than GET sent without a payment to learn its price. Only an agent that
	// knows that the server demands payment before it works MUST set it: a server that does not would work twice.
	Ask bool `json:"ask,omitempty"`
}

// Quote is what came of a planned payment.
type Quote struct {
	Method  string          `json:"method"`
	URL     string          `json:"url"` // without query and password
	Times   int             `json:"times"`
	Verdict string          `json:"verdict"`
	Reason  string          `json:"reason,omitempty"`  // of verdicts other than pay and free
	Payment *policy.Payment `json:"payment,omitempty"` // nil where none is demanded or known
}

// Rules are what payments are judged by.
type Rules struct {
	Payer    Payer // nil: nothing is paid
	Spending policy.Spending
	Most     int // planned payments that are asked for
	Purchase outbound.Purchase
	// Decide asks the rules of the policy.
	Decide func(ctx context.Context, p *policy.Payment) policy.Decision
}

// All quotes planned payments. The reasons forbid the run: one of them would be refused, or all together pass the
// cap of the task.
func (r *Rules) All(ctx context.Context, planned []Planned) (out []Quote, against []policy.Reason) {
	deny := func(id, text, have, need string) {
		against = append(against, policy.Reason{ID: id, Effect: policy.Deny, Text: text, Have: have, Need: need})
	}
	if len(planned) > r.Most {
		deny("limit.maxToolCalls", "the dry run shows more payments than calls are allowed", fmt.Sprint(len(planned)),
			fmt.Sprint(r.Most))
		return nil, against
	}
	var total repute.Micros
	for i := range planned {
		q := r.one(ctx, &planned[i])
		if q.Verdict == Refuses {
			deny("dry_run.payment", fmt.Sprintf("payment %d to %s: %s", i+1, q.URL, q.Reason), "", "")
		}
		if q.Payment != nil {
			total = min(total+min(q.Payment.Micros(), repute.MaxPaid)*repute.Micros(q.Times), repute.MaxPaid)
		}
		out = append(out, q)
	}
	if total > r.Spending.MaxTask && len(against) == 0 {
		deny("limit.maxPaymentUsd", "the planned payments pass the cap of the task", total.String(),
			r.Spending.MaxTask.String())
	}
	return out, against
}

// maxTimes bounds how often an answer is paid for by a plan.
const maxTimes = 1000

// one quotes a planned payment.
func (r *Rules) one(ctx context.Context, p *Planned) (q Quote) {
	q = Quote{Method: p.Verb(), Times: max(p.Times, 1), Verdict: Refuses}
	u, err := url.Parse(p.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		q.Reason = "its URL is no address"
		return q
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	q.URL = u.String()
	switch {
	case r.Payer == nil || !r.Spending.Allowed():
		q.Reason = "the policy lets no agent pay for answers (payments)"
	case p.Times < 0 || p.Times > maxTimes:
		q.Reason = fmt.Sprintf("it is planned %d times, 1 to %d are allowed", p.Times, maxTimes)
	case q.Method != http.MethodGet && !p.Ask:
		q.Verdict, q.Reason = NotKnown, "the server is asked in Execute alone: asking by "+q.Method+" may do the work"
	default:
		r.ask(ctx, p, &q)
	}
	return q
}

// ask asks the server and judges its demand.
func (r *Rules) ask(ctx context.Context, p *Planned, q *Quote) {
	purchase := r.Purchase
	purchase.PaidRequest = outbound.PaidRequest{HTTPRequest: p.HTTPRequest}
	var err error
	q.Payment, err = r.Payer.Quote(ctx, r.Spending, purchase)
	switch {
	case errors.Is(err, repute.ErrInvalid):
		q.Reason = journal.Shorten(err.Error())
		return
	case err != nil:
		q.Verdict, q.Reason = NotKnown, journal.Shorten(err.Error())
		return
	case q.Payment == nil:
		q.Verdict = Free
		return
	}
	d := r.Decide(ctx, q.Payment)
	switch d.Effect {
	case policy.Allow:
		q.Verdict = Pays
	case policy.RequireApproval:
		q.Verdict = Asks
	}
	for _, reason := range d.Reasons {
		if reason.Effect == d.Effect && reason.Effect != policy.Allow {
			q.Reason = journal.Shorten(reason.ID + ": " + reason.Text)
			break
		}
	}
}
