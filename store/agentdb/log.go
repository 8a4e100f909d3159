package agentdb

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
)

// Kind is what an entry of the log is about.
type Kind string

// Kinds of entries.
const (
	Execution    Kind = "execution" // a capability was run
	Decision     Kind = "decision"  // of the policy
	Verification Kind = "payment"   // a payment was verified or settled
	Event        Kind = "event"     // start, stop, heartbeat, change of mode
)

// Entry is one line of the log. It is never changed.
type Entry struct {
	At         time.Time // set by the database
	Number     int64     // set by the database
	Kind       Kind
	Agent      string // full id
	RequestID  string
	Capability string
	Client     common.Address // zero where nobody proved who asked
	TaskHash   common.Hash
	ResultHash common.Hash
	Outcome    string // status, effect, state or name, by Kind
	Settlement Settlement
	Amount     *big.Int // in the smallest unit; nil for 0
	Decimals   uint8
	Currency   string
	TxHash     common.Hash
	// ClientSignature is of the payment, of the promise, or of a free request.
	ClientSignature []byte
	AgentSignature  []byte
	Detail          json.RawMessage // nil for none
}

// ID names an entry.
func (e *Entry) ID() string { return fmt.Sprintf("%d-%d", e.At.UnixMicro(), e.Number) }

// Add appends entries to the log.
func Add(ctx context.Context, db *store.DB, entries ...Entry) error {
	return db.InTx(ctx, pgx.TxOptions{}, "append to the log", func(tx pgx.Tx) error {
		for i := range entries {
			if err := add(ctx, tx, &entries[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func add(ctx context.Context, tx pgx.Tx, e *Entry) error {
	if e.Settlement == "" {
		e.Settlement = NoSettlement
	}
	amount := "0"
	if e.Amount != nil {
		amount = e.Amount.String()
	}
	detail := e.Detail
	if len(detail) == 0 {
		detail = json.RawMessage(`{}`)
	}
	_, err := tx.Exec(ctx, `
		insert into agent_receipts (kind, agent, request_id, capability, client, task_hash, result_hash, outcome, settlement,
			amount, decimals, currency, tx_hash, client_signature, agent_signature, detail)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text::numeric, $11, $12, $13, $14, $15, $16)`,
		e.Kind, e.Agent, store.CleanText(e.RequestID), e.Capability, bytesOf(e.Client[:]), bytesOf(e.TaskHash[:]),
		bytesOf(e.ResultHash[:]), store.CleanText(e.Outcome), e.Settlement, amount, int16(e.Decimals),
		store.CleanText(e.Currency), bytesOf(e.TxHash[:]), notNull(e.ClientSignature), notNull(e.AgentSignature), detail)
	return err
}

// bytesOf returns no bytes for a zero address or hash.
func bytesOf(b []byte) []byte {
	for _, c := range b {
		if c != 0 {
			return b
		}
	}
	return []byte{}
}

func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// maxPage bounds how many entries are read at once.
const maxPage = 1000

// Query selects entries.
type Query struct {
	Agent string
	Kind  Kind // "" for all
	// Paid selects executions that were paid for, or promised to be.
	Paid   bool
	Client common.Address // zero for all
	// Before is where the last page ended; nil for the newest entries.
	Before *Entry
	Limit  int
}

// Entries returns entries, the newest first.
func Entries(ctx context.Context, db *store.DB, q Query) (out []Entry, err error) {
	if q.Limit <= 0 || q.Limit > maxPage {
		q.Limit = maxPage
	}
	var at *time.Time
	var number int64
	if q.Before != nil {
		at, number = &q.Before.At, q.Before.Number
	}
	rows, err := db.Readers().Query(ctx, `
		select at, number, kind, agent, request_id, capability, client, task_hash, result_hash, outcome, settlement,
			amount::text, decimals, currency, tx_hash, client_signature, agent_signature, detail
		from agent_receipts
		where agent = $1 and ($2 = '' or kind = $2) and (not $3 or kind = 'execution' and amount > 0)
			and ($4::bytea = '' or client = $4) and ($5::timestamptz is null or (at, number) < ($5, $6))
		order by at desc, number desc limit $7`,
		q.Agent, string(q.Kind), q.Paid, bytesOf(q.Client[:]), at, number, q.Limit)
	if err != nil {
		return nil, store.Failed("read log", err)
	}
	out, err = pgx.CollectRows(rows, scanEntry)
	return out, store.Failed("read log", err)
}

func scanEntry(row pgx.CollectableRow) (e Entry, err error) {
	var client, task, result, tx []byte
	var amount string
	var decimals int16
	err = row.Scan(&e.At, &e.Number, &e.Kind, &e.Agent, &e.RequestID, &e.Capability, &client, &task, &result, &e.Outcome,
		&e.Settlement, &amount, &decimals, &e.Currency, &tx, &e.ClientSignature, &e.AgentSignature, &e.Detail)
	if err != nil {
		return e, err
	}
	e.Client, e.TaskHash = common.BytesToAddress(client), common.BytesToHash(task)
	e.ResultHash, e.TxHash, e.Decimals = common.BytesToHash(result), common.BytesToHash(tx), uint8(decimals)
	e.Amount, _ = new(big.Int).SetString(amount, 10) // the column is a whole number
	return e, nil
}

// MinRetention is the shortest time that the log is kept, in days: the specification asks for 90 of
// receipts and 30 of executions, which are in the same partitions.
const MinRetention = 90

// Maintain makes the partitions of this month and the next two, and drops those whose entries are
// all older than so many days.
func Maintain(ctx context.Context, db *store.DB, days int) error {
	if days < MinRetention {
		return repute.Invalid("retention", strconv.Itoa(days)+" days", strconv.Itoa(MinRetention)+" days or more")
	}
	return db.InTx(ctx, pgx.TxOptions{}, "maintain log", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('agent_receipts', 0))`); err != nil {
			return err
		}
		var now time.Time
		if err := tx.QueryRow(ctx, `select now()`).Scan(&now); err != nil {
			return err
		}
		month := time.Date(now.UTC().Year(), now.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
		for i := range 3 {
			if err := addPartition(ctx, tx, month.AddDate(0, i, 0)); err != nil {
				return err
			}
		}
		return dropPartitions(ctx, tx, now.AddDate(0, 0, -days))
	})
}

// partitionPrefix is the beginning of partitions' names; year and month follow.
const partitionPrefix = "agent_receipts_"

func addPartition(ctx context.Context, tx pgx.Tx, month time.Time) error {
	const day = "2006-01-02"
	_, err := tx.Exec(ctx, fmt.Sprintf(`create table if not exists %s partition of agent_receipts
		for values from ('%s 00:00:00+00') to ('%s 00:00:00+00')`, partitionPrefix+month.Format("2006_01"), month.Format(day),
		month.AddDate(0, 1, 0).Format(day)))
	return err
}

func dropPartitions(ctx context.Context, tx pgx.Tx, before time.Time) error {
	rows, err := tx.Query(ctx, `select inhrelid::regclass::text from pg_inherits
		where inhparent = 'agent_receipts'::regclass`)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		month, err := time.Parse(partitionPrefix+"2006_01", name)
		if err != nil || month.AddDate(0, 1, 0).After(before) {
			continue // not made by this package, or still needed
		}
		if _, err := tx.Exec(ctx, `drop table `+pgx.Identifier{name}.Sanitize()); err != nil {
			return err
		}
	}
	return nil
}
