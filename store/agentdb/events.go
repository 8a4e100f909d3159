package agentdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute/store"
)

// LastEvent returns the outcome of the newest event whose outcome begins with a text, "" for none.
func LastEvent(ctx context.Context, db *store.DB, agent, prefix string) (outcome string, err error) {
	err = db.Pool().QueryRow(ctx, `select outcome from agent_receipts where agent = $1 and kind = 'event'
		and starts_with(outcome, $2) order by at desc, number desc limit 1`, agent, prefix).Scan(&outcome)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return outcome, store.Failed("read events", err)
}

// ChainEvent is something that the chain says happened to an agent.
type ChainEvent struct {
	Agent       string // full id
	Name        string // of the event
	Block       uint64
	BlockHash   common.Hash
	Index       uint // of the log in its block
	Transaction common.Hash
}

// AddChainEvent appends an event of the chain unless it is in the log, and reports whether it did.
// Processes of an agent see the same events, and see them again after a restart.
func AddChainEvent(ctx context.Context, db *store.DB, e ChainEvent) (added bool, err error) {
	detail, err := json.Marshal(map[string]any{"block": e.Block, "blockHash": e.BlockHash, "index": e.Index,
		"transaction": e.Transaction})
	if err != nil {
		return false, fmt.Errorf("event of the chain: %w", err)
	}
	return addOnce(ctx, db, &Entry{Kind: Event, Agent: e.Agent, Outcome: e.Name, TxHash: e.Transaction, Detail: detail},
		fmt.Sprintf("event %s %s %d", e.Agent, e.BlockHash, e.Index),
		`select exists (select from agent_receipts where agent = $1 and kind = 'event' and outcome = $2 and tx_hash = $3
			and detail->>'blockHash' = $4 and detail->>'index' = $5)`, e.Agent, e.Name, e.Transaction[:], e.BlockHash.Hex(),
		fmt.Sprint(e.Index))
}

// addOnce appends an entry unless the statement known finds it in the log, and reports whether it did. name names the
// entry among all: processes that append it at the same time wait for each other.
func addOnce(ctx context.Context, db *store.DB, e *Entry, name, known string, args ...any) (added bool, err error) {
	err = db.InTx(ctx, pgx.TxOptions{}, "append to the log once", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1, 0))`, name); err != nil {
			return err
		}
		var is bool
		err := tx.QueryRow(ctx, known, args...).Scan(&is)
		if added = err == nil && !is; !added {
			return err
		}
		return add(ctx, tx, e)
	})
	return added && err == nil, err
}

// watched is the outcome of entries about the progress of following the chain.
const watched = "watched"

// SaveFollowedTo stores that all events of an agent before a block are in the log.
func SaveFollowedTo(ctx context.Context, db *store.DB, agent string, block uint64) error {
	return Add(ctx, db, Entry{Kind: Event, Agent: agent, Outcome: watched,
		Detail: json.RawMessage(fmt.Sprintf(`{"block":%d}`, block))})
}

// Watched returns the block before which all events of an agent are in the log, 0 where that is not
// known.
func Watched(ctx context.Context, db *store.DB, agent string) (block uint64, err error) {
	var n int64
	err = db.Pool().QueryRow(ctx, `select (detail->>'block')::bigint from agent_receipts where agent = $1
		and kind = 'event' and outcome = $2 order by at desc, number desc limit 1`, agent, watched).Scan(&n)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return uint64(max(n, 0)), store.Failed("read events", err)
}

// policyOutcome is the outcome of entries about policies that were in force.
const policyOutcome = "policy"

// Policy is a signed policy that was in force.
type Policy struct {
	Agent  string // full id
	Hash   common.Hash
	Issued time.Time // zero where the policy does not say
	Stored time.Time // set by the database
}

// AddPolicy stores that a signed policy is in force.
func AddPolicy(ctx context.Context, db *store.DB, p Policy) error {
	issued := int64(0)
	if !p.Issued.IsZero() {
		issued = p.Issued.UnixMicro()
	}
	detail, err := json.Marshal(map[string]any{"hash": p.Hash, "issued": issued})
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	return Add(ctx, db, Entry{Kind: Event, Agent: p.Agent, Outcome: policyOutcome, Detail: detail})
}

// LastPolicy returns the signed policy that was issued last, the zero Policy for none.
func LastPolicy(ctx context.Context, db *store.DB, agent string) (p Policy, err error) {
	var issued int64
	var hash string
	p.Agent = agent
	err = db.Pool().QueryRow(ctx, `select (detail->>'issued')::bigint, detail->>'hash', at from agent_receipts
		where agent = $1 and kind = 'event' and outcome = $2
		order by (detail->>'issued')::bigint desc, at desc, number desc limit 1`, agent, policyOutcome).
		Scan(&issued, &hash, &p.Stored)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, nil
	}
	if p.Hash = common.HexToHash(hash); issued > 0 {
		p.Issued = time.UnixMicro(issued).UTC()
	}
	return p, store.Failed("read policies", err)
}
