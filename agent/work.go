package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/agent/capability"
	"repute/agent/signed"
	"repute/store/agentdb"
	"repute/x402"
)

// work is one request on its way through the steps.
type work struct {
	router   *Router
	request  Request
	response *Response
	asked    time.Time // when it came
	began    time.Time // when it did not have to wait for others any more
	owner    string    // names this request among all that may claim a payment

	service *Service
	client  common.Address // who pays or signed; zero where nobody did
	proved  bool           // the signature of client was checked

	// Of a payment:
	payload [32]byte         // sha256 of it as it was sent
	known   *agentdb.Payment // it was claimed for this request before; nil: it was not
	misused error            // it was claimed for another request
	row     *agentdb.Payment // nil for a free request
	terms   terms            // what it pays for
	amount  *big.Int         // what it pays, in smallest units; less than its terms say in the scheme upto
	refund  bool             // the policy owes it back where it was charged and the call fails
	proof   []byte           // the client's signature
	log     []agentdb.Entry  // are stored with the next entry, see record
	output  json.RawMessage
	// document is of the validation that is asked for; "" for none.
	document string
	// busy is why only what is owed is answered; nil where new work is done.
	busy *Problem
	// failure is a settlement that was refused.
	failure *x402.Settlement
}

// run goes through the steps until the answer is in the response.
func (w *work) run(ctx context.Context) error {
	if w.service = w.router.Service(w.request.Capability); w.service == nil {
		return problem(http.StatusNotFound, "not_found", "the agent has no such capability")
	}
	if err := w.traced(ctx, spanInput, w.checkInput); err != nil {
		return err
	}
	if err := w.recall(ctx); err != nil {
		return err
	}
	if w.busy != nil && !w.owed() {
		return w.busy
	}
	if err := w.traced(ctx, spanPolicy, w.decide); err != nil {
		return err
	}
	if err := w.traced(ctx, spanPayment, w.pay); err != nil {
		return err
	}
	switch {
	case w.row == nil:
		return w.free(ctx)
	case w.row.State.Final():
		return w.replay()
	}
	return w.paid(ctx)
}

// checkInput is step 1.
func (w *work) checkInput(ctx context.Context) error {
	err := w.service.CheckInput(ctx, w.request.Input)
	switch {
	case errors.Is(err, repute.ErrLimited):
		return &Problem{Status: http.StatusRequestEntityTooLarge, Code: "too_large", Message: "the input is too large",
			Hint: fmt.Sprintf("at most %d bytes", w.service.Definition().MaxRequestBytes)}
	case errors.Is(err, repute.ErrInvalid):
		return badInput(err)
	case err != nil:
		return err
	}
	w.response.TaskHash, err = w.service.TaskHash(w.router.o.ID.TokenID.Dec(), w.request.Input)
	return err
}

// decide is step 2.
func (w *work) decide(ctx context.Context) error {
	r := w.router
	if err := w.identify(ctx); err != nil {
		return err
	}
	d := r.o.Governor.Decide(ctx, Question{Service: w.service, Client: w.client, Caller: w.request.Caller,
		Paid: w.service.Price != nil && (w.request.Payment != nil || w.request.Promise != nil) || w.known != nil,
		Time: w.began})
	if w.known != nil && w.known.Settlement == agentdb.X402 { // a policy can change while a payer waits
		d.Allow, d.Limited = true, false
	}
	outcome := allowed
	w.refund = d.Refund
	w.response.Validation = d.Validation
	switch {
	case d.Limited:
		outcome = "limit"
	case !d.Allow:
		outcome = "deny"
		r.o.Log.ErrorContext(ctx, "policy violation", "requestId", w.request.ID, "capability", w.request.Capability,
			"client", w.client, "reasons", d.Reasons)
	}
	if err := w.record(ctx, agentdb.Decision, outcome, map[string]any{"reasons": d.Reasons}); err != nil {
		return err
	}
	switch {
	case d.Limited:
		return &Problem{Status: http.StatusTooManyRequests, Code: "limited", Message: joined(d.Reasons,
			"the free tier is used up"), Retry: max(d.Retry, time.Second)}
	case !d.Allow && d.Unavailable:
		return &Problem{Status: http.StatusServiceUnavailable, Code: "unavailable", Message: joined(d.Reasons,
			"the request cannot be judged now"), Retry: max(d.Retry, time.Second)}
	case !d.Allow:
		return &Problem{Status: http.StatusForbidden, Code: "policy_violation", Message: joined(d.Reasons,
			"the agent's policy refuses the request")}
	}
	return nil
}

