package chaindb

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
	"repute/store/paydb"
	"repute/store/trustmark"
)

// GatewayBytes returns the allow-list of feedback gateways as a bytea[] parameter.
func (c *ChainRow) GatewayBytes() [][]byte {
	return column.AddressColumn(slices.Collect(maps.Keys(c.Gateways)))
}

// SetGateways stores the allow-list of gateways and attributes anew the ratings of those that enter or leave it. Then
// all scores change, so that another run is due, and the payments of these ratings are checked again.
func (c *ChainRow) SetGateways(ctx context.Context, tx pgx.Tx, now []repute.WatchedContract) error {
	addresses, from := watchedColumns(now)
	if _, err := tx.Exec(ctx, "update chains set gateways = $2, gateways_from = $3 where chain_id = $1", c.ID,
		addresses,
		from); err != nil {
		return store.Failed("store gateways", err)
	}
	leaving, entering := c.GatewayBytes(), [][]byte{}
	for _, g := range now {
		leaving = slices.DeleteFunc(leaving, func(a []byte) bool { return common.BytesToAddress(a) == g.Address })
		if !c.Gateways[g.Address] {
			entering = append(entering, g.Address.Bytes())
		}
	}
	if len(leaving)+len(entering) == 0 {
		return nil
	}
	if err := trustmark.Add(ctx, tx, c.ID, trustmark.Marks{Late: true, All: true}); err != nil {
		return err
	}
	if len(leaving) > 0 {
		_, err := tx.Exec(ctx, "update feedback set payer = null where chain_id = $1 and client = any($2)", c.ID,
			leaving)
		if err != nil {
			return store.Failed("release ratings of gateways", err)
		}
	}
	if len(entering) > 0 {
		if err := c.attribute(ctx, tx, entering); err != nil {
			return err
		}
	}
	return store.Failed("look at payments again",
		paydb.ReopenRatings(ctx, tx, c.ID, slices.Concat(leaving, entering), nil))
}

// attribute sets the payers of all ratings of gateways that enter the list.
func (c *ChainRow) attribute(ctx context.Context, tx pgx.Tx, entering [][]byte) error {
	var agents string
	err := tx.QueryRow(ctx, `select coalesce(array_agg(distinct token_id), '{}')::text from feedback
		where chain_id = $1 and client = any($2)`, c.ID, entering).Scan(&agents)
	if err != nil {
		return store.Failed("find ratings of gateways", err)
	}
	return AttributeRatings(ctx, tx, c.ID, entering, agents, 0)
}

// AttributeRatings sets the payer of the ratings that gateways wrote about agents, a numeric[] parameter, from block
// from on. A rating belongs to the payer of a ticket when both have the same transaction, gateway, agent and feedback
// hash, and no other rating or ticket has all of these. Every other rating of a gateway has an empty payer. The events
// MUST be stored before.
func AttributeRatings(ctx context.Context, tx pgx.Tx, chainID uint64, gateways [][]byte, agents string,
	from uint64) error {
	// Topics after the first and the data together are the five words of TicketConsumed in order, whichever are
	// indexed.
	_, err := tx.Exec(ctx, fmt.Sprintf(`
		update feedback f set payer = coalesce(m.payer, '') from (
			select r.id, case when r.ratings = 1 and t.tickets = 1 and t.payer <> $5 then t.payer end as payer
			from (
				select f.id, f.token_id, f.client, e.block, e.tx_hash,
					case when f.hash = '' then $6 else f.hash end as hash,
					count(*) over (partition by f.token_id, f.client, f.hash, e.block, e.tx_hash) as ratings
				from unnest($3::numeric[]) u(t)
				cross join lateral (select ctid as id, token_id, client, hash, block, log_index from feedback
					where chain_id = $1 and token_id = u.t and client = any($2) and block >= $4 offset 0) f
				join events e on e.chain_id = $1 and e.block = f.block and e.log_index = f.log_index) r
			cross join lateral (
				select count(*) as tickets, (array_agg(substring(words from 45 for 20)))[1] as payer
				from (select substring(topics from 33) || data as words from events
					where chain_id = $1 and block = r.block and kind = %d and address = r.client and tx_hash = r.tx_hash
						and token_id = r.token_id offset 0) w
				where substring(words from 129 for 32) = r.hash) t) m
		where f.ctid = m.id`, repute.KindTicketConsumed),
		chainID, gateways, agents, from, make([]byte, common.AddressLength), make([]byte, common.HashLength))
	return store.Failed("attribute ratings of gateways", err)
}
