package chaindb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
	"repute/store/hourdb"
)

// ChainRow holds the columns of chains that a write needs.
type ChainRow struct {
	ID                   uint64
	Identity, Reputation common.Address
	// Trusted holds the validation contracts on the allow-list.
	Trusted map[common.Address]bool
	// Gateways holds the feedback gateways on the allow-list.
	Gateways map[common.Address]bool
	// Treasuries are the treasuries whose events are indexed.
	Treasuries []repute.WatchedContract
	// Start is the first block that is indexed.
	Start uint64
	// Imported says that the events came from files and nothing follows the chain.
	Imported bool
	// Cursor is the newest indexed block; its hash is zero before the first one.
	Cursor repute.Block
	// Finalized is the newest final block, 0 when none is known.
	Finalized uint64
	Reorgs    int64
	// Writes counts the transactions that changed rows which a batch depends on.
	Writes int64
	// Rewound says that this transaction removed blocks.
	Rewound bool
}

// LockChain reads the row of a chain, locks it against other writers until the transaction ends,
// and counts the write. Every transaction that changes rows which a batch depends on MUST call it,
// because eventdb keeps such rows in memory between batches. Readers are not blocked.
func LockChain(ctx context.Context, tx pgx.Tx, chainID uint64) (*ChainRow, error) {
	return ScanChainRow(chainID,
		tx.QueryRow(ctx, "update chains set writes = writes + 1 where chain_id = $1 returning "+chainColumns, chainID))
}

// HoldChain reads the row of a chain and keeps others from changing it. It is for transactions that
// change nothing which a batch depends on.
func HoldChain(ctx context.Context, tx pgx.Tx, chainID uint64) (*ChainRow, error) {
	return ScanChainRow(chainID, tx.QueryRow(ctx, SelectChain+" for no key update", chainID))
}

const (
	// chainColumns are the columns that ScanChainRow reads.
	chainColumns = `identity, reputation, validations, gateways, treasuries, treasuries_from, start_block, imported,
	cursor_block, cursor_hash, finalized_block, reorgs, writes`
	// SelectChain is the statement that reads the row of chain $1 for ScanChainRow.
	SelectChain = "select " + chainColumns + " from chains where chain_id = $1"
)

// ScanChainRow reads a row of SelectChain. It returns repute.ErrNotFound when there is none.
func ScanChainRow(chainID uint64, row pgx.Row) (*ChainRow, error) {
	c := &ChainRow{ID: chainID, Trusted: map[common.Address]bool{}, Gateways: map[common.Address]bool{}}
	var validations, gateways, treasuries [][]byte
	var from []int64
	err := row.Scan((*column.Address)(&c.Identity), (*column.Address)(&c.Reputation), &validations, &gateways,
		&treasuries, &from, &c.Start, &c.Imported, &c.Cursor.Number, (*column.Hash)(&c.Cursor.Hash), &c.Finalized,
		&c.Reorgs, &c.Writes)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("chain %d: %w", chainID, repute.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	for _, v := range validations {
		c.Trusted[common.BytesToAddress(v)] = true
	}
	for _, g := range gateways {
		c.Gateways[common.BytesToAddress(g)] = true
	}
	c.Treasuries = scanWatched(treasuries, from)
	return c, nil
}

// TrustedBytes returns the allow-list of validation contracts as a bytea[] parameter.
func (c *ChainRow) TrustedBytes() [][]byte {
	return column.AddressColumn(slices.Collect(maps.Keys(c.Trusted)))
}

// AddChain stores the chain, or compares it with the stored one: repute.ErrConflict when
// registries, start block or the source of events differ. A changed name and changed allow-lists are stored,
// validations are counted and ratings of gateways attributed by the new ones. The start block of an imported chain may
// become lower. A start block of 0 means 1, because the genesis block has no logs. A chain that was indexed for its
// treasuries alone gets the registries and is indexed anew.
func AddChain(ctx context.Context, db *store.DB, c repute.Chain) error {
	return db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("add chain %d", c.ID), func(tx pgx.Tx) error {
		return InsertChain(ctx, tx, c)
	})
}

