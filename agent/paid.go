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

	"repute"
	"repute/store/agentdb"
	"repute/x402"
)

// paid does what is left of the work for a claimed payment, whether it began here or in a process
// that was killed. It does not end with ctx: the client may have gone, and comes back for the answer.
func (w *work) paid(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(w.router.hard, func() { cancel(errStopped) })()
	renewed := w.renew(ctx, cancel)
	err := w.resume(ctx)
	cancel(nil)
	<-renewed
	if err == nil || w.row.State.Final() {
		return err
	}
	yielded := lasting(ctx, func(ctx context.Context) error { return agentdb.Yield(ctx, w.router.db, *w.row) })
	if yielded != nil {
		w.router.o.Log.WarnContext(ctx, "a claim ends with its lease", "payment", w.row.ID, "error", yielded)
	}
	return err
}

// storeTime bounds storing a step after the request was canceled.
const storeTime = 10 * time.Second

// lasting stores what has happened also where ctx has ended.
func lasting(ctx context.Context, store func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	return store(ctx)
}

// errStopped ends requests that took too long when the process stops.
var errStopped = fmt.Errorf("the agent stops: %w", repute.ErrUnavailable)

// renew keeps the claim until ctx ends, and ends the work where another process has it. The channel is closed at the
// end. Unlike store.DB.KeepRenewed it does not give up when the database is unavailable for longer than the lease: the
// handler may be at work then, or money on its way, and every step that is stored later checks the claim anyway. It is
// due by the clock, not by the end of the renewal before: one that waited for a lock is followed by the next at once.
func (w *work) renew(ctx context.Context, cancel context.CancelCauseFunc) <-chan struct{} {
	ended, row := make(chan struct{}), *w.row
	go func() {
		defer close(ended)
		tick := time.NewTicker(w.router.o.Lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := agentdb.Renew(ctx, w.router.db, row, w.router.o.Lease); errors.Is(err, repute.ErrFenced) {
				cancel(err)
				return
			}
		}
	}()
	return ended
}

// resume goes through the steps from where the payment's work stopped. These commits are needed, and no other
// ones:
//   - the claim, before anything is done: two processes MUST NOT work for one payment;
//   - that the handler is called, before it is: it MUST NOT be called twice. The claim says it where the handler
//     comes next, otherwise it is stored with the settlement;
//   - the output, before the money moves for it: it MUST NOT be lost after that;
//   - the end, with the settlement and the log. A process that dies between settlement and end leaves a pending
//     one, which the next process settles again: the facilitator, or the chain, tells how it ended.
func (w *work) resume(ctx context.Context) error {
	row := w.row
	if err := w.settled(); err != nil {
		return err
	}
	if row.State == agentdb.Running && !row.Fresh && !w.service.Repeatable {
		return w.fail(ctx, agentdb.Interrupted, &Problem{Status: http.StatusInternalServerError, Code: "interrupted",
			Message: "the agent was stopped while it worked on this payment, and does not begin again" + w.charged()})
	}
	if w.service.settlesBefore(&w.terms.Requirements) {
		if err := w.settle(ctx, w.terms.Requirements); err != nil {
			return err
		}
	}
	if row.State == agentdb.Ran {
		w.output = row.Output
	} else if err := w.runOnce(ctx); err != nil {
		return err
	}
	charge, err := w.terms.charge(w.output)
	if err != nil {
		return w.fail(ctx, agentdb.Failed, internal("the capability gave no price that can be charged"+
			w.charged(), err))
	}
	if err := w.settle(ctx, charge); err != nil {
		return err
	}
	return w.end(ctx)
}

