package agentdb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"repute"
	"repute/store"
)

// State is how far the work for a payment is.
type State string

// States of payments. Done, Failed and Interrupted are final.
const (
	Claimed     State = "claimed"     // nothing was run
	Running     State = "running"     // the handler was called and did not return yet
	Ran         State = "ran"         // the output is stored
	Done        State = "done"        // the answer is stored
	Failed      State = "failed"      // the handler failed; the answer says so
	Interrupted State = "interrupted" // the process ended while the handler ran
)

// Final reports whether no work is left.
func (s State) Final() bool { return s == Done || s == Failed || s == Interrupted }

// Payment is a payment that an agent accepted.
type Payment struct {
	ID         string // names the authorization
	Agent      string
	Capability string
	TaskHash   common.Hash
	Payload    [32]byte // sha256 of the payment as it was sent
	PaymentID  string   // the client's name of it; "" for none
	Payer      common.Address
	Settlement Settlement
	RequestID  string
	State      State
	Settled    json.RawMessage // null while the end of the settlement is not known
	Output     json.RawMessage
	Answer     json.RawMessage // null until the end
	Owner      string          // of the process that works on it
	Created    time.Time
}

// Settlement is how a payment moves money.
type Settlement string

// Settlements.
const (
	NoSettlement Settlement = "none" // free, or a promise
	X402         Settlement = "x402"
)

// ErrWorkedOn is returned while another process works on a payment. It is a repute.ErrUnavailable:
// the same payment may be sent again.
var ErrWorkedOn = fmt.Errorf("another request with this payment is being answered: %w", repute.ErrUnavailable)

// columns of agent_payments, as scan reads them.
const columns = `id, agent, capability, task_hash, payload, coalesce(payment_id, ''), payer, settlement, request_id,
	state, settled, output, answer, owner, created_at`

func scan(row pgx.Row) (p Payment, err error) {
	var task, payload, payer []byte
	err = row.Scan(&p.ID, &p.Agent, &p.Capability, &task, &payload, &p.PaymentID, &payer, &p.Settlement, &p.RequestID,
		&p.State, &p.Settled, &p.Output, &p.Answer, &p.Owner, &p.Created)
	p.TaskHash, p.Payer = common.BytesToHash(task), common.BytesToAddress(payer)
	copy(p.Payload[:], payload)
	return p, err
}

// ReadPayment returns a payment. repute.ErrNotFound where it was never claimed.
func ReadPayment(ctx context.Context, db *store.DB, id string) (Payment, error) {
	p, err := scan(db.Pool().QueryRow(ctx, `select `+columns+` from agent_payments where id = $1`, id))
	if errors.Is(err, pgx.ErrNoRows) {
		return p, &repute.MissingError{What: "payment " + id, Why: "was never claimed"}
	}
	return p, store.Failed("read payment", err)
}

// PaymentNamed returns the payment that a payer gave a name. repute.ErrNotFound where there is none.
func PaymentNamed(ctx context.Context, db *store.DB, agent string, payer common.Address, name string) (Payment, error) {
	p, err := scan(db.Pool().QueryRow(ctx, `select `+columns+` from agent_payments
		where agent = $1 and payer = $2 and payment_id = $3`, agent, payer[:], name))
	if errors.Is(err, pgx.ErrNoRows) {
		return p, &repute.MissingError{What: "payment", Why: "was never claimed"}
	}
	return p, store.Failed("read payment", err)
}