// InsertChain adds a chain that is not stored yet.
func InsertChain(ctx context.Context, tx pgx.Tx, c repute.Chain) error {
	c.StartBlock = max(c.StartBlock, 1)
	validations := column.AddressColumn(c.Validations)
	gateways, from := watchedColumns(c.Gateways)
	tag, err := tx.Exec(ctx, `
		insert into chains (chain_id, name, identity, reputation, validations, start_block, imported, cursor_block,
			cursor_hash, gateways, gateways_from)
		values ($1, $2, $3, $4, $5, $6, $7, $6::bigint - 1, '', $8, $9) on conflict do nothing`,
		c.ID, c.Name, c.Identity[:], c.Reputation[:], validations, c.StartBlock, c.Imported, gateways, from)
	if err != nil || tag.RowsAffected() == 1 {
		return err
	}
	stored, err := ScanChainRow(c.ID, tx.QueryRow(ctx, SelectChain, c.ID))
	if err != nil {
		return err
	}
	anew := stored.withoutRegistries() && !c.WithoutRegistries()
	if anew {
		if err := store.RevokeLease(ctx, tx, LeaseName(c.ID)); err != nil {
			return err
		}
	}
	if stored, err = LockChain(ctx, tx, c.ID); err != nil {
		return err
	}
	if anew && stored.withoutRegistries() {
		return stored.setRegistries(ctx, tx, c)
	}
	if err := stored.Conflict(c); err != nil {
		return err
	}
	_, err = tx.Exec(ctx,
		`update chains set name = $2, validations = $3, start_block = least(start_block, $4) where chain_id = $1`,
		c.ID, c.Name, validations, c.StartBlock)
	if err != nil {
		return err
	}
	if err := stored.RecountValidations(ctx, tx, c.Validations); err != nil {
		return err
	}
	if err := stored.SetGateways(ctx, tx, c.Gateways); err != nil {
		return err
	}
	return stored.AddHistoryGaps(ctx, tx, c)
}

// HistorySubject is the prefix of the subject of a gap: the events of a validation contract or a feedback gateway that
// was listed after blocks were indexed. The contract's address follows.
const HistorySubject = "history:"

// HistoryGaps returns the gaps that validation contracts and feedback gateways leave in blocks that were indexed before
// they were listed.
func HistoryGaps(validations []common.Address, gateways []repute.WatchedContract, blocks repute.BlockRange) []Gap {
	const reason = "the contract was listed after these blocks were indexed"
	contracts := make([]repute.WatchedContract, len(validations))
	for i, v := range validations {
		contracts[i].Address = v
	}
	return slices.Concat(historyGaps(repute.KindValidationRequest, contracts, blocks, reason),
		historyGaps(repute.KindValidationResponse, contracts, blocks, reason),
		historyGaps(repute.KindTicketConsumed, gateways, blocks, reason))
}

// AddHistoryGaps notes that the events of contracts that enter the allow-list were not asked
// for in the blocks indexed so far.
func (c *ChainRow) AddHistoryGaps(ctx context.Context, tx pgx.Tx, now repute.Chain) error {
	entering := slices.DeleteFunc(slices.Clone(now.Validations), func(v common.Address) bool { return c.Trusted[v] })
	gateways := slices.DeleteFunc(slices.Clone(now.Gateways),
		func(g repute.WatchedContract) bool { return c.Gateways[g.Address] })
	indexed := repute.BlockRange{From: c.Start, To: c.Cursor.Number}
	gaps := HistoryGaps(entering, gateways, indexed)
	if len(gaps) == 0 || c.Cursor.Number < c.Start {
		return nil
	}
	var covered bool // recorded logs alone promise nothing
	err := tx.QueryRow(ctx, `select covered <> '{}' from chains where chain_id = $1`, c.ID).Scan(&covered)
	if err != nil || !covered {
		return err
	}
	if _, err := tx.Exec(ctx, "delete from block_proofs where chain_id = $1", c.ID); err != nil {
		return err // they are no proof of the contracts' events
	}
	return WidenGaps(ctx, tx, c.ID, gaps)
}

