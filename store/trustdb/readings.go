package trustdb

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute/store"
	"repute/store/column"
)

// Raters returns the addresses of which a rating is live as of a block, or an answer of one of these validation
// contracts counts, in order. A rating through a gateway is of its payer, as in ReadGraph. It may take as long as ctx
// allows.
func Raters(ctx context.Context, db *store.DB, chainID, block uint64,
	validations []common.Address) (list []common.Address, err error) {
	err = readLong(ctx, db, fmt.Sprintf("raters of chain %d", chainID), func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `
			select coalesce(payer, client) from feedback
			where chain_id = $1 and block <= $2 and (revoked_block is null or revoked_block > $2)
				and (payer is null or payer <> '')
			union
			select q.validator from validation_responses x join validation_requests q using (chain_id, contract, request_hash)
			where x.chain_id = $1 and x.block <= $2 and x.contract = any($3)
			order by 1`, chainID, block, column.AddressColumn(validations))
		var rater []byte
		_, err = pgx.ForEachRow(rows, []any{&rater}, func() error {
			list = append(list, common.BytesToAddress(rater))
			return nil
		})
		return err
	})
	return list, err
}

// ReadPins returns, for each source and each chain on which it was read, the newest stored reading with implementations
// of the source's contracts, as the JSON of a source.State. Implementations that "first-seen" pins are stored nowhere
// else.
func ReadPins(ctx context.Context, db *store.DB, chainID uint64) ([][]byte, error) {
	rows, _ := db.Readers().Query(ctx, `
		select distinct on (s->>'source', s->>'chain') s::text::bytea
		from trust_runs r cross join lateral jsonb_array_elements(r.readings::jsonb) s
		where r.chain_id = $1 and r.readings <> '' and s ? 'implementations'
		order by s->>'source', s->>'chain', r.run desc`, chainID)
	list, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	return list, store.Failed("pinned implementations of sources", err)
}
