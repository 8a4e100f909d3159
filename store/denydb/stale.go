package denydb

import (
	"context"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/trustdb"
)

// maxDirect is the most agents that are marked in the transaction of a denial.
const maxDirect = 1000

// markDenied marks the agents as stale whose documents a denial covers, because scores say whether
// these count. When they are many, all agents of all chains are scored again.
func markDenied(ctx context.Context, tx pgx.Tx, d repute.Denial) error {
	var many bool
	args := append(concernedArgs(d), maxDirect, trustdb.CauseEvent)
	err := tx.QueryRow(ctx, `
		with `+concerned+`,
		hit as materialized (
			select a.chain_id, a.token_id from agents a where $1 = 'agent' and (a.chain_id, a.token_id) = ($4, $5)
			union all
			(select a.chain_id, a.token_id
			from (select id from gave union select u.id from concerned c join uris u on u.sha256 = c.sha256) w
			join agents a on a.uri_id = w.id
			where $1 <> 'agent' limit $6 + 1)),
		few as (
			insert into trust_stale (chain_id, token_id, cause, final)
			select h.chain_id, h.token_id, $7, false from hit h join trust_feed f using (chain_id)
			where (select count(*) from hit) <= $6 order by h.chain_id, h.token_id`+trustdb.MarkTokens+`)
		select count(*) > $6 from hit`, args...).Scan(&many)
	if err != nil || !many {
		return store.Failed("mark agents of a denial", err)
	}
	chains, err := tx.Query(ctx, "select chain_id from trust_feed order by chain_id")
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(chains, pgx.RowTo[uint64])
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := trustdb.BeginPass(ctx, tx, id); err != nil {
			return err
		}
	}
	return nil
}
