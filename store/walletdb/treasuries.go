package walletdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
)

// Treasury is a treasury whose events are indexed, and how far.
type Treasury struct {
	ChainID uint64
	Address common.Address
	Start   uint64 // first block whose events are read
	// Cursor is the block up to which every event is stored: that of the chain, or while events of earlier blocks are
	// read the block before them. It has no hash before the first block and where no header is stored.
	Cursor    repute.Block
	Finalized uint64 // up to which block of the chain nothing is replaced
	Reorgs    int64  // of the chain
}

// TreasuryEvent is an event of a treasury.
type TreasuryEvent struct {
	ChainID  uint64
	Treasury common.Address
	Block    repute.Block // number, hash and time
	LogIndex uint32
	Tx       common.Hash
	Kind     string // the event's name
	// Agent, Run and Task are keccak256 of slug and ids; zero where the event names none.
	Agent, Run, Task common.Hash
	Fields           json.RawMessage // an object of texts and booleans
	Final            bool
}

// ReadTreasury returns how far the events of a treasury are indexed. repute.ErrNotFound when they are not.
func ReadTreasury(ctx context.Context, db *store.DB, chainID uint64, address common.Address) (t Treasury, err error) {
	t = Treasury{ChainID: chainID, Address: address}
	var hash []byte
	var seen *time.Time
	err = db.Pool().QueryRow(ctx, `
		select t.start, r.reached, case when r.reached = c.cursor_block then c.cursor_hash else coalesce(b.hash, '') end,
			case when r.reached = c.cursor_block then c.cursor_time else b.time end, c.finalized_block, c.reorgs
		from chains c
		cross join lateral unnest(c.treasuries, c.treasuries_from) t(address, start)
		left join gaps g on (g.chain_id, g.kind, g.subject) = (c.chain_id, $3, $4)
		cross join lateral (select least(g.from_block - 1, c.cursor_block) as reached) r
		left join blocks b on (b.chain_id, b.number) = (c.chain_id, r.reached)
		where c.chain_id = $1 and t.address = $2`, chainID, address[:], repute.KindTreasuryEvent,
		chaindb.HistorySubject+address.Hex()).Scan(&t.Start, &t.Cursor.Number, &hash, &seen, &t.Finalized, &t.Reorgs)
	if errors.Is(err, pgx.ErrNoRows) {
		return t, &repute.MissingError{What: fmt.Sprintf("treasury %s on chain %d", address, chainID),
			Why: "is not followed"}
	}
	t.Cursor.Hash, t.Cursor.Time = common.BytesToHash(hash), column.TimeOf(seen)
	t.Finalized = min(t.Finalized, t.Cursor.Number)
	return t, store.Failed("read treasury", err)
}

// TreasuryMissing counts own transactions that are confirmed up to the cursor and of which no event
// is stored, because an endpoint left logs out.
func TreasuryMissing(ctx context.Context, db *store.DB, t Treasury) (n int64, err error) {
	err = db.Readers().QueryRow(ctx, `
		select count(*) from intents i
		where i.chain_id = $1 and i.target = $2 and i.state = 'confirmed' and i.block between $3 and $4
		and not exists (select 1 from treasury_events e where e.tx_hash = i.hash and e.chain_id = i.chain_id)`,
		int64(t.ChainID), t.Address[:], int64(t.Start), int64(t.Cursor.Number)).Scan(&n)
	return n, store.Failed("compare a treasury's events", err)
}

// maybeHash returns a hash as a parameter, null for zero.
func maybeHash(h common.Hash) []byte {
	if (h == common.Hash{}) {
		return nil
	}
	return h[:]
}

// selectTreasuryEvents begins the statements that treasuryEvents reads.
const selectTreasuryEvents = `
	select e.chain_id, e.address, e.block, coalesce(b.hash, ''), b.time, e.log_index, e.tx_hash, e.kind, e.agent_key, e.run_key,
		e.task_key, e.fields, e.block <= c.finalized_block
	from treasury_events e join chains c using (chain_id)
	left join blocks b on (b.chain_id, b.number) = (e.chain_id, e.block) `

