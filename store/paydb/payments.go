package paydb

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/changedata"
	"repute/store/column"
	"repute/store/trustmark"
)

// RatingID identifies one rating.
type RatingID struct {
	Agent  repute.AgentID
	Client common.Address
	Index  uint64
}

// key returns the parameters $1 to $4 of statements about a rating.
func (r RatingID) key() []any {
	return []any{r.Agent.ChainID, column.TokenNum(r.Agent.TokenID), r.Client.Bytes(), r.Index}
}

// Claim is a payment that a rating's file claims and that is to be looked up.
type Claim struct {
	Rating RatingID
	// Rater is whose the rating is: its client, or who paid where the client is a feedback gateway.
	Rater common.Address
	// Given is when, and Block and LogIndex where the rating was given; Given is zero when
	// the block's time is unknown.
	Given           time.Time
	Block, LogIndex uint64
	repute.Payment      // From, To, ChainID, Tx and State are set
	Attempts        int // failed lookups in a row
}

// DuePayments returns up to limit claims of final ratings that are to be looked up on a chain now.
// Half of them are one claim per client, round-robin by address beginning after after, so that no
// client waits for all claims of another. next is the client to continue after. The other half are
// those that have been due longest. Claims of ratings that no longer exist are deleted.
func DuePayments(ctx context.Context, db *store.DB, payChain uint64, after common.Address, limit int) (list []Claim,
	next common.Address, err error) {
	_, err = db.Pool().Exec(ctx, `
		delete from payments p using (
			select chain_id, token_id, client, idx from payments where pay_chain = $1 and next_due <= now() order by next_due
				limit 1000) old
		where (p.chain_id, p.token_id, p.client, p.idx) = (old.chain_id, old.token_id, old.client, old.idx) and not exists (
			select from feedback r where (r.chain_id, r.token_id, r.client, r.idx) = (old.chain_id, old.token_id, old.client,
				old.idx) offset 0)`, payChain)
	if err != nil {
		return nil, after, store.Failed("forget payments", err)
	}
	places := (limit + 1) / 2
	rows, _ := db.Pool().Query(ctx, duePayments, payChain, limit, after.Bytes(), places, maxClients)
	next = after
	var asked []byte // the last one, where there are more
	list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Claim, error) {
		c, taken, err := scanClaim(row, &asked)
		if taken {
			next, places = c.Rating.Client, places-1
		}
		return c, err
	})
	if places > 0 && asked != nil {
		next = common.BytesToAddress(asked)
	}
	return list, next, store.Failed("list payments", err)
}

// maxClients is how many clients one call asks for a due claim.
const maxClients = 2000

// rater is the SQL of whose a rating is, of a row of feedback. A rating of a gateway without a payer is nobody's and
// does not count, whatever its payment.
const rater = `coalesce(nullif(f.payer, ''), f.client)`

// finalClaim is the SQL join that finds whether the rating of claim p is final. The offset makes
// Postgres look up each rating by key, whatever the statistics say.
const finalClaim = `
	join chains c on c.chain_id = p.chain_id
	cross join lateral (select block, log_index, ` + rater + ` as rater from feedback f
		where (f.chain_id, f.token_id, f.client, f.idx) = (p.chain_id, p.token_id, p.client, p.idx) and f.block <=
			c.finalized_block offset 0) r`

// duePayments is the statement that walks from client to client along an index and takes the claim
// of each that has been due longest.
const duePayments = `
	with recursive who(client, lap, n) as (
		select $3::bytea, 0, 0
		union all
		select next.client, who.lap + next.lap, who.n + 1 from who cross join lateral (
			(select client, 0 as lap from payments where pay_chain = $1 and next_due is not null and client > who.client
				order by client limit 1)
			union all
			(select client, 1 from payments where pay_chain = $1 and next_due is not null order by client limit 1)
			limit 1) next
		where who.n < $5 and (who.lap + next.lap, next.client) <= (1, $3::bytea)),
	due as (
		(select one.*, who.n from who cross join lateral (
			select p.chain_id, p.token_id, p.client, p.idx, p.next_due from payments p ` + finalClaim + `
			where p.pay_chain = $1 and p.client = who.client and p.next_due <= now() order by p.next_due limit 1) one
		where who.n > 0 limit $4)
		union all
		(select p.chain_id, p.token_id, p.client, p.idx, p.next_due, null from payments p ` + finalClaim + `
		where p.pay_chain = $1 and p.next_due <= now() order by p.next_due limit $2))
	select p.chain_id, c.identity, p.token_id, p.client, r.rater, p.idx, b.time, r.block, r.log_index, p.payer, p.payee,
		p.pay_chain, p.tx, p.state, p.attempts, d.n is not null,
		(select client from who where n = $5)
	from (select chain_id, token_id, client, idx, min(n) as n from due group by 1, 2, 3, 4 order by min(n) nulls last,
		min(next_due) limit $2) d
	join payments p using (chain_id, token_id, client, idx) ` + finalClaim + `
	left join blocks b on (b.chain_id, b.number) = (p.chain_id, r.block)
	order by d.n nulls last, p.next_due`

