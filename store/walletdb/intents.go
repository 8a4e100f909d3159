package walletdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// IntentState is how far a transaction is.
type IntentState string

// States of an intent. Only the last three are final.
const (
	// IntentSigned: it is stored and may not be sent yet.
	IntentSigned IntentState = "signed"
	// IntentBroadcast: a node accepted it.
	IntentBroadcast IntentState = "broadcast"
	// IntentMined: it is in a block that may still be replaced.
	IntentMined IntentState = "mined"
	// IntentConfirmed: it is in a final block and succeeded.
	IntentConfirmed IntentState = "confirmed"
	// IntentReverted: it is in a final block and had no effect.
	IntentReverted IntentState = "reverted"
	// IntentFailed: it can never be mined; Reason says why.
	IntentFailed IntentState = "failed"
)

// Final reports whether the state cannot change any more.
func (s IntentState) Final() bool {
	return s == IntentConfirmed || s == IntentReverted || s == IntentFailed
}

// Intent is a transaction that is sent once, however often it is requested.
type Intent struct {
	ID, Run, Task, Agent string // Agent is a slug
	ChainID              uint64
	From                 common.Address
	Nonce                uint64
	To                   common.Address
	Value                *big.Int // wei
	Data                 []byte
	MaxFee               *big.Int // wei for gas in all; nil: no limit
	State                IntentState
	Reason               string
	Mined                Mining          // zero while it is not mined
	Attempts             []IntentAttempt // oldest first, never empty once stored
}

// IntentAttempt is one signed form of an intent.
type IntentAttempt struct {
	Hash           common.Hash
	Raw            []byte
	Nonce          uint64
	Gas            uint64
	FeeCap, TipCap *big.Int      // wei per gas
	Age            time.Duration // since it was signed, by the database's clock
}

// Mining is the block in which a transaction was mined, and its cost.
type Mining struct {
	Hash      common.Hash // of the signed form that was mined
	Block     uint64
	BlockHash common.Hash
	GasUsed   uint64
	Fee       *big.Int // wei
	Logs      json.RawMessage
}

// signWait is how long a transaction of the database may wait for a signature while an account is
// locked.
const signWait = "45s"

// AddIntent stores an intent with its first signed form, before it is sent. sign gets the account's
// nonces and uses the next, a later or a free one; no other process uses a nonce of the account
// meanwhile. When the intent is stored already, it is returned without calling sign.
// repute.ErrConflict when the stored one is another transaction, or when the call or act that it
// belongs to has ended.
func AddIntent(ctx context.Context, db *store.DB, in Intent, sign func(context.Context, Nonces) (IntentAttempt,
	error)) (out Intent, err error) {
	err = db.InTx(ctx, pgx.TxOptions{}, "add intent", func(tx pgx.Tx) error {
		next, err := lockAccount(ctx, tx, in.ChainID, in.From)
		if err != nil {
			return err
		}
		if out, err = readIntent(ctx, tx, in.ID); err == nil {
			return in.Same(&out)
		} else if !errors.Is(err, repute.ErrNotFound) {
			return err
		}
		if err := stillOpen(ctx, tx, in.ID); err != nil {
			return err
		}
		nonces := Nonces{Next: next, tx: tx, chainID: in.ChainID, address: in.From}
		signed, err := sign(ctx, nonces)
		if err != nil {
			return err
		}
		if taken, err := nonces.taken(ctx, signed.Nonce); err != nil {
			return err
		} else if taken {
			return fmt.Errorf("nonce %d is taken, the next is %d: %w", signed.Nonce, next, repute.ErrConflict)
		}
		if err := insertIntent(ctx, tx, &in, &signed); err != nil {
			return err
		}
		out, err = readIntent(ctx, tx, in.ID)
		return err
	})
	return out, err
}

