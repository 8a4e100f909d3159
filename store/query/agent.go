package query

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/eventdb"
)

// agentAt returns the SQL of relation a for wholeAgents as of block $3, from the histories and totals instead
// of the current row.
func agentAt(totals ratingTotals) string {
	return `
	with a as (
		select a.chain_id, a.token_id, s.owner, s.claimed, s.wallet, s.approved, s.uri_id,
			a.registered_block, a.registered_log, e.block as updated_block, e.log_index as updated_log,
			f.feedback, f.revoked, f.clients, r.responses, v.validations
		from agents a
		join chains c on c.chain_id = a.chain_id
		join agent_states s on (s.chain_id, s.token_id) = (a.chain_id, a.token_id)
			and s.from_block <= $3 and (s.to_block is null or s.to_block > $3)
		cross join lateral ` + eventdb.LastEffect("$2", "block <= $3") + `
		cross join lateral ` + totals.counts + ` f
		cross join lateral (
			select count(*) as responses from responses
			where chain_id = $1 and token_id = $2 and block <= $3) r
		cross join lateral (
			select count(*) as validations from validation_requests q
			where q.chain_id = $1 and q.token_id = $2 and q.block <= $3 and q.contract = any(c.validations)
				and exists (select from validation_responses x
					where (x.chain_id, x.contract, x.request_hash) = (q.chain_id, q.contract, q.request_hash) and x.block <= $3)) v
		where a.chain_id = $1 and a.token_id = $2)`
}

// metadataAt returns the SQL of currentMetadata as of block $3.
func metadataAt() string {
	return `
	select m.chain_id, m.token_id, ` + metadataColumns() + `, m.from_block, m.log_index, e.tx_hash, b.time
	from metadata m
	left join events e on (e.chain_id, e.block, e.log_index) = (m.chain_id, m.from_block, m.log_index)
	left join blocks b on (b.chain_id, b.number) = (m.chain_id, m.from_block)
	where m.chain_id = $1 and m.token_id = $2 and m.from_block <= $3 and (m.to_block is null or m.to_block > $3)
	order by m.key limit ` + fmt.Sprint(column.MaxMetadata)
}

// Agent returns one agent with its metadata and document as of a block. The document is the newest
// one read from the URI of that block.
func Agent(ctx context.Context, db *store.DB, id repute.AgentID, at repute.At) (agent repute.Agent, asOf repute.AsOf,
	err error) {
	err = chaindb.ViewAgent(ctx, db, "read agent", id, at, func(ctx context.Context, s chaindb.Subject) error {
		asOf = s.AsOf
		if s.Block != chaindb.Everything {
			agent, err = agentThen(ctx, s)
			return err
		}
		agents, err := ReadAgents(ctx, s.Tx, []repute.AgentID{s.ID}, true)
		if err != nil {
			return err
		}
		chains, tokens := column.KeyColumns([]repute.AgentID{s.ID})
		if err := readMetadata(ctx, s.Tx, agents, currentMetadata(), chains, tokens); err != nil {
			return err
		}
		agent = *agents[column.KeyOf(s.ID)]
		return nil
	})
	return agent, asOf, err
}

// agentThen reads the agent as of the subject's block.
func agentThen(ctx context.Context, s chaindb.Subject) (repute.Agent, error) {
	totals, err := totalsAt(ctx, s)
	if err != nil {
		return repute.Agent{}, err
	}
	rows, err := s.Tx.Query(ctx, agentAt(totals)+wholeAgents(), s.Key()...)
	if err != nil {
		return repute.Agent{}, err
	}
	a, err := pgx.CollectExactlyOneRow(rows, scanAgent)
	if err != nil {
		return a, fmt.Errorf("state at block %d: %w", s.Block, err)
	}
	if a.Score, err = scoreAt(ctx, s); err != nil {
		return a, err
	}
	return a, readMetadata(ctx, s.Tx, map[column.AgentKey]*repute.Agent{column.KeyOf(s.ID): &a}, metadataAt(),
		s.Key()...)
}
