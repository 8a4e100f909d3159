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
)

// Treasury is a treasury that is followed, and how far.
type Treasury struct {
	ChainID   uint64
	Address   common.Address
	Start     uint64       // first block that was looked at
	Cursor    repute.Block // everything up to here is stored; without hash before the first block
	Finalized uint64       // up to which the stored blocks are final
	Reorgs    int64
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

// TreasuryBatch is a range of consecutive blocks with all events of a treasury in them.
type TreasuryBatch struct {
	ChainID uint64
	Address common.Address
	Parent  repute.Block // must be the stored cursor
	To      repute.Block // becomes the cursor
	Blocks  []repute.Block
	Events  []TreasuryEvent
	// Finalized is up to which block nothing can be replaced.
	Finalized uint64
}

// AddTreasury adds a treasury that is followed from a block on. One that is followed from a later
// block begins again.
func AddTreasury(ctx context.Context, db *store.DB, chainID uint64, address common.Address, start uint64) (Treasury,
	error) {
	err := db.InTx(ctx, pgx.TxOptions{}, "add treasury", func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(`delete from treasury_events e using treasuries t where (e.chain_id, e.address) = (t.chain_id, t.address) and t.chain_id = $1 and t.address = $2 and t.start_block > $3`, int64(chainID), address[:], int64(start))
		b.Queue(`delete from treasury_blocks e using treasuries t where (e.chain_id, e.address) = (t.chain_id, t.address) and t.chain_id = $1 and t.address = $2 and t.start_block > $3`, int64(chainID), address[:], int64(start))
		b.Queue(`
			insert into treasuries (chain_id, address, start_block, cursor_block, cursor_hash) values ($1, $2, $3::bigint,
				$3::bigint - 1, '')
			on conflict (chain_id, address) do update set start_block = excluded.start_block, cursor_block =
				excluded.cursor_block, cursor_hash = '', cursor_time = null, finalized = 0
			where treasuries.start_block > excluded.start_block`, int64(chainID), address[:], int64(start))
		return tx.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return Treasury{}, err
	}
	return ReadTreasury(ctx, db, chainID, address)
}

// selectTreasuries begins the statements about treasuries.
const selectTreasuries = `
	select t.chain_id, t.address, start_block, cursor_block, cursor_hash, cursor_time, finalized, reorgs from
		treasuries t `

// ReadTreasury returns how far a treasury is followed. repute.ErrNotFound when it is not.
func ReadTreasury(ctx context.Context, db *store.DB, chainID uint64, address common.Address) (t Treasury, err error) {
	rows, err := db.Pool().Query(ctx, selectTreasuries+`where t.chain_id = $1 and t.address = $2`, int64(chainID),
		address[:])
	if err != nil {
		return t, store.Failed("read treasury", err)
	}
	t, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (t Treasury, err error) {
		var at, hash []byte
		var seen *time.Time
		err = row.Scan(&t.ChainID, &at, &t.Start, &t.Cursor.Number, &hash, &seen, &t.Finalized, &t.Reorgs)
		t.Address, t.Cursor.Hash = common.BytesToAddress(at), common.BytesToHash(hash)
		if seen != nil {
			t.Cursor.Time = seen.UTC()
		}
		return t, err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return t, &repute.MissingError{What: fmt.Sprintf("treasury %s on chain %d", address, chainID), Why: "is not followed"}
	}
	return t, store.Failed("read treasury", err)
}

// TreasuryMissing counts own transactions that are confirmed up to the cursor and of which no event
// is stored, because an endpoint left logs out.
func TreasuryMissing(ctx context.Context, db *store.DB, chainID uint64, address common.Address) (n int64, err error) {
	err = db.Readers().QueryRow(ctx, `
		select count(*) from intents i join treasuries t on (t.chain_id, t.address) = (i.chain_id, i.target)
		where i.chain_id = $1 and i.target = $2 and i.state = 'confirmed' and i.block between t.start_block and t.cursor_block
		and not exists (select 1 from treasury_events e where e.tx_hash = i.hash and e.chain_id = i.chain_id)`, int64(chainID), address[:]).Scan(&n)
	return n, store.Failed("compare a treasury's events", err)
}

// SaveTreasury stores events, blocks and cursor of a batch in one transaction. repute.ErrFenced
// when the cursor is not the batch's parent, because another process was faster.
func SaveTreasury(ctx context.Context, db *store.DB, b TreasuryBatch) error {
	return db.InTx(ctx, pgx.TxOptions{}, "save treasury's events", func(tx pgx.Tx) error {
		if err := holdTreasury(ctx, tx, b.ChainID, b.Address, b.Parent); err != nil {
			return err
		}
		return saveTreasury(ctx, tx, &b)
	})
}

// RewindTreasury removes all blocks above ancestor, a stored block, and stores the batch that
// follows it, in one transaction. repute.ErrFenced when the cursor is not was, and
// repute.ErrFinalized when ancestor is below a final block.
func RewindTreasury(ctx context.Context, db *store.DB, was, ancestor repute.Block, b TreasuryBatch) error {
	return db.InTx(ctx, pgx.TxOptions{}, "rewind treasury's events", func(tx pgx.Tx) error {
		if err := holdTreasury(ctx, tx, b.ChainID, b.Address, was); err != nil {
			return err
		}
		var finalized uint64
		if err := tx.QueryRow(ctx, `select finalized from treasuries where chain_id = $1 and address = $2`,
			int64(b.ChainID), b.Address[:]).Scan(&finalized); err != nil {
			return err
		}
		if ancestor.Number < finalized {
			return fmt.Errorf("block %d is below finalized block %d: %w", ancestor.Number, finalized, repute.ErrFinalized)
		}
		q := &pgx.Batch{}
		q.Queue(`delete from treasury_events where chain_id = $1 and address = $2 and block > $3`, int64(b.ChainID),
			b.Address[:], int64(ancestor.Number))
		q.Queue(`delete from treasury_blocks where chain_id = $1 and address = $2 and number > $3`, int64(b.ChainID),
			b.Address[:], int64(ancestor.Number))
		q.Queue(`update treasuries set reorgs = reorgs + 1 where chain_id = $1 and address = $2`, int64(b.ChainID),
			b.Address[:])
		if err := tx.SendBatch(ctx, q).Close(); err != nil {
			return err
		}
		return saveTreasury(ctx, tx, &b)
	})
}

// holdTreasury locks a treasury and returns repute.ErrFenced when its cursor is another block.
func holdTreasury(ctx context.Context, tx pgx.Tx, chainID uint64, address common.Address, cursor repute.Block) error {
	var number uint64
	var hash []byte
	err := tx.QueryRow(ctx,
		`select cursor_block, cursor_hash from treasuries where chain_id = $1 and address = $2 for update`, int64(chainID),
		address[:]).Scan(&number, &hash)
	if err == nil && (number != cursor.Number || common.BytesToHash(hash) != cursor.Hash) {
		err = fmt.Errorf("cursor is block %d: %w", number, repute.ErrFenced)
	}
	return err
}

// saveTreasury stores a batch and deletes headers that are no longer needed.
func saveTreasury(ctx context.Context, tx pgx.Tx, b *TreasuryBatch) error {
	q := &pgx.Batch{}
	for _, h := range b.Blocks {
		q.Queue(`insert into treasury_blocks (chain_id, address, number, hash, time) values ($1, $2, $3, $4, $5) on conflict do nothing`,
			int64(b.ChainID), b.Address[:], int64(h.Number), h.Hash[:], store.MaybeTime(h.Time))
	}
	for i := range b.Events {
		e := &b.Events[i]
		q.Queue(`insert into treasury_events (chain_id, address, block, log_index, tx_hash, kind, agent_key, run_key, task_key, fields) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			int64(b.ChainID), b.Address[:], int64(e.Block.Number), int32(e.LogIndex), e.Tx[:], e.Kind, maybeHash(e.Agent),
			maybeHash(e.Run), maybeHash(e.Task), store.OrNull(e.Fields))
	}
	q.Queue(`update treasuries set cursor_block = $3::bigint, cursor_hash = $4, cursor_time = $5, finalized = greatest(finalized, least($6::bigint, $3::bigint)) where chain_id = $1 and address = $2`,
		int64(b.ChainID), b.Address[:], int64(b.To.Number), b.To.Hash[:], store.MaybeTime(b.To.Time), int64(b.Finalized))
	// Headers of final blocks are deleted, except the newest one and those with events.
	q.Queue(`delete from treasury_blocks o where chain_id = $1 and address = $2 and number < (select max(number) from treasury_blocks where chain_id = $1 and address = $2 and number <= $3)
		and not exists (select 1 from treasury_events e where e.chain_id = $1 and e.address = $2 and e.block = o.number)`, int64(b.ChainID), b.Address[:], int64(b.Finalized))
	return tx.SendBatch(ctx, q).Close()
}

// maybeHash returns a hash as a parameter, null for zero.
func maybeHash(h common.Hash) []byte {
	if (h == common.Hash{}) {
		return nil
	}
	return h[:]
}

// TreasuryBlocks returns the stored blocks of a treasury, the newest first.
func TreasuryBlocks(ctx context.Context, db *store.DB, chainID uint64, address common.Address,
	most int) ([]repute.Block, error) {
	rows, err := db.Pool().Query(ctx,
		`select number, hash, ''::bytea, time from treasury_blocks where chain_id = $1 and address = $2 order by number desc limit $3`, int64(chainID), address[:], most)
	if err != nil {
		return nil, store.Failed("read treasury's blocks", err)
	}
	list, err := pgx.CollectRows(rows,
		func(row pgx.CollectableRow) (repute.Block, error) { return chaindb.ScanBlock(row) })
	return list, store.Failed("read treasury's blocks", err)
}

// selectTreasuryEvents begins the statements that treasuryEvents reads.
const selectTreasuryEvents = `
	select e.chain_id, e.address, e.block, b.hash, b.time, e.log_index, e.tx_hash, e.kind, e.agent_key, e.run_key,
		e.task_key, e.fields, e.block <= t.finalized
	from treasury_events e join treasuries t using (chain_id, address) join treasury_blocks b on (b.chain_id,
		b.address, b.number) = (e.chain_id, e.address, e.block) `

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
		order by e.block desc, e.log_index desc limit $6`, int64(t.ChainID), t.Address[:], kinds, store.MaybeTime(since), int64(t.Cursor.Number), most)
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
	rows, err := db.Readers().Query(ctx, sql, args...)
	if err != nil {
		return nil, store.Failed("read treasury's events", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e TreasuryEvent, err error) {
		var at, hash, tx, agent, run, task, fields []byte
		var seen *time.Time
		var index int64
		err = row.Scan(&e.ChainID, &at, &e.Block.Number, &hash, &seen, &index, &tx, &e.Kind, &agent, &run, &task, &fields,
			&e.Final)
		e.Treasury, e.Block.Hash, e.Tx, e.LogIndex, e.Fields = common.BytesToAddress(at), common.BytesToHash(hash),
			common.BytesToHash(tx), uint32(index), fields
		e.Agent, e.Run, e.Task = common.BytesToHash(agent), common.BytesToHash(run), common.BytesToHash(task)
		if seen != nil {
			e.Block.Time = seen.UTC()
		}
		return e, err
	})
	return list, store.Failed("read treasury's events", err)
}
