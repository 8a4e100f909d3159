package agentdb

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
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

// Add appends entries to the log, in one statement. Entries by which no money moves may be lost where the
// server's machine fails within the next second: waiting for its disk would take longer than the request.
func Add(ctx context.Context, db *store.DB, entries ...Entry) error {
	if len(entries) == 0 {
		return nil
	}
	from := "set_config('synchronous_commit', 'off', true)"
	if mustLast(entries) {
		from = "(values (true)) durable"
	}
	_, err := db.Pool().Exec(ctx, insertEntries(from, 1), entryColumns(entries)...)
	return store.Failed("append to the log", err)
}

// mustLast reports whether an entry must survive a failure of the server's machine: money moved, or an event says how
// far the agent came.
func mustLast(entries []Entry) bool {
	return slices.ContainsFunc(entries,
		func(e Entry) bool { return e.Amount != nil && e.Amount.Sign() > 0 || e.Kind == Event })
}

// add appends an entry in a transaction.
func add(ctx context.Context, tx pgx.Tx, e *Entry) error {
	_, err := tx.Exec(ctx, insertEntries("(values (true)) durable", 1), entryColumns([]Entry{*e})...)
	return err
}

// insertEntries appends entries as often as a relation has rows. Their columns are parameters from a number on.
func insertEntries(from string, first int) string {
	types := []string{"text", "text", "text", "text", "bytea", "bytea", "bytea", "text", "text", "text", "int4", "text",
		"bytea", "bytea", "bytea", "text"}
	for i, t := range types {
		types[i] = "$" + strconv.Itoa(first+i) + "::" + t + "[]"
	}
	return `insert into agent_receipts (kind, agent, request_id, capability, client, task_hash, result_hash, outcome,
			settlement, amount, decimals, currency, tx_hash, client_signature, agent_signature, detail)
		select e.a, e.b, e.c, e.d, e.e, e.f, e.g, e.h, e.i, e.j::numeric, e.k::smallint, e.l, e.m, e.n, e.o, e.p::json
		from ` + from + `, unnest(` + strings.Join(types, ", ") + `) with ordinality
			e (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, place) order by e.place`
}

// entryColumns are the parameters of insertEntries, one array for each column.
func entryColumns(entries []Entry) []any {
	var kinds, agents, requests, capabilities, outcomes, settlements, amounts, currencies, details []string
	var clients, tasks, results, transactions, signedByClient, signedByAgent [][]byte
	var decimals []int32
	for i := range entries {
		e := &entries[i]
		amount := "0"
		if e.Amount != nil {
			amount = e.Amount.String()
		}
		kinds, agents = append(kinds, string(e.Kind)), append(agents, e.Agent)
		requests = append(requests, column.CleanText(e.RequestID))
		capabilities = append(capabilities, e.Capability)
		clients = append(clients, column.AddressBytes(e.Client))
		tasks = append(tasks, column.HashBytes(e.TaskHash))
		results = append(results, column.HashBytes(e.ResultHash))
		outcomes = append(outcomes, column.CleanText(e.Outcome))
		settlements = append(settlements, string(cmp.Or(e.Settlement, NoSettlement)))
		amounts, decimals = append(amounts, amount), append(decimals, int32(e.Decimals))
		currencies = append(currencies, column.CleanText(e.Currency))
		transactions = append(transactions, column.HashBytes(e.TxHash))
		signedByClient = append(signedByClient, column.OrEmpty(e.ClientSignature))
		signedByAgent = append(signedByAgent, column.OrEmpty(e.AgentSignature))
		// Indexes read members of details, which Postgres refuses where any text has a NUL character.
		details = append(details, cmp.Or(string(column.EscapeNUL(slices.Clone(e.Detail))), "{}"))
	}
	return []any{kinds, agents, requests, capabilities, clients, tasks, results, outcomes, settlements, amounts,
		decimals, currencies, transactions, signedByClient, signedByAgent, details}
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

// selectEntries begins the statements that scanEntry reads.
const selectEntries = `
	select at, number, kind, agent, request_id, capability, client, task_hash, result_hash, outcome, settlement,
		amount::text, decimals, currency, tx_hash, client_signature, agent_signature, detail
	from agent_receipts `

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
	rows, _ := db.Readers().Query(ctx, selectEntries+`
		where agent = $1 and ($2 = '' or kind = $2) and (not $3 or kind = 'execution' and amount > 0)
			and ($4::bytea = '' or client = $4) and ($5::timestamptz is null or (at, number) < ($5, $6))
		order by at desc, number desc limit $7`,
		q.Agent, column.CleanText(string(q.Kind)), q.Paid, column.AddressBytes(q.Client), at, number, q.Limit)
	out, err = pgx.CollectRows(rows, scanEntry)
	return out, store.Failed("read log", err)
}

// scanEntry reads a row of selectEntries.
func scanEntry(row pgx.CollectableRow) (e Entry, err error) {
	var client, task, result, tx []byte
	var amount string
	var decimals int16
	err = row.Scan(&e.At, &e.Number, &e.Kind, &e.Agent, &e.RequestID, &e.Capability, &client, &task, &result,
		&e.Outcome,
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

// retentionJob is the beginning of jobs in table cursors that say for how many days an agent keeps its log.
const retentionJob = "agent log "

// Keep stores for how many days an agent keeps its log: agents of one database have partitions in common, so
// that Maintain keeps them for the agent that needs them the longest.
func Keep(ctx context.Context, db *store.DB, agent string, days int) error {
	if err := checkDays(days); err != nil {
		return err
	}
	_, err := db.Pool().Exec(ctx, `insert into cursors (job, position) values ($1, $2)
		on conflict (job, chain_id, part) do update set position = excluded.position`, retentionJob+agent, days)
	return store.Failed("store retention", err)
}

func checkDays(days int) error {
	if days < MinRetention {
		return repute.Invalid("retention", strconv.Itoa(days)+" days", strconv.Itoa(MinRetention)+" days or more")
	}
	return nil
}

// Maintain makes the partitions of this month and the next two, and drops those whose entries are
// all older than so many days, unless they have one of an agent that keeps its log for longer (Keep).
func Maintain(ctx context.Context, db *store.DB, days int) error {
	if err := checkDays(days); err != nil {
		return err
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
	rows, _ := tx.Query(ctx, `select inhrelid::regclass::text from pg_inherits
		where inhparent = 'agent_receipts'::regclass`)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		month, err := time.Parse(partitionPrefix+"2006_01", name)
		if err != nil || month.AddDate(0, 1, 0).After(before) {
			continue // not made by this package, or still needed
		}
		if needed, err := keeps(ctx, tx, name, month.AddDate(0, 1, 0)); err != nil || needed {
			if err != nil {
				return err
			}
			continue
		}
		if _, err := tx.Exec(ctx, `drop table `+pgx.Identifier{name}.Sanitize()); err != nil {
			return err
		}
	}
	return nil
}

// keeps reports whether an agent with entries in a partition still keeps what is as old as the partition's end.
func keeps(ctx context.Context, tx pgx.Tx, partition string, end time.Time) (needed bool, err error) {
	err = tx.QueryRow(ctx, `select exists (select from cursors c where starts_with(c.job, $1)
		and $2 > now() - make_interval(days => c.position::int)
		and exists (select from `+pgx.Identifier{partition}.Sanitize()+` r where r.agent = substr(c.job, length($1) + 1)))`,
		retentionJob, end).Scan(&needed)
	return needed, err
}
