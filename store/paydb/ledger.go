package paydb

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// ReadLedger returns the amounts that were found to be paid for the ratings of an agent, in the
// order in which they were found. A score depends on all entries up to one of them.
func ReadLedger(ctx context.Context, db *store.DB, id repute.AgentID) ([]repute.RatingPayment, error) {
	what := fmt.Sprintf("payments for agent %s", id.Short())
	rows, _ := db.Readers().Query(ctx, `
		select client, idx, paid from payment_ledger where chain_id = $1 and token_id = $2 order by id`, id.ChainID, column.TokenNum(id.TokenID))
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e repute.RatingPayment, err error) {
		var client []byte
		err = row.Scan(&client, &e.Index, &e.Paid)
		e.Client = common.BytesToAddress(client)
		return e, err
	})
	return list, store.Failed(what, err)
}

// ledgerLock is the advisory lock that a transaction holds while it writes to the ledger.
const ledgerLock = 0x706c6564676572

// counts adds an entry for the amount that counts for a rating from now on, and a change. Such
// transactions run one after the other, so nobody sees an entry of an agent before an earlier one.
func counts(ctx context.Context, tx pgx.Tx, r RatingID, paid int64) error {
	if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock($1)", ledgerLock); err != nil {
		return err
	}
	_, err := tx.Exec(ctx,
		"insert into payment_ledger (chain_id, token_id, client, idx, paid) values ($1, $2, $3, $4, $5)",
		append(r.key(), paid)...)
	if err != nil {
		return err
	}
	return announcePayment(ctx, tx, r)
}
