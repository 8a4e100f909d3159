package statsdb

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
)

// Tag is how a tag is used by live ratings.
type Tag struct {
	Text
	Ratings, Agents, Raters int64
	// Scored is how many of the ratings have a tag1 and a value that a TagRange names.
	Scored int64
}

// TagRange says which values of a tag1 are read as opinions.
type TagRange struct {
	Tag       string
	Low, High float64
}

// TagFilter selects tags.
type TagFilter struct {
	ChainIDs []uint64 // nil for all
	// Tag1 selects the tag2 of ratings with this tag1. Nil selects the tag1 of all ratings.
	Tag1 *string
	// Scored are the values that count for scores.
	Scored []TagRange
	After  string // Next of the page before, with the same filter
	Limit  int    // 1..MaxPage
}

// Tags returns the tags of live ratings, those of most ratings first.
func Tags(ctx context.Context, db *store.DB, f TagFilter) (page store.Page[Tag], err error) {
	if err := store.CheckLimit(f.Limit); err != nil {
		return page, err
	}
	question, from, err := store.BeginPage(f.After, mostUsed(), "tags", f.ChainIDs, f.Tag1)
	if err != nil {
		return page, err
	}
	err = chaindb.View(ctx, db, "list tags", func(ctx context.Context, tx pgx.Tx) error {
		chains, err := chaindb.AskedChains(ctx, tx, f.ChainIDs)
		if err != nil {
			return err
		}
		page.AsOf = chaindb.LatestOf(chains)
		items, err := f.read(ctx, tx, chaindb.ChainIDs(chains), from)
		if err != nil {
			return err
		}
		page.Items, page.Next, err = store.Cut(items, f.Limit, question,
			func(t Tag) usePos { return usePos{Count: t.Ratings, Key: t.Hash[:]} })
		return err
	})
	return page, err
}

// read reads one row more than the page has.
func (f TagFilter) read(ctx context.Context, tx pgx.Tx, chains []uint64, from usePos) ([]Tag, error) {
	hashes := make([][]byte, len(f.Scored))
	lows, highs := make([]float64, len(f.Scored)), make([]float64, len(f.Scored))
	for i, r := range f.Scored {
		hash := column.Keccak(r.Tag)
		hashes[i], lows[i], highs[i] = hash[:], r.Low, r.High
	}
	args := []any{chains, from.Count, column.OrEmpty(from.Key), f.Limit + 1, hashes, lows, highs}
	if f.Tag1 != nil {
		hash := column.Keccak(*f.Tag1)
		args = append(args, hash[:])
	}
	rows, _ := tx.Query(ctx, f.tagsSQL(len(chains) == 1), args...)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t Tag, err error) {
		var head []byte
		var hash column.Hash
		err = row.Scan(&head, &hash, &t.Ratings, &t.Agents, &t.Raters, &t.Scored)
		t.Text = textOf(head, hash)
		return t, err
	})
}

// tagsSQL returns the statement that lists the tags of a column by use. It counts ratings and agents by the sums of
// agents, in the order of their primary key, so that the rows of an agent and a tag follow each other. Raters are
// counted for the tags of the page, from the index sums_tags: on one chain it has the rows of a tag in the order of
// clients, so that distinct clients are counted without hashing or sorting them. On several chains the same client may
// come again, and distinct ones are hashed.
func (f TagFilter) tagsSQL(oneChain bool) string {
	chain := "s.chain_id = any($1)"
	if oneChain {
		chain = "s.chain_id = ($1::bigint[])[1]"
	}
	tag, only, raters := "tag1", "", `cross join lateral (select count(*) as n from (
			select from sums s where `+chain+` and s.tag1 = p.id group by s.client) s) c`
	if f.Tag1 != nil {
		tag, only = "tag2", " and s.tag1 = (select id from tags where hash = $8)"
		raters = `join (select id, count(*) as n from (
			select s.tag2 as id from sums s where ` + chain + only + ` group by s.client, s.tag2) s group by 1) c using (id)`
	}
	return fmt.Sprintf(`
		with page as (
			select u.id, u.n, u.agents, t.hash, %[3]s as tag from (
				select id, sum(n)::bigint as n, count(*) as agents from (
					select s.%[1]s as id, sum(s.n) as n from agent_sums s where s.chain_id = any($1)%[2]s
					group by s.chain_id, s.token_id, s.%[1]s) s group by 1) u
			join tags t on t.id = u.id
			where (u.n, t.hash) < ($2, $3) order by u.n desc, t.hash desc limit $4)
		select p.tag, p.hash, p.n, p.agents, c.n, coalesce(r.n, 0)
		from page p %[4]s
		left join (
			select s.%[1]s as id, count(*) as n
			from unnest($5::bytea[], $6::float8[], $7::float8[]) as k(hash, low, high)
			join tags t on t.hash = k.hash
			join feedback s on s.tag1 = t.id and s.chain_id = any($1) and s.revoked_block is null
				and s.value between k.low::numeric * 10::numeric ^ s.decimals and k.high::numeric * 10::numeric ^ s.decimals
			where s.%[1]s in (select id from page)%[2]s group by 1) r on r.id = p.id
		order by p.n desc, p.hash desc`, tag, only, column.HeadOf("t.value"), raters)
}
