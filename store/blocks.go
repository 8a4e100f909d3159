package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"repute"
)

// Block is one ipfs block whose bytes were verified against its multihash.
type Block struct {
	Multihash []byte
	Data      []byte
}

// sha256Prefix begins the multihash of a sha2-256 digest: its code and its length.
const sha256Prefix = "\x12\x20"

// Block gives the bytes of a multihash: a stored document, wherever it came from,
// when the multihash is its sha2-256, else a block that proves an ipfs document.
// repute.ErrNotFound when there is neither.
func (db *DB) Block(ctx context.Context, multihash []byte) ([]byte, error) {
	sum, _ := bytes.CutPrefix(multihash, []byte(sha256Prefix))
	return db.block(ctx, multihash, `
		select data from ipfs_blocks where multihash = $1
		union all
		select body from documents where sha256 = $2 and body is not null
		limit 1`, multihash, sum)
}

// ProofBlock is Block without the documents, which strangers chose byte by byte: what
// it gives was read as a part of an ipfs document before.
func (db *DB) ProofBlock(ctx context.Context, multihash []byte) ([]byte, error) {
	return db.block(ctx, multihash, "select data from ipfs_blocks where multihash = $1", multihash)
}

func (db *DB) block(ctx context.Context, multihash []byte, query string, args ...any) (data []byte, err error) {
	err = db.view(ctx, "read block", func(ctx context.Context, tx pgx.Tx) error {
		err := tx.QueryRow(ctx, query, args...).Scan(&data)
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("block %x: %w", multihash, repute.ErrNotFound)
		}
		return err
	})
	return data, err
}

// saveBlocks keeps the blocks that prove the document with that sha256, which must be
// stored. A block that is the whole document is not kept a second time.
func saveBlocks(ctx context.Context, tx pgx.Tx, sum []byte, blocks []Block) error {
	whole := slices.Concat([]byte(sha256Prefix), sum)
	blocks = slices.DeleteFunc(slices.Clone(blocks), func(b Block) bool { return bytes.Equal(b.Multihash, whole) })
	if len(blocks) == 0 {
		return nil
	}
	// In one order everywhere: documents that share blocks are saved side by side.
	slices.SortFunc(blocks, func(a, b Block) int { return bytes.Compare(a.Multihash, b.Multihash) })
	hashes, data := make([][]byte, len(blocks)), make([][]byte, len(blocks))
	for i, b := range blocks {
		hashes[i], data[i] = b.Multihash, b.Data
	}
	_, err := tx.Exec(ctx, `
		insert into ipfs_blocks (multihash, data) select * from unnest($1::bytea[], $2::bytea[])
		on conflict do nothing`, hashes, data)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		insert into document_blocks (sha256, multihash) select $1, unnest($2::bytea[])
		on conflict do nothing`, sum, hashes)
	return err
}