// Claim gives the work for a payment to an owner for a time. A payment that was claimed before is
// taken over where its owner's time ended, and returned as it is where its work is done: then its
// owner is another one. ErrWorkedOn while another owner works on it, repute.ErrConflict where the
// payment, or its name, was used for something else.
func Claim(ctx context.Context, db *store.DB, p Payment, lease time.Duration) (out Payment, err error) {
	err = db.InTx(ctx, pgx.TxOptions{}, "claim payment", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			insert into agent_payments (id, agent, capability, task_hash, payload, payment_id, payer, settlement, request_id,
				owner, expires_at)
			values ($1, $2, $3, $4, $5, nullif($6, ''), $7, $8, $9, $10, clock_timestamp() + $11::interval)
			on conflict (id) do nothing`, p.ID, p.Agent, p.Capability, p.TaskHash[:], p.Payload[:], p.PaymentID, p.Payer[:],
			p.Settlement, p.RequestID, p.Owner, lease)
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.ConstraintName == "agent_payments_identifier" {
			return repute.Conflict("payment-identifier: %s names another payment", p.PaymentID)
		}
		if err != nil {
			return err
		}
		var free bool
		row := tx.QueryRow(ctx, `select expires_at <= clock_timestamp() from agent_payments where id = $1 for update`, p.ID)
		if err := row.Scan(&free); err != nil {
			return err
		}
		if out, err = scan(tx.QueryRow(ctx, `select `+columns+` from agent_payments where id = $1`, p.ID)); err != nil {
			return err
		}
		if err := p.Same(&out); err != nil {
			return err
		}
		switch {
		case out.State.Final() || tag.RowsAffected() > 0:
			return nil
		case !free:
			return ErrWorkedOn
		}
		out.Owner = p.Owner
		_, err = tx.Exec(ctx, `update agent_payments set owner = $2, expires_at = clock_timestamp() + $3::interval
			where id = $1`, p.ID, p.Owner, lease)
		return err
	})
	return out, err
}

// Same returns repute.ErrConflict where a payment was used for something else than p, or where its
// signature or terms are not those that were claimed.
func (p *Payment) Same(stored *Payment) error {
	if stored.Agent != p.Agent || stored.Capability != p.Capability || stored.TaskHash != p.TaskHash ||
		!bytes.Equal(stored.Payload[:], p.Payload[:]) || stored.PaymentID != p.PaymentID {
		return repute.Conflict("the payment was used for another request: sign another one")
	}
	return nil
}

// change updates a payment that its owner still works on. repute.ErrFenced where another one took it
// over.
func change(ctx context.Context, tx pgx.Tx, p *Payment, set string, args ...any) error {
	tag, err := tx.Exec(ctx, `update agent_payments set `+set+` where id = $1 and owner = $2
		and state not in ('done', 'failed', 'interrupted')`, append([]any{p.ID, p.Owner}, args...)...)
	if err == nil && tag.RowsAffected() == 0 {
		err = fmt.Errorf("payment %s: %w", p.ID, repute.ErrFenced)
	}
	return err
}

func changed(ctx context.Context, db *store.DB, p *Payment, what, set string, args ...any) error {
	return db.InTx(ctx, pgx.TxOptions{}, what, func(tx pgx.Tx) error { return change(ctx, tx, p, set, args...) })
}

// Renew keeps a payment for its owner. repute.ErrFenced where another one has it.
func Renew(ctx context.Context, db *store.DB, p Payment, lease time.Duration) error {
	return changed(ctx, db, &p, "renew claim", "expires_at = clock_timestamp() + $3::interval", lease)
}

// SetSettled stores the settlement of a payment.
func SetSettled(ctx context.Context, db *store.DB, p Payment, settled json.RawMessage) error {
	return changed(ctx, db, &p, "store settlement", "settled = $3", settled)
}

// SetRunning stores that the handler is called now. It MUST be stored before the handler is.
func SetRunning(ctx context.Context, db *store.DB, p Payment) error {
	return changed(ctx, db, &p, "store start", "state = 'running'")
}

// SetRan stores what the handler returned.
func SetRan(ctx context.Context, db *store.DB, p Payment, output json.RawMessage) error {
	return changed(ctx, db, &p, "store output", "state = 'ran', output = $3", output)
}

// End stores the answer of a payment with its line of the log, in one transaction. The state MUST be
// a final one.
func End(ctx context.Context, db *store.DB, p Payment, state State, answer json.RawMessage, entry Entry) error {
	return db.InTx(ctx, pgx.TxOptions{}, "end payment", func(tx pgx.Tx) error {
		if err := change(ctx, tx, &p, "state = $3, answer = $4", state, answer); err != nil {
			return err
		}
		return add(ctx, tx, &entry)
	})
}

// Release frees a payment for which nothing was run and no money moved: it may be sent again.
func Release(ctx context.Context, db *store.DB, p Payment) error {
	_, err := db.Pool().Exec(ctx, `delete from agent_payments where id = $1 and owner = $2 and state = 'claimed'
		and settled is null`, p.ID, p.Owner)
	return store.Failed("release payment", err)
}

// Yield lets others go on with the work for a payment at once.
func Yield(ctx context.Context, db *store.DB, p Payment) error {
	_, err := db.Pool().Exec(ctx, `update agent_payments set expires_at = clock_timestamp() where id = $1 and owner = $2`,
		p.ID, p.Owner)
	return store.Failed("yield payment", err)
}

// PrunePayments deletes payments whose work is done and that are older than the age. They cannot be
// used again: the chain has taken them, or they expired.
func PrunePayments(ctx context.Context, db *store.DB, age time.Duration) error {
	_, err := db.Pool().Exec(ctx, `delete from agent_payments where created_at < now() - $1::interval
		and expires_at < now()`, age)
	return store.Failed("prune payments", err)
}
