package verifydb

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
)

// BlockProof is a connected range of final blocks that were compared with the chain.
type BlockProof struct {
	Blocks repute.BlockRange
	// Parent is the hash of the block before the range.
	Parent common.Hash
	// Hash is the hash of the newest block. It is zero when a rewind cut the range at a block
	// that is not proven.
	Hash common.Hash
	// Unproven are the blocks that could not be proven, ascending. Beyond a thousand
	// ranges it is one range that holds all of them.
	Unproven []repute.BlockRange
	// Reason says why the newest of Unproven could not be proven.
	Reason string
	// Loose is the newest block whose header is not authenticated, 0 when there is none.
	// A single endpoint shows how the blocks below it are connected with those above.
	Loose uint64
	// Headers are the authenticated headers of Unproven. SaveBlockProof stores those that are
	// not stored yet, because later comparisons need the hash; BlockProofs returns none.
	Headers []repute.Block
}

// Proves reports whether all blocks of a range were compared and proven.
func (p BlockProof) Proves(r repute.BlockRange) bool {
	return p.Blocks.From <= r.From && p.Blocks.To >= r.To && len(p.Unproven) == 0
}

// maxUnproven is how many ranges of unproven blocks a row may name.
const maxUnproven = 1_000

// BlockProofs returns the ranges of a chain that were compared, ascending.
func BlockProofs(ctx context.Context, db *store.DB, chainID uint64) ([]BlockProof, error) {
	proofs, err := readBlockProofs(ctx, db.Readers(), chainID, repute.BlockRange{To: chaindb.Everything})
	return proofs, store.Failed("read block proofs", err)
}

// readBlockProofs reads the rows that have a block in common with a range.
func readBlockProofs(ctx context.Context, q store.Querier, chainID uint64, r repute.BlockRange) ([]BlockProof,
	error) {
	rows, _ := q.Query(ctx, `
		select from_block, to_block, parent, hash, reason, loose,
			array(select lower(u) from unnest(unproven) u), array(select upper(u) - 1 from unnest(unproven) u)
		from block_proofs where chain_id = $1 and from_block <= $3 and to_block >= $2 order by from_block`, chainID, r.From, r.To)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p BlockProof, err error) {
		var from, to []uint64
		err = row.Scan(&p.Blocks.From, &p.Blocks.To, (*column.Hash)(&p.Parent), (*column.Hash)(&p.Hash), &p.Reason,
			&p.Loose, &from, &to)
		for i := range from {
			p.Unproven = append(p.Unproven, repute.BlockRange{From: from[i], To: to[i]})
		}
		return p, err
	})
}

// SaveBlockProof adds a range that was compared, and joins it with the ranges before
// and after it. A range before it that does not end in Parent belongs to another branch and
// is deleted. repute.ErrFenced when the lease is lost, and when the range after it or the
// stored block shows that Hash is no longer the hash of the newest block.
func SaveBlockProof(ctx context.Context, db *store.DB, chainID uint64, l store.Lease, p BlockProof) error {
	return db.InLease(ctx, l, fmt.Sprintf("save proof of blocks %d to %d", p.Blocks.From, p.Blocks.To),
		func(tx pgx.Tx) error {
			chain, err := chaindb.HoldChain(ctx, tx, chainID)
			if err != nil {
				return err
			}
			around := repute.BlockRange{From: p.Blocks.From - min(1, p.Blocks.From), To: p.Blocks.To + 1}
			near, err := readBlockProofs(ctx, tx, chainID, around)
			if err != nil {
				return err
			}
			if err := p.checkNewest(ctx, tx, chain, near); err != nil {
				return err
			}
			for _, n := range near {
				p = p.join(n)
			}
			_, err = tx.Exec(ctx,
				"delete from block_proofs where chain_id = $1 and from_block <= $3 and to_block >= $2", chainID,
				around.From, around.To)
			if err != nil {
				return err
			}
			if err := p.insert(ctx, tx, chainID); err != nil {
				return err
			}
			numbers, hashes, parents, times := chaindb.BlockArrays(p.Headers)
			_, err = tx.Exec(ctx, `insert into blocks (chain_id, number, hash, parent, time)
			select $1, * from unnest($2::bigint[], $3::bytea[], $4::bytea[], $5::timestamptz[]) on conflict do nothing`,
				chainID, numbers, hashes, parents, times)
			return err
		})
}

