package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
)

// chainRow is what a write needs of a row of chains.
type chainRow struct {
	id                   uint64
	identity, reputation common.Address
	trusted              map[common.Address]bool // validation contracts on the allow-list
	start                uint64
	imported             bool
	cursor               repute.Block // number and hash; the hash is zero before the first block
	finalized            uint64
	reorgs               int64
	writes               int64 // counts the transactions that changed anything a batch goes by
	rewound              bool  // by this transaction
}

// lockChain loads a chain, keeps other writers of it out until the transaction
// ends, and counts the write: every writer of rows that a batch goes by must come
// through here, or recall would be wrong. Readers do not notice.
func lockChain(ctx context.Context, tx pgx.Tx, chainID uint64) (*chainRow, error) {
	return scanChainRow(chainID, tx.QueryRow(ctx, "update chains set writes = writes + 1 where chain_id = $1 returning "+chainColumns, chainID))
}

// holdChain is lockChain for who changes nothing that a batch goes by.
func holdChain(ctx context.Context, tx pgx.Tx, chainID uint64) (*chainRow, error) {
	return scanChainRow(chainID, tx.QueryRow(ctx, selectChain+" for no key update", chainID))
}

const (
	chainColumns = `identity, reputation, validations, start_block, imported, cursor_block, cursor_hash,
	finalized_block, reorgs, writes`
	selectChain = "select " + chainColumns + " from chains where chain_id = $1"
)

func scanChainRow(chainID uint64, row pgx.Row) (*chainRow, error) {
	c := &chainRow{id: chainID, trusted: map[common.Address]bool{}}
	var identity, reputation, hash []byte
	var validations [][]byte
	err := row.Scan(&identity, &reputation, &validations, &c.start, &c.imported, &c.cursor.Number, &hash, &c.finalized, &c.reorgs, &c.writes)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("chain %d: %w", chainID, repute.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	c.identity, c.reputation = common.BytesToAddress(identity), common.BytesToAddress(reputation)
	c.cursor.Hash = common.BytesToHash(hash)
	for _, v := range validations {
		c.trusted[common.BytesToAddress(v)] = true
	}
	return c, nil
}

// trustedBytes is the allow-list as a bytea[] parameter.
func (c *chainRow) trustedBytes() [][]byte {
	out := [][]byte{}
	for a := range c.trusted {
		out = append(out, a.Bytes())
	}
	return out
}

// AddChain stores the chain, or checks it against the stored one:
// repute.ErrConflict when registries, start block or the way it is fed differ.
// Name and allow-list are taken over; totals follow the new allow-list. The
// start block of an imported chain may move down. A start block of 0 means 1:
// the genesis block has no logs.
func (db *DB) AddChain(ctx context.Context, c repute.Chain) error {
	return db.inTx(ctx, pgx.TxOptions{}, fmt.Sprintf("add chain %d", c.ID), func(tx pgx.Tx) error {
		return addChain(ctx, tx, c)
	})
}

func addChain(ctx context.Context, tx pgx.Tx, c repute.Chain) error {
	c.StartBlock = max(c.StartBlock, 1)
	validations := addressList(c.Validations)
	tag, err := tx.Exec(ctx, `
		insert into chains (chain_id, name, identity, reputation, validations, start_block, imported, cursor_block, cursor_hash)
		values ($1, $2, $3, $4, $5, $6, $7, $6::bigint - 1, '') on conflict do nothing`,
		c.ID, c.Name, c.Identity[:], c.Reputation[:], validations, c.StartBlock, c.Imported)
	if err != nil || tag.RowsAffected() == 1 {
		return err
	}
	stored, err := lockChain(ctx, tx, c.ID)
	if err != nil {
		return err
	}
	if err := stored.conflict(c); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `update chains set name = $2, validations = $3, start_block = least(start_block, $4) where chain_id = $1`,
		c.ID, c.Name, validations, c.StartBlock)
	if err != nil {
		return err
	}
	if err := stored.retrust(ctx, tx, c.Validations); err != nil {
		return err
	}
	return stored.owe(ctx, tx, c.Validations)
}

// HistorySubject begins the subject of the gap that a validation contract leaves
// which was listed after blocks were indexed. The contract's address follows.
const HistorySubject = "history:"