// runOnce calls the handler, after it is stored that it is called.
func (w *work) runOnce(ctx context.Context) error {
	row, db := w.row, w.router.db
	if row.State != agentdb.Running || !row.Fresh {
		if err := w.step(ctx, func(ctx context.Context, log ...agentdb.Entry) error {
			return agentdb.SetRunning(ctx, db, *row, log...)
		}); err != nil {
			return err
		}
		row.State, row.Pending = agentdb.Running, row.Pending && len(row.Settled) == 0
	}
	if err := w.handle(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		p := problemOf(err)
		if w.service.Repeatable && errors.Is(err, repute.ErrUnavailable) {
			p.Message += ": send the same payment again" // the handler may be back then
			return p
		}
		p.Message += w.charged()
		return w.fail(ctx, agentdb.Failed, p)
	}
	row.Output = w.output
	if row.Settlement == agentdb.NoSettlement || len(row.Settled) > 0 {
		return nil // no money moves any more: it is stored with the end
	}
	return w.ran(ctx)
}

// ran stores the output.
func (w *work) ran(ctx context.Context) error {
	err := w.step(ctx, func(ctx context.Context, log ...agentdb.Entry) error {
		return agentdb.SetRan(ctx, w.router.db, *w.row, w.output, log...)
	})
	if err == nil {
		w.row.State = agentdb.Ran
	}
	return err
}

// step stores a step, also where ctx has ended, with the entries of the log that wait.
func (w *work) step(ctx context.Context, store func(context.Context, ...agentdb.Entry) error) error {
	err := lasting(ctx, func(ctx context.Context) error { return store(ctx, w.log...) })
	if err == nil {
		w.log = nil
	}
	return err
}

// charged returns the end of an error message: whether the payment was charged and whether a refund is due.
func (w *work) charged() string {
	switch s := w.response.Settlement; {
	case s == nil || !s.Success:
		return "; nothing was charged, and this payment is not used again"
	case w.refund:
		return "; the payment was charged, and the agent owes it back"
	}
	return "; the payment was charged"
}

// settled reads a settlement that was stored before.
func (w *work) settled() error {
	if len(w.row.Settled) == 0 {
		return nil
	}
	var s x402.Settlement
	if err := json.Unmarshal(w.row.Settled, &s); err != nil {
		return fmt.Errorf("stored settlement: %w", err)
	}
	w.response.Settlement = &s
	if s.Amount != nil {
		w.amount = s.Amount.Big()
	}
	return nil
}

// settle has the facilitator move the money, once. A promise moves none. The settlement is stored by the next step.
func (w *work) settle(ctx context.Context, r x402.Requirements) error {
	if w.row.Settlement == agentdb.NoSettlement || w.response.Settlement != nil {
		return nil
	}
	f := w.router.o.Payments.Facilitator
	if w.request.Payment == nil || f == nil {
		return sendAgain(fmt.Errorf("no facilitator is configured: %w", repute.ErrUnavailable))
	}
	before := w.row.Pending
	w.row.Pending = true // until it is known how this attempt ends
	ctx, span := w.router.o.Tracer.Start(ctx, spanSettle)
	defer span.End()
	s, err := f.Settle(ctx, *w.request.Payment, r)
	switch {
	case err != nil:
		return w.unknown(ctx, err)
	case !s.Success:
		return w.unsettled(ctx, &s, before)
	}
	s = moved(&s, &r, w.client)
	if by := w.router.o.Payments.Signer; by != nil {
		if err := s.AddReceipt(ctx, by, x402.Receipt{Network: r.Network, ResourceURL: w.request.Resource,
			Payer:    s.Payer,
			IssuedAt: uint64(time.Now().Unix()), Transaction: s.Transaction}); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("settlement: %w", err)
	}
	w.row.Settled, w.response.Settlement, w.amount = raw, &s, r.Amount.Big()
	w.router.metrics.settled(w.amount, &w.terms)
	return w.later(ctx, "settled", map[string]any{"transaction": s.Transaction, "amount": r.Amount, "asset": r.Asset,
		"network": r.Network})
}

// unknown is the answer where a settlement was asked for and it is not known how it ended.
func (w *work) unknown(ctx context.Context, cause error) error {
	w.router.metrics.payments.WithLabelValues("unknown").Inc()
	if err := w.record(ctx, agentdb.Verification, "unknown", nil); err != nil {
		return err
	}
	return sendAgain(cause)
}

// errEarlier is why a payment that is refused stays claimed.
var errEarlier = errors.New("the facilitator refuses the payment, and the end of an earlier attempt is not known")