// checkNewest returns repute.ErrConflict when a rewind or an amendment has replaced the newest
// block of the range: the range after it continues another block, or another one is stored.
// The header of a final block without events is not kept, so it MUST NOT be required.
func (p BlockProof) checkNewest(ctx context.Context, tx pgx.Tx, c *chaindb.ChainRow, near []BlockProof) error {
	after := slices.IndexFunc(near, func(n BlockProof) bool { return n.Blocks.From == p.Blocks.To+1 })
	if after >= 0 && near[after].Parent != p.Hash {
		return fmt.Errorf("block %d continues another block than %d: %w", p.Blocks.To+1, p.Blocks.To,
			repute.ErrConflict)
	}
	if after >= 0 {
		return nil
	}
	other := p.Blocks.To > c.Cursor.Number
	err := tx.QueryRow(ctx,
		"select $4 or exists (select from blocks where chain_id = $1 and number = $2 and hash <> $3)",
		c.ID, p.Blocks.To, column.HashBytes(p.Hash), other).Scan(&other)
	if err == nil && other {
		err = fmt.Errorf("block %d is not stored with the hash %s: %w", p.Blocks.To, p.Hash, repute.ErrConflict)
	}
	return err
}

// join returns p extended by a neighbor when one continues the other, and p otherwise.
func (p BlockProof) join(n BlockProof) BlockProof {
	switch {
	case n.Blocks.From == p.Blocks.To+1 && n.Parent == p.Hash:
		p.Blocks.To, p.Hash = n.Blocks.To, n.Hash
		p.Unproven = append(slices.Clone(p.Unproven), n.Unproven...)
		if len(n.Unproven) > 0 {
			p.Reason = n.Reason
		}
	case n.Blocks.To+1 == p.Blocks.From && n.Hash == p.Parent:
		p.Blocks.From, p.Parent = n.Blocks.From, n.Parent
		if len(p.Unproven) == 0 {
			p.Reason = n.Reason
		}
		p.Unproven = append(slices.Clone(n.Unproven), p.Unproven...)
	default:
		return p
	}
	p.Loose = max(p.Loose, n.Loose)
	return p
}

// insert stores the range.
func (p BlockProof) insert(ctx context.Context, tx pgx.Tx, chainID uint64) error {
	from, to := []uint64{}, []uint64{}
	for _, u := range p.Unproven {
		from, to = append(from, u.From), append(to, u.To)
	}
	_, err := tx.Exec(ctx, `
		insert into block_proofs (chain_id, from_block, to_block, parent, hash, reason, loose, unproven)
		select $1, $3, $4, $5, $6, $7, $8, `+boundedRanges+`
		from (select coalesce(range_agg(int8range(f, t, '[]')), '{}') u from unnest($9::bigint[], $10::bigint[]) x(f, t)) x`,
		chainID, maxUnproven, p.Blocks.From, p.Blocks.To, column.HashBytes(p.Parent), column.HashBytes(p.Hash),
		column.PlainText(p.Reason, chaindb.MaxReason), p.Loose,
		from, to)
	return err
}

// UnprovenBlock is a block that could not be proven, and why.
type UnprovenBlock struct {
	Block  uint64
	Reason string
}

// SettleBlocks stores the outcome for blocks that were compared again, because they were
// unproven or requested, and deletes their requests. A block of no range is left to the
// comparison of its range. repute.ErrFenced when the lease is lost.
func SettleBlocks(ctx context.Context, db *store.DB, chainID uint64, l store.Lease, proven []uint64,
	unproven []UnprovenBlock) error {
	return db.InLease(ctx, l, fmt.Sprintf("settle blocks of chain %d", chainID), func(tx pgx.Tx) error {
		if _, err := chaindb.HoldChain(ctx, tx, chainID); err != nil {
			return err
		}
		blocks, reasons := []uint64{}, []string{}
		for _, u := range unproven {
			blocks, reasons = append(blocks, u.Block), append(reasons, column.PlainText(u.Reason, chaindb.MaxReason))
		}
		var b pgx.Batch
		b.Queue("delete from cursors where job = 'requested block' and chain_id = $1 and part = any($2)", chainID,
			slices.Concat(proven, blocks))
		// The reason is that of the newest unproven block: of the next one it is not known.
		b.Queue(`update block_proofs p set unproven = unproven - u,
				reason = case when upper(unproven - u) is distinct from upper(unproven) then '' else reason end
			from (select range_agg(int8range(n, n, '[]')) u from unnest($2::bigint[]) n) x where chain_id = $1 and unproven
				&& u`,
			chainID, proven)
		b.Queue(`update block_proofs p set unproven = `+boundedRanges+
			`, reason = case when newest < upper(unproven) - 1 then p.reason else x.reason end
			from (select from_block, unproven + range_agg(int8range(n, n, '[]')) u, max(n) newest, (array_agg(why order by n
				desc))[1] reason
				from block_proofs join unnest($3::bigint[], $4::text[]) u(n, why) on n between from_block and to_block
				where chain_id = $1 group by chain_id, from_block) x
			where p.chain_id = $1 and p.from_block = x.from_block`, chainID, maxUnproven, blocks, reasons)
		return tx.SendBatch(ctx, &b).Close()
	})
}