// HistoryGaps are what is missing of validation contracts in blocks that were
// indexed when they were not yet listed.
func HistoryGaps(contracts []common.Address, blocks repute.BlockRange) (gaps []Gap) {
	for _, v := range contracts {
		for _, kind := range []repute.EventKind{repute.KindValidationRequest, repute.KindValidationResponse} {
			gaps = append(gaps, Gap{Subject: HistorySubject + v.Hex(), Gap: repute.Gap{Kind: kind, Blocks: blocks,
				Reason: "the contract was listed after these blocks were indexed"}})
		}
	}
	return gaps
}

// owe notes that the events of contracts that enter the allow-list were not asked
// for in the blocks indexed so far.
func (c *chainRow) owe(ctx context.Context, tx pgx.Tx, validations []common.Address) error {
	entering := slices.DeleteFunc(slices.Clone(validations), func(v common.Address) bool { return c.trusted[v] })
	if len(entering) == 0 || c.cursor.Number < c.start {
		return nil
	}
	var covered bool // recorded logs alone promise nothing
	err := tx.QueryRow(ctx, `select exists (select from covered where chain_id = $1)`, c.id).Scan(&covered)
	if err != nil || !covered {
		return err
	}
	if _, err := tx.Exec(ctx, "delete from block_proofs where chain_id = $1", c.id); err != nil {
		return err // they are no proof of the contracts' events
	}
	return widenGaps(ctx, tx, c.id, HistoryGaps(entering, repute.BlockRange{From: c.start, To: c.cursor.Number}))
}

// CheckChain is AddChain's check without its waiting or writing: ErrConflict when
// the chain is stored otherwise, nil also when it is not stored or when it is
// imported, which who holds the lease may change (Adopt).
func (db *DB) CheckChain(ctx context.Context, c repute.Chain) error {
	c.StartBlock = max(c.StartBlock, 1)
	stored, err := scanChainRow(c.ID, db.pool.QueryRow(ctx, selectChain, c.ID))
	if errors.Is(err, repute.ErrNotFound) {
		return nil
	}
	if err == nil && (c.Imported || !stored.imported) {
		err = stored.conflict(c)
	}
	return failed(fmt.Sprintf("check chain %d", c.ID), err)
}

func (c *chainRow) conflict(with repute.Chain) error {
	differ := func(what string, stored, given any) error {
		return repute.Conflict("%s is %v, not %v", what, stored, given)
	}
	switch {
	case with.Imported && !c.imported:
		return repute.Conflict("the chain is followed, its logs come from a node and not from files: import into another database")
	case c.imported && !with.Imported:
		return repute.Conflict("the chain was imported from files and has not been adopted")
	case c.identity != with.Identity:
		return differ("identity registry", c.identity, with.Identity)
	case c.reputation != with.Reputation:
		return differ("reputation registry", c.reputation, with.Reputation)
	case c.start != with.StartBlock && !c.imported:
		return differ("start block", c.start, with.StartBlock)
	}
	return nil
}

// retrust counts validations anew where contracts entered or left the allow-list.
func (c *chainRow) retrust(ctx context.Context, tx pgx.Tx, validations []common.Address) error {
	changed := [][]byte{}
	now := make([][]byte, 0, len(validations))
	for _, v := range validations {
		now = append(now, v.Bytes())
		if !c.trusted[v] {
			changed = append(changed, v.Bytes())
		}
	}
	for v := range c.trusted {
		if !slices.Contains(validations, v) {
			changed = append(changed, v.Bytes())
		}
	}
	if len(changed) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		update agents a set validations = (
			select count(*) from validation_requests r
			where r.chain_id = a.chain_id and r.token_id = a.token_id and r.contract = any($3)
			and exists (select from validation_responses v where (v.chain_id, v.contract, v.request_hash) = (r.chain_id, r.contract, r.request_hash)))
		where chain_id = $1 and token_id in (select token_id from validation_requests where chain_id = $1 and contract = any($2))`,
		c.id, changed, now)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		update pending p set reason = case when e.address = any($3) then $4 else $5 end
		from events e where p.chain_id = $1 and p.reason in ($4, $5) and e.address = any($2)
		and (e.chain_id, e.block, e.log_index) = (p.chain_id, p.block, p.log_index)`,
		c.id, changed, now, waitsForRequest, ignoredForeign)
	return err
}

// Cursor is the newest indexed block. Before the first one its number is the
// start block minus one and its hash zero. repute.ErrNotFound for an unknown chain.
func (db *DB) Cursor(ctx context.Context, chainID uint64) (repute.Block, error) {
	b, err := scanBlock(db.pool.QueryRow(ctx, `
		select c.cursor_block, c.cursor_hash, b.parent, c.cursor_time from chains c
		left join blocks b on b.chain_id = c.chain_id and b.number = c.cursor_block where c.chain_id = $1`, chainID))
	return b, failed(fmt.Sprintf("cursor of chain %d", chainID), err)
}