// scanClaim reads a claim, whether it is the one of its client, and the client that was asked last.
func scanClaim(row pgx.CollectableRow, asked *[]byte) (c Claim, taken bool, err error) {
	var identity, client, rater, payer, payee, tx []byte
	var given *time.Time
	err = row.Scan(&c.Rating.Agent.ChainID, &identity, (*column.TokenNum)(&c.Rating.Agent.TokenID), &client, &rater,
		&c.Rating.Index, &given, &c.Block, &c.LogIndex,
		&payer, &payee, &c.ChainID, &tx, &c.State, &c.Attempts, &taken, asked)
	c.Rating.Agent.Registry, c.Rating.Client, c.Given = common.BytesToAddress(identity), common.BytesToAddress(client),
		column.TimeOf(given)
	c.Rater = common.BytesToAddress(rater)
	c.From, c.To, c.Tx = common.BytesToAddress(payer), common.BytesToAddress(payee), common.BytesToHash(tx)
	return c, taken, err
}

// Outcome is the result of looking a claim up.
type Outcome struct {
	State  repute.PaymentState // "": as it was, only Next is new
	Reason repute.PaymentReason
	Next   time.Duration // until it is looked at again, 0 for never
	// Of a verified one.
	Transfer repute.TokenTransfer
	Coin     repute.Stablecoin
	Paid     repute.Micros
	Time     time.Time // of the transfer's block
}

// SettlePayment stores the outcome that judge returns for a claim. judge can ask which logs of the
// transaction count for earlier ratings, and may take one that counts for a later rating, which is
// looked up again. A claim that changed meanwhile, because its file or its rater changed, stays as it is. Agents
// whose ratings count differently get a change.
func SettlePayment(ctx context.Context, db *store.DB, c Claim,
	judge func(taken func(logIndex uint64) bool) Outcome) error {
	return db.InTx(ctx, pgx.TxOptions{}, "settle payment", func(tx pgx.Tx) error {
		// Claims of one transaction are settled one after the other.
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock($1)", paymentLock(c.Payment)); err != nil {
			return err
		}
		before, err := paidTo(ctx, tx, c.Rating)
		if err != nil {
			return err
		}
		earlier, err := takenLogs(ctx, tx, c)
		if err != nil {
			return err
		}
		v := judge(func(log uint64) bool { return slices.Contains(earlier, log) })
		if v.State == repute.PaymentVerified {
			if err := displace(ctx, tx, c, v.Transfer.LogIndex); err != nil {
				return err
			}
		}
		if v.State == "" {
			return postpone(ctx, tx, c, v.Next)
		}
		if err := saveOutcome(ctx, tx, c, v); err != nil {
			return err
		}
		after, err := paidTo(ctx, tx, c.Rating)
		if err != nil || before == after {
			return err
		}
		return counts(ctx, tx, c.Rating, after)
	})
}

// paymentLock returns the key of the advisory lock of a transaction on a chain.
func paymentLock(p repute.Payment) int64 {
	return int64(binary.BigEndian.Uint64(p.Tx[:8]) ^ p.ChainID)
}

// paidTo returns the amount that counts for a rating.
func paidTo(ctx context.Context, tx pgx.Tx, r RatingID) (paid int64, err error) {
	err = tx.QueryRow(ctx, `
		select coalesce(sum(paid) filter (where state = 'verified'), 0)::bigint from payments
		where (chain_id, token_id, client, idx) = ($1, $2, $3, $4)`, r.key()...).Scan(&paid)
	return paid, err
}

// orderOfClaims is the SQL of the position of row p of payments among the claims of one transfer,
// of which the first counts: by the time of the rating, then by its place and key.
const orderOfClaims = `(p.given, p.chain_id, p.block, p.log_index, p.token_id, p.client, p.idx)`

// thisClaim is the same position of the claim that is being settled, from orderArgs.
const thisClaim = `($5::timestamptz, $1::bigint, $6::bigint, $7::integer, $2::numeric, $3::bytea, $4::bigint)`