// boundedRanges is the multirange u, or the one range that spans it when it has more than $2
// ranges.
const boundedRanges = "case when (select count(*) from unnest(u)) > $2 then int8multirange(range_merge(u)) else u end"

// TieBlockProofs replaces the parent of a Loose block by that of its authenticated header, and
// deletes the ranges below it, which are then compared again. repute.ErrFenced when the lease
// is lost.
func TieBlockProofs(ctx context.Context, db *store.DB, chainID uint64, l store.Lease, block repute.Block) error {
	return db.InLease(ctx, l, fmt.Sprintf("tie blocks of chain %d", chainID), func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue("delete from block_proofs where chain_id = $1 and to_block < $2", chainID, block.Number)
		b.Queue(`update block_proofs set from_block = $2, parent = $3, unproven = unproven * int8multirange(int8range($2, null)), loose = 0
			where chain_id = $1 and from_block <= $2 and to_block >= $2`, chainID, block.Number, column.HashBytes(block.Parent))
		return tx.SendBatch(ctx, &b).Close()
	})
}

// ForgetBlockProofs deletes all ranges of a chain, so that every block is compared again, and
// notes that the blooms of its headers lack logs. repute.ErrFenced when the lease is lost.
func ForgetBlockProofs(ctx context.Context, db *store.DB, chainID uint64, l store.Lease) error {
	return db.InLease(ctx, l, fmt.Sprintf("forget block proofs of chain %d", chainID),
		func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "update chains set bloomless = true where chain_id = $1", chainID); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "delete from block_proofs where chain_id = $1", chainID)
			return err
		})
}

// maxRequests is how many blocks of one chain may wait to be compared again.
const maxRequests = 10_000

// AskForBlocks requests that the process that follows a chain compare blocks again. A block that is
// requested already is due at once. It returns how many requests it stored, which is 0 while
// maxRequests wait. It needs no lease.
func AskForBlocks(ctx context.Context, db *store.DB, chainID uint64, blocks []uint64) (int, error) {
	tag, err := db.Pool().Exec(ctx, `
		insert into cursors (job, chain_id, part, due, begun)
		select 'requested block', $1, n, now(), now() from unnest($2::bigint[]) n
		where (select count(*) from cursors where job = 'requested block' and chain_id = $1) < $3
		on conflict (job, chain_id, part) do update set begun = now(), position = 0, due = now()`, chainID, blocks, maxRequests)
	return int(tag.RowsAffected()), store.Failed("ask for blocks", err)
}

// AskedBlock is a block that is requested to be compared again.
type AskedBlock struct {
	Block uint64
	Tries int // how often no endpoint could answer about it
}

// AskedBlocks returns requested blocks that are due, ascending.
func AskedBlocks(ctx context.Context, db *store.DB, chainID uint64, limit int) ([]AskedBlock, error) {
	rows, _ := db.Readers().Query(ctx, `
		select part, position from cursors where job = 'requested block' and chain_id = $1 and due <= now() order by part
			limit $2`, chainID, limit)
	blocks, err := pgx.CollectRows(rows, pgx.RowToStructByPos[AskedBlock])
	return blocks, store.Failed("asked blocks", err)
}

// PostponeBlocks counts a try of requested blocks that no endpoint could answer about. The next
// one is due after first, which doubles with each try up to most. repute.ErrFenced when the
// lease is lost.
func PostponeBlocks(ctx context.Context, db *store.DB, chainID uint64, l store.Lease, blocks []uint64, first,
	most time.Duration) error {
	return db.InLease(ctx, l, fmt.Sprintf("postpone blocks of chain %d", chainID), func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			update cursors set position = position + 1, due = now() + least($4::interval, $3::interval * 2 ^ least(position, 30))
			where job = 'requested block' and chain_id = $1 and part = any($2)`, chainID, blocks, first, most)
		return err
	})
}

// cutBlockProofs deletes what is known of blocks above n. A range that is cut keeps the hash of
// the stored block n, so that the next range joins it; it has none where block n is unproven.
func cutBlockProofs(b *pgx.Batch, chainID, n uint64) {
	b.Queue("delete from cursors where job = 'requested block' and chain_id = $1 and part > $2", chainID, n)
	b.Queue("delete from block_proofs where chain_id = $1 and (from_block > $2 or loose > $2)", chainID, n)
	b.Queue(`update block_proofs p set to_block = $2, unproven = unproven * int8multirange(int8range(null, $2, '[]')),
		hash = coalesce((select hash from blocks b where b.chain_id = $1 and b.number = $2 and not p.unproven @>
			$2::bigint), '')
		where chain_id = $1 and to_block > $2`, chainID, n)
}
