package walletdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"repute"
	"repute/store"
	"repute/store/column"
)

// Act is an operator action: a transaction that a person requested outside any run.
type Act struct {
	ID string
	// Key is the idempotency key of the request; empty for none.
	Key  string
	Kind string
	// By names the caller that asked.
	By      string
	ChainID uint64
	// Agent is a slug; empty when the act concerns no agent.
	Agent string
	// Alone says that the act is added only while no other of its kind is open for the agent. It is
	// not stored.
	Alone    bool
	Request  json.RawMessage
	Decision json.RawMessage
	// Transactions are stored as they were simulated.
	Transactions json.RawMessage
	Result       json.RawMessage
	// Refused is why nothing was sent; empty when it was not refused.
	Refused string
	// Error is why the act ended early; empty when it did not.
	Error   string
	Created time.Time
	// Ended is zero while one of its transactions is not final.
	Ended time.Time
	// Age is the time since the request, by the database's clock.
	Age time.Duration
}

// AddAct stores an act before anything of it is sent. When one with the same key exists, it is
// returned and added is false. An act that is refused ends at once. repute.ErrConflict names the
// open act that an act with Alone conflicts with.
func AddAct(ctx context.Context, db *store.DB, a Act) (out Act, added bool, err error) {
	err = db.InTx(ctx, pgx.TxOptions{}, "add act", func(tx pgx.Tx) error {
		if a.Alone && a.Refused == "" {
			if err := alone(ctx, tx, &a); err != nil {
				return err
			}
		}
		tag, err := tx.Exec(ctx, `
			insert into acts (id, key, kind, asked_by, chain_id, agent, request, decision, transactions, refused, ended_at)
			values ($1, nullif($2, ''), $3, $4, $5, $6, $7, $8, $9, $10, case when $10 <> '' then now() end) on conflict
				(key) do nothing`,
			a.ID, column.CleanText(a.Key), a.Kind, column.CleanText(a.By), int64(a.ChainID), a.Agent,
			column.OrNull(a.Request),
			column.OrNull(a.Decision), column.OrNull(a.Transactions), column.CleanText(a.Refused))
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.ConstraintName == "acts_one_identity" {
			return repute.Conflict("an identity of agent %s is being registered: wait for its end", a.Agent)
		}
		if err != nil {
			return err
		}
		added = tag.RowsAffected() > 0
		out, err = oneAct(ctx, tx, `where id = $1 or $2 <> '' and key = $2`, a.ID, column.CleanText(a.Key))
		return err
	})
	return out, added, err
}

// alone returns repute.ErrConflict when another act of the kind is open for the agent. Until the
// transaction ends no other one is added. The same act, asked for again with its key, does not
// conflict.
func alone(ctx context.Context, tx pgx.Tx, a *Act) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1, 0))`,
		fmt.Sprintf("act %s %d %s", a.Kind, a.ChainID, a.Agent)); err != nil {
		return err
	}
	var other string
	err := tx.QueryRow(ctx, `
		select id from acts where kind = $1 and chain_id = $2 and agent = $3 and ended_at is null and ($4 = '' or key is
			distinct from $4) order by created_at limit 1`,
		a.Kind, int64(a.ChainID), a.Agent, column.CleanText(a.Key)).Scan(&other)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = repute.Conflict("act %s, of the same kind and agent, is under way: wait for its end", other)
	}
	return err
}

// EndAct stores the result of an act that succeeded, and the functions that it put on allow-lists.
// An act that has ended stays as it is.
func EndAct(ctx context.Context, db *store.DB, id string, result json.RawMessage, functions []CallFunction) error {
	rows := make([]callFunctionJSON, len(functions))
	for i, f := range functions {
		rows[i] = callFunctionJSON{hexutil.Encode(f.Target[:]), hexutil.Encode(f.Selector[:]), f.Text}
	}
	_, err := db.Pool().Exec(ctx,
		`update acts set result = $2, functions = $3, ended_at = now() where id = $1 and ended_at is null`,
		id, column.OrNull(result), rows)
	return store.Failed("end act", err)
}

// FailAct ends an act early, with the reason. intent is the one that failed, empty when there is
// none. An act that has ended stays as it is. repute.ErrUnavailable when the intent is signed by
// now and did not fail: the act continues.
func FailAct(ctx context.Context, db *store.DB, id, intent, why string) error {
	return db.InTx(ctx, pgx.TxOptions{}, "end act", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select from acts where id = $1 for update`, id); err != nil {
			return err
		}
		if err := WithoutEffect(ctx, tx, intent); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `update acts set error = $2, ended_at = now() where id = $1 and ended_at is null`, id,
			column.CleanText(why))
		return err
	})
}

