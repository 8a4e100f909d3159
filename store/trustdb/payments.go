package trustdb

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// PaymentColumns are the columns of a rating's payment, of relation pm that JoinPayment joins.
const PaymentColumns = `pm.state, pm.reason, pm.pay_chain, pm.tx, pm.payer, pm.payee, pm.token, pm.symbol, pm.decimals, pm.amount, pm.paid,
	pm.pay_block, pm.pay_log, pm.pay_time`

// JoinPayment returns the join of a rating, whose alias is f, with its payment.
func JoinPayment(f string) string {
	return "\n\tleft join payments pm on (pm.chain_id, pm.token_id, pm.client, pm.idx) = (" + f + ".chain_id, " + f +
		".token_id, " + f + ".client, " + f + ".idx)"
}

// PaymentRow receives PaymentColumns.
type PaymentRow struct {
	state, reason, symbol   *string
	chain, paid, block, log *int64
	tx, payer, payee, token []byte
	decimals                *int16
	amount                  *column.BigNum
	at                      *time.Time
}

// Into returns where to scan the columns of a payment.
func (p *PaymentRow) Into() []any {
	return []any{&p.state, &p.reason, &p.chain, &p.tx, &p.payer, &p.payee, &p.token, &p.symbol, &p.decimals, &p.amount,
		&p.paid, &p.block, &p.log, &p.at}
}

// Payment returns the payment; nil when the rating's file claims none.
func (p *PaymentRow) Payment() *repute.Payment {
	if p.state == nil {
		return nil
	}
	out := &repute.Payment{State: repute.PaymentState(*p.state), Reason: repute.PaymentReason(deref(p.reason)),
		ChainID: uint64(deref(p.chain)),
		Tx:      common.BytesToHash(p.tx), From: common.BytesToAddress(p.payer), To: common.BytesToAddress(p.payee)}
	if out.State != repute.PaymentVerified || p.amount == nil {
		return out
	}
	decimals := uint8(deref(p.decimals))
	out.Coin = repute.Stablecoin{ChainID: out.ChainID, Address: common.BytesToAddress(p.token), Symbol: deref(p.symbol),
		Decimals: decimals}
	out.Amount, out.Paid = repute.Amount{Value: p.amount.Int, Decimals: decimals}, repute.Micros(deref(p.paid))
	out.Block, out.LogIndex, out.Time = uint64(deref(p.block)), uint64(deref(p.log)), column.TimeOf(p.at)
	return out
}

// deref returns the zero value for nil.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// ratingOf identifies a rating of a chain.
type ratingOf struct {
	token  repute.TokenID
	client common.Address
	index  uint64
}

// payments reads the verified payments for ratings of agents into paid.
func (q evidence) payments(b *pgx.Batch, tokens []repute.TokenID, paid map[ratingOf]*repute.Payment) {
	query := b.Queue(`
		select token_id, client, idx, `+PaymentColumns+` from payments pm
		where chain_id = $1 and token_id = any($2::numeric[]) and block <= $3 and state = 'verified'`, q.chain.ID,
		column.TokenArray(tokens), q.block)
	var r ratingOf
	var client []byte
	query.Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var p PaymentRow
			if err := rows.Scan(append([]any{(*column.TokenNum)(&r.token), &client, &r.index},
				p.Into()...)...); err != nil {
				return fmt.Errorf("payments: %w", err)
			}
			r.client = common.BytesToAddress(client)
			paid[r] = p.Payment()
		}
		return rows.Err()
	})
}

// PaidRating is a rating whose payment is verified.
type PaidRating struct {
	TokenID repute.TokenID
	Client  common.Address
	Block   uint64 // of the rating
	Payment *repute.Payment
}

// PaidRatings returns the ratings of a chain as of a block whose payments are verified and were made since a time, of
// clients that paid at least so many addresses. Revoked ratings are among them. It may take as long as ctx
// allows.
func PaidRatings(ctx context.Context, db *store.DB, chainID uint64, at repute.Block, since time.Time,
	payees int) (list []PaidRating, err error) {
	err = readLong(ctx, db, fmt.Sprintf("paid ratings of chain %d", chainID), func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `
			with paid as (
				select * from payments p
				where chain_id = $1 and state = 'verified' and block <= $2 and pay_time between $3 and $4 and exists (
					select from feedback f where (f.chain_id, f.token_id, f.client, f.idx) = (p.chain_id, p.token_id, p.client, p.idx)))
			select token_id, client, block, `+PaymentColumns+` from paid pm
			where client in (select client from paid group by client having count(distinct payee) >= $5)`,
			chainID, at.Number, since, at.Time, payees)
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r PaidRating, err error) {
			var client []byte
			var p PaymentRow
			err = row.Scan(append([]any{(*column.TokenNum)(&r.TokenID), &client, &r.Block}, p.Into()...)...)
			r.Client, r.Payment = common.BytesToAddress(client), p.Payment()
			return r, err
		})
		return err
	})
	return list, err
}
