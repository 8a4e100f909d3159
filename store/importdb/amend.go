package importdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/docdb"
	"repute/store/eventdb"
	"repute/store/hourdb"
	"repute/store/paydb"
)

// Amendment replaces the events of one stored block by what its receipts prove.
type Amendment struct {
	// Block replaces the stored header of its number; it must have a hash.
	Block repute.Block
	// Remove are stored logs that the block does not have.
	Remove []types.Log
	// Records are logs of the block. Stored ones are skipped.
	Records []repute.Record
}

// Amend removes logs from a block, adds others, and rebuilds the affected agents from the remaining
// events. When the time of the block changes, these are the agents of all its events. It is for
// blocks whose receipts are proven, so nothing is compared with the stored rows. repute.ErrNotFound
// when a log to remove is not stored, repute.ErrFenced when the lease is lost.
//
// The order within the transaction matters. Events whose age changes are read before the header is replaced, because
// the comparison is with the stored time. Logs are removed before new ones are stored, since a new one may have the
// position of a removed one. Agents are rebuilt last, from what is then stored. URIs and tags are interned before the
// transaction: an interned text that nothing refers to does no harm.
func Amend(ctx context.Context, db *store.DB, chainID uint64, l store.Lease, a Amendment) error {
	if db.Options().Decode == nil {
		return errors.New("amending a block needs Options.Decode")
	}
	removed, err := chaindb.DecodeLogs(a.Remove, db.Options().Decode)
	if err != nil {
		return err
	}
	records, err := sortRecords(a.Records)
	if err != nil {
		return err
	}
	ids, err := docdb.Intern(ctx, db, records)
	if err != nil {
		return err
	}
	return db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("amend block %d of chain %d", a.Block.Number, chainID),
		func(tx pgx.Tx) error {
			m, err := beginMerge(ctx, db, tx, chainID, l, ids)
			if err != nil {
				return err
			}
			if a.Block.Number > m.chain.Cursor.Number {
				return repute.Invalid("block", "lies above the cursor", "what is newer belongs to Apply")
			}
			stale, err := m.retimed(ctx, a.Block)
			if err != nil {
				return err
			}
			header := func() error { return m.header(ctx, a.Block) }
			if len(stale) > 0 {
				err = hourdb.Retime(ctx, m.tx, m.chain.ID, []uint64{a.Block.Number}, header)
			} else {
				err = header()
			}
			if err != nil {
				return err
			}
			if err := m.remove(ctx, a.Remove); err != nil {
				return err
			}
			return m.replace(ctx, append(removed, stale...), records)
		})
}

// retimed returns the stored events of a block whose time changes or becomes known, because everything derived from
// them depends on their age. Payments that were ordered by the old time are checked again. It returns nil when the time
// stays.
func (m *merge) retimed(ctx context.Context, b repute.Block) ([]repute.Record, error) {
	var changed bool
	err := m.tx.QueryRow(ctx,
		`select not exists (select from blocks where chain_id = $1 and number = $2 and time is not distinct from $3)`,
		m.chain.ID, b.Number, column.MaybeTime(b.Time)).Scan(&changed)
	if err != nil || !changed {
		return nil, store.Failed("compare times", err)
	}
	rows, _ := m.tx.Query(ctx, chaindb.SelectEvents+"where chain_id = $1 and block = $2 order by log_index",
		m.chain.ID, b.Number)
	logs, err := pgx.CollectRows(rows, chaindb.ScanEvent)
	if err != nil {
		return nil, store.Failed("read events", err)
	}
	if err := paydb.ReopenPayments(ctx, m.tx, m.chain.ID, b.Number); err != nil {
		return nil, store.Failed("look at payments again", err)
	}
	return chaindb.DecodeLogs(logs, m.db.Options().Decode)
}

// header replaces the stored header of a block, and the cursor's when it is at that block.
func (m *merge) header(ctx context.Context, b repute.Block) error {
	var batch pgx.Batch
	batch.Queue(`
		insert into blocks (chain_id, number, hash, parent, time) values ($1, $2, $3, $4, $5)
		on conflict (chain_id, number) do update set hash = excluded.hash, parent = excluded.parent, time = excluded.time`,
		m.chain.ID, b.Number, column.HashBytes(b.Hash), column.HashBytes(b.Parent), column.MaybeTime(b.Time))
	batch.Queue(`update chains set cursor_hash = $3, cursor_time = $4 where chain_id = $1 and cursor_block = $2`,
		m.chain.ID, b.Number, column.HashBytes(b.Hash), column.MaybeTime(b.Time))
	return store.Failed("amend header", m.tx.SendBatch(ctx, &batch).Close())
}

// remove deletes logs and their pending rows. Hash and address are compared too, so that a log that was replaced
// meanwhile is not removed.
func (m *merge) remove(ctx context.Context, logs []types.Log) error {
	for i := range logs {
		l := &logs[i]
		if _, err := m.tx.Exec(ctx, `delete from pending where chain_id = $1 and block = $2 and log_index = $3`,
			m.chain.ID, l.BlockNumber, l.Index); err != nil {
			return store.Failed("remove log", err)
		}
		tag, err := m.tx.Exec(ctx,
			`delete from events where chain_id = $1 and block = $2 and log_index = $3 and tx_hash = $4 and address = $5`,
			m.chain.ID, l.BlockNumber, l.Index, l.TxHash.Bytes(), l.Address.Bytes())
		if err != nil {
			return store.Failed("remove log", err)
		}
		if tag.RowsAffected() == 0 {
			return fmt.Errorf("log %d of block %d: %w", l.Index, l.BlockNumber, repute.ErrNotFound)
		}
	}
	return nil
}

// replace stores new records and rebuilds the agents of these and of changed records. changed are records that are
// stored no longer, or whose time changed. The merge counts as late in any case, because the block may lie below
// others.
func (m *merge) replace(ctx context.Context, changed, records []repute.Record) error {
	fresh, err := m.unknown(ctx, records)
	if err != nil {
		return err
	}
	if err := eventdb.EncodeEvents(m.chain.ID, fresh).Send(ctx, m.tx); err != nil {
		return err
	}
	m.late = true
	if m.fresh = append(changed, fresh...); len(m.fresh) == 0 {
		return nil
	}
	if err := m.rebuild(ctx); err != nil {
		return err
	}
	return eventdb.StoreChanges(ctx, m.tx, m.chain.ID, m.changes("repair"))
}
