package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"repute"
	"repute/agent/signed"
	"repute/store/agentdb"
	"repute/x402"
)

// signable is EIP-712 data of the specification.
type signable interface {
	Data(d signed.Domain) apitypes.TypedData
}

// pay is step 3: it leaves a claimed payment in w.row, or one whose work is done, or nil for a free
// request.
func (w *work) pay(ctx context.Context) error {
	switch {
	case w.known != nil:
		return w.resumeKnown(ctx)
	case w.service.Price == nil:
		return nil
	case w.misused != nil:
		return w.misused
	case w.request.Payment != nil:
		return w.payX402(ctx, w.request.Payment)
	case w.request.Promise != nil:
		return w.payPromise(ctx, w.request.Promise)
	}
	return w.demand(ctx, nil)
}

// demand is the answer to a request without a payment, or with one that is refused.
func (w *work) demand(ctx context.Context, refused *x402.Refusal) error {
	d, err := w.terms402(ctx)
	if err != nil {
		return err
	}
	p := problem(http.StatusPaymentRequired, "payment_required", "this capability is paid for")
	if refused != nil {
		d.Error, d.Message = string(refused.Reason), "the payment is not accepted: "+refused.Message
		p.Message = d.Message
		if refused.Reason == x402.ReasonAllowance {
			p.Status = http.StatusPreconditionFailed
		}
		w.router.metrics.payments.WithLabelValues("refused").Inc()
		w.router.o.Log.ErrorContext(ctx, "payment refused", "requestId", w.request.ID, "capability",
			w.request.Capability,
			"payer", w.client, "reason", refused.Reason)
		if err := w.record(ctx, agentdb.Verification, "refused", map[string]any{"reason": refused.Reason}); err != nil {
			return err
		}
	}
	p.Demand = d
	return p
}

// offerTime is how long a signed offer holds.
const offerTime = 10 * time.Minute

// terms402 is what the capability costs, for clients of all kinds.
func (w *work) terms402(ctx context.Context) (*x402.Demand, error) {
	o, d, price := &w.router.o, w.service.Definition(), w.service.Price
	out := &x402.Demand{Resource: x402.Resource{URL: w.request.Resource, Description: d.Description,
		MimeType: "application/json", ServiceName: d.Name}, Accepts: price.accepts(), OutputSchema: d.OutputSchema,
		Message: fmt.Sprintf("%s costs %s %s", d.Name, price.Amount, price.Currency)}
	if o.Payments.Promises || len(price.Ways) > 0 {
		chain := x402.Slug(o.ID.ChainID)
		if chain == "" {
			chain = x402.Network(o.ID.ChainID)
		}
		out.Runtime = &x402.RuntimeDemand{Address: o.Payments.Address.Hex(), Amount: price.Amount,
			Currency: price.Currency,
			Chain:    chain, TaskHash: w.response.TaskHash.Hex()}
	}
	if len(price.Ways) == 0 {
		return out, nil
	}
	if err := out.Extensions.OfferPaymentID(o.Payments.RequireID); err != nil {
		return nil, err
	}
	discovery := x402.Discovery{Method: http.MethodPost, InputSchema: d.InputSchema, Description: d.Description}
	if w.request.Tool {
		discovery.Tool = d.Name
	}
	if err := out.Extensions.AddDiscovery(discovery); err != nil || o.Payments.Signer == nil {
		return out, err
	}
	return out, out.AddOffers(ctx, o.Payments.Signer, uint64(time.Now().Add(offerTime).Unix()))
}

// refusedBy is the answer to a payment that cannot be accepted.
func (w *work) refusedBy(ctx context.Context, err error) error {
	var told *Problem
	var refused *x402.Refusal
	if !errors.As(err, &told) && errors.As(err, &refused) {
		return w.demand(ctx, refused)
	}
	return err
}

