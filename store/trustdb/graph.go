package trustdb

import (
	"context"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
)

// Subject is the input for the score of one agent, as of a block.
type Subject struct {
	Agent repute.AgentID
	// Block is the block of the view.
	Block                   repute.Block
	Owner, Wallet, Approved common.Address
	// Operators may act for every agent of the owner.
	Operators []common.Address
	// Holders are all who had the agent, the oldest first.
	Holders []Holder
	// Events tell who registered the agent, which may not be the first of Holders, and who acted for it, in the order of
	// the chain. Of several changes by one owner the first is given.
	Events []OwnerEvent
	// Updated is the newest block with an event of the agent or of an address that acts for it; set
	// by ReadSubjects at the latest block only.
	Updated repute.Block
	// Judged says that the agent has or had ratings or answers by then.
	Judged bool
	// Revoked is how many ratings were revoked until now.
	Revoked int64
	// Large says that the agent has more than ManyRatings, and neither payments nor answers that
	// count.
	Large bool
	Rows  []Row
}

// Holder is an owner of an agent from the end of a block on.
type Holder struct {
	From          uint64
	Time          time.Time      // of that block, zero when unknown
	Owner, Wallet common.Address // Wallet is zero when cleared
}

// Row is one live rating, or the latest answer to one validation request of an
// allow-listed contract.
type Row struct {
	Rater common.Address
	// Via is the feedback gateway that wrote the rating for Rater, zero for none. Where it is not known for whom, Rater is
	// the gateway too.
	Via common.Address
	// Index is the number of the rating, 0 for an answer.
	Index uint64
	// Validation says that this is the answer of a validation contract.
	Validation bool
	Amount     repute.Amount
	// Tag1 and Tag2 have at most 64 bytes; Other says that one was longer and was not read.
	Tag1, Tag2 string
	Other      bool
	// Content is the sha256 of the URI.
	Content  common.Hash
	Block    uint64
	LogIndex uint32
	// Time is zero when the block's time is unknown.
	Time time.Time
	// Payment is the verified payment that the rating is about; nil for none.
	Payment *repute.Payment
}

// writtenBy sets whose a rating is, by its client and its payer.
func (r *Row) writtenBy(client, payer []byte) {
	r.Rater, r.Via = common.BytesToAddress(client), common.Address{}
	if payer == nil {
		return
	}
	r.Via = r.Rater
	if len(payer) > 0 {
		r.Rater = common.BytesToAddress(payer)
	}
}

// Client returns the address that wrote the rating.
func (r *Row) Client() common.Address {
	if r.Via != (common.Address{}) {
		return r.Via
	}
	return r.Rater
}

// maxTrustTag is longer than any tag that a table of tags names.
const maxTrustTag = 64

// Edge is one live rating, or one answer of a validation contract on the allow-list, in the graph
// of who trusts whom.
type Edge struct {
	Row
	TokenID repute.TokenID
}

// Party holds the addresses that stand behind an agent.
type Party struct {
	TokenID       repute.TokenID
	Owner, Wallet common.Address // Wallet is zero when cleared
	// Since is the first block whose ratings concern Owner: not the one in which it
	// got the agent from another.
	Since uint64
	// Holders are all who had the agent, the oldest first; nil where Owner and Wallet had it from the start.
	Holders []Holder
}

// ReadGraph reads a chain as of a block, on one snapshot: every agent's addresses, then every
// rating and answer of these validation contracts, each in no particular order. It may take as long
// as ctx allows.
func ReadGraph(ctx context.Context, db *store.DB, chainID, block uint64, validations []common.Address,
	party func(Party), edge func(Edge)) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return db.InTx(ctx, options, "read trust graph", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local statement_timeout = 0"); err != nil {
			return err
		}
		if err := trustParties(ctx, tx, chainID, block, party); err != nil {
			return err
		}
		if err := trustEdges(ctx, tx, chainID, block, edge); err != nil {
			return err
		}
		return trustAnswerEdges(ctx, tx, chainID, block, validations, edge)
	})
}