// CheckChain compares as AddChain does, without waiting or writing. repute.ErrConflict when the
// chain is stored differently; nil also when it is not stored, or when it is imported, which the
// holder of the lease may change (importdb.Resume).
func CheckChain(ctx context.Context, db *store.DB, c repute.Chain) error {
	c.StartBlock = max(c.StartBlock, 1)
	stored, err := ScanChainRow(c.ID, db.Pool().QueryRow(ctx, SelectChain, c.ID))
	if errors.Is(err, repute.ErrNotFound) {
		return nil
	}
	if err == nil && (c.Imported || !stored.Imported) {
		err = stored.Conflict(c)
	}
	return store.Failed(fmt.Sprintf("check chain %d", c.ID), err)
}

// Conflict returns repute.ErrConflict when the stored chain differs from with in a way that cannot be changed.
func (c *ChainRow) Conflict(with repute.Chain) error {
	differ := func(what string, stored, given any) error {
		return repute.Conflict("%s is %v, not %v", what, stored, given)
	}
	switch {
	case c.withoutRegistries() && !with.WithoutRegistries():
		return nil // AddChain stores them
	case with.Imported && !c.Imported:
		return repute.Conflict("the chain is followed, its logs come from a node and not from files: import into another database")
	case c.Imported && !with.Imported:
		return repute.Conflict("the chain was imported from files and has not been adopted")
	case c.Identity != with.Identity:
		return differ("identity registry", c.Identity, with.Identity)
	case c.Reputation != with.Reputation:
		return differ("reputation registry", c.Reputation, with.Reputation)
	case c.Start != with.StartBlock && !c.Imported:
		return differ("start block", c.Start, with.StartBlock)
	}
	return nil
}