// payX402 verifies a payment by x402 and claims it.
func (w *work) payX402(ctx context.Context, p *x402.Payment) error {
	if w.router.o.Payments.Facilitator == nil || len(w.service.Price.Ways) == 0 {
		return w.demand(ctx, &x402.Refusal{Reason: x402.ReasonUnsupportedScheme,
			Message: "the agent takes no payments by x402 for this capability"})
	}
	w.response.PaymentVersion = p.Version
	row, err := w.x402Row(ctx, p)
	if err != nil {
		return w.refusedBy(ctx, err)
	}
	switch err := w.verify(ctx, p); {
	case err != nil:
		return err
	case w.known != nil || w.misused != nil:
		return w.pay(ctx)
	}
	return w.claim(ctx, row)
}

// x402Row names a payment by x402, and takes over the terms by which it pays. The error is a
// *x402.Refusal, a *Problem or a repute.ErrConflict.
func (w *work) x402Row(ctx context.Context, p *x402.Payment) (row *agentdb.Payment, err error) {
	offered := x402.Demand{Accepts: w.service.Price.accepts()}
	accepted, err := offered.Match(p)
	if err != nil {
		return nil, err
	}
	w.terms = w.service.Price.terms(accepted)
	w.amount = accepted.Amount.Big()
	name, err := p.Extensions.PaymentID(w.router.o.Payments.RequireID)
	if err != nil {
		return nil, &Problem{Status: http.StatusBadRequest, Code: "invalid", Message: err.Error(), Cause: err}
	}
	transfer, err := planner(&accepted).Plan(p, &accepted)
	if err != nil {
		return nil, err
	}
	row = w.newRow(transfer.ID(), agentdb.X402)
	row.PaymentID = name
	if name == "" {
		return row, nil
	}
	_, err = agentdb.PaymentNamed(ctx, w.router.db, row.Agent, row.Payer, name)
	if err == nil {
		return nil, repute.Conflict("payment-identifier: %s names another payment", name)
	} else if !errors.Is(err, repute.ErrNotFound) {
		return nil, err
	}
	return row, nil
}

// planner names the transfer of a payment, without the chain.
func planner(r *x402.Requirements) *x402.Verifier {
	return &x402.Verifier{Accounts: func(uint64) []common.Address {
		if terms, err := r.Terms(); err == nil && terms.Facilitator != nil {
			return []common.Address{*terms.Facilitator}
		}
		return nil
	}}
}

// claim takes the work for a payment that was verified and that nobody had sent before: one that was claimed
// cannot be verified, because the chain may have taken it. Where nothing else comes before the handler, the claim
// says that the handler is called, too.
func (w *work) claim(ctx context.Context, row *agentdb.Payment) (err error) {
	if row.Terms, err = json.Marshal(w.terms); err != nil {
		return fmt.Errorf("terms: %w", err)
	}
	if row.Settlement == agentdb.NoSettlement || !w.service.settlesBefore(&w.terms.Requirements) {
		row.State = agentdb.Running
	}
	claimed, err := agentdb.Claim(ctx, w.router.db, *row, w.router.o.Lease, w.log...)
	if errors.Is(err, agentdb.ErrWorkedOn) {
		return sendAgain(err)
	} else if err != nil {
		return err
	}
	if claimed.Fresh {
		w.log = nil // it is stored
	}
	w.row, w.proved = &claimed, true
	return nil
}

