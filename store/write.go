package store

import (
	"context"
	"errors"
	"time"

	"repute"
)

// Batch is a run of consecutive blocks of one chain with all their records.
type Batch struct {
	ChainID uint64
	// Lease fences the write; the zero Lease does not (tests, imports).
	Lease Lease
	// Parent must be the stored cursor, number and hash. Its hash is zero before
	// the first block.
	Parent repute.Block
	// To becomes the cursor: Records hold everything in (Parent.Number, To.Number].
	To repute.Block
	// Blocks are headers: at least of every block with records.
	Blocks []repute.Block
	// Records are in (block, log index) order, whole blocks only, so that no
	// transaction of the chain is ever split.
	Records []repute.Record
	// Backfill writes one `backfilled` change instead of one per event.
	Backfill bool
}

// Head is what a chain's node said of its head. Zero: unknown.
type Head struct {
	Head, Safe, Finalized uint64
	SeenAt                time.Time
}

var errTODO = errors.New("not there yet")

// AddChain stores the chain, or checks it against the stored one.
func (db *DB) AddChain(ctx context.Context, c repute.Chain) error { return errTODO }

// Cursor is the newest indexed block.
func (db *DB) Cursor(ctx context.Context, chainID uint64) (repute.Block, error) {
	return repute.Block{}, errTODO
}

// StoredBlock is a kept header.
func (db *DB) StoredBlock(ctx context.Context, chainID, number uint64) (repute.Block, error) {
	return repute.Block{}, errTODO
}

// RecentBlocks are the newest kept headers.
func (db *DB) RecentBlocks(ctx context.Context, chainID uint64, limit int) ([]repute.Block, error) {
	return nil, errTODO
}

// Apply stores a batch in one transaction.
func (db *DB) Apply(ctx context.Context, b Batch) error { return errTODO }

// Rewind removes everything above ancestor and applies b in one transaction.
func (db *DB) Rewind(ctx context.Context, ancestor repute.Block, b Batch) error { return errTODO }

// SetHead stores what the node said.
func (db *DB) SetHead(ctx context.Context, chainID uint64, l Lease, h Head) error { return errTODO }

// SetError stores what status shows.
func (db *DB) SetError(ctx context.Context, chainID uint64, msg string, halted bool) error {
	return errTODO
}
