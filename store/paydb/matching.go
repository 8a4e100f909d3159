package paydb

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
)

// claimsPerFile is how many ratings of one client for one agent may claim payments by one URI; the
// earliest ones count.
const claimsPerFile = 100

// putClaims is the SQL that makes rows of payments from relation hit: the key of a rating with what
// its file claims. Verified rows stay.
const putClaims = `
	insert into payments as p (chain_id, token_id, client, idx, payer, payee, pay_chain, tx, state, reason, next_due)
	select chain_id, token_id, client, idx, payer, payee, pay_chain, tx,
		case when whole and followed then 'pending' when whole then 'unavailable' else 'refused' end,
		case when whole and followed then '' when whole then 'chain-not-followed' else 'malformed' end,
		case when whole then now() end
	from (
		select h.*, payer is not null and payee is not null and pay_chain is not null and tx is not null as whole,
			exists (select from chains c where c.chain_id = h.pay_chain and not c.imported and c.identity <> '') as followed
		from hit h) h
	on conflict (chain_id, token_id, client, idx) do update
	set payer = excluded.payer, payee = excluded.payee, pay_chain = excluded.pay_chain, tx = excluded.tx, state = excluded.state,
		reason = excluded.reason, attempts = 0, next_due = excluded.next_due, checked = null
	where p.state <> 'verified'
		and (p.payer, p.payee, p.pay_chain, p.tx) is distinct from (excluded.payer, excluded.payee, excluded.pay_chain,
			excluded.tx)`

// MatchPayments matches up to limit files that claim payments, and were not matched before, with the ratings that
// name them. The file of a rating through a gateway names who paid as its client. It returns how many files it took.
// ScanPayments matches files that name neither the agent nor the client.
func MatchPayments(ctx context.Context, db *store.DB, limit int) (n int, err error) {
	err = db.InTx(ctx, pgx.TxOptions{}, "match payments", func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx,
			`select uri_id from payment_files where unseen order by uri_id limit $1 for update skip locked`, limit)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if n = len(ids); err != nil || n == 0 {
			return err
		}
		_, err = tx.Exec(ctx, fmt.Sprintf(`
			with hit as (
				select r.chain_id, r.token_id, r.client, r.idx, f.payer, f.payee, f.pay_chain, f.tx
				from payment_files f
				join chains c on f.chain_id is null or c.chain_id = f.chain_id
				cross join lateral (select f.client as address union select f.payer union select unnest(c.gateways)) who
				cross join lateral (
					select * from feedback r
					where (r.chain_id, r.token_id, r.client) = (c.chain_id, f.token_id, who.address) and r.uri_id = f.uri_id
						and (r.payer is null or r.payer in (f.client, f.payer))
					order by r.idx limit %d) r
				where f.uri_id = any($1))`, claimsPerFile)+putClaims, ids)
		if err == nil {
			_, err = tx.Exec(ctx, "update payment_files set unseen = false where uri_id = any($1)", ids)
		}
		return err
	})
	return n, err
}

// scanAgain is the pause after which the ratings of a chain are scanned again, for files that were
// read later.
const scanAgain = 24 * time.Hour

// ScanPayments matches up to limit final ratings of a chain, from where it stopped last, with files
// that claim payments. It returns how many ratings there were; fewer than limit at the end.
func ScanPayments(ctx context.Context, db *store.DB, chainID uint64, limit int) (n int, err error) {
	err = db.InTx(ctx, pgx.TxOptions{}, "scan payments", func(tx pgx.Tx) error {
		from, final, err := scanFrom(ctx, tx, chainID)
		if err != nil || final == 0 {
			return err
		}
		to := scanPos{block: final, log: math.MaxInt32}
		if n, err = scanPage(ctx, tx, chainID, from, &to, limit); err != nil || n == 0 && from == to {
			return err
		}
		_, err = tx.Exec(ctx, `
			with hit as (
				select r.chain_id, r.token_id, r.client, r.idx, f.payer, f.payee, f.pay_chain, f.tx
				from events e
				join feedback r on (r.chain_id, r.token_id, r.block, r.log_index) = (e.chain_id, e.token_id, e.block, e.log_index)
				join payment_files f on f.uri_id = r.uri_id
				where e.chain_id = $1 and (e.block, e.log_index) > ($2, $3) and (e.block, e.log_index) <= ($4, $5) and e.kind =
					$6)`+putClaims,
			chainID, from.block, from.log, to.block, to.log, repute.KindNewFeedback)
		if err == nil {
			_, err = tx.Exec(ctx,
				"update cursors set block = $2, position = $3 where job = 'payments' and chain_id = $1",
				chainID, to.block, to.log)
		}
		return err
	})
	return n, err
}

// scanPos is the position of a rating's event.
type scanPos struct {
	block uint64
	log   int32
}

// scanFrom locks the chain's cursor and returns it with the final block. A scan that ended long ago
// begins again.
func scanFrom(ctx context.Context, tx pgx.Tx, chainID uint64) (from scanPos, final uint64, err error) {
	_, err = tx.Exec(ctx, `
		insert into cursors (job, chain_id, block, position, begun) select 'payments', chain_id, start_block, -1, now()
			from chains where chain_id = $1
		on conflict do nothing`, chainID)
	if err != nil {
		return from, 0, err
	}
	err = tx.QueryRow(ctx, `
		update cursors s set
			block = case when again then c.start_block else s.block end,
			position = case when again then -1 else s.position end,
			begun = case when again then now() else begun end
		from chains c
		cross join lateral (select s.block >= least(c.finalized_block, c.cursor_block) and s.begun < now() - $2::interval
			and exists (select from payment_files where token_id is null or client is null) as again
			from cursors s where s.job = 'payments' and s.chain_id = $1) a
		where s.job = 'payments' and s.chain_id = $1 and c.chain_id = $1
		returning s.block, s.position, least(c.finalized_block, c.cursor_block)`, chainID, scanAgain).Scan(&from.block, &from.log, &final)
	if errors.Is(err, pgx.ErrNoRows) {
		return from, 0, nil
	}
	return from, final, err
}

// scanPage counts the ratings of a page and, when there are more, sets to to its end.
func scanPage(ctx context.Context, tx pgx.Tx, chainID uint64, from scanPos, to *scanPos, limit int) (n int, err error) {
	rows, _ := tx.Query(ctx, `
		select block, log_index from events
		where chain_id = $1 and (block, log_index) > ($2, $3) and block <= $4 and kind = $5 and exists (select from
			payment_files)
		order by block, log_index limit $6`, chainID, from.block, from.log, to.block, repute.KindNewFeedback, limit)
	var last scanPos
	_, err = pgx.ForEachRow(rows, []any{&last.block, &last.log}, func() error { n++; return nil })
	if n == limit {
		*to = last
	}
	return n, err
}