// stillOpen locks the call of a run or the act that an intent belongs to until the transaction
// ends, so that a caller that was told that nothing was sent can rely on it. repute.ErrConflict
// when it has ended.
func stillOpen(ctx context.Context, tx pgx.Tx, id string) error {
	for _, of := range []string{
		`select ended_at is not null from acts where id = split_part($1, '/', 1) for key share`,
		`select done from run_calls where run_id = split_part($1, '/', 1) and run_id || '/' || step_id || '/' || key = $1 for key share`,
	} {
		var ended bool
		if err := tx.QueryRow(ctx, of, id).Scan(&ended); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if ended {
			return repute.Conflict("intent %s is of what has ended", id)
		}
	}
	return nil
}

// WithoutEffect returns repute.ErrUnavailable when an intent is signed and has or may have an
// effect. The call or act that it belongs to MUST be locked, so that it is not signed meanwhile.
func WithoutEffect(ctx context.Context, tx pgx.Tx, id string) error {
	var signed bool
	err := tx.QueryRow(ctx, `select exists (select from intents where id = $1 and state not in ('reverted', 'failed'))`,
		id).Scan(&signed)
	if err == nil && signed {
		err = fmt.Errorf("intent %s is signed, and did not fail: %w", id, repute.ErrUnavailable)
	}
	return err
}

// lockAccount returns the nonce after the highest one that an account ever used. Until the
// transaction ends no other one can lock the account.
func lockAccount(ctx context.Context, tx pgx.Tx, chainID uint64, address common.Address) (next uint64, err error) {
	if _, err := tx.Exec(ctx, "set local idle_in_transaction_session_timeout = '"+signWait+"'"); err != nil {
		return 0, err
	}
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1, 0))`,
		fmt.Sprintf("account %d %s", chainID, address)); err != nil {
		return 0, err
	}
	err = tx.QueryRow(ctx, `select coalesce(max(nonce) + 1, 0) from intents where chain_id = $1 and sender = $2`,
		int64(chainID), address[:]).Scan(&next)
	return next, err
}

// insertIntent stores an intent with its first signed form.
func insertIntent(ctx context.Context, tx pgx.Tx, in *Intent, signed *IntentAttempt) error {
	b := &pgx.Batch{}
	b.Queue(`
		insert into intents (id, run_id, task_id, chain_id, sender, nonce, target, value, data, max_fee, agent)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		in.ID, in.Run, in.Task, int64(in.ChainID), in.From[:], int64(signed.Nonce), in.To[:], column.BigNum{Int: in.Value},
		column.OrEmpty(in.Data), maybeWei(in.MaxFee), in.Agent)
	queueAttempt(b, in.ID, 1, signed)
	return tx.SendBatch(ctx, b).Close()
}

// queueAttempt stores a signed form.
func queueAttempt(b *pgx.Batch, id string, number int, a *IntentAttempt) {
	b.Queue(`insert into intent_attempts (intent_id, number, hash, raw, gas, fee_cap, tip_cap) values ($1, $2, $3, $4, $5, $6, $7)`,
		id, number, a.Hash[:], a.Raw, int64(a.Gas), column.BigNum{Int: a.FeeCap}, column.BigNum{Int: a.TipCap})
}

// maybeWei returns an amount as a parameter, null for nil.
func maybeWei(v *big.Int) *column.BigNum {
	if v == nil {
		return nil
	}
	return &column.BigNum{Int: v}
}

// Same returns repute.ErrConflict when the stored intent is another transaction. Limits, state and,
// where keys were changed, the sender may differ.
func (i *Intent) Same(stored *Intent) error {
	if i.ChainID != stored.ChainID || i.To != stored.To || i.Value.Cmp(stored.Value) != 0 ||
		string(i.Data) != string(stored.Data) {
		return fmt.Errorf("intent %s is another transaction: %w", i.ID, repute.ErrConflict)
	}
	return nil
}

