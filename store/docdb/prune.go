package docdb

import (
	"context"

	"github.com/jackc/pgx/v5"

	"repute/store"
)

// maxVersions is how many outcomes of one URI are kept, besides the current one. A file that
// contains a clock is a new one with every fetch.
const maxVersions = 200

// pruneMost is how many outcomes one PruneVersions deletes.
const pruneMost = 1000

// PruneVersions deletes the oldest outcomes of one URI that has too many, with the bytes that no
// other URI returned. It reports whether there may be more to do.
func PruneVersions(ctx context.Context, db *store.DB) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, store.DocumentTimeout)
	defer cancel()
	err = db.InTx(ctx, pgx.TxOptions{}, "forget old versions", func(tx pgx.Tx) error {
		var uri int64
		rows, _ := tx.Query(ctx,
			"select id from uris where overgrown order by id limit 1 for no key update skip locked")
		if _, err := pgx.ForEachRow(rows, []any{&uri}, func() error { more = true; return nil }); err != nil || !more {
			return err
		}
		sums, all, err := deleteFetches(ctx, tx, uri)
		if err != nil {
			return err
		}
		if err := deleteUnused(ctx, tx, sums); err != nil || !all {
			return err
		}
		_, err = tx.Exec(ctx, "update uris set overgrown = false where id = $1", uri)
		return err
	})
	return more, err
}

// deleteFetches deletes outcomes. It returns the hashes of their bytes, and whether no more need to
// be deleted.
func deleteFetches(ctx context.Context, tx pgx.Tx, uri int64) (sums [][]byte, all bool, err error) {
	var n int
	err = tx.QueryRow(ctx, `
		with shown as materialized (
			select f.fetched_at from uris u join fetches f on f.uri_id = u.id and f.sha256 = u.sha256
			where u.id = $1 order by f.fetched_at desc limit 1),
		old as materialized (
			select fetched_at from fetches
			where uri_id = $1 and fetched_at < (select fetched_at from fetches where uri_id = $1 order by fetched_at desc
				offset $2 - 1 limit 1)
				and fetched_at not in (select fetched_at from shown)
			order by fetched_at limit $3),
		gone as (
			delete from fetches f using old where f.uri_id = $1 and f.fetched_at = old.fetched_at returning f.sha256)
		select count(*), coalesce(array_agg(distinct sha256) filter (where sha256 is not null), '{}') from gone`,
		uri, maxVersions, pruneMost).Scan(&n, &sums)
	return sums, n < pruneMost, err
}

// deleteUnused deletes the documents among sums that no URI returned, with all rows that depend on
// them. Denied ones stay, so that they are recognized when they come again.
func deleteUnused(ctx context.Context, tx pgx.Tx, sums [][]byte) error {
	// The lock keeps others from relying on stored bytes that are about to be deleted.
	if _, err := tx.Exec(ctx, "select from documents where sha256 = any($1) order by sha256 for update",
		sums); err != nil {
		return err
	}
	var blocks [][]byte
	err := tx.QueryRow(ctx, `
		with gone as (
			delete from documents d where sha256 = any($1)
				and not exists (select from uris where sha256 = d.sha256)
				and not exists (select from fetches where sha256 = d.sha256)
				and `+deniedBytes("d.sha256")+` is null
			returning sha256)
		select coalesce(array_agg(distinct b.multihash), '{}') from gone join document_blocks b using (sha256)`, sums).Scan(&blocks)
	if err != nil || len(blocks) == 0 {
		return err
	}
	if _, err := tx.Exec(ctx, "select from ipfs_blocks where multihash = any($1) order by multihash for update",
		blocks); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		delete from ipfs_blocks b where multihash = any($1) and not exists (
			select from document_blocks where multihash = b.multihash)`, blocks)
	return err
}
