package walletdb

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// purchaseKind is the kind of acts that pay for an answer by x402. The payee sends their
// transactions, so that they have no intents.
const purchaseKind = "purchase"

// Purchase is an answer of a server that is paid for.
type Purchase struct {
	ID      string
	By      string // caller
	ChainID uint64
	Agent   string // slug of the identity that pays
	// Request names what is asked for: two equal ones ask for the same answer.
	Request string
	Host    string // of the server, with port
	Worth   repute.Micros
	// Task is the orchestrator's task that the purchase is part of; empty for none.
	Task string
	// Call is the call of a run that pays; empty for none.
	Call string
	// Payment is what is sent to the server, which may settle it until Expires.
	Payment  json.RawMessage
	Expires  time.Time
	Decision json.RawMessage
	Refused  string // why nothing was paid; empty when it was not refused
	// Receipt is null until an answer was received.
	Receipt json.RawMessage
	Error   string // why no answer is expected any more; empty when it is or was received
	Created time.Time
	Ended   time.Time // zero while the end is not known
}

// Caps bound what is paid. A payment counts from its signature on, whatever the server says of it:
// it may settle it later.
type Caps struct {
	Host repute.Micros // to one host in 24 hours
	Day  repute.Micros // to all in 24 hours
	Task repute.Micros // by one task, at any time; not checked without a task
}

// purchaseRequest is column request of table acts.
type purchaseRequest struct {
	Request string    `json:"request"`
	Host    string    `json:"host"`
	Worth   int64     `json:"worth"` // millionths of a dollar
	Payment quoted    `json:"payment"`
	Expires time.Time `json:"expires"`
	Task    string    `json:"task,omitempty"`
	Call    string    `json:"call,omitempty"`
}

// quoted is JSON that is stored as a JSON text. What a server wrote is in it, as NUL characters and halves of surrogate
// pairs, with which Postgres refuses to read any member of the object around it: one server could so keep all sums
// from being computed.
type quoted json.RawMessage

// MarshalJSON returns the JSON text.
func (q quoted) MarshalJSON() ([]byte, error) { return json.Marshal(string(q)) }

// UnmarshalJSON reads a JSON text, or the JSON as it is, which earlier versions stored.
func (q *quoted) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		text = string(b)
	}
	*q = quoted(text)
	return nil
}