// AddAttempt adds a signed form to an intent that has known forms and is not final; sign makes it
// from the stored intent. When another process was faster, or the intent became final, the intent
// is returned without calling sign.
func AddAttempt(ctx context.Context, db *store.DB, id string, known int,
	sign func(context.Context, Intent) (IntentAttempt, error)) (out Intent, err error) {
	err = db.InTx(ctx, pgx.TxOptions{}, "add attempt", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local idle_in_transaction_session_timeout = '"+signWait+"'"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select 1 from intents where id = $1 for update`, id); err != nil {
			return err
		}
		if out, err = readIntent(ctx, tx, id); err != nil || out.State.Final() || len(out.Attempts) != known {
			return err
		}
		signed, err := sign(ctx, out)
		if err != nil {
			return err
		}
		if signed.Nonce != out.Nonce {
			return fmt.Errorf("intent %s has nonce %d, not %d: %w", id, out.Nonce, signed.Nonce, repute.ErrConflict)
		}
		b := &pgx.Batch{}
		queueAttempt(b, id, known+1, &signed)
		b.Queue(`update intents set state = 'signed', updated_at = now() where id = $1`, id)
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		out, err = readIntent(ctx, tx, id)
		return err
	})
	return out, err
}

// MarkIntent stores the state of an intent: m when it was mined (the zero Mining when it is not, or
// no longer), reason when it failed. A final intent stays as it is.
func MarkIntent(ctx context.Context, db *store.DB, id string, state IntentState, m Mining, reason string) error {
	mined := m.Hash != common.Hash{}
	_, err := db.Pool().Exec(ctx, `
		update intents set state = $2, reason = $3, hash = case when $4 then $5::bytea end, block = case when $4 then
			$6::bigint end,
			block_hash = case when $4 then $7::bytea end, gas_used = case when $4 then $8::bigint end,
			fee = case when $4 then $9::numeric end, logs = case when $4 then $10::text::json end, updated_at = now()
		where id = $1 and state not in ('confirmed', 'reverted', 'failed')`,
		id, string(state), column.CleanText(reason), mined, m.Hash[:], int64(m.Block), m.BlockHash[:],
		int64(m.GasUsed), maybeWei(m.Fee), jsonText(m.Logs))
	return store.Failed("mark intent", err)
}

// ReadIntent returns an intent. repute.ErrNotFound when there is none.
func ReadIntent(ctx context.Context, db *store.DB, id string) (Intent, error) {
	out, err := readIntent(ctx, db.Pool(), id)
	return out, store.Failed("intent", err)
}

// selectIntents begins the statements that scanIntent reads: one row for each signed form.
const selectIntents = `
	select i.id, run_id, task_id, agent, chain_id, sender, nonce, target, value, data, max_fee, state, reason,
		i.hash, coalesce(block, 0), block_hash, coalesce(gas_used, 0), fee, logs,
		a.hash, a.raw, a.gas, a.fee_cap, a.tip_cap, extract(epoch from clock_timestamp() - a.at)::float8
	from intents i join intent_attempts a on a.intent_id = i.id `

// readIntent is ReadIntent, also within a transaction.
func readIntent(ctx context.Context, db querier, id string) (Intent, error) {
	found, err := collectIntents(ctx, db, selectIntents+`where i.id = $1 order by a.number`, id)
	if err == nil && len(found) == 0 {
		err = &repute.MissingError{What: fmt.Sprintf("intent %q", id), Why: "is not stored"}
	}
	if err != nil {
		return Intent{}, err
	}
	return found[0], nil
}

// IntentsBetween returns the intents of an account with from ≤ nonce ≤ to that did not fail,
// ordered by nonce, at most 64.
func IntentsBetween(ctx context.Context, db *store.DB, chainID uint64, sender common.Address, from,
	to uint64) ([]Intent, error) {
	out, err := collectIntents(ctx, db.Pool(), selectIntents+`
		where i.id in (select id from intents where chain_id = $1 and sender = $2 and nonce between $3 and $4 and state
			<> 'failed' order by nonce limit 64)
		order by i.nonce, a.number`, int64(chainID), sender[:], int64(from), int64(to))
	return out, store.Failed("intents", err)
}

