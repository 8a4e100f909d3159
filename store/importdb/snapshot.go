package importdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/eventdb"
	"repute/store/hourdb"
)

// Snapshot describes an export of one chain's events.
type Snapshot struct {
	Chain repute.Chain
	// Range is the requested range of blocks.
	Range repute.BlockRange
	// Covered are the parts of Range whose logs are complete but for the gaps.
	Covered []repute.BlockRange
	// Gaps are open gaps that overlap Range, without when they were found and tried.
	Gaps []chaindb.Gap
	// Waiting counts stored events of the chain that wait for a missing one or cannot be read.
	Waiting int64
	// Last is block Range.To; its hash is zero where it is unknown.
	Last repute.Block
}

// ReadSnapshot reads the stored logs of a chain in order, with block hash and time where they are
// known, on one snapshot of the database and without holding them in memory. Events of treasuries, which are the
// operator's and not the chain's, are left out. It calls begin once,
// then each for every log; the pointer is valid during the call. want bounds the blocks: a zero
// From is the chain's start, a zero To the newest final block, or the newest one of an imported
// chain. repute.ErrNotFound for an unknown chain, repute.ErrInvalid for blocks that are not
// indexed.
func ReadSnapshot(ctx context.Context, db *store.DB, chainID uint64, want repute.BlockRange,
	begin func(Snapshot) error, each func(*types.Log) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return db.InTx(ctx, options, fmt.Sprintf("snapshot of chain %d", chainID), func(tx pgx.Tx) error {
		// Rows must come in order from the indexes: a sort would hold them all.
		_, err := tx.Exec(ctx,
			`select set_config(name, 'off', true) from (values ('enable_hashjoin'), ('enable_sort'), ('enable_seqscan'), ('jit')) v(name)
			union all select set_config('statement_timeout', '0', true)`)
		if err != nil {
			return err
		}
		chains, err := chaindb.ReadChains(ctx, tx, []uint64{chainID})
		if err != nil {
			return err
		}
		if len(chains) == 0 {
			return repute.Missing("chain %d", chainID)
		}
		s, err := snapshotOf(ctx, tx, chains[0], want)
		if err != nil {
			return err
		}
		if err := begin(s); err != nil {
			return err
		}
		return snapshotLogs(ctx, tx, s, each)
	})
}

// snapshotOf describes the export of a range of blocks, and checks that they are indexed. A range that is wider than
// what is covered is no error: Covered says what is complete.
func snapshotOf(ctx context.Context, tx pgx.Tx, c *chaindb.ChainView, want repute.BlockRange) (s Snapshot, err error) {
	s.Chain, s.Range = c.Chain, want
	s.Chain.Imported = false // the reader decides
	if s.Range.From == 0 {
		s.Range.From = c.StartBlock
	}
	if s.Range.To == 0 {
		if s.Range.To, err = newestFinal(ctx, c, tx); err != nil {
			return s, err
		}
	}
	switch cursor := uint64(max(c.Cursor, 0)); {
	case s.Range.To > cursor:
		return s, repute.Invalid("to", fmt.Sprintf("block %d is not indexed", s.Range.To),
			fmt.Sprintf("at most %d, the newest indexed block", cursor))
	case s.Range.From > s.Range.To:
		return s, repute.Invalid("from", fmt.Sprintf("no block lies between %d and %d", s.Range.From, s.Range.To),
			"a first block that is not above the last")
	}
	for _, r := range c.Ranges {
		r.From, r.To = max(r.From, s.Range.From), min(r.To, s.Range.To)
		if r.From <= r.To {
			s.Covered = append(s.Covered, r)
		}
	}
	s.Waiting = c.Pending + c.Undecoded
	if s.Gaps, err = snapshotGaps(ctx, tx, c.ID, s.Range); err != nil {
		return s, err
	}
	s.Last, _, err = chaindb.ReadHeader(ctx, tx, c.ID, int64(s.Range.To))
	return s, err
}

// snapshotGaps returns the gaps that concern a range of blocks. When a gap was found, and how often it was tried,
// concerns this database only.
func snapshotGaps(ctx context.Context, tx pgx.Tx, chainID uint64, r repute.BlockRange) ([]chaindb.Gap, error) {
	rows, _ := tx.Query(ctx, `
		select kind, subject, token_id, client, from_block, to_block, reason, found_at, tries, next_try from gaps
		where chain_id = $1 and from_block <= $3 and to_block >= $2 and kind <> $4 order by kind, subject`,
		chainID, r.From, r.To, repute.KindTreasuryEvent)
	gaps, err := pgx.CollectRows(rows, chaindb.ScanGap)
	for i := range gaps {
		g := &gaps[i]
		g.Since, g.Next, g.Tries = time.Time{}, time.Time{}, 0
	}
	return gaps, err
}

// newestFinal returns the newest final block whose hash is known. All blocks of an imported chain
// are final.
func newestFinal(ctx context.Context, c *chaindb.ChainView, tx pgx.Tx) (uint64, error) {
	if c.Imported {
		return uint64(max(c.Cursor, 0)), nil
	}
	var n uint64
	err := tx.QueryRow(ctx, `
		select number from blocks where chain_id = $1 and number <= $2 and number >= $3 order by number desc limit 1`,
		c.ID, min(c.Finalized, c.Cursor), c.StartBlock).Scan(&n)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, repute.Invalid("to", "no indexed block is known to be final yet",
			"name the last block with --to, or export later")
	}
	return n, err
}