// maxTreasuryEvents is the most events of an answer.
const maxTreasuryEvents = 1000

// TreasuryEventsOfRun returns the events of treasuries that name a run, by keccak256 of its id, the
// oldest first.
func TreasuryEventsOfRun(ctx context.Context, db *store.DB, run common.Hash) ([]TreasuryEvent, error) {
	return treasuryEvents(ctx, db,
		selectTreasuryEvents+`where e.run_key = $1 order by e.chain_id, e.block, e.log_index limit $2`, run[:],
		maxTreasuryEvents)
}

// TreasuryEvents returns a treasury's events before a block and log index, the newest first; of one
// agent where agent is not zero.
func TreasuryEvents(ctx context.Context, db *store.DB, chainID uint64, address common.Address, agent common.Hash,
	block uint64, logIndex uint32, most int) ([]TreasuryEvent, error) {
	return treasuryEvents(ctx, db,
		selectTreasuryEvents+
			`where e.chain_id = $1 and e.address = $2 and ($3::bytea is null or e.agent_key = $3) and (e.block, e.log_index) < ($4, $5)
		order by e.block desc, e.log_index desc limit $6`, int64(chainID), address[:], maybeHash(agent), int64(block), int64(logIndex), most)
}

// TreasuryEventsOf returns the events of some kinds from a time up to the treasury's cursor, the
// newest first.
func TreasuryEventsOf(ctx context.Context, db *store.DB, t Treasury, kinds []string, since time.Time,
	most int) ([]TreasuryEvent, error) {
	return treasuryEvents(ctx, db,
		selectTreasuryEvents+
			`where e.chain_id = $1 and e.address = $2 and e.kind = any($3) and ($4::timestamptz is null or b.time >= $4) and e.block <= $5
		order by e.block desc, e.log_index desc limit $6`, int64(t.ChainID), t.Address[:], kinds, column.MaybeTime(since), int64(t.Cursor.Number), most)
}

// LastPolicySet returns the last PolicySet of an agent, by keccak256 of its slug, at or below a
// block; the zero event when none is stored.
func LastPolicySet(ctx context.Context, db *store.DB, t Treasury, agent common.Hash, block uint64) (TreasuryEvent,
	error) {
	list, err := treasuryEvents(ctx, db,
		selectTreasuryEvents+
			`where e.chain_id = $1 and e.address = $2 and e.agent_key = $3 and e.kind = 'PolicySet' and e.block <= $4
		order by e.block desc, e.log_index desc limit 1`, int64(t.ChainID), t.Address[:], agent[:], int64(block))
	if err != nil || len(list) == 0 {
		return TreasuryEvent{}, err
	}
	return list[0], nil
}

// treasuryEvents returns the events that a statement selects.
func treasuryEvents(ctx context.Context, db *store.DB, sql string, args ...any) ([]TreasuryEvent, error) {
	rows, _ := db.Readers().Query(ctx, sql, args...)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e TreasuryEvent, err error) {
		var at, hash, tx, agent, run, task, fields []byte
		var seen *time.Time
		var index int64
		err = row.Scan(&e.ChainID, &at, &e.Block.Number, &hash, &seen, &index, &tx, &e.Kind, &agent, &run, &task,
			&fields,
			&e.Final)
		e.Treasury, e.Block.Hash, e.Tx, e.LogIndex, e.Fields = common.BytesToAddress(at), common.BytesToHash(hash),
			common.BytesToHash(tx), uint32(index), fields
		e.Agent, e.Run, e.Task = common.BytesToHash(agent), common.BytesToHash(run), common.BytesToHash(task)
		e.Block.Time = column.TimeOf(seen)
		return e, err
	})
	return list, store.Failed("read treasury's events", err)
}
