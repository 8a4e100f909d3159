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
// of the current row. The row of table agents gives what never changes, such as the registration; everything else is of
// the block.
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

// readMetadata sets the metadata of an agent as of the subject's block: key and value as shown, the size of each value,
// and how many keys there are. At most column.MaxMetadata keys are read; the count is of all. Keys are ordered by their
// bytes.
func readMetadata(ctx context.Context, s chaindb.Subject, a *repute.Agent) error {
	rows, _ := s.Tx.Query(ctx, `
		select `+column.HeadOf("m.key")+`, `+column.HeadOf("m.value")+`, octet_length(m.value), count(*) over (),
			m.from_block, m.log_index, e.tx_hash, b.time
		from metadata m
		left join events e on (e.chain_id, e.block, e.log_index) = (m.chain_id, m.from_block, m.log_index)
		left join blocks b on (b.chain_id, b.number) = (m.chain_id, m.from_block)
		where m.chain_id = $1 and m.token_id = $2 and m.from_block <= $3 and (m.to_block is null or m.to_block > $3)
		order by m.key limit `+fmt.Sprint(column.MaxMetadata), s.Key()...)
	var key, value []byte
	var size int64
	var set pointRow
	_, err := pgx.ForEachRow(rows, append([]any{&key, &value, &size, &a.MetadataCount}, set.into()...), func() error {
		m := repute.Metadata{Size: size, Set: *set.point()}
		m.Key = cutField(key, "key", &m.Cut, &m.Partial)
		if m.Value = column.Head(value, column.MaxListed, &m.Partial); int64(len(m.Value)) < m.Size {
			m.Cut = append(m.Cut, "value")
		}
		a.Metadata = append(a.Metadata, m)
		return nil
	})
	return err
}

// Agent returns one agent with its metadata and document as of a block. The document is the newest
// one read from the URI of that block.
func Agent(ctx context.Context, db *store.DB, id repute.AgentID, at repute.At) (agent repute.Agent, asOf repute.AsOf,
	err error) {
	err = chaindb.ViewAgent(ctx, db, "read agent", id, at, func(ctx context.Context, s chaindb.Subject) error {
		asOf = s.AsOf
		if agent, err = readAgent(ctx, s); err != nil {
			return err
		}
		return readMetadata(ctx, s, &agent)
	})
	return agent, asOf, err
}

// readAgent reads the agent as of the subject's block, without its metadata. The document of an earlier block is what
// its URI gives now, because files have no history on the chain.
func readAgent(ctx context.Context, s chaindb.Subject) (repute.Agent, error) {
	if s.Block == chaindb.Everything {
		agents, err := ReadAgents(ctx, s.Tx, []repute.AgentID{s.ID}, true)
		if err != nil {
			return repute.Agent{}, err
		}
		return *agents[column.KeyOf(s.ID)], nil
	}
	totals, err := totalsAt(ctx, s)
	if err != nil {
		return repute.Agent{}, err
	}
	rows, _ := s.Tx.Query(ctx, agentAt(totals)+wholeAgents(), s.Key()...)
	a, err := pgx.CollectExactlyOneRow(rows, scanAgent)
	if err != nil {
		return a, fmt.Errorf("state at block %d: %w", s.Block, err)
	}
	a.Score, err = scoreAt(ctx, s)
	return a, err
}
