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

// renew keeps the claim until ctx ends, and ends the work where another process has it. The channel
// is closed at the end.
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

// resume goes through the steps from where the payment's work stopped. Each is stored before the
// next one begins.
func (w *work) resume(ctx context.Context) error {
	row, db := w.row, w.router.db
	if err := w.settled(); err != nil {
		return err
	}
	if row.State == agentdb.Running && !w.service.Repeatable {
		return w.fail(ctx, agentdb.Interrupted, &Problem{Status: http.StatusInternalServerError, Code: "interrupted",
			Message: "the agent was stopped while it worked on this payment, and does not begin again" + w.charged()})
	}
	if w.service.settlesBefore(&w.terms) {
		if err := w.settle(ctx, w.terms); err != nil {
			return err
		}
	}
	if row.State == agentdb.Ran {
		w.output = row.Output
	} else {
		if err := lasting(ctx, func(ctx context.Context) error { return agentdb.SetRunning(ctx, db, *row) }); err != nil {
			return err
		}
		row.State = agentdb.Running
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
		ran := func(ctx context.Context) error { return agentdb.SetRan(ctx, db, *row, w.output) }
		if err := lasting(ctx, ran); err != nil {
			return err
		}
		row.State = agentdb.Ran
	}
	charge, err := w.service.Price.charge(w.terms, w.output)
	if err != nil {
		return w.fail(ctx, agentdb.Failed, internal("the capability gave no price that can be charged"+w.charged(), err))
	}
	if err := w.settle(ctx, charge); err != nil {
		return err
	}
	return w.end(ctx)
}

// charged tells in an error whether money moved.
func (w *work) charged() string {
	if w.response.Settlement != nil && w.response.Settlement.Success {
		return "; the payment was charged"
	}
	return "; nothing was charged, and this payment is not used again"
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
		w.price.amount = s.Amount.Big()
	}
	return nil
}

// settle has the facilitator move the money, once. A promise moves none.
func (w *work) settle(ctx context.Context, r x402.Requirements) error {
	if w.row.Settlement == agentdb.NoSettlement || w.response.Settlement != nil {
		return nil
	}
	p := w.request.Payment
	ctx, span := w.router.o.Tracer.Start(ctx, spanSettle)
	defer span.End()
	s, err := w.router.o.Payments.Facilitator.Settle(ctx, *p, r)
	switch {
	case err != nil:
		w.router.metrics.payments.WithLabelValues("unknown").Inc()
		if err := w.record(ctx, agentdb.Verification, "unknown", nil); err != nil {
			return err
		}
		return sendAgain(err)
	case !s.Success:
		if w.row.State == agentdb.Claimed {
			if err := agentdb.Release(ctx, w.router.db, *w.row); err != nil {
				return err
			}
		}
		w.failure = &x402.Settlement{ErrorReason: known(s.ErrorReason), Network: r.Network, Payer: w.client.Hex()}
		return w.demand(ctx, &x402.Refusal{Reason: w.failure.ErrorReason, Message: "it was not settled"})
	}
	s = moved(&s, &r, w.client)
	if by := w.router.o.Payments.Signer; by != nil {
		if err := s.AddReceipt(ctx, by, x402.Receipt{Network: r.Network, ResourceURL: w.request.Resource, Payer: s.Payer,
			IssuedAt: uint64(time.Now().Unix()), Transaction: s.Transaction}); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("settlement: %w", err)
	}
	err = lasting(ctx, func(ctx context.Context) error { return agentdb.SetSettled(ctx, w.router.db, *w.row, raw) })
	if err != nil {
		return err
	}
	w.row.Settled, w.response.Settlement, w.price.amount = raw, &s, r.Amount.Big()
	w.router.metrics.settled(&w.price)
	return w.record(ctx, agentdb.Verification, "settled", map[string]any{"transaction": s.Transaction,
		"amount": r.Amount, "asset": r.Asset, "network": r.Network})
}

// moved is a settlement without what a facilitator wrote beside the transaction: it is stored and sent
// in a header, which has room for 64 KiB.
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
		return err
	}
	return w.step(ctx, spanRecord, func(ctx context.Context) error {
		return w.store(ctx, agentdb.Done, answerOf(w.response))
	})
}

// fail stores that a payment ends without an answer.
func (w *work) fail(ctx context.Context, state agentdb.State, p *Problem) error {
	w.response.Status = p.Status
	if w.response.Settlement != nil {
		w.router.o.Log.ErrorContext(ctx, "a payment was charged and the capability failed", "requestId", w.row.RequestID,
			"payment", w.row.ID, "payer", w.client, "error", p)
	}
	if err := w.store(ctx, state, &answer{Status: p.Status, Problem: p}); err != nil {
		return err
	}
	return p
}

func (w *work) store(ctx context.Context, state agentdb.State, a *answer) error {
	raw, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	err = lasting(ctx, func(ctx context.Context) error {
		return agentdb.End(ctx, w.router.db, *w.row, state, raw, w.entry())
	})
	if err != nil {
		return err
	}
	w.row.State = state
	return nil
}
