package agent

import (
	"context"
	"crypto/sha256"
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
	case w.service.Price == nil:
		return nil
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
		w.router.o.Log.ErrorContext(ctx, "payment refused", "requestId", w.request.ID, "capability", w.request.Capability,
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
		out.Runtime = &x402.RuntimeDemand{Address: o.Payments.Address.Hex(), Amount: price.Amount, Currency: price.Currency,
			Chain: chain, TaskHash: w.response.TaskHash.Hex()}
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
	row, err := w.x402Row(p)
	if err != nil {
		return w.refusedBy(ctx, err)
	}
	return w.claim(ctx, row, func() error { return w.verify(ctx, p) })
}

// x402Row names a payment by x402, and takes over the terms by which it pays. The error is a
// *x402.Refusal or a *Problem.
func (w *work) x402Row(p *x402.Payment) (row *agentdb.Payment, err error) {
	offered := x402.Demand{Accepts: w.service.Price.accepts()}
	if w.terms, err = offered.Match(p); err != nil {
		return nil, err
	}
	name, err := p.Extensions.PaymentID(w.router.o.Payments.RequireID)
	if err != nil {
		return nil, &Problem{Status: http.StatusBadRequest, Code: "invalid", Message: err.Error(), Cause: err}
	}
	transfer, err := planner(&w.terms).Plan(p, &w.terms)
	if err != nil {
		return nil, err
	}
	way := w.service.Price.way(&w.terms)
	w.price = paid{w.terms.Amount.Big(), way.Decimals, way.Symbol, w.terms.Asset.Hex(), w.terms.Network}
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("payment: %w", err)
	}
	row = w.newRow(transfer.ID(), sha256.Sum256(raw), agentdb.X402)
	row.PaymentID = name
	return row, nil
}

// accepted reports whether the request's payment was accepted before: it can be charged, so that its
// payer is owed the answer.
func (w *work) accepted(ctx context.Context) (bool, error) {
	if w.service.Price == nil || w.request.Payment == nil || w.router.o.Payments.Facilitator == nil {
		return false, nil
	}
	row, err := w.x402Row(w.request.Payment)
	if err != nil {
		return false, nil // step 3 tells why
	}
	stored, err := agentdb.ReadPayment(ctx, w.router.db, row.ID)
	if errors.Is(err, repute.ErrNotFound) {
		return false, nil
	}
	return err == nil && row.Same(&stored) == nil, err
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

func (w *work) newRow(id string, payload [32]byte, s agentdb.Settlement) *agentdb.Payment {
	return &agentdb.Payment{ID: id, Agent: w.router.o.ID.String(), Capability: w.service.Definition().Name,
		TaskHash: w.response.TaskHash, Payload: payload, Payer: w.client, Settlement: s, RequestID: w.request.ID,
		Owner: w.owner}
}

// claim takes the work for a payment. A payment that was never claimed is verified first: one that
// was cannot be, because the chain may have taken it.
func (w *work) claim(ctx context.Context, row *agentdb.Payment, verify func() error) error {
	db := w.router.db
	stored, err := agentdb.ReadPayment(ctx, db, row.ID)
	switch {
	case err == nil:
		if err := row.Same(&stored); err != nil {
			return err
		}
	case !errors.Is(err, repute.ErrNotFound):
		return err
	default:
		if row.PaymentID != "" {
			_, err := agentdb.PaymentNamed(ctx, db, row.Agent, row.Payer, row.PaymentID)
			if err == nil {
				return repute.Conflict("payment-identifier: %s names another payment", row.PaymentID)
			} else if !errors.Is(err, repute.ErrNotFound) {
				return err
			}
		}
		if err := verify(); err != nil {
			return err
		}
	}
	claimed, err := agentdb.Claim(ctx, db, *row, w.router.o.Lease)
	if errors.Is(err, agentdb.ErrWorkedOn) {
		return sendAgain(err)
	}
	if err == nil {
		w.row, w.proved = &claimed, true
	}
	return err
}

// verify asks the facilitator about a payment, and stores its answer. A payment that is settled after
// the run MUST hold as long as the handler may take: others have work done that they never pay.
func (w *work) verify(ctx context.Context, p *x402.Payment) error {
	d := w.service.Definition()
	end := x402.NewAmount(uint64(w.began.Add(d.Timeout()).Unix()))
	if !w.service.settlesBefore(&w.terms) && p.Payload.Until().Cmp(end) < 0 {
		return w.demand(ctx, &x402.Refusal{Reason: x402.ReasonValidBefore,
			Message: fmt.Sprintf("the authorization ends before the capability must, in %s", d.Timeout())})
	}
	v, err := w.router.o.Payments.Facilitator.Verify(ctx, *p, w.terms)
	switch {
	case err != nil:
		w.router.metrics.payments.WithLabelValues("unavailable").Inc()
		if err := w.record(ctx, agentdb.Verification, "unavailable", nil); err != nil {
			return err
		}
		return &Problem{Status: http.StatusServiceUnavailable, Code: "unavailable",
			Message: "payments cannot be verified now: send the same payment again", Retry: 2 * time.Second, Cause: err}
	case !v.IsValid:
		return w.demand(ctx, &x402.Refusal{Reason: known(v.InvalidReason), Message: "it is not valid"})
	}
	w.proved = true
	w.router.metrics.payments.WithLabelValues("verified").Inc()
	return w.record(ctx, agentdb.Verification, "verified", map[string]any{"scheme": w.terms.Scheme,
		"network": w.terms.Network, "asset": w.terms.Asset, "amount": w.terms.Amount})
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
	w.price = paid{p.Amount, price.Decimals, price.Currency, price.Currency, x402.Network(o.ID.ChainID)}
	row := w.newRow("promise:"+digest.Hex(), sha256.Sum256(p.Signature), agentdb.NoSettlement)
	if err := w.claim(ctx, row, func() error { return w.checkPromise(ctx, p) }); err != nil {
		return err
	}
	if w.row.State.Final() {
		return &Problem{Status: http.StatusConflict, Code: "conflict", Message: "the receipt was used",
			Hint: "sign another one, with another timestamp"}
	}
	return nil
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
	return w.record(ctx, agentdb.Verification, "promised", map[string]any{"amount": p.Amount.String(),
		"currency": p.Currency})
}