// snapshotLogs reads the logs of an export in order.
func snapshotLogs(ctx context.Context, tx pgx.Tx, s Snapshot, each func(*types.Log) error) error {
	rows, err := tx.Query(ctx, `
		select e.block, e.log_index, e.tx_index, e.address, e.tx_hash, e.topics, e.data, b.hash, coalesce(extract(epoch
			from b.time)::bigint, 0)
		from events e left join blocks b on b.chain_id = e.chain_id and b.number = e.block
		where e.chain_id = $1 and e.block between $2 and $3 and e.kind <> $4 order by e.block, e.log_index`,
		s.Chain.ID, s.Range.From, s.Range.To, repute.KindTreasuryEvent)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var l types.Log
		var topics []byte
		err := rows.Scan(&l.BlockNumber, &l.Index, &l.TxIndex, (*column.Address)(&l.Address), (*column.Hash)(&l.TxHash),
			&topics, &l.Data, (*column.Hash)(&l.BlockHash), &l.BlockTimestamp)
		if err != nil {
			return err
		}
		l.Topics = chaindb.TopicsOf(topics)
		if err := each(&l); err != nil {
			return err
		}
	}
	return rows.Err()
}

// CanResume reports whether chain c is stored as imported, and returns the block at which it ends
// (hash zero where unknown). repute.ErrConflict when it is imported and cannot be followed on from
// there: its registries differ, or blocks between the start and the end were never imported.
func CanResume(ctx context.Context, db *store.DB, c repute.Chain) (end repute.Block, imported bool, err error) {
	doing := fmt.Sprintf("look whether chain %d was imported", c.ID)
	stored, err := chaindb.ScanChainRow(c.ID, db.Pool().QueryRow(ctx, chaindb.SelectChain, c.ID))
	if errors.Is(err, repute.ErrNotFound) || err == nil && !stored.Imported {
		return repute.Block{}, false, nil
	}
	if err != nil {
		return repute.Block{}, false, store.Failed(doing, err)
	}
	return stored.Cursor, true, store.Failed(doing, checkResume(ctx, stored, db.Pool(), c))
}

// checkResume returns why an imported chain cannot be followed on from its end.
func checkResume(ctx context.Context, c *chaindb.ChainRow, q store.Querier, as repute.Chain) error {
	as.Imported, as.StartBlock = true, max(as.StartBlock, 1)
	if err := c.Conflict(as); err != nil {
		return err
	}
	if c.Cursor.Number < as.StartBlock {
		return nil
	}
	// The first range of blocks from the start to the cursor that is not covered.
	var first, next int64
	err := q.QueryRow(ctx, `
		select lower(r), upper(r) from chains, unnest(int8multirange(int8range($2, $3, '[]')) - covered) r
		where chain_id = $1 order by r limit 1`, c.ID, int64(as.StartBlock), int64(c.Cursor.Number)).Scan(&first, &next)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err == nil {
		return repute.Conflict("the chain was imported without blocks %d to %d, so nothing can be followed on from it: import a snapshot of them too (repute export events), or follow the chain in another database",
			first, next-1)
	}
	return err
}

// Resume makes an imported chain a followed one that continues after end, the block at which it
// ends as the node knows it. The caller MUST have compared their blocks. A chain that is followed
// already stays as it is. Errors are those of CanResume, and repute.ErrFenced when the lease is
// lost.
func Resume(ctx context.Context, db *store.DB, c repute.Chain, l store.Lease, end repute.Block) error {
	c.StartBlock = max(c.StartBlock, 1)
	return db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("adopt chain %d", c.ID), func(tx pgx.Tx) error {
		stored, err := eventdb.BeginWrite(ctx, tx, c.ID, l)
		if err != nil || !stored.Imported {
			return err
		}
		if err := checkResume(ctx, stored, tx, c); err != nil {
			return err
		}
		if end.Number != stored.Cursor.Number ||
			stored.Cursor.Hash != (common.Hash{}) && stored.Cursor.Hash != end.Hash {
			return repute.Conflict("the imported chain ends at block %d %s, not %d %s", stored.Cursor.Number,
				stored.Cursor.Hash, end.Number, end.Hash)
		}
		if err := resumeAt(ctx, tx, c, end); err != nil {
			return err
		}
		if err := stored.RecountValidations(ctx, tx, c.Validations); err != nil {
			return err
		}
		if err := stored.SetGateways(ctx, tx, c.Gateways); err != nil {
			return err
		}
		if err := stored.AddTreasuryGaps(ctx, tx, stored.Treasuries); err != nil {
			return err
		}
		return stored.AddHistoryGaps(ctx, tx, c)
	})
}

// resumeAt stores that a chain is followed on from a block, whose header replaces the stored one.
func resumeAt(ctx context.Context, tx pgx.Tx, c repute.Chain, end repute.Block) error {
	numbers, hashes, parents, times := chaindb.BlockArrays([]repute.Block{end})
	return hourdb.Retime(ctx, tx, c.ID, numbers, func() error {
		_, err := tx.Exec(ctx, `
			with header as (
				insert into blocks (chain_id, number, hash, parent, time)
				select $1, * from unnest($4::bigint[], $5::bytea[], $6::bytea[], $7::timestamptz[])
				on conflict (chain_id, number) do update set hash = excluded.hash, parent = excluded.parent, time = excluded.time)
			update chains set imported = false, name = $2, start_block = $3, validations = $8,
				cursor_hash = ($5::bytea[])[1], cursor_time = ($7::timestamptz[])[1] where chain_id = $1`,
			c.ID, c.Name, c.StartBlock, numbers, hashes, parents, times, column.AddressColumn(c.Validations))
		return err
	})
}
