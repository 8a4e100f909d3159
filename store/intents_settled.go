package store

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"
)

// SettledIntents gives the intents of a chain that are confirmed or reverted in a block above
// one, of the newest 64 of each account.
func (db *DB) SettledIntents(ctx context.Context, chainID, above uint64) (out []Intent, err error) {
	err = db.inTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly}, "settled intents", func(tx pgx.Tx) error {
		out, err = collectIntents(ctx, tx, selectIntents+`
			where i.id in (select s.id from accounts o, lateral (select id, block, state from intents where chain_id = o.chain_id and sender = o.address order by nonce desc limit 64) s
				where o.chain_id = $1 and s.state in ('confirmed', 'reverted') and s.block > $2)
			order by i.id, a.number`, int64(chainID), int64(above))
		return err
	})
	return out, err
}

// ReopenIntent makes a confirmed or reverted intent one that waits to be mined, where the
// block that it was in, which left the chain, is still the stored one.
func (db *DB) ReopenIntent(ctx context.Context, id string, left common.Hash) error {
	_, err := db.pool.Exec(ctx, `
		update intents set state = 'broadcast', hash = null, block = null, block_hash = null, gas_used = null, fee = null, logs = null, updated_at = now()
		where id = $1 and state in ('confirmed', 'reverted') and block_hash = $2`, id, left[:])
	return failed("reopen intent", err)
}
