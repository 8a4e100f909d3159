// Package trustmark records what changed that scores follow from, in the transaction that changes
// it. Packages that write events, documents, payments and denials call it; the trust engine finds
// the agents concerned with trustdb.ResolveMarks.
//
// Marks are only appended, so that writers wait neither for each other nor for the engine.
//
// Tables: trust_marks.
package trustmark

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
)

// Marks are changes on one chain. The zero value marks nothing.
type Marks struct {
	// Tokens are agents to which something happened.
	Tokens []repute.TokenID
	// Owners are addresses for whose agents other addresses may act from now on, or no longer.
	Owners []common.Address
	// Blocks are ranges whose events were stored: all agents that they name changed.
	Blocks []repute.BlockRange
	// Late says that events were found late: final scores that follow from them are wrong, so that
	// another run is due.
	Late bool
	// All says that any agent may have changed.
	All bool
}

// InsertAgents is the SQL that marks the agents of a query with the columns chain_id and token_id,
// which follows it.
const InsertAgents = `insert into trust_marks (chain_id, token_id) `

// Add marks the agents whose scores the changes of a chain may move. Nothing is marked when the
// transaction is rolled back.
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
		chainID, store.TokenArray(m.Tokens), store.AddressColumn(m.Owners), from, to, m.Late, m.All)
	return store.Failed("mark for scoring", err)
}