// trustParties reads the addresses behind each agent.
func trustParties(ctx context.Context, tx pgx.Tx, chainID, block uint64, use func(Party)) error {
	rows, err := tx.Query(ctx, `
		with s as (
			select token_id, owner, wallet, from_block,
				lag(owner) over w as owner_was, lag(wallet) over w as wallet_was
			from agent_states where chain_id = $1 and from_block <= $2
			window w as (partition by token_id order by from_block)),
		held as (
			select token_id, owner, wallet, from_block, count(*) over (partition by token_id) as n
			from s where (owner, wallet) is distinct from (owner_was, wallet_was))
		select h.token_id, h.owner, h.wallet, h.from_block, h.n, b.time
		from held h
		left join blocks b on h.n > 1 and (b.chain_id, b.number) = ($1, h.from_block)
		order by h.token_id, h.from_block`, chainID, block)
	if err != nil {
		return err
	}
	var p Party
	var token store.TokenNum
	var owner, wallet []byte
	var from uint64
	var n, read int // of the agent's tenures
	var began *time.Time
	_, err = pgx.ForEachRow(rows, []any{&token, &owner, &wallet, &from, &n, &began}, func() error {
		if read == 0 {
			p = Party{TokenID: repute.TokenID(token), Since: from}
		}
		h := Holder{from, store.TimeOf(began), common.BytesToAddress(owner), common.BytesToAddress(wallet)}
		if read > 0 && h.Owner != p.Owner {
			p.Since = from + 1
		}
		if p.Owner, p.Wallet = h.Owner, h.Wallet; n > 1 {
			p.Holders = append(p.Holders, h)
		}
		if read++; read == n {
			use(p)
			read = 0
		}
		return nil
	})
	return err
}

// trustEdges reads the live ratings.
func trustEdges(ctx context.Context, tx pgx.Tx, chainID, block uint64, use func(Edge)) error {
	rows, err := tx.Query(ctx, `
		select f.token_id, f.client, f.payer, f.value, f.decimals, `+tagHead("t.value")+`, f.block, f.log_index, b.time
		from feedback f
		join tags t on t.id = f.tag1
		left join blocks b on (b.chain_id, b.number) = (f.chain_id, f.block)
		where f.chain_id = $1 and f.block <= $2 and (f.revoked_block is null or f.revoked_block > $2)`, chainID, block)
	if err != nil {
		return err
	}
	var e Edge
	var client, payer, tag []byte
	var value store.BigNum
	var at *time.Time
	_, err = pgx.ForEachRow(rows, []any{(*store.TokenNum)(&e.TokenID), &client, &payer, &value, &e.Amount.Decimals, &tag,
		&e.Block, &e.LogIndex, &at}, func() error {
		e.writtenBy(client, payer)
		e.Amount.Value, e.Time = value.Int, store.TimeOf(at)
		e.Tag1, e.Other = string(tag), tag == nil
		use(e)
		return nil
	})
	return err
}

// trustAnswerEdges reads the latest answers of the validation contracts.
func trustAnswerEdges(ctx context.Context, tx pgx.Tx, chainID, block uint64, validations []common.Address,
	use func(Edge)) error {
	rows, err := tx.Query(ctx, `
		select distinct on (x.contract, x.request_hash) q.token_id, q.validator, x.response, `+tagHead("t.value")+`, x.block, x.log_index, b.time
		from validation_responses x
		join validation_requests q using (chain_id, contract, request_hash)
		join tags t on t.id = x.tag
		left join blocks b on (b.chain_id, b.number) = (x.chain_id, x.block)
		where x.chain_id = $1 and x.block <= $2 and x.contract = any($3)
		order by x.contract, x.request_hash, x.block desc, x.log_index desc`, chainID, block, store.AddressColumn(validations))
	if err != nil {
		return err
	}
	var e Edge
	var validator, tag []byte
	var response int64
	var at *time.Time
	_, err = pgx.ForEachRow(rows, []any{(*store.TokenNum)(&e.TokenID), &validator, &response, &tag, &e.Block,
		&e.LogIndex, &at}, func() error {
		e.Row = Row{Rater: common.BytesToAddress(validator), Validation: true,
			Amount: repute.Amount{Value: big.NewInt(response)},
			Tag1:   string(tag), Other: tag == nil, Block: e.Block, LogIndex: e.LogIndex, Time: store.TimeOf(at)}
		use(e)
		return nil
	})
	return err
}
