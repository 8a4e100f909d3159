package walletdb

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
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
}

// purchaseRequest is column request of table acts.
type purchaseRequest struct {
	Request string          `json:"request"`
	Host    string          `json:"host"`
	Worth   int64           `json:"worth"` // millionths of a dollar
	Payment json.RawMessage `json:"payment"`
	Expires time.Time       `json:"expires"`
}

// AddPurchase stores a purchase before its payment is sent. repute.ErrLimited when it would pass a
// cap, together with what others at the same time pay. A refused purchase is stored and passes none.
func AddPurchase(ctx context.Context, db *store.DB, p Purchase, caps Caps) error {
	request, err := json.Marshal(purchaseRequest{p.Request, p.Host, int64(p.Worth), p.Payment, p.Expires})
	if err != nil {
		return err
	}
	return db.InTx(ctx, pgx.TxOptions{}, "add purchase", func(tx pgx.Tx) error {
		if p.Refused == "" {
			if err := withinCaps(ctx, tx, &p, caps); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `
			insert into acts (id, kind, asked_by, chain_id, agent, request, decision, transactions, refused, ended_at)
			values ($1, $2, $3, $4, $5, $6, $7, '[]', $8, case when $8 <> '' then now() end)`,
			p.ID, purchaseKind, store.CleanText(p.By), int64(p.ChainID), p.Agent, store.OrNull(request),
			store.OrNull(p.Decision), store.CleanText(p.Refused))
		return err
	})
}

// withinCaps refuses a purchase that would pass a cap. Until the transaction ends no other one is
// added.
func withinCaps(ctx context.Context, tx pgx.Tx, p *Purchase, caps Caps) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('purchases', 0))`); err != nil {
		return err
	}
	var day, host int64
	err := tx.QueryRow(ctx, `
		select coalesce(sum((request->>'worth')::bigint), 0)::bigint,
			coalesce(sum((request->>'worth')::bigint) filter (where request->>'host' = $2), 0)::bigint
		from acts where kind = $1 and refused = '' and created_at > now() - interval '1 day'`, purchaseKind, p.Host).
		Scan(&day, &host)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		what        string
		spent, most repute.Micros
	}{{"host " + p.Host, repute.Micros(host), caps.Host}, {"all hosts", repute.Micros(day), caps.Day}} {
		if c.spent+p.Worth > c.most {
			return &CapError{What: c.what, Worth: p.Worth, Spent: c.spent, Most: c.most}
		}
	}
	return nil
}

// CapError is a purchase that would pass a cap.
type CapError struct {
	What               string // which cap
	Worth, Spent, Most repute.Micros
}

// Error gives the figures.
func (e *CapError) Error() string {
	return "payment of " + e.Worth.String() + " dollars: " + e.Spent.String() + " of at most " + e.Most.String() +
		" were paid to " + e.What + " in 24 hours"
}

// Unwrap makes it a repute.ErrLimited.
func (e *CapError) Unwrap() error { return repute.ErrLimited }

// OpenPurchase returns the newest purchase of a request by an identity whose end is not known and whose
// payment may still be settled. repute.ErrNotFound when there is none.
func OpenPurchase(ctx context.Context, db *store.DB, agent, request string) (Purchase, error) {
	rows, err := db.Pool().Query(ctx, selectActs+`where kind = $1 and agent = $2 and ended_at is null
		and request->>'request' = $3 and (request->>'expires')::timestamptz > now() order by created_at desc limit 1`,
		purchaseKind, agent, request)
	if err != nil {
		return Purchase{}, store.Failed("open purchase", err)
	}
	act, err := pgx.CollectExactlyOneRow(rows, scanAct)
	if errors.Is(err, pgx.ErrNoRows) {
		return Purchase{}, &repute.MissingError{What: "open purchase", Why: "does not exist"}
	}
	if err != nil {
		return Purchase{}, store.Failed("open purchase", err)
	}
	return purchaseOf(&act)
}

// EndPurchase stores the receipt of a purchase, or why there is none. One that has ended stays as it
// is.
func EndPurchase(ctx context.Context, db *store.DB, id string, receipt json.RawMessage, why string) error {
	_, err := db.Pool().Exec(ctx, `update acts set result = $2, error = $3, ended_at = now()
		where id = $1 and kind = $4 and ended_at is null`, id, store.OrNull(receipt), store.CleanText(why), purchaseKind)
	return store.Failed("end purchase", err)
}

// Purchases returns the newest purchases.
func Purchases(ctx context.Context, db *store.DB, most int) (out []Purchase, err error) {
	rows, err := db.Readers().Query(ctx, selectActs+`where kind = $1 order by created_at desc, id desc limit $2`,
		purchaseKind, most)
	if err != nil {
		return nil, store.Failed("read purchases", err)
	}
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
		Worth: repute.Micros(r.Worth), Payment: r.Payment, Expires: r.Expires, Decision: a.Decision, Refused: a.Refused,
		Receipt: a.Result, Error: a.Error, Created: a.Created, Ended: a.Ended}, nil
}
