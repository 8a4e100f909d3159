package agentdb

import (
	"bytes"
	"cmp"
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
	State      State           // of Claim: the first one, Claimed or Running; Claimed where it is empty
	Terms      json.RawMessage // what is paid for, as it was when the payment was claimed
	// Pending says that a settlement was asked for, or can have been, whose end is not known.
	Pending bool
	Settled json.RawMessage // null while the end of the settlement is not known
	Output  json.RawMessage
	Answer  json.RawMessage // null until the end
	Refund  Refund
	Owner   string // of the request that works on it; empty for none
	Created time.Time
	// Fresh says of a payment that Claim returns that nobody had claimed it before.
	Fresh bool
}

// Refund says whether a payment is owed back.
type Refund string

// Refunds.
const (
	NoRefund   Refund = "none"
	RefundDue  Refund = "due"
	RefundPaid Refund = "paid"
)

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
	state, terms, pending or owner <> '', settled, output, answer, refund, owner, created_at`

func scan(row pgx.Row) (p Payment, err error) {
	var task, payload, payer []byte
	err = row.Scan(&p.ID, &p.Agent, &p.Capability, &task, &payload, &p.PaymentID, &payer, &p.Settlement, &p.RequestID,
		&p.State, &p.Terms, &p.Pending, &p.Settled, &p.Output, &p.Answer, &p.Refund, &p.Owner, &p.Created)
	p.TaskHash, p.Payer = common.BytesToHash(task), common.BytesToAddress(payer)
	copy(p.Payload[:], payload)
	return p, err
}

// ReadPayment returns a payment. repute.ErrNotFound where it was never claimed.
func ReadPayment(ctx context.Context, db *store.DB, id string) (Payment, error) {
	return read(ctx, db, `id = $1`, id)
}

// PaymentSent returns the payment to an agent that was sent before as it is now. repute.ErrNotFound where there is
// none.
func PaymentSent(ctx context.Context, db *store.DB, agent string, payload [32]byte) (Payment, error) {
	return read(ctx, db, `agent = $1 and payload = $2`, agent, payload[:])
}

// PaymentNamed returns the payment that a payer gave a name. repute.ErrNotFound where there is none.
func PaymentNamed(ctx context.Context, db *store.DB, agent string, payer common.Address, name string) (Payment, error) {
	return read(ctx, db, `agent = $1 and payer = $2 and payment_id = $3`, agent, payer[:], name)
}

// read returns the payment that a condition selects. One that is worked on counts as pending: who takes it over
// does not know what its owner did last.
func read(ctx context.Context, db *store.DB, where string, args ...any) (Payment, error) {
	p, err := scan(db.Readers().QueryRow(ctx, `select `+columns+` from agent_payments where `+where, args...))
	if errors.Is(err, pgx.ErrNoRows) {
		return p, &repute.MissingError{What: "payment", Why: "was never claimed"}
	}
	return p, store.Failed("read payment", err)
}

// Claim gives the work for a payment to an owner for a time, and appends entries to the log if nobody had it
// before: one statement, so that it is stored at once that the work begins. A payment that was claimed before is
// taken over where its owner's time ended, and returned as it is where its work is done: then its
// owner is another one. ErrWorkedOn while another owner works on it, repute.ErrConflict where the
// payment, or its name, was used for something else.
func Claim(ctx context.Context, db *store.DB, p Payment, lease time.Duration, log ...Entry) (out Payment, err error) {
	p.State = cmp.Or(p.State, Claimed)
	args := []any{p.ID, p.Agent, p.Capability, p.TaskHash[:], p.Payload[:], p.PaymentID, p.Payer[:], p.Settlement,
		p.RequestID,
		p.Owner, lease, p.State, p.Terms}
	sql := `with added as (
		insert into agent_payments (id, agent, capability, task_hash, payload, payment_id, payer, settlement, request_id,
			owner, expires_at, state, terms)
		values ($1, $2, $3, $4, $5, nullif($6, ''), $7, $8, $9, $10, clock_timestamp() + $11::interval, $12, $13)
		on conflict (id) do nothing returning created_at)`
	if len(log) > 0 {
		sql, args = sql+`, logged as (`+insertEntries("added", len(args)+1)+`)`, append(args, entryColumns(log)...)
	}
	err = db.Pool().QueryRow(ctx, sql+` select created_at from added`, args...).Scan(&p.Created)
	var pg *pgconn.PgError
	switch {
	case err == nil:
		p.Fresh = true
		return p, nil
	case errors.Is(err, pgx.ErrNoRows):
		return TakeOver(ctx, db, p, lease)
	case errors.As(err, &pg) && pg.ConstraintName == "agent_payments_identifier":
		return p, repute.Conflict("payment-identifier: %s names another payment", p.PaymentID)
	}
	return p, store.Failed("claim payment", err)
}

// TakeOver is Claim for a payment that was claimed before.
func TakeOver(ctx context.Context, db *store.DB, p Payment, lease time.Duration) (out Payment, err error) {
	err = db.InTx(ctx, pgx.TxOptions{}, "take over payment", func(tx pgx.Tx) error {
		var free bool
		row := tx.QueryRow(ctx,
			`select expires_at <= clock_timestamp() from agent_payments where id = $1 for update`, p.ID)
		if err := row.Scan(&free); errors.Is(err, pgx.ErrNoRows) {
			return ErrWorkedOn // it was freed just now
		} else if err != nil {
			return err
		}
		if out, err = scan(tx.QueryRow(ctx, `select `+columns+` from agent_payments where id = $1`, p.ID)); err != nil {
			return err
		}
		if err := p.Same(&out); err != nil {
			return err
		}
		switch {
		case out.State.Final():
			return nil
		case !free:
			return ErrWorkedOn
		}
		out.Owner = p.Owner
		_, err = tx.Exec(ctx,
			`update agent_payments set owner = $2, pending = $3, expires_at = clock_timestamp() + $4::interval
			where id = $1`, p.ID, p.Owner, out.Pending, lease)
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

// change updates a payment that its owner still works on, and appends entries to the log, in one statement.
// repute.ErrFenced where another one took it over.
func change(ctx context.Context, db *store.DB, p *Payment, what, set string, log []Entry, args ...any) error {
	args = append([]any{p.ID, p.Owner}, args...)
	sql := `with changed as (update agent_payments set ` + set + ` where id = $1 and owner = $2
		and state not in ('done', 'failed', 'interrupted') returning id)`
	if len(log) > 0 {
		sql, args = sql+`, logged as (`+insertEntries("changed", len(args)+1)+`)`, append(args, entryColumns(log)...)
	}
	var n int
	err := db.Pool().QueryRow(ctx, sql+` select count(*) from changed`, args...).Scan(&n)
	if err == nil && n == 0 {
		err = fmt.Errorf("payment %s: %w", p.ID, repute.ErrFenced)
	}
	return store.Failed(what, err)
}

// Renew keeps a payment for its owner. repute.ErrFenced where another one has it, or its work is done.
func Renew(ctx context.Context, db *store.DB, p Payment, lease time.Duration) error {
	return change(ctx, db, &p, "renew claim", "expires_at = clock_timestamp() + $3::interval", nil, lease)
}

// SetSettled stores the settlement of a payment.
func SetSettled(ctx context.Context, db *store.DB, p Payment, settled json.RawMessage, log ...Entry) error {
	return change(ctx, db, &p, "store settlement", "settled = $3, pending = false", log, settled)
}

// SetRunning stores that the handler is called now, with the settlement where there is one. It MUST be stored
// before the handler is called.
func SetRunning(ctx context.Context, db *store.DB, p Payment, log ...Entry) error {
	return change(ctx, db, &p, "store start",
		"state = 'running', settled = $3, pending = pending and $3::json is null", log,
		p.Settled)
}

// SetRan stores that the handler has returned, with its output. The payment is still to be settled or answered.
func SetRan(ctx context.Context, db *store.DB, p Payment, output json.RawMessage, log ...Entry) error {
	return change(ctx, db, &p, "store output", "state = 'ran', output = $3", log, output)
}

// End stores the answer of a payment with its output, its settlement, whether it is owed back, and its lines of the
// log, in one statement. The state MUST be a final one.
func End(ctx context.Context, db *store.DB, p Payment, state State, answer json.RawMessage, log ...Entry) error {
	return change(ctx, db, &p, "end payment", `state = $3, answer = $4, output = coalesce($5, output), settled = $6,
		refund = $7, pending = pending and $6::json is null`, log, state, answer, p.Output, p.Settled,
		cmp.Or(p.Refund, NoRefund))
}

// Release frees a payment for which nothing was run and no money moved or can move by what was done: it may be sent
// again.
func Release(ctx context.Context, db *store.DB, p Payment) error {
	_, err := db.Pool().Exec(ctx, `delete from agent_payments where id = $1 and owner = $2 and state = 'claimed'
		and settled is null`, p.ID, p.Owner)
	return store.Failed("release payment", err)
}

// Yield lets others go on with the work for a payment at once, who then know whether a settlement is pending.
func Yield(ctx context.Context, db *store.DB, p Payment) error {
	_, err := db.Pool().Exec(ctx, `update agent_payments set expires_at = clock_timestamp(), owner = '', pending = $3
		where id = $1 and owner = $2 and state not in ('done', 'failed', 'interrupted')`, p.ID, p.Owner, p.Pending)
	return store.Failed("yield payment", err)
}

// Refunds returns the payments to an agent that are owed back, the oldest first, at most so many.
func Refunds(ctx context.Context, db *store.DB, agent string, limit int) ([]Payment, error) {
	rows, _ := db.Readers().Query(ctx, `select `+columns+` from agent_payments where agent = $1 and refund = 'due'
		order by created_at, id limit $2`, agent, limit)
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Payment, error) { return scan(row) })
	return out, store.Failed("read refunds", err)
}

// SetRefunded stores by which transaction a payment was paid back, with a line of the log. repute.ErrNotFound where
// the payment is not owed back, or not any more.
func SetRefunded(ctx context.Context, db *store.DB, p Payment, tx common.Hash) error {
	entry := Entry{Kind: Verification, Agent: p.Agent, RequestID: p.RequestID, Capability: p.Capability,
		Client:   p.Payer,
		TaskHash: p.TaskHash, Outcome: "refunded", TxHash: tx}
	args := append([]any{p.ID, p.Agent, tx[:]}, entryColumns([]Entry{entry})...)
	var n int
	err := db.Pool().QueryRow(ctx, `with changed as (update agent_payments set refund = 'paid', refund_tx = $3
		where id = $1 and agent = $2 and refund = 'due' returning id),
		logged as (`+insertEntries("changed", 4)+`) select count(*) from changed`, args...).Scan(&n)
	if err == nil && n == 0 {
		err = &repute.MissingError{What: "refund of payment " + p.ID, Why: "is not due"}
	}
	return store.Failed("store refund", err)
}

// PrunePayments deletes payments of an agent whose work is done and that are older than the age, unless they are owed
// back or the end of their settlement is open, as read tells it. They cannot be used again: the chain has taken them,
// or they expired.
func PrunePayments(ctx context.Context, db *store.DB, agent string, age time.Duration) error {
	_, err := db.Pool().Exec(ctx, `delete from agent_payments where agent = $2 and created_at < now() - $1::interval
		and expires_at < now() and refund <> 'due' and not (settled is null and (pending or settlement = 'x402' and owner <> ''
			and state not in ('done', 'failed', 'interrupted')))`, age, agent)
	return store.Failed("prune payments", err)
}