// orderArgs returns the parameters of thisClaim and, as $8 and $9, the claimed transaction.
func (c Claim) orderArgs() []any {
	return append(c.Rating.key(), c.Given, c.Block, c.LogIndex, c.ChainID, c.Tx.Bytes())
}

// takenLogs returns the logs of the claimed transaction that count for earlier ratings.
func takenLogs(ctx context.Context, tx pgx.Tx, c Claim) ([]uint64, error) {
	rows, _ := tx.Query(ctx, `
		select pay_log from payments p
		where pay_chain = $8 and tx = $9 and state = 'verified' and `+orderOfClaims+` < `+thisClaim, c.orderArgs()...)
	return pgx.CollectRows(rows, pgx.RowTo[uint64])
}

// ReopenPayments schedules every claim whose outcome depends on a block's time: claims of ratings
// in the block, of transfers in it, and of the other ratings that claim the same transfers.
func ReopenPayments(ctx context.Context, tx pgx.Tx, chainID, block uint64) error {
	return reopen(ctx, tx, `
		with timed as (
			select pay_chain, tx from payments p where chain_id = $1 and block = $2
				and token_id = any(array(select token_id from events where chain_id = $1 and block = $2 and token_id is not null))
			union select pay_chain, tx from payments where pay_chain = $1 and pay_block = $2 and state = 'verified'
		), was as (
			select p.chain_id, p.token_id, p.client, p.idx, p.state from payments p join timed t on (p.pay_chain, p.tx) =
				(t.pay_chain, t.tx)
			where p.state in ('verified', 'refused') order by p.chain_id, p.token_id, p.client, p.idx for update of p
		)`+reopenWas, chainID, block)
}

// ReopenRatings schedules the claims of all ratings that gateways wrote on a chain in some blocks, nil for all: whose
// these ratings are changed, and with it who may have paid. Their files are matched again. The ratings MUST have
// their payers.
func ReopenRatings(ctx context.Context, tx pgx.Tx, chainID uint64, gateways [][]byte, blocks []uint64) error {
	_, err := tx.Exec(ctx, `
		update payment_files set unseen = true where uri_id in (select uri_id from feedback
			where chain_id = $1 and client = any($2) and ($3::bigint[] is null or block = any($3)))`, chainID, gateways, blocks)
	if err != nil {
		return err
	}
	return reopen(ctx, tx, `
		with was as (
			select p.chain_id, p.token_id, p.client, p.idx, p.state from payments p
			join feedback f using (chain_id, token_id, client, idx)
			where f.chain_id = $1 and f.client = any($2) and ($3::bigint[] is null or f.block = any($3))
				and p.state in ('verified', 'refused') and p.reason <> 'malformed'
			order by p.chain_id, p.token_id, p.client, p.idx for update of p
		)`+reopenWas, chainID, gateways, blocks)
}

// reopenWas is the end of the statements that schedule the claims of relation was, for reopen.
const reopenWas = `
	update payments p set state = 'pending', reason = '', next_due = now(), attempts = 0 from was w, chains h
	where (p.chain_id, p.token_id, p.client, p.idx) = (w.chain_id, w.token_id, w.client, w.idx)
		and h.chain_id = p.chain_id
	returning p.chain_id, h.identity, p.token_id, p.client, p.idx, w.state = 'verified'`

// reopen runs a statement that returns ratings whose claims it scheduled, and whether each was verified before. For
// these nothing counts from now on.
func reopen(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	rows, _ := tx.Query(ctx, sql, args...)
	var counted []RatingID
	_, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r RatingID, err error) {
		var identity, client []byte
		var verified bool
		err = row.Scan(&r.Agent.ChainID, &identity, (*column.TokenNum)(&r.Agent.TokenID), &client, &r.Index, &verified)
		r.Agent.Registry, r.Client = common.BytesToAddress(identity), common.BytesToAddress(client)
		if verified {
			counted = append(counted, r)
		}
		return r, err
	})
	for _, r := range counted {
		if err == nil {
			err = counts(ctx, tx, r, 0)
		}
	}
	return err
}

// displace takes a log from a later rating, which is looked up again.
func displace(ctx context.Context, tx pgx.Tx, c Claim, log uint64) error {
	return reopen(ctx, tx, `
		update payments p set state = 'pending', reason = '', next_due = now(), attempts = 0
		from chains h
		where p.pay_chain = $8 and p.tx = $9 and p.pay_log = $10 and p.state = 'verified' and h.chain_id = p.chain_id and `+orderOfClaims+` > `+thisClaim+`
		returning p.chain_id, h.identity, p.token_id, p.client, p.idx, true`, append(c.orderArgs(), log)...)
}