// verify asks the facilitator about a payment, and stores its answer. It may find that the payment was claimed
// meanwhile, and is known now. A payment that is settled after the run MUST hold as long as the handler may take:
// others have work done that they never pay.
func (w *work) verify(ctx context.Context, p *x402.Payment) error {
	d := w.service.Definition()
	end := x402.NewAmount(uint64(w.began.Add(d.Timeout()).Unix()))
	if !w.service.settlesBefore(&w.terms.Requirements) && p.Payload.Until().Cmp(end) < 0 {
		return w.demand(ctx, &x402.Refusal{Reason: x402.ReasonValidBefore,
			Message: fmt.Sprintf("the authorization ends before the capability must, in %s", d.Timeout())})
	}
	v, err := w.router.o.Payments.Facilitator.Verify(ctx, *p, w.terms.Requirements)
	switch {
	case err != nil:
		w.router.metrics.payments.WithLabelValues("unavailable").Inc()
		if err := w.record(ctx, agentdb.Verification, "unavailable", nil); err != nil {
			return err
		}
		return &Problem{Status: http.StatusServiceUnavailable, Code: "unavailable",
			Message: "payments cannot be verified now: send the same payment again", Retry: 2 * time.Second, Cause: err}
	case !v.IsValid:
		// The same request, sent twice at once, may have been settled by now, and is refused because of that.
		if err := w.recall(ctx); err != nil || w.known != nil || w.misused != nil {
			return err
		}
		return w.demand(ctx, &x402.Refusal{Reason: known(v.InvalidReason), Message: "it is not valid"})
	}
	w.proved = true
	w.router.metrics.payments.WithLabelValues("verified").Inc()
	return w.later(ctx, "verified", map[string]any{"scheme": w.terms.Requirements.Scheme,
		"network": w.terms.Requirements.Network, "asset": w.terms.Requirements.Asset,
		"amount": w.terms.Requirements.Amount})
}

// known returns a facilitator's reason where it has the form of one: other text of facilitators is
// not shown to clients.
func known(reason x402.Reason) x402.Reason {
	if reason == "" || len(reason) > 80 ||
		strings.Trim(string(reason), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
		return x402.ReasonVerify
	}
	return reason
}

// payPromise checks a receipt of the specification (section 5.2) and claims it. One that was used is
// refused: its client signs another one, with another time.
func (w *work) payPromise(ctx context.Context, p *signed.Promise) error {
	o, price := &w.router.o, w.service.Price
	if !o.Payments.Promises {
		return w.demand(ctx, &x402.Refusal{Reason: x402.ReasonUnsupportedScheme,
			Message: "the agent takes no promises: pay by x402"})
	}
	digest, err := signed.Digest(p.Data(signed.DomainOf(o.ID)))
	if err != nil {
		return err
	}
	if w.terms, err = price.promised(p.Amount, o.ID.ChainID); err != nil {
		return err
	}
	w.amount = p.Amount
	if err := w.checkPromise(ctx, p); err != nil {
		return err
	}
	if err := w.claim(ctx, w.newRow("promise:"+digest.Hex(), agentdb.NoSettlement)); err != nil ||
		!w.row.State.Final() {
		return err
	}
	return errReceiptUsed()
}

// checkPromise makes the checks of section 5.2 in its order.
func (w *work) checkPromise(ctx context.Context, p *signed.Promise) error {
	o, price := &w.router.o, w.service.Price
	err := w.router.checkSignature(ctx, p.From, &p.PaymentReceipt, p.Signature)
	if err != nil && !errors.Is(err, signed.ErrSignature) {
		return err
	}
	refused := func(reason x402.Reason, text string) error {
		return w.demand(ctx, &x402.Refusal{Reason: reason, Message: text})
	}
	stale := signed.Fresh("timestamp", p.Timestamp, time.Now())
	switch {
	case err != nil:
		return refused(x402.ReasonSignature, "the signature is not one of from")
	case p.To != o.Payments.Address:
		return refused(x402.ReasonRecipient, "to is not the agent's payment address")
	case p.Currency != price.Currency:
		return refused(x402.ReasonInvalidRequirements, "currency is not "+price.Currency)
	case p.Amount.Cmp(price.smallest()) < 0:
		return refused(x402.ReasonValue, "amount is below the price")
	case stale != nil:
		return refused(x402.ReasonValidBefore, problemOf(stale).Message)
	case p.TaskHash != w.response.TaskHash:
		return refused(x402.ReasonInvalidPayload, "taskHash is not the request's: see X-Payment-TaskHash")
	}
	w.proved = true
	w.router.metrics.payments.WithLabelValues("promised").Inc()
	return w.later(ctx, "promised", map[string]any{"amount": p.Amount.String(),
		"currency": p.Currency})
}
