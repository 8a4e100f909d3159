package trustdb

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// ClientRating is a live rating by a client, with who owns the agent now.
type ClientRating struct {
	Agent repute.TokenID
	Owner common.Address
	Row
}

// ClientRatings returns the newest live ratings of a client on a chain, at most limit. Content and Payment of the rows
// are not read.
func ClientRatings(ctx context.Context, db *store.DB, chainID uint64, client common.Address,
	limit int) (list []ClientRating, err error) {
	rows, _ := db.Readers().Query(ctx, `
		select f.token_id, a.owner, f.client, f.payer, f.idx, f.value, f.decimals, `+tagHead("t1.value")+`, `+tagHead("t2.value")+`,
			f.block, f.log_index, b.time
		from (select * from feedback where chain_id = $1 and client = $2 and revoked_block is null
			order by block desc, log_index desc limit $3) f
		join agents a on (a.chain_id, a.token_id) = (f.chain_id, f.token_id)
		join tags t1 on t1.id = f.tag1
		join tags t2 on t2.id = f.tag2
		left join blocks b on (b.chain_id, b.number) = (f.chain_id, f.block)`, chainID, client[:], limit)
	list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r ClientRating, err error) {
		var owner, wrote, payer, tag1, tag2 []byte
		var value column.BigNum
		var at *time.Time
		err = row.Scan((*column.TokenNum)(&r.Agent), &owner, &wrote, &payer, &r.Index, &value, &r.Amount.Decimals,
			&tag1, &tag2,
			&r.Block, &r.LogIndex, &at)
		r.writtenBy(wrote, payer)
		r.Owner, r.Amount.Value, r.Time = common.BytesToAddress(owner), value.Int, column.TimeOf(at)
		r.Tag1, r.Tag2, r.Other = string(tag1), string(tag2), tag1 == nil
		return r, err
	})
	return list, store.Failed("ratings of client", err)
}
