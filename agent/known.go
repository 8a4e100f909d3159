package agent

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/agentdb"
)

// recall looks for the request's payment among those that were claimed. It is known by its bytes alone: what the
// capability costs by now, and in which token, does not matter.
func (w *work) recall(ctx context.Context) error {
	var payer common.Address
	switch {
	case w.request.Payment != nil:
		payer = w.request.Payment.Payload.Payer()
		raw, err := json.Marshal(w.request.Payment)
		if err != nil {
			return nil // step 3 tells why
		}
		w.payload = sha256.Sum256(raw)
	case w.request.Promise != nil:
		payer = w.request.Promise.From
		w.payload = sha256.Sum256(w.request.Promise.Signature)
	default:
		return nil
	}
	row, err := agentdb.PaymentSent(ctx, w.router.db, w.router.o.ID.String(), w.payload)
	if errors.Is(err, repute.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	if row.Payer != payer {
		return nil // a signature in the name of another: step 3 refuses it
	}
	own := w.newRow(row.ID, row.Settlement)
	own.PaymentID = row.PaymentID // the same bytes have the same name
	if w.misused = own.Same(&row); w.misused == nil {
		w.known = &row
	}
	return nil
}

// owed reports whether the payer of a known payment is owed its answer: the work is done or under way, or money
// moved, or can have moved.
func (w *work) owed() bool {
	return w.known != nil && w.known.Settlement == agentdb.X402 &&
		(w.known.State != agentdb.Claimed || w.known.Pending || len(w.known.Settled) > 0)
}

// resumeKnown takes over the work for a known payment, on the terms by which it was claimed.
func (w *work) resumeKnown(ctx context.Context) (err error) {
	row := w.known
	if p := w.request.Payment; p != nil {
		w.response.PaymentVersion = p.Version
	}
	if w.terms, err = termsOf(row); err != nil {
		return err
	}
	w.amount = w.terms.Requirements.Amount.Big()
	if !row.State.Final() {
		own := w.newRow(row.ID, row.Settlement)
		own.PaymentID = row.PaymentID
		claimed, err := agentdb.TakeOver(ctx, w.router.db, *own, w.router.o.Lease)
		if errors.Is(err, agentdb.ErrWorkedOn) {
			return sendAgain(err)
		} else if err != nil {
			return err
		}
		row = &claimed
	}
	if w.request.Payment == nil && row.State.Final() { // the work may have ended since the receipt was looked for
		return errReceiptUsed()
	}
	w.row, w.proved = row, true
	return nil
}

// newRow is the request's payment as it is claimed, without its terms.
func (w *work) newRow(id string, s agentdb.Settlement) *agentdb.Payment {
	return &agentdb.Payment{ID: id, Agent: w.router.o.ID.String(), Capability: w.service.Definition().Name,
		TaskHash: w.response.TaskHash, Payload: w.payload, Payer: w.client, Settlement: s, RequestID: w.request.ID,
		Owner: w.owner}
}

// errReceiptUsed is the answer to a promise that was used: its client signs another one.
func errReceiptUsed() *Problem {
	return &Problem{Status: http.StatusConflict, Code: "conflict", Message: "the receipt was used",
		Hint: "sign another one, with another timestamp"}
}
