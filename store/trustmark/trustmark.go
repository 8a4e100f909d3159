// Package trustmark marks agents whose scores may change. Packages that write events, documents, payments and denials
// call Add in the transaction of the change. The trust engine calls scoredb.ResolveMarks, which deletes the marks and
// makes the agents stale, so that they are scored again: when a trigger of the table notifies it, and at intervals.
//
// Add only inserts rows, so that writers neither wait for each other nor for the engine. A mark names an agent, an
// owner or a range of blocks; which agents that are is looked up when marks are resolved, not by writers, whose time is
// short. A mark too many costs a computation and nothing else. A change without a mark would leave a wrong score.
//
// Tables: trust_marks.
package trustmark

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// Marks are changes on one chain. The zero value marks nothing.
type Marks struct {
	// Tokens are the agents of the changed rows.
	Tokens []repute.TokenID
	// Owners are addresses that approved an operator for all their agents, or revoked the approval.
	Owners []common.Address
	// Blocks are ranges of blocks whose events were stored. All agents of these events are marked.
	Blocks []repute.BlockRange
	// Late says that events of blocks that already have final scores were found. Another run computes these scores
	// again.
	Late bool
	// All says that every agent of the chain may have changed.
	All bool
}

// InsertAgents is SQL that marks agents. The caller MUST append a query with the columns chain_id and token_id.
const InsertAgents = `insert into trust_marks (chain_id, token_id) `

// Add marks the agents of a chain whose scores may change. The marks become visible when the transaction commits.
func Add(ctx context.Context, tx pgx.Tx, chainID uint64, m Marks) error {
	if len(m.Tokens)+len(m.Owners)+len(m.Blocks) == 0 && !m.Late && !m.All {
		return nil
	}
	from, to := make([]uint64, len(m.Blocks)), make([]uint64, len(m.Blocks))
	for i, r := range m.Blocks {
		from[i], to[i] = r.From, r.To
	}
	_, err := tx.Exec(ctx, `
		insert into trust_marks (chain_id, token_id, owner, from_block, to_block, late, every)
		select $1, k.* from (
			select distinct t, null::bytea, null::bigint, null::bigint, false, false from unnest($2::numeric[]) t
			union all select distinct null::numeric, o, null::bigint, null::bigint, false, false from unnest($3::bytea[]) o
			union all select null::numeric, null::bytea, f, l, false, false from unnest($4::bigint[], $5::bigint[]) b(f, l)
			union all select null::numeric, null::bytea, null::bigint, null::bigint, $6::boolean, $7::boolean where $6 or $7) k`,
		chainID, column.TokenArray(m.Tokens), column.AddressColumn(m.Owners), from, to, m.Late, m.All)
	return store.Failed("mark for scoring", err)
}