// StoredBlock is the header kept for a number; repute.ErrNotFound when none is, also of
// blocks that were indexed: headers of final blocks without events are not kept.
func (db *DB) StoredBlock(ctx context.Context, chainID, number uint64) (repute.Block, error) {
	b, err := scanBlock(db.pool.QueryRow(ctx, `
		select number, hash, parent, time from blocks where chain_id = $1 and number = $2`, chainID, number))
	return b, failed(fmt.Sprintf("block %d of chain %d", number, chainID), err)
}

// RecentBlocks are the newest kept headers, newest first: what to walk back to
// find where two chains part. No more than limit, fewer where fewer are kept; of an
// imported chain hash and time may be zero.
func (db *DB) RecentBlocks(ctx context.Context, chainID uint64, limit int) ([]repute.Block, error) {
	doing := fmt.Sprintf("recent blocks of chain %d", chainID)
	rows, err := db.pool.Query(ctx, `
		select number, hash, parent, time from blocks where chain_id = $1 order by number desc limit $2`, chainID, limit)
	if err != nil {
		return nil, failed(doing, err)
	}
	blocks, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (repute.Block, error) { return scanBlock(row) })
	return blocks, failed(doing, err)
}

func scanBlock(row pgx.Row) (repute.Block, error) {
	var b repute.Block
	var hash, parent []byte
	var at *time.Time
	err := row.Scan(&b.Number, &hash, &parent, &at)
	if errors.Is(err, pgx.ErrNoRows) {
		return b, repute.ErrNotFound
	}
	b.Hash, b.Parent = common.BytesToHash(hash), common.BytesToHash(parent)
	if at != nil {
		b.Time = at.UTC()
	}
	return b, err
}

// Head is what a chain's node said of its head; zero is unknown.
type Head struct {
	Head, Safe, Finalized uint64
	SeenAt                time.Time
}

// SetHead stores what the node said. Finalized never goes down; what is unknown
// stays as it was. Headers of blocks
// without events are forgotten once finality has passed them, but for those that end an
// epoch of scores. repute.ErrFenced
// when the lease is lost; the zero lease is not checked.
func (db *DB) SetHead(ctx context.Context, chainID uint64, l Lease, h Head) error {
	return db.inTx(ctx, pgx.TxOptions{}, fmt.Sprintf("set head of chain %d", chainID), func(tx pgx.Tx) error {
		if err := holdLease(ctx, tx, l); err != nil {
			return err
		}
		c, err := holdChain(ctx, tx, chainID)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			update chains set head_block = $2, head_seen_at = $3, safe_block = coalesce(nullif($4::bigint, 0), safe_block), finalized_block = greatest(finalized_block, $5)
			where chain_id = $1`, chainID, h.Head, maybeTime(h.SeenAt), h.Safe, h.Finalized)
		if err != nil || h.Finalized <= c.finalized {
			return err
		}
		_, err = tx.Exec(ctx, `
			delete from blocks b where chain_id = $1 and number >= $2 and number < least($3::bigint, $4::bigint)
			and not exists (select from chains c where c.chain_id = $1 and c.epoch_blocks > 0 and b.number % c.epoch_blocks = 0)
			and not exists (select from events e where e.chain_id = b.chain_id and e.block = b.number)`,
			chainID, c.finalized, h.Finalized, c.cursor.Number)
		return err
	})
}

// maybeTime is null for the zero time.
func maybeTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// SetError stores what status shows of the chain's indexing loop: "" when it runs
// well, halted when it has stopped until an operator has looked. repute.ErrFenced
// when the lease is lost; the zero lease is not checked.
func (db *DB) SetError(ctx context.Context, chainID uint64, l Lease, msg string, halted bool) error {
	return db.inTx(ctx, pgx.TxOptions{}, fmt.Sprintf("set error of chain %d", chainID), func(tx pgx.Tx) error {
		if err := holdLease(ctx, tx, l); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `update chains set last_error = $2, halted = $3 where chain_id = $1`, chainID, plainText(msg, 2000), halted)
		if err == nil && tag.RowsAffected() == 0 {
			err = repute.ErrNotFound
		}
		return err
	})
}
