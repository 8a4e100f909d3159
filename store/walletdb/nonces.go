package walletdb

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute/store"
)

// Nonces are the nonces of an account that the transaction has locked.
type Nonces struct {
	// Next is above every nonce that an intent of the account has.
	Next uint64

	tx      pgx.Tx
	chainID uint64
	address common.Address
}

// Free returns the lowest nonce, from one on and above all that the chain has used, that no intent
// has. This is Next, unless there is a gap and nothing was signed above it for quiet: transactions
// above a gap are never mined. The nonce of an intent that failed quiet ago is free again, because
// the transaction that used it may have left the chain.
func (n Nonces) Free(ctx context.Context, from uint64, quiet time.Duration) (free uint64, err error) {
	err = n.tx.QueryRow(ctx, `
		with lowest as (select greatest($3::bigint, (select nonce + 1 from intents where chain_id = $1 and sender = $2 and
			state in ('confirmed', 'reverted') order by nonce desc limit 1)) as n),
		open as materialized (select nonce, created_at from intents where chain_id = $1 and sender = $2 and nonce >=
			(select n from lowest)
			and (state <> 'failed' or updated_at > now() - $5::interval)),
		gap as (select min(c.n) as n from (select n from lowest union all select nonce + 1 from open) c where not exists
			(select from open where nonce = c.n))
		select case when n >= $4 or exists (select from open where nonce > n and created_at > now() - $5::interval) then
			$4 else n end from gap`,
		int64(n.chainID), n.address[:], int64(from), int64(n.Next), quiet).Scan(&free)
	return free, store.Failed("free nonce", err)
}

// taken reports whether an intent that did not fail has the nonce.
func (n Nonces) taken(ctx context.Context, nonce uint64) (taken bool, err error) {
	err = n.tx.QueryRow(ctx,
		`select exists (select from intents where chain_id = $1 and sender = $2 and nonce = $3 and state <> 'failed')`,
		int64(n.chainID), n.address[:], int64(nonce)).Scan(&taken)
	return taken, err
}
