package docdb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"repute/store"
	"repute/store/column"
)

// Sizes and pause of the pass behind DropBodies.
const (
	// countMost is how many documents one call of DropBodies counts.
	countMost = 1000
	// dropMost is how many documents one call of DropBodies considers for dropping.
	dropMost = 1000
	// boundsPause is the time between two passes over all documents.
	boundsPause = 10 * time.Minute
)

// DropBodies keeps at most maxBytes of documents with the ipfs blocks that prove them. A pass first
// adds up what is stored, then drops the bytes of the oldest documents that no agent shows; hashes,
// sizes and parses stay. Each call does one batch and returns how many bytes it dropped; more says
// that the next call has work at once.
func DropBodies(ctx context.Context, db *store.DB, maxBytes int64) (freed int64, more bool, err error) {
	more, err = db.RunNext(ctx, "drop", func(ctx context.Context, tx pgx.Tx, p *store.Pass) error {
		if p.Spare <= 0 {
			return countKept(ctx, tx, p, maxBytes)
		}
		freed, err = dropSome(ctx, tx, p)
		return err
	})
	return freed, more, err
}

// countKept adds up one batch of documents and, at the end of the pass, sets how many bytes to
// drop.
func countKept(ctx context.Context, tx pgx.Tx, p *store.Pass, maxBytes int64) error {
	var n int
	var sum int64
	err := tx.QueryRow(ctx, `
		with portion as materialized (
			select sha256, case when body is not null then size end as size from documents where sha256 > $1 order by sha256
				limit $2)
		select count(*), coalesce(sum(size + `+blockBytes("p", "o.sha256 < b.sha256")+`), 0)::bigint,
			(select sha256 from portion order by sha256 desc limit 1)
		from portion p`, column.OrEmpty(p.Place), countMost).Scan(&n, &sum, &p.Place)
	if err != nil {
		return err
	}
	if p.Bytes += sum; n == countMost {
		return nil
	}
	spare := p.Bytes - maxBytes
	if *p = (store.Pass{Spare: spare}); spare <= 0 {
		*p = store.Pass{Rest: boundsPause}
	}
	return nil
}

// blockBytes returns the SQL of the size of a document's blocks, without blocks that another
// document o shares for which the condition counts holds.
func blockBytes(d, counts string) string {
	return `coalesce((
		select sum(octet_length(i.data)) from document_blocks b join ipfs_blocks i using (multihash)
		where b.sha256 = ` + d + `.sha256 and not exists (
			select from document_blocks o where o.multihash = b.multihash and ` + counts + `)), 0)`
}

// dropSome drops the bytes of the next oldest documents that no agent shows. Blocks that other
// documents need stay, so a pass may drop too little, never too much.
func dropSome(ctx context.Context, tx pgx.Tx, p *store.Pass) (freed int64, err error) {
	var n int
	var place []byte
	var since *time.Time
	var sums [][]byte
	err = tx.QueryRow(ctx, `
		with portion as materialized (
			select sha256, first_seen, size from documents
			where body is not null and (first_seen, sha256) > ($1, $2) order by first_seen, sha256 limit $3),
		last as (select sha256, first_seen from portion order by first_seen desc, sha256 desc limit 1),
		idle as (
			select sha256, first_seen, size + `+blockBytes("p", "o.sha256 <> b.sha256")+` as size from portion p
			where not exists (select from uris u join agents a on a.uri_id = u.id where u.sha256 = p.sha256)),
		enough as (select sha256, sum(size) over (order by first_seen, sha256) - size as before from idle),
		dropped as (
			update documents d set body = null from enough e where d.sha256 = e.sha256 and e.before < $4 returning d.sha256,
				d.size)
		select (select count(*) from portion), (select sha256 from last), (select first_seen from last),
			coalesce(sum(size), 0)::bigint, coalesce(array_agg(sha256), '{}') from dropped`,
		p.Begun(), column.OrEmpty(p.Place), dropMost, p.Spare).Scan(&n, &place, &since, &freed, &sums)
	if err != nil {
		return 0, err
	}
	blocks, err := DropBlocks(ctx, tx, sums)
	if err != nil {
		return 0, err
	}
	freed += blocks
	if p.Place, p.Since, p.Spare = place, since, p.Spare-freed; n < dropMost || p.Spare <= 0 {
		*p = store.Pass{Rest: boundsPause}
	}
	return freed, nil
}

// RestoreBodies makes documents due whose bytes were dropped and that an agent shows again. Each
// call considers up to limit documents and returns how many it made due; more says that the next
// call has work at once.
func RestoreBodies(ctx context.Context, db *store.DB, limit int) (restored int, more bool, err error) {
	more, err = db.RunNext(ctx, "restore", func(ctx context.Context, tx pgx.Tx, p *store.Pass) error {
		var n int
		err := tx.QueryRow(ctx, `
			with portion as materialized (
				select sha256 from documents where body is null and sha256 > $1 order by sha256 limit $2),
			missing as materialized (
				select u.id from portion d cross join lateral (select * from uris where sha256 = d.sha256 offset 0) u
				where (u.next_due is null or u.next_due > now() + interval '1 hour') and not u.dead
					and exists (select from agents a where a.uri_id = u.id)
					and `+deniedBytes("d.sha256")+` is null),
			due as (update uris u set next_due = now() from missing m where u.id = m.id returning u.host, u.rank),
			turns as (`+ScheduleHosts("due")+`)
			select (select count(*) from portion), (select sha256 from portion order by sha256 desc limit 1), (select
				count(*) from due)`,
			column.OrEmpty(p.Place), limit).Scan(&n, &p.Place, &restored)
		if err == nil && n < limit {
			*p = store.Pass{Rest: boundsPause}
		}
		return err
	})
	return restored, more, err
}