// OpenIntents returns the intents of a chain that are not final, ordered by id, at most 64 after an
// id; "" is the beginning.
func OpenIntents(ctx context.Context, db *store.DB, chainID uint64, after string) ([]Intent, error) {
	out, err := collectIntents(ctx, db.Pool(), selectIntents+`
		where i.id in (select id from intents where chain_id = $1 and id > $2 and state not in ('confirmed', 'reverted',
			'failed') order by id limit 64)
		order by i.id, a.number`, int64(chainID), after)
	return out, store.Failed("open intents", err)
}

// collectIntents returns the intents that a statement selects, with their attempts.
func collectIntents(ctx context.Context, db querier, sql string, args ...any) (out []Intent, err error) {
	rows, _ := db.Query(ctx, sql, args...)
	one, err := pgx.CollectRows(rows, scanIntent)
	for _, i := range one {
		if n := len(out); n > 0 && out[n-1].ID == i.ID {
			out[n-1].Attempts = append(out[n-1].Attempts, i.Attempts...)
			continue
		}
		out = append(out, i)
	}
	return out, err
}

// scanIntent reads an intent with one of its attempts.
func scanIntent(row pgx.CollectableRow) (i Intent, err error) {
	var a IntentAttempt
	var from, to, hash, blockHash, attempt []byte
	var value, feeCap, tipCap column.BigNum
	var maxFee, fee *column.BigNum
	var age float64
	if err := row.Scan(&i.ID, &i.Run, &i.Task, &i.Agent, &i.ChainID, &from, &i.Nonce, &to, &value, &i.Data, &maxFee,
		&i.State, &i.Reason,
		&hash, &i.Mined.Block, &blockHash, &i.Mined.GasUsed, &fee, &i.Mined.Logs, &attempt, &a.Raw, &a.Gas, &feeCap,
		&tipCap, &age); err != nil {
		return i, err
	}
	i.From, i.To = common.BytesToAddress(from), common.BytesToAddress(to)
	i.Mined.Hash, i.Mined.BlockHash, a.Hash = common.BytesToHash(hash), common.BytesToHash(blockHash),
		common.BytesToHash(attempt)
	a.Nonce, a.Age = i.Nonce, time.Duration(age*float64(time.Second))
	i.Value, a.FeeCap, a.TipCap = value.Int, feeCap.Int, tipCap.Int
	if maxFee != nil {
		i.MaxFee = maxFee.Int
	}
	if fee != nil {
		i.Mined.Fee = fee.Int
	}
	i.Attempts = []IntentAttempt{a}
	return i, nil
}

// maxSettled bounds SettledIntents, far above what one service sends in the blocks that are not
// final.
const maxSettled = 1000

// SettledIntents returns the intents of a chain that are confirmed or reverted in a block above
// one, the newest maxSettled.
func SettledIntents(ctx context.Context, db *store.DB, chainID, above uint64) ([]Intent, error) {
	out, err := collectIntents(ctx, db.Pool(), selectIntents+`
		where i.id in (select id from intents where chain_id = $1 and state in ('confirmed', 'reverted') and block > $2
			order by block desc limit $3)
		order by i.id, a.number`, int64(chainID), int64(above), maxSettled)
	return out, store.Failed("settled intents", err)
}

// ReopenIntent makes a confirmed or reverted intent wait to be mined again, if its stored block is
// the one that left the chain.
func ReopenIntent(ctx context.Context, db *store.DB, id string, left common.Hash) error {
	_, err := db.Pool().Exec(ctx, `
		update intents set state = 'broadcast', hash = null, block = null, block_hash = null, gas_used = null, fee = null,
			logs = null, updated_at = now()
		where id = $1 and state in ('confirmed', 'reverted') and block_hash = $2`, id, left[:])
	return store.Failed("reopen intent", err)
}

// jsonText returns JSON as a parameter, null for none.
func jsonText(v json.RawMessage) *string {
	if len(v) == 0 {
		return nil
	}
	s := string(v)
	return &s
}