// unsettled answers a payment that the facilitator refused to settle. The payer MUST NOT be asked to pay again while
// an earlier attempt can have charged this payment or can still charge it: only a final block can rule that out
// (Settlement.Dead). The payer MUST NOT be asked either while another process settles the payment because this process
// was stalled: the settlement of that process can be the cause of the refusal.
func (w *work) unsettled(ctx context.Context, s *x402.Settlement, pending bool) error {
	if pending && !s.Dead {
		return w.unknown(ctx, errEarlier)
	}
	if err := agentdb.Renew(ctx, w.router.db, *w.row, w.router.o.Lease); err != nil {
		return err
	}
	w.row.Pending = false
	if w.row.State == agentdb.Claimed {
		if err := agentdb.Release(ctx, w.router.db, *w.row); err != nil {
			return err
		}
	}
	w.failure = &x402.Settlement{ErrorReason: known(s.ErrorReason), Network: w.terms.Requirements.Network,
		Payer: w.client.Hex()}
	return w.demand(ctx, &x402.Refusal{Reason: w.failure.ErrorReason, Message: "it was not settled"})
}

// moved returns a settlement without the facilitator's other fields: it is stored and sent in a header, which has room
// for 64 KiB.
func moved(s *x402.Settlement, r *x402.Requirements, payer common.Address) x402.Settlement {
	out := x402.Settlement{Success: true, Network: r.Network, Payer: payer.Hex(), Amount: &r.Amount}
	if hash := common.HexToHash(s.Transaction); strings.EqualFold(hash.Hex(), s.Transaction) {
		out.Transaction = hash.Hex()
	}
	return out
}

// end is steps 6 and 7 of a paid request.
func (w *work) end(ctx context.Context) error {
	if err := w.sign(ctx); err != nil {
		return errors.Join(err, w.keep(ctx))
	}
	return w.traced(ctx, spanRecord, func(ctx context.Context) error {
		return w.store(ctx, agentdb.Done, answerOf(w.response))
	})
}

// keep stores what was done where the answer cannot be signed: it is signed when the payment is sent again.
func (w *work) keep(ctx context.Context) error {
	if w.row.State != agentdb.Ran {
		if err := w.ran(ctx); err != nil {
			return err
		}
	}
	if len(w.row.Settled) == 0 {
		return nil
	}
	err := w.step(ctx, func(ctx context.Context, log ...agentdb.Entry) error {
		return agentdb.SetSettled(ctx, w.router.db, *w.row, w.row.Settled, log...)
	})
	w.row.Pending = w.row.Pending && err != nil
	return err
}

// fail stores that a payment ends without an answer, and whether it is owed back.
func (w *work) fail(ctx context.Context, state agentdb.State, p *Problem) error {
	w.response.Status = p.Status
	if s := w.response.Settlement; s != nil {
		if w.refund {
			w.row.Refund = agentdb.RefundDue
			if err := w.later(ctx, "refund due", map[string]any{"transaction": s.Transaction, "amount": s.Amount,
				"asset": w.terms.asset(), "network": w.terms.Requirements.Network}); err != nil {
				return err
			}
		}
		w.router.o.Log.ErrorContext(ctx, "a payment was charged and the capability failed", "requestId",
			w.row.RequestID,
			"payment", w.row.ID, "payer", w.client, "refund", w.row.Refund, "error", p)
	}
	if err := w.store(ctx, state, &answer{Status: p.Status, Problem: p}); err != nil {
		return err
	}
	return p
}

// store ends the work for the payment.
func (w *work) store(ctx context.Context, state agentdb.State, a *answer) error {
	raw, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	w.log = append(w.log, w.entry())
	err = w.step(ctx, func(ctx context.Context, log ...agentdb.Entry) error {
		return agentdb.End(ctx, w.router.db, *w.row, state, raw, log...)
	})
	if err != nil {
		w.log = w.log[:len(w.log)-1] // it did not end
		return err
	}
	w.row.State = state
	return nil
}