// AddPurchase stores a purchase before its payment is sent. repute.ErrLimited when it would pass a
// cap, together with what others at the same time pay. A refused purchase is stored and passes none.
// Where the purchase is stored already, that one is returned: its payment is the only one that may be
// sent.
func AddPurchase(ctx context.Context, db *store.DB, p Purchase, caps Caps) (out Purchase, err error) {
	request, err := json.Marshal(purchaseRequest{p.Request, p.Host, int64(p.Worth), quoted(p.Payment), p.Expires, p.Task,
		p.Call})
	if err != nil {
		return out, err
	}
	out = p
	err = db.InTx(ctx, pgx.TxOptions{}, "add purchase", func(tx pgx.Tx) error {
		// Until the transaction ends no other purchase is added: the sums below stay true.
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('purchases', 0))`); err != nil {
			return err
		}
		known, err := readPurchase(ctx, tx, p.ID)
		if !errors.Is(err, repute.ErrNotFound) {
			out = known
			return err
		}
		if p.Refused == "" {
			if err := withinCaps(ctx, tx, &p, caps); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `
			insert into acts (id, kind, asked_by, chain_id, agent, request, decision, transactions, refused, ended_at)
			values ($1, $2, $3, $4, $5, $6, $7, '[]', $8, case when $8 <> '' then now() end)`,
			p.ID, purchaseKind, column.CleanText(p.By), int64(p.ChainID), p.Agent, column.OrNull(request),
			column.OrNull(p.Decision), column.CleanText(p.Refused))
		return err
	})
	return out, err
}

// withinCaps refuses a purchase that would pass a cap. The lock of purchases MUST be held.
func withinCaps(ctx context.Context, tx pgx.Tx, p *Purchase, caps Caps) error {
	var day, host, task int64
	err := tx.QueryRow(ctx, `
		select coalesce(sum((request->>'worth')::bigint), 0)::bigint,
			coalesce(sum((request->>'worth')::bigint) filter (where request->>'host' = $2), 0)::bigint,
			(select coalesce(sum((request->>'worth')::bigint), 0)::bigint from acts
				where kind = $1 and refused = '' and request->>'task' = $3)
		from acts where kind = $1 and refused = '' and created_at > now() - interval '1 day'`, purchaseKind, p.Host, p.Task).
		Scan(&day, &host, &task)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		what        string
		counts      bool
		spent, most repute.Micros
	}{{"by task " + p.Task, p.Task != "", repute.Micros(task), caps.Task},
		{"to host " + p.Host + " in 24 hours", true, repute.Micros(host), caps.Host},
		{"to all hosts in 24 hours", true, repute.Micros(day), caps.Day}} {
		if c.counts && c.spent+p.Worth > c.most {
			return &CapError{What: c.what, Worth: p.Worth, Spent: c.spent, Most: c.most}
		}
	}
	return nil
}

// CapError is a purchase that would pass a cap.
type CapError struct {
	What               string // whose payments the cap bounds, such as "to host a.example in 24 hours"
	Worth, Spent, Most repute.Micros
}

// Error gives the figures.
func (e *CapError) Error() string {
	return "payment of " + e.Worth.String() + " dollars: " + e.Spent.String() + " of at most " + e.Most.String() +
		" were paid " + e.What
}

// Unwrap makes it a repute.ErrLimited.
func (e *CapError) Unwrap() error { return repute.ErrLimited }

// ReadPurchase returns a purchase by its id. repute.ErrNotFound when there is none.
func ReadPurchase(ctx context.Context, db *store.DB, id string) (Purchase, error) {
	return readPurchase(ctx, db.Pool(), id)
}

// querier runs queries, in a transaction or outside.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func readPurchase(ctx context.Context, db querier, id string) (Purchase, error) {
	rows, _ := db.Query(ctx, selectActs+`where kind = $1 and id = $2`, purchaseKind, id)
	return onePurchase(rows)
}

// onePurchase reads the only row of an answer.
func onePurchase(rows pgx.Rows) (Purchase, error) {
	act, err := pgx.CollectExactlyOneRow(rows, scanAct)
	if errors.Is(err, pgx.ErrNoRows) {
		return Purchase{}, &repute.MissingError{What: "purchase", Why: "does not exist"}
	}
	if err != nil {
		return Purchase{}, store.Failed("read purchase", err)
	}
	return purchaseOf(&act)
}

// OpenPurchase returns the newest purchase of a request by an identity whose end is not known and whose
// payment may still be settled, outside any run. repute.ErrNotFound when there is none.
func OpenPurchase(ctx context.Context, db *store.DB, agent, request string) (Purchase, error) {
	rows, _ := db.Pool().Query(ctx, selectActs+`where kind = $1 and agent = $2 and ended_at is null
		and request->>'request' = $3 and request->>'call' is null and (request->>'expires')::timestamptz > now()
		order by created_at desc limit 1`, purchaseKind, agent, request)
	return onePurchase(rows)
}

// EndPurchase stores the receipt of a purchase, or why there is none. One that has ended stays as it
// is.
func EndPurchase(ctx context.Context, db *store.DB, id string, receipt json.RawMessage, why string) error {
	_, err := db.Pool().Exec(ctx, `update acts set result = $2, error = $3, ended_at = now()
		where id = $1 and kind = $4 and ended_at is null`, id, column.OrNull(receipt), column.CleanText(why), purchaseKind)
	return store.Failed("end purchase", err)
}

// Purchases returns the newest purchases.
func Purchases(ctx context.Context, db *store.DB, most int) (out []Purchase, err error) {
	rows, _ := db.Readers().Query(ctx, selectActs+`where kind = $1 order by created_at desc, id desc limit $2`,
		purchaseKind, most)
	acts, err := pgx.CollectRows(rows, scanAct)
	for i := range acts {
		p, err := purchaseOf(&acts[i])
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, store.Failed("read purchases", err)
}

// purchaseOf reads a purchase from its act.
func purchaseOf(a *Act) (p Purchase, err error) {
	var r purchaseRequest
	if err := json.Unmarshal(a.Request, &r); err != nil {
		return p, store.Failed("read purchase", err)
	}
	return Purchase{ID: a.ID, By: a.By, ChainID: a.ChainID, Agent: a.Agent, Request: r.Request, Host: r.Host,
		Worth: repute.Micros(r.Worth), Task: r.Task, Call: r.Call, Payment: json.RawMessage(r.Payment), Expires: r.Expires,
		Decision: a.Decision, Refused: a.Refused, Receipt: a.Result, Error: a.Error, Created: a.Created,
		Ended: a.Ended}, nil
}
