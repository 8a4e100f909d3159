package docdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
)

// Block is one ipfs block whose bytes were verified against its multihash.
type Block struct {
	Multihash []byte
	Data      []byte
	Node      bool // it was decoded as a node of the document's tree
}

// sha256Prefix begins the multihash of a sha2-256 digest: the code of the hash and its length.
const sha256Prefix = "\x12\x20"

// ReadBlock returns the bytes of a multihash: a block that proves an ipfs document, or any stored
// document whose sha2-256 it is. repute.ErrNotFound when there is neither, repute.ErrGone (also
// *repute.DeniedError) when the bytes are withheld.
func ReadBlock(ctx context.Context, db *store.DB, multihash []byte) ([]byte, error) {
	b, err := proofBlock(ctx, db, multihash, false)
	sum, isSHA256 := bytes.CutPrefix(multihash, []byte(sha256Prefix))
	if !errors.Is(err, repute.ErrNotFound) || !isSHA256 || len(sum) != 32 {
		return b, err
	}
	c, err := Body(ctx, db, [32]byte(sum))
	return c.Body, err
}

// ProofBlock is ReadBlock for blocks that were decoded as a node of an ipfs document. Documents and
// parts of files, whose bytes anybody can choose, are not found.
func ProofBlock(ctx context.Context, db *store.DB, multihash []byte) ([]byte, error) {
	return proofBlock(ctx, db, multihash, true)
}

// proofBlock reads a stored block; nodes restricts it to decoded nodes.
func proofBlock(ctx context.Context, db *store.DB, multihash []byte, nodes bool) ([]byte, error) {
	sum, _ := bytes.CutPrefix(multihash, []byte(sha256Prefix))
	var data []byte
	var denied *string
	var open bool
	// A part is withheld when every document it belongs to is.
	err := db.Readers().QueryRow(ctx, `
		select (select data from ipfs_blocks where multihash = $1 and (node or not $3)),
			(select max(reason) from denied where (kind, value) in (('cid', encode($1, 'hex')), ('sha256', encode($2, 'hex')))),
			exists (select from document_blocks b join documents d on d.sha256 = b.sha256
				where b.multihash = $1 and d.body is not null and `+DeniedServed("d.sha256")+` is null)`, multihash, sum, nodes).Scan(&data, &denied, &open)
	switch {
	case err != nil:
		return nil, store.Failed("read block", err)
	case denied != nil:
		return nil, &repute.DeniedError{Reason: *denied}
	case data == nil:
		return nil, repute.Missing("block %x", multihash)
	case !open:
		return nil, fmt.Errorf("block %x: what it is part of is withheld: %w", multihash, repute.ErrGone)
	}
	return data, nil
}

// saveBlocks stores the blocks that prove the documents of the batch, which MUST be stored before.
// A block that is a whole document is not stored a second time.
func (s saving) saveBlocks(ctx context.Context, tx pgx.Tx) error {
	kept := map[string]Block{}
	var sums, parts [][]byte
	for _, r := range s.results {
		if r.sum == nil || r.denied {
			continue
		}
		whole := slices.Concat([]byte(sha256Prefix), r.sum)
		for _, b := range r.Blocks {
			if bytes.Equal(b.Multihash, whole) {
				continue
			}
			b.Node = b.Node || kept[string(b.Multihash)].Node
			kept[string(b.Multihash)] = b
			sums, parts = append(sums, r.sum), append(parts, b.Multihash)
		}
	}
	if sums == nil {
		return nil
	}
	if err := insertBlocks(ctx, tx, kept); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		insert into document_blocks (sha256, multihash)
		select sum, part from unnest($1::bytea[], $2::bytea[]) as u(sum, part) order by sum, part
		on conflict do nothing`, sums, parts)
	return err
}

// insertBlocks stores blocks in the order of their hashes, because concurrent batches may share
// blocks.
func insertBlocks(ctx context.Context, tx pgx.Tx, kept map[string]Block) error {
	var hashes, data [][]byte
	var nodes []bool
	for _, hash := range slices.Sorted(maps.Keys(kept)) {
		hashes, data, nodes = append(hashes, []byte(hash)), append(data, kept[hash].Data), append(nodes,
			kept[hash].Node)
	}
	_, err := tx.Exec(ctx, `
		insert into ipfs_blocks (multihash, data, node) select * from unnest($1::bytea[], $2::bytea[], $3::boolean[])
		on conflict (multihash) do update set node = true where excluded.node and not ipfs_blocks.node`, hashes, data, nodes)
	return err
}

// DropBlocks deletes the blocks that prove no other documents than those with the given hashes, and
// returns their size in bytes.
func DropBlocks(ctx context.Context, tx pgx.Tx, sums [][]byte) (freed int64, err error) {
	err = tx.QueryRow(ctx, `
		with gone as (delete from document_blocks where sha256 = any($1) returning multihash),
		dropped as (
			delete from ipfs_blocks b using (select distinct multihash from gone) g
			where b.multihash = g.multihash and not exists (
				select from document_blocks k where k.multihash = b.multihash and k.sha256 <> all($1))
			returning octet_length(b.data) as n)
		select coalesce(sum(n), 0) from dropped`, sums).Scan(&freed)
	return freed, err
}