// RejudgeAct stores a new decision about an act that has not ended, with its transactions as they
// were simulated again.
func RejudgeAct(ctx context.Context, db *store.DB, id string, decision, transactions json.RawMessage) error {
	_, err := db.Pool().Exec(ctx, `update acts set decision = $2, transactions = $3 where id = $1 and ended_at is null`,
		id, column.OrNull(decision), column.OrNull(transactions))
	return store.Failed("judge act", err)
}

// selectActs begins the statements that scanAct reads.
const selectActs = `select id, coalesce(key, ''), kind, asked_by, chain_id, agent, request, decision, transactions, result, refused, error, created_at, ended_at,
	extract(epoch from clock_timestamp() - created_at)::float8 from acts `

// ReadAct returns an act by its id. repute.ErrNotFound when there is none.
func ReadAct(ctx context.Context, db *store.DB, id string) (Act, error) {
	return storedAct(ctx, db, fmt.Sprintf("act %q", id), `where id = $1`, id)
}

// ActOfKey returns the act of a key. repute.ErrNotFound when there is none.
func ActOfKey(ctx context.Context, db *store.DB, key string) (Act, error) {
	return storedAct(ctx, db, fmt.Sprintf("act with key %q", key), `where key = $1`, key)
}

// storedAct returns the act that a condition on a name selects; what describes it in errors.
func storedAct(ctx context.Context, db *store.DB, what, where, name string) (Act, error) {
	a, err := oneAct(ctx, db.Readers(), where, column.CleanText(name))
	if errors.Is(err, pgx.ErrNoRows) {
		err = &repute.MissingError{What: what, Why: "is not stored"}
	}
	return a, store.Failed("act", err)
}

// Acts returns acts before a time and id, the newest first, without purchases; a zero time is the
// beginning.
func Acts(ctx context.Context, db *store.DB, before time.Time, beforeID string, most int) ([]Act, error) {
	rows, _ := db.Readers().Query(ctx,
		selectActs+
			`where kind <> 'purchase' and ($1::timestamptz is null or (created_at, id) < ($1, $2)) order by created_at desc, id desc limit $3`,
		column.MaybeTime(before), column.CleanText(beforeID), most)
	list, err := pgx.CollectRows(rows, scanAct)
	return list, store.Failed("read acts", err)
}

// OpenActs returns acts that have not ended and whose caller no longer waits, the oldest first,
// without purchases, after a time and id; a zero time is the beginning.
func OpenActs(ctx context.Context, db *store.DB, older time.Duration, after time.Time, afterID string,
	most int) ([]Act, error) {
	rows, _ := db.Pool().Query(ctx, selectActs+`
		where ended_at is null and kind <> 'purchase' and created_at < now() - make_interval(secs => $1) and ($2::timestamptz is null or
			(created_at, id) > ($2, $3))
		order by created_at, id limit $4`, older.Seconds(), column.MaybeTime(after), column.CleanText(afterID), most)
	list, err := pgx.CollectRows(rows, scanAct)
	return list, store.Failed("read open acts", err)
}

// oneAct returns the act that meets a condition.
func oneAct(ctx context.Context, db querier, where string, args ...any) (Act, error) {
	rows, _ := db.Query(ctx, selectActs+where, args...)
	return pgx.CollectExactlyOneRow(rows, scanAct)
}

// scanAct reads a row of selectActs.
func scanAct(row pgx.CollectableRow) (a Act, err error) {
	var ended *time.Time
	var age float64
	var request, decision, transactions, result []byte
	err = row.Scan(&a.ID, &a.Key, &a.Kind, &a.By, &a.ChainID, &a.Agent, &request, &decision, &transactions, &result,
		&a.Refused, &a.Error, &a.Created, &ended, &age)
	a.Age = time.Duration(age * float64(time.Second))
	a.Request, a.Decision, a.Transactions, a.Result = request, decision, transactions, result
	a.Created, a.Ended = a.Created.UTC(), column.TimeOf(ended)
	return a, err
}
