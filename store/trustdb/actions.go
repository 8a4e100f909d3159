package trustdb

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store/chaindb"
	"repute/store/column"
)

// OwnerEvent is a registration or transfer of an agent, or a change to it that only its owner, or an address that the
// owner approved, can have made: of its URI or its metadata.
type OwnerEvent struct {
	Block    uint64
	Kind     repute.EventKind
	From, To common.Address // From of a transfer, To of a transfer or registration
}

// actions reads who registered each agent, and when each of its owners changed it first. All events are given in their
// order, because an agent may change owners more than once in a block. Changes of the wallet, which a transfer makes as
// well, and those that were undone within their block are left out.
func (q evidence) actions(b *pgx.Batch, tokens []repute.TokenID, at map[repute.TokenID]*Subject) {
	wallet := column.Keccak(chaindb.WalletKey)
	query := b.Queue(`
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
		order by u.t, e.block, e.log_index`, q.chain.ID, column.TokenArray(tokens), q.block,
		[]int16{int16(repute.KindTransfer), int16(repute.KindRegistered), int16(repute.KindURIUpdated),
			int16(repute.KindMetadataSet)},
		int16(repute.KindMetadataSet), wallet[:])
	var token column.TokenNum
	var block uint64
	var kind int16
	var first, second []byte // the addresses among the topics
	var acted *Subject       // the owner of this agent changed it since the last transfer
	query.Query(eachRow("acts of holders", []any{&token, &block, &kind, &first, &second}, func() error {
		s := at[repute.TokenID(token)]
		if s == nil {
			return nil
		}
		e := OwnerEvent{Block: block, Kind: repute.EventKind(kind)}
		switch e.Kind {
		case repute.KindTransfer:
			e.From, e.To, acted = common.BytesToAddress(first), common.BytesToAddress(second), nil
		case repute.KindRegistered:
			e.To = common.BytesToAddress(second)
		default:
			if acted == s {
				return nil
			}
			acted = s
		}
		s.Events = append(s.Events, e)
		return nil
	}))
}
