package denydb

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/trustmark"
)

// maxDirect is the most agents that are marked in the transaction of a denial.
const maxDirect = 1000

// markScoresStale marks for rescoring the agents whose documents a denial covers, because scores say
// whether these count. Above maxDirect agents it marks all agents of all chains with registries; other
// chains have no agents.
func markScoresStale(ctx context.Context, tx pgx.Tx, d repute.Denial) error {
	var many bool
	args := append(concernedArgs(d), maxDirect)
	err := tx.QueryRow(ctx, `
		with `+concerned+`,
		hit as materialized (
			select a.chain_id, a.token_id from agents a where $1 = 'agent' and (a.chain_id, a.token_id) = ($4, $5)
			union all
			(select a.chain_id, a.token_id
			from (select id from gave union select u.id from concerned c join uris u on u.sha256 = c.sha256) w
			join agents a on a.uri_id = w.id
			where $1 <> 'agent' limit $6 + 1)),
		few as (`+trustmark.InsertAgents+`select distinct chain_id, token_id from hit where (select count(*) from hit) <= $6)
		select count(*) > $6 from hit`, args...).Scan(&many)
	if err != nil || !many {
		return store.Failed("mark agents of a denial", err)
	}
	rows, _ := tx.Query(ctx, "select chain_id from chains where "+chaindb.HasRegistries+" order by chain_id")
	chains, err := pgx.CollectRows(rows, pgx.RowTo[uint64])
	for _, id := range chains {
		err = errors.Join(err, trustmark.Add(ctx, tx, id, trustmark.Marks{All: true}))
	}
	return err
}