// joined returns reasons as one text, of at most a thousand characters, or another text without reasons.
func joined(reasons []string, none string) string {
	return fmt.Sprintf("%.1000s", cmp.Or(strings.Join(reasons, "; "), none))
}

// identify finds out who asks. The payer of a payment is proved in step 3.
func (w *work) identify(ctx context.Context) error {
	if c := w.request.Client; c != nil {
		if err := w.router.CheckClient(ctx, w.response.TaskHash, c); err != nil {
			return err
		}
		w.client, w.proof, w.proved = c.Client, c.Signature, true
	}
	switch {
	case w.service.Price == nil && w.known == nil:
	case w.request.Payment != nil:
		w.client, w.proof, w.proved = w.request.Payment.Payload.Payer(), w.request.Payment.Payload.Signature, false
	case w.request.Promise != nil:
		w.client, w.proof, w.proved = w.request.Promise.From, w.request.Promise.Signature, false
	}
	return nil
}

// free runs a capability that costs nothing, while the client waits.
func (w *work) free(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.router.hard, cancel)()
	if err := w.handle(ctx); err != nil {
		return err
	}
	if err := w.sign(ctx); err != nil {
		return err
	}
	return w.traced(ctx, spanRecord, func(ctx context.Context) error { return w.append(ctx, w.entry()) })
}

// handle is steps 4 and 5. Its error is a *Problem without a text of the handler.
func (w *work) handle(ctx context.Context) (err error) {
	d := w.service.Definition()
	ctx, cancel := context.WithTimeout(ctx, d.Timeout())
	defer cancel()
	var output json.RawMessage
	err = w.traced(ctx, spanHandler, func(ctx context.Context) error {
		output, err = w.call(ctx)
		return err
	})
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &Problem{Status: http.StatusGatewayTimeout, Code: "timeout",
			Message: "the capability did not end in time",
			Cause:   err}
	case errors.Is(err, repute.ErrUnavailable):
		return &Problem{Status: http.StatusServiceUnavailable, Code: "unavailable",
			Message: "the capability cannot be run now", Retry: 5 * time.Second, Cause: err}
	default:
		return internal("the capability failed", err)
	}
	check := func(ctx context.Context) error {
		if err := w.service.CheckOutput(ctx, output); err != nil {
			return internal("the capability gave an answer that is not one of its schema", err)
		}
		return nil
	}
	if err := w.traced(ctx, spanOutput, check); err != nil {
		return err
	}
	w.output = output
	return nil
}

// call is step 4. A panic of the handler is an error.
func (w *work) call(ctx context.Context) (output json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	d := w.service.Definition()
	c := capability.Call{AgentID: w.router.o.ID.TokenID.Dec(), Capability: d.Name, Version: d.Version,
		RequestID: w.request.ID, Correlation: cmp.Or(w.request.Correlation, w.request.ID), Client: w.client,
		Time:  w.began,
		Input: w.request.Input}
	if w.row != nil {
		c.RequestID = w.row.RequestID
		c.Payment = &capability.Payment{Payer: w.client, Amount: w.amount.String(), Asset: w.terms.asset(),
			Network: w.terms.Requirements.Network}
		if s := w.response.Settlement; s != nil {
			c.Payment.Transaction = common.HexToHash(s.Transaction)
		}
	}
	return w.service.Handler.Run(ctx, c)
}

// CheckClient returns a *Problem where a client did not sign the request for a task, or did so too long
// ago.
func (r *Router) CheckClient(ctx context.Context, task common.Hash, c *signed.SignedRequest) error {
	if err := signed.Fresh(signed.HeaderClientTimestamp, c.Timestamp, time.Now()); err != nil {
		return &Problem{Status: http.StatusUnauthorized, Code: "unauthorized", Message: problemOf(err).Message}
	}
	ask := signed.TaskRequest{AgentID: r.o.ID.TokenID, Client: c.Client, TaskHash: task, Timestamp: c.Timestamp}
	err := r.checkSignature(ctx, c.Client, &ask, c.Signature)
	if errors.Is(err, signed.ErrSignature) {
		return problem(http.StatusUnauthorized, "unauthorized", "the signature is not the client's")
	}
	return err
}

// checkSignature checks a client's signature.
func (r *Router) checkSignature(ctx context.Context, account common.Address, what signable, sig []byte) error {
	domain := signed.DomainOf(r.o.ID)
	return signed.Check(ctx, r.o.Wallets, domain, account, what.Data(domain), sig)
}
