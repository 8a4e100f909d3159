package eventdb

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
	"repute/store/pgcopy"
)

// takeCurrent collects what becomes current rows, ordered by key: neighboring keys then go to the
// same pages.
func (d *Delta) takeCurrent(f *fold) {
	for _, a := range f.agents {
		if a.exists {
			d.agents = append(d.agents, a)
		}
	}
	slices.SortFunc(d.agents, func(a, b *foldAgent) int { return a.id.Cmp(&b.id) })
	slices.SortFunc(d.sums, func(a, b *sumRow) int { return a.pair.compare(&b.pair.pairKey) })
	slices.SortFunc(d.votes, func(a, b *voteRow) int {
		return cmp.Or(a.pair.token.Cmp(&b.pair.token), cmp.Compare(a.tag1, b.tag1), a.pair.client.Cmp(b.pair.client))
	})
}

// encodeAgents encodes the rows of all agents that were named. Stored ones are replaced: their
// indexed columns change with every event, so an update would write as much.
func (d *Delta) encodeAgents(chainID uint64) *pgcopy.Buffer {
	c := pgcopy.New("agents",
		"chain_id, token_id, owner, claimed, wallet, approved, uri_id, registered_block, registered_log, updated_block, updated_log, feedback, revoked, clients, responses, validations")
	for _, a := range d.agents {
		c.Row(chainID)
		c.Token(&a.id)
		state(c, &a.agentState)
		at(c, a.registered)
		at(c, a.updated)
		c.Int64(a.counts.Feedback)
		c.Int64(a.counts.Revoked)
		c.Int64(a.counts.Clients)
		c.Int64(a.counts.Responses)
		c.Int64(a.counts.Validations)
	}
	return c
}

// removeAgents deletes the stored rows that are replaced.
func (d *Delta) removeAgents(ctx context.Context, tx pgx.Tx, chainID uint64) error {
	var stored []repute.TokenID
	for _, a := range d.agents {
		if a.stored {
			stored = append(stored, a.id)
		}
	}
	if len(stored) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, "delete from agents "+WhereAgent("agents", "true"), chainID, column.TokenArray(stored))
	return store.Failed("replace agents", err)
}

// encodeSums encodes the sums of pairs without stored rows; addSums adds to the others.
func (d *Delta) encodeSums(chainID uint64) *pgcopy.Buffer {
	c := pgcopy.New("sums", "chain_id, token_id, client, tag1, tag2, decimals, n, sum")
	for _, s := range d.sums {
		if !s.pair.fresh {
			continue
		}
		c.Row(chainID)
		c.Token(&s.pair.token)
		c.Bytes(s.pair.client[:])
		c.Int64(s.tag1)
		c.Int64(s.tag2)
		c.Int16(int16(s.decimals))
		c.Int64(s.n)
		c.Integer(s.sum)
	}
	return c
}

// addSums adds to the sums of pairs with stored rows.
func (d *Delta) addSums(ctx context.Context, tx pgx.Tx, chainID uint64) error {
	known := slices.DeleteFunc(slices.Clone(d.sums), func(s *sumRow) bool { return s.pair.fresh })
	if len(known) == 0 {
		return nil
	}
	ids, clients := pairArrays(known, func(s *sumRow) *pairKey { return &s.pair.pairKey })
	tag1, tag2, n := make([]int64, len(known)), make([]int64, len(known)), make([]int64, len(known))
	decimals := make([]int16, len(known))
	for i, s := range known {
		tag1[i], tag2[i], n[i], decimals[i] = s.tag1, s.tag2, s.n, int16(s.decimals)
	}
	_, err := tx.Exec(ctx, `
		insert into sums as s (chain_id, token_id, client, tag1, tag2, decimals, n, sum)
		select $1, * from unnest($2::numeric[], $3::bytea[], $4::bigint[], $5::bigint[], $6::smallint[], $7::bigint[],
			$8::numeric[])
		on conflict (chain_id, token_id, client, tag1, tag2, decimals) do update set n = s.n + excluded.n, sum = s.sum +
			excluded.sum`,
		chainID, ids, clients, tag1, tag2, decimals, n,
		column.NumericArray(known, func(s **sumRow) string { return (*s).sum.String() }))
	return store.Failed("add to sums", err)
}

// encodeVotes encodes the votes of pairs without stored rows; replaceVotes replaces the others.
func (d *Delta) encodeVotes(chainID uint64) *pgcopy.Buffer {
	c := pgcopy.New("votes", "chain_id, token_id, tag1, client, idx, value, decimals")
	for _, v := range d.votes {
		if !v.pair.fresh {
			continue
		}
		c.Row(chainID)
		c.Token(&v.pair.token)
		c.Int64(v.tag1)
		c.Bytes(v.pair.client[:])
		c.Int64(int64(v.index))
		c.Integer(v.value)
		c.Int16(int16(v.decimals))
	}
	return c
}

// replaceVotes replaces the votes of pairs with stored rows.
func (d *Delta) replaceVotes(ctx context.Context, tx pgx.Tx, chainID uint64) error {
	known := slices.DeleteFunc(slices.Clone(d.votes), func(v *voteRow) bool { return v.pair.fresh })
	if len(known) == 0 {
		return nil
	}
	ids, clients := pairArrays(known, func(v *voteRow) *pairKey { return &v.pair.pairKey })
	tag1, index, decimals := make([]int64, len(known)), make([]uint64, len(known)), make([]int16, len(known))
	for i, v := range known {
		tag1[i], index[i], decimals[i] = v.tag1, v.index, int16(v.decimals)
	}
	_, err := tx.Exec(ctx, `
		insert into votes (chain_id, token_id, tag1, client, idx, value, decimals)
		select $1, * from unnest($2::numeric[], $3::bigint[], $4::bytea[], $5::bigint[], $6::numeric[], $7::smallint[])
		on conflict (chain_id, token_id, tag1, client) do update set idx = excluded.idx, value = excluded.value, decimals
			= excluded.decimals`,
		chainID, ids, tag1, clients, index,
		column.NumericArray(known, func(v **voteRow) string { return (*v).value.String() }), decimals)
	return store.Failed("replace votes", err)
}