// RecountValidations counts validations anew where contracts entered or left the allow-list. The new list MUST be
// stored.
func (c *ChainRow) RecountValidations(ctx context.Context, tx pgx.Tx, validations []common.Address) error {
	differ := maps.Clone(c.Trusted) // contracts that are on one of the lists alone
	for _, v := range validations {
		if !c.Trusted[v] {
			differ[v] = true
		} else {
			delete(differ, v)
		}
	}
	if len(differ) == 0 {
		return nil
	}
	changed, now := column.AddressColumn(slices.Collect(maps.Keys(differ))), column.AddressColumn(validations)
	_, err := tx.Exec(ctx, `
		update agents a set validations = (
			select count(*) from validation_requests r
			where r.chain_id = a.chain_id and r.token_id = a.token_id and r.contract = any($3)
			and exists (select from validation_responses v where (v.chain_id, v.contract, v.request_hash) = (r.chain_id,
				r.contract, r.request_hash)))
		where chain_id = $1 and token_id in (select token_id from validation_requests where chain_id = $1 and contract =
			any($2))`,
		c.ID, changed, now)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		update pending p set reason = case when e.address = any($3) then $4 else $5 end
		from events e where p.chain_id = $1 and p.reason in ($4, $5) and e.address = any($2)
		and (e.chain_id, e.block, e.log_index) = (p.chain_id, p.block, p.log_index)`,
		c.ID, changed, now, WaitsForRequest, IgnoredForeign)
	if err != nil {
		return err
	}
	var agents string
	err = tx.QueryRow(ctx, `
		select coalesce(array_agg(distinct token_id), '{}')::text from validation_requests
		where chain_id = $1 and contract = any($2)`, c.ID, changed).Scan(&agents)
	if err != nil {
		return err
	}
	return hourdb.Recount(ctx, tx, c.ID, agents)
}

// Cursor returns the newest indexed block. Before the first one its number is the start block minus
// one and its hash is zero. repute.ErrNotFound for an unknown chain.
func Cursor(ctx context.Context, db *store.DB, chainID uint64) (repute.Block, error) {
	b, err := ScanBlock(db.Pool().QueryRow(ctx, `
		select c.cursor_block, c.cursor_hash, b.parent, c.cursor_time from chains c
		left join blocks b on b.chain_id = c.chain_id and b.number = c.cursor_block where c.chain_id = $1`, chainID))
	return b, store.Failed(fmt.Sprintf("cursor of chain %d", chainID), err)
}

// StoredBlock returns the stored header of a block. repute.ErrNotFound when none is stored, even of
// an indexed block: headers of final blocks without events are not kept.
func StoredBlock(ctx context.Context, db *store.DB, chainID, number uint64) (repute.Block, error) {
	b, err := ScanBlock(db.Pool().QueryRow(ctx, `
		select number, hash, parent, time from blocks where chain_id = $1 and number = $2`, chainID, number))
	return b, store.Failed(fmt.Sprintf("block %d of chain %d", number, chainID), err)
}

// RecentBlocks returns up to limit stored headers, newest first, for finding the block where the
// stored chain and the node's chain part. Hash and time may be zero for an imported chain.
func RecentBlocks(ctx context.Context, db *store.DB, chainID uint64, limit int) ([]repute.Block, error) {
	doing := fmt.Sprintf("recent blocks of chain %d", chainID)
	rows, _ := db.Pool().Query(ctx, `
		select number, hash, parent, time from blocks where chain_id = $1 order by number desc limit $2`, chainID, limit)
	blocks, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (repute.Block, error) { return ScanBlock(row) })
	return blocks, store.Failed(doing, err)
}

// ScanBlock reads number, hash, parent hash and time of a block.
func ScanBlock(row pgx.Row) (repute.Block, error) {
	var b repute.Block
	err := row.Scan(&b.Number, (*column.Hash)(&b.Hash), (*column.Hash)(&b.Parent), (*column.Time)(&b.Time))
	if errors.Is(err, pgx.ErrNoRows) {
		return b, repute.ErrNotFound
	}
	return b, err
}

// Head is the state of a chain's head as its node reports it; zero values are unknown.
type Head struct {
	Head, Safe, Finalized uint64
	SeenAt                time.Time
}

// SetHead stores the head that the node reported. Finalized never decreases, and unknown values
// keep the stored ones. It deletes headers of final blocks without events, except those that end an
// epoch of scores. repute.ErrFenced when the lease is lost; the zero lease is not checked.
func SetHead(ctx context.Context, db *store.DB, chainID uint64, l store.Lease, h Head) error {
	return db.InLease(ctx, l, fmt.Sprintf("set head of chain %d", chainID), func(tx pgx.Tx) error {
		c, err := HoldChain(ctx, tx, chainID)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			update chains set head_block = $2, head_seen_at = $3, safe_block = coalesce(nullif($4::bigint, 0), safe_block),
				finalized_block = greatest(finalized_block, $5)
			where chain_id = $1`, chainID, h.Head, column.MaybeTime(h.SeenAt), h.Safe, h.Finalized)
		if err != nil || h.Finalized <= c.Finalized {
			return err
		}
		_, err = tx.Exec(ctx, `
			delete from blocks b where chain_id = $1 and number >= $2 and number < least($3::bigint, $4::bigint)
			and not exists (select from chains c where c.chain_id = $1 and c.epoch_blocks > 0 and b.number % c.epoch_blocks = 0)
			and not exists (select from events e where e.chain_id = b.chain_id and e.block = b.number)`,
			chainID, c.Finalized, h.Finalized, c.Cursor.Number)
		return err
	})
}

// SetError stores the state of the chain's indexing loop for the status: msg is empty while it
// works, and halted says that it stopped until an operator acts. repute.ErrFenced when the lease is
// lost; the zero lease is not checked.
func SetError(ctx context.Context, db *store.DB, chainID uint64, l store.Lease, msg string, halted bool) error {
	return db.InLease(ctx, l, fmt.Sprintf("set error of chain %d", chainID), func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update chains set last_error = $2, halted = $3 where chain_id = $1`, chainID,
			column.PlainText(msg, 2000), halted)
		if err == nil && tag.RowsAffected() == 0 {
			err = repute.ErrNotFound
		}
		return err
	})
}