// postpone schedules the next lookup of a claim.
func postpone(ctx context.Context, tx pgx.Tx, c Claim, next time.Duration) error {
	_, err := tx.Exec(ctx, `
		update payments set attempts = attempts + 1, next_due = now() + $5::interval
		where (chain_id, token_id, client, idx) = ($1, $2, $3, $4)`, append(c.Rating.key(), next)...)
	return err
}

// saveOutcome stores the outcome of a claim.
func saveOutcome(ctx context.Context, tx pgx.Tx, c Claim, v Outcome) error {
	var amount *column.BigNum
	if v.Transfer.Amount != nil {
		amount = &column.BigNum{Int: v.Transfer.Amount}
	}
	var next *time.Duration
	if v.Next > 0 {
		next = &v.Next
	}
	verified := v.State == repute.PaymentVerified
	_, err := tx.Exec(ctx, `
		update payments p set state = $10, reason = $11, next_due = now() + $12::interval, checked = now(),
			attempts = case when $10 in ('pending', 'unavailable') then attempts + 1 else 0 end,
			given = $5, block = $6, log_index = $7,
			pay_block = case when $13 then $14::bigint end, pay_log = case when $13 then $15::bigint end, pay_time = case when $13 then $16::timestamptz end,
			token = case when $13 then $17::bytea end, symbol = case when $13 then $18::text end, decimals = case when $13 then $19::smallint end,
			amount = case when $13 then $20::numeric end, paid = case when $13 then $21::bigint end
		where (chain_id, token_id, client, idx) = ($1, $2, $3, $4) and pay_chain = $8 and tx = $9 and payer = $22 and
			payee = $23
			and not exists (select from feedback f where (f.chain_id, f.token_id, f.client, f.idx) = ($1, $2, $3, $4)
				and `+rater+` <> $24)`,
		append(c.orderArgs(), v.State, v.Reason, next, verified, v.Transfer.Block, v.Transfer.LogIndex,
			column.MaybeTime(v.Time), v.Coin.Address.Bytes(),
			v.Coin.Symbol, int16(v.Coin.Decimals), amount, int64(v.Paid), c.From.Bytes(), c.To.Bytes(),
			c.Rater.Bytes())...)
	return err
}

// paymentData is the data of a change of kind changedata.KindPayment.
type paymentData struct {
	Client  changedata.Eip55 `json:"client"`
	Index   uint64           `json:"index"`
	Payment paymentJSON      `json:"payment"`
}

// paymentJSON is the payment in that data.
type paymentJSON struct {
	State   repute.PaymentState  `json:"state"`
	Reason  repute.PaymentReason `json:"reason,omitempty"`
	ChainID uint64               `json:"chainId"`
	Tx      common.Hash          `json:"txHash"`
	Paid    string               `json:"usd"`
}

// announcePayment adds a change for a rating with its payment as it is now.
func announcePayment(ctx context.Context, tx pgx.Tx, r RatingID) error {
	var said paymentJSON
	var hash []byte
	var paid int64
	err := tx.QueryRow(ctx, `
		select state, reason, coalesce(pay_chain, 0), tx, case when state = 'verified' then paid else 0 end from payments
		where (chain_id, token_id, client, idx) = ($1, $2, $3, $4)`, r.key()...).Scan(&said.State, &said.Reason, &said.ChainID, &hash, &paid)
	if err != nil {
		return err
	}
	said.Tx, said.Paid = common.BytesToHash(hash), repute.Micros(paid).String()
	_, err = tx.Exec(ctx,
		"insert into changes (chain_id, kind, block, log_index, token_id, data) values ($1, $2, 0, 0, $3, $4)",
		r.Agent.ChainID, changedata.KindPayment, column.TokenNum(r.Agent.TokenID),
		changedata.Marshal(paymentData{changedata.Eip55(r.Client), r.Index, said}))
	if err != nil {
		return err
	}
	return trustmark.Add(ctx, tx, r.Agent.ChainID, trustmark.Marks{Tokens: []repute.TokenID{r.Agent.TokenID}})
}

// FinalBlock returns the newest stored block of a chain that is final, 0 when there is none.
func FinalBlock(ctx context.Context, db *store.DB, chainID uint64) (final uint64, err error) {
	err = db.Pool().QueryRow(ctx,
		"select coalesce(max(least(finalized_block, cursor_block)), 0) from chains where chain_id = $1",
		chainID).Scan(&final)
	return final, store.Failed("read finality", err)
}