// withdraw takes revoked ratings out of sums and votes, after all ratings of the batch were added.
// It touches only the rows that they are part of, because a client may have given tens of thousands
// of ratings.
func (d *Delta) withdraw(ctx context.Context, tx pgx.Tx, chainID uint64) error {
	if len(d.withdrawn) == 0 {
		return nil
	}
	ids, clients, indexes := ratingArrays(d.withdrawn)
	const revoked = `
		select f.token_id t, f.client c, f.tag1, f.tag2, f.decimals, f.value from unnest($2::numeric[], $3::bytea[],
			$4::bigint[]) u(t, c, x)
		cross join lateral (select * from feedback where chain_id = $1 and token_id = u.t and client = u.c and idx = u.x
			offset 0) f`
	const sumAt = `s.chain_id = $1 and s.token_id = r.t and s.client = r.c and s.tag1 = r.tag1 and s.tag2 = r.tag2 and s.decimals = r.decimals`
	const voteAt = `v.chain_id = $1 and v.token_id = r.t and v.tag1 = r.tag1 and v.client = r.c`
	for _, sql := range []string{`
		with r as (select t, c, tag1, tag2, decimals, count(*) n, sum(value) v from (` + revoked + `) f group by 1, 2, 3, 4, 5),
		gone as (delete from sums s using r where ` + sumAt + ` and s.n = r.n)
		update sums s set n = s.n - r.n, sum = s.sum - r.v from r where ` + sumAt + ` and s.n > r.n`, `
		with r as (select f.*, l.* from (select distinct t, c, tag1 from (` + revoked + `) f) f left join lateral (
			select idx, value, decimals from feedback
			where chain_id = $1 and token_id = f.t and client = f.c and tag1 = f.tag1 and revoked_block is null order by idx
				desc limit 1) l on true),
		gone as (delete from votes v using r where r.idx is null and ` + voteAt + `)
		update votes v set idx = r.idx, value = r.value, decimals = r.decimals from r where r.idx <> v.idx and ` + voteAt,
	} {
		if _, err := tx.Exec(ctx, sql, chainID, ids, clients, indexes); err != nil {
			return store.Failed("withdraw revoked feedback", err)
		}
	}
	return nil
}

// clearTotals deletes the sums and votes of pairs. It finds the tags through the pairs' feedback,
// so it MUST run before any of that is deleted.
func clearTotals(ctx context.Context, tx pgx.Tx, chainID uint64, pairs []pairKey) error {
	return eachPair(ctx, tx, chainID, pairs, "clear totals", nil,
		`delete from sums where ctid = any(array(select s.id from unnest($2::numeric[], $3::bytea[]) u(t, c)
			cross join lateral (select ctid id from sums where chain_id = $1 and token_id = u.t and client = u.c offset 0) s))`,
		`delete from votes where ctid = any(array(select v.id from unnest($2::numeric[], $3::bytea[]) u(t, c)
			cross join lateral (select distinct tag1 from feedback where chain_id = $1 and token_id = u.t and client = u.c
				offset 0) f
			cross join lateral (select ctid id from votes where chain_id = $1 and token_id = u.t and tag1 = f.tag1 and client
				= u.c offset 0) v))`)
}

// fillTotals computes the sums and votes of pairs that have none from their live feedback.
func fillTotals(ctx context.Context, tx pgx.Tx, chainID uint64, pairs []pairKey) error {
	return eachPair(ctx, tx, chainID, pairs, "fill totals", nil,
		`insert into sums (chain_id, token_id, client, tag1, tag2, decimals, n, sum)
		select $1, u.t, u.c, f.* from unnest($2::numeric[], $3::bytea[]) u(t, c) cross join lateral (
			select tag1, tag2, decimals, count(*), sum(value) from feedback
			where chain_id = $1 and token_id = u.t and client = u.c and revoked_block is null group by 1, 2, 3) f`,
		`insert into votes (chain_id, token_id, client, tag1, idx, value, decimals)
		select $1, u.t, u.c, f.* from unnest($2::numeric[], $3::bytea[]) u(t, c) cross join lateral (
			select distinct on (tag1) tag1, idx, value, decimals from feedback
			where chain_id = $1 and token_id = u.t and client = u.c and revoked_block is null order by tag1, idx desc) f`)
}

// eachPair executes statements whose parameters are the chain, the arrays of the pairs, and args.
func eachPair(ctx context.Context, tx pgx.Tx, chainID uint64, pairs []pairKey, doing string, args []any,
	statements ...string) error {
	if len(pairs) == 0 {
		return nil
	}
	ptrs := make([]*pairKey, len(pairs))
	for i := range pairs {
		ptrs[i] = &pairs[i]
	}
	ids, clients := pairArrays(ptrs, func(p *pairKey) *pairKey { return p })
	args = append([]any{chainID, ids, clients}, args...)
	for _, sql := range statements {
		if _, err := tx.Exec(ctx, sql, args...); err != nil {
			return store.Failed(doing, err)
		}
	}
	return nil
}
