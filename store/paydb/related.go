package paydb

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
	"repute/store/docjson"
)

// Related are the addresses between which a claimed payment may have gone.
type Related struct {
	Client, Payees, Operators []common.Address // as of repute.PaymentCase
	Around                    []repute.TokenTransfer
}

const (
	// maxIdentity is the most addresses that count as one identity.
	maxIdentity = 100
	// paymentWindow is the time before and after a payment in which another one may be its return.
	paymentWindow = 30 * 24 * time.Hour
	// maxAround is how many payments in the window are read, the nearest ones.
	maxAround = 1000
)

// ReadRelated reads who is related to client and agent as of the block of a payment. For a payment
// on another chain than the agent's, the block's time decides.
func ReadRelated(ctx context.Context, db *store.DB, c Claim, paid repute.Block) (p Related, err error) {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = db.InTx(ctx, options, "read addresses related to a payment", func(tx pgx.Tx) error {
		if p.Client, err = clientIdentity(ctx, tx, c); err != nil {
			return err
		}
		if err := p.agent(ctx, tx, c, paid); err != nil {
			return err
		}
		return p.around(ctx, tx, c, paid)
	})
	return p, err
}

// clientIdentity returns the rater with the addresses that signed to be one identity with it, the
// wallets and owners of its agents, and addresses that links name.
func clientIdentity(ctx context.Context, tx pgx.Tx, c Claim) ([]common.Address, error) {
	rows, _ := tx.Query(ctx, `
		select $2::bytea union (
			select case when owner = $2 then wallet else owner end from (
				(select owner, wallet from agents where chain_id = $1 and owner = $2 and wallet = $3 limit 1)
				union all (select owner, wallet from agents where chain_id = $1 and owner = $3 and wallet = $2 limit 1)
				union all (select owner, wallet from agents where chain_id = $1 and owner = $2 and wallet <> '' order by
					token_id limit $4)
				union all (select owner, wallet from agents where chain_id = $1 and wallet = $2 order by token_id limit $4)) a)
		union (select case when a = $2 then b else a end from trust_links where chain_id = $1 and (a = $2 or b = $2) limit
			$4)`,
		c.Rating.Agent.ChainID, c.Rater.Bytes(), c.From.Bytes(), maxIdentity)
	return collectAddresses(rows)
}

// collectAddresses reads rows of one address.
func collectAddresses(rows pgx.Rows) ([]common.Address, error) {
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (common.Address, error) {
		var raw []byte
		err := row.Scan(&raw)
		return common.BytesToAddress(raw), err
	})
	return slices.DeleteFunc(list, func(a common.Address) bool { return a == common.Address{} }), err
}

// agent reads who acted for the agent when it was paid, and through which addresses.
func (p *Related) agent(ctx context.Context, tx pgx.Tx, c Claim, paid repute.Block) error {
	rating := c.Rating.Agent
	var owner, wallet, approved []byte
	var uri int64
	err := tx.QueryRow(ctx, `
		select owner, wallet, approved, uri_id from agent_states s
		left join blocks b on (b.chain_id, b.number) = (s.chain_id, s.from_block)
		where s.chain_id = $1 and token_id = $2 and case when $3 then from_block <= $4 else b.time <= $5 end
		order by from_block desc limit 1`,
		rating.ChainID, column.TokenNum(rating.TokenID), rating.ChainID == c.ChainID, paid.Number,
		paid.Time).Scan(&owner,
		&wallet, &approved, &uri)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // paid before there was an agent
	}
	if err != nil {
		return err
	}
	rows, _ := tx.Query(ctx, `
		select unnest($3::bytea[]) union
		(select operator from operators where chain_id = $1 and owner = $4 and to_block is null limit $5) union
		select unnest(array[owner, wallet, approved]) from agents where chain_id = $1 and token_id = $2`,
		rating.ChainID, column.TokenNum(rating.TokenID), [][]byte{owner, wallet, approved}, owner, maxIdentity)
	if p.Operators, err = collectAddresses(rows); err != nil {
		return err
	}
	if len(wallet) > 0 {
		p.Payees = append(p.Payees, common.BytesToAddress(wallet))
	}
	declared, err := declaredPayees(ctx, tx, uri, c.ChainID, paid.Time)
	p.Payees = append(p.Payees, declared...)
	return err
}

// declaredPayees returns the payees that the registration file of a URI named at a time: the bytes
// of the URI where they cannot change, otherwise the newest ones that were read before. A file that
// was first read later proves nothing about that time.
func declaredPayees(ctx context.Context, tx pgx.Tx, uri int64, chainID uint64, at time.Time) ([]common.Address, error) {
	var raw []byte
	err := tx.QueryRow(ctx, `
		with bytes as (
			select case when u.source in ('data', 'inline', 'ipfs') then u.sha256 else (
				select f.sha256 from fetches f where f.uri_id = u.id and f.sha256 is not null and f.fetched_at <= $2
				order by f.fetched_at desc limit 1) end as sha256
			from uris u where u.id = $1)
		select p.content from bytes join parses p using (sha256) where p.kind = 'registration' order by p.parser_version
			desc limit 1`, uri, at).Scan(&raw)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := docjson.DecodeRegistration(raw)
	if err != nil || r == nil {
		return nil, err
	}
	list := r.Payees(chainID)
	return list[:min(len(list), maxIdentity)], nil
}

// around reads verified payments that may return the money.
func (p *Related) around(ctx context.Context, tx pgx.Tx, c Claim, paid repute.Block) (err error) {
	rows, _ := tx.Query(ctx, `
		select tx, pay_block, pay_log, token, payer, payee, amount from payments
		where pay_chain = $1 and state = 'verified' and (payer = any($2) or payee = any($3))
			and pay_time between $4::timestamptz - $5::interval and $4::timestamptz + $5::interval
		order by abs(extract(epoch from pay_time - $4::timestamptz)), tx, pay_log limit $6`,
		c.ChainID, column.AddressColumn(append(slices.Clone(p.Operators), c.To)), column.AddressColumn(p.Client),
		paid.Time,
		paymentWindow, maxAround)
	p.Around, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (t repute.TokenTransfer, err error) {
		var hash, token, from, to []byte
		var amount column.BigNum
		err = row.Scan(&hash, &t.Block, &t.LogIndex, &token, &from, &to, &amount)
		t.Tx, t.Token, t.From, t.To = common.BytesToHash(hash), common.BytesToAddress(token), common.BytesToAddress(from),
			common.BytesToAddress(to)
		t.Amount = amount.Int
		return t, err
	})
	return err
}
