package trustdb

import (
	"context"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
)

// Action is the first change to an agent that only its owner, or an address that the owner
// approved, can have made: of its URI or its metadata. An approval is none: a listing on a market
// needs one, and says nothing of whether the owner uses the agent.
type Action struct {
	Block uint64
	By    common.Address // the owner then
}

// actions reads who registered each agent, and when each of its owners changed it first. The owner
// at that time follows from the order of the events, because an agent may change owners more than
// once in a block. Changes that were undone within their block are left out.
func (q evidence) actions(ctx context.Context, tokens []repute.TokenID, at map[repute.TokenID]*Subject) error {
	wallet := store.Keccak(chaindb.WalletKey)
	rows, err := q.tx.Query(ctx, `
		select u.t, e.block, e.kind, substring(e.topics from 45 for 20), substring(e.topics from 77 for 20)
		from unnest($2::numeric[]) u(t)
		cross join lateral (
			select from_block from agent_states where chain_id = $1 and token_id = u.t and from_block <= $3
			union select from_block from metadata where chain_id = $1 and token_id = u.t and from_block <= $3) c
		cross join lateral (
			select * from events e where e.chain_id = $1 and e.token_id = u.t and e.block = c.from_block and e.kind = any($4)
			and not (e.kind = $5 and substring(e.topics from 65 for 32) = $6)
			and not exists (select from pending p where (p.chain_id, p.block, p.log_index) = (e.chain_id, e.block, e.log_index))
			offset 0) e
		order by u.t, e.block, e.log_index`, q.chain.ID, store.TokenArray(tokens), q.block,
		[]int16{int16(repute.KindTransfer), int16(repute.KindRegistered), int16(repute.KindURIUpdated),
			int16(repute.KindMetadataSet)},
		int16(repute.KindMetadataSet), wallet[:])
	if err != nil {
		return err
	}
	var token store.TokenNum
	var block uint64
	var kind int16
	var first, second []byte // the addresses among the topics
	var r actionReader
	_, err = pgx.ForEachRow(rows, []any{&token, &block, &kind, &first, &second}, func() error {
		if s := at[repute.TokenID(token)]; s != nil {
			r.read(s, repute.EventKind(kind), block, common.BytesToAddress(first), common.BytesToAddress(second))
		}
		return nil
	})
	return err
}

// actionReader reads the events of one agent after the other.
type actionReader struct {
	of    *Subject
	owner common.Address
}

// read applies one event of an agent.
func (r *actionReader) read(s *Subject, kind repute.EventKind, block uint64, first, second common.Address) {
	if r.of != s {
		r.of, r.owner = s, common.Address{}
	}
	zero := common.Address{}
	switch {
	case kind == repute.KindTransfer:
		r.owner = second
	case kind == repute.KindRegistered && r.owner == zero:
		r.owner = second
	case kind == repute.KindURIUpdated, kind == repute.KindMetadataSet:
		r.act(block)
	}
	if s.Registrar == zero && (kind == repute.KindTransfer && first == zero || kind == repute.KindRegistered) {
		s.Registrar = r.owner
	}
}

// act notes the first change by the current owner.
func (r *actionReader) act(block uint64) {
	known := slices.ContainsFunc(r.of.Acts, func(a Action) bool { return a.By == r.owner })
	if r.owner != (common.Address{}) && !known {
		r.of.Acts = append(r.of.Acts, Action{block, r.owner})
	}
}
