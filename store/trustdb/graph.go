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
	// Registrar is the owner that the registration names, zero where it is unknown: others may
	// have the agent from the same block on. Acts are the first of each owner.
	Registrar common.Address
	Acts      []Action
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
				lag(owner) over w is distinct from owner as moved,
				row_number() over (partition by token_id order by from_block desc) as back
			from agent_states where chain_id = $1 and from_block <= $2
			window w as (partition by token_id order by from_block)),
		held as (select token_id, max(from_block) as block, count(*) > 1 as given from s where moved group by token_id)
		select s.token_id, s.owner, s.wallet, h.block + case when h.given then 1 else 0 end
		from s join held h using (token_id)
		where s.back = 1`, chainID, block)
	if err != nil {
		return err
	}
	var p Party
	var owner, wallet []byte
	_, err = pgx.ForEachRow(rows, []any{(*store.TokenNum)(&p.TokenID), &owner, &wallet, &p.Since}, func() error {
		p.Owner, p.Wallet = common.BytesToAddress(owner), common.BytesToAddress(wallet)
		use(p)
		return nil
	})
	return err
}

// trustEdges reads the live ratings.
func trustEdges(ctx context.Context, tx pgx.Tx, chainID, block uint64, use func(Edge)) error {
	rows, err := tx.Query(ctx, `
		select f.token_id, f.client, f.value, f.decimals, `+tagHead("t.value")+`, f.block, f.log_index, b.time
		from feedback f
		join tags t on t.id = f.tag1
		left join blocks b on (b.chain_id, b.number) = (f.chain_id, f.block)
		where f.chain_id = $1 and f.block <= $2 and (f.revoked_block is null or f.revoked_block > $2)`, chainID, block)
	if err != nil {
		return err
	}
	var e Edge
	var client, tag []byte
	var value store.BigNum
	var at *time.Time
	_, err = pgx.ForEachRow(rows, []any{(*store.TokenNum)(&e.TokenID), &client, &value, &e.Amount.Decimals, &tag,
		&e.Block, &e.LogIndex, &at}, func() error {
		e.Rater, e.Amount.Value, e.Time = common.BytesToAddress(client), value.Int, store.TimeOf(at)
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
