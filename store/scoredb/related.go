package scoredb

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// queueRelated queues identities whose agents must be scored again. run is 0, or a run in
// which the penalty did not change: then only agents with events since the run before are
// marked, unless a log was found late.
func queueRelated(ctx context.Context, tx pgx.Tx, chainID uint64, final bool, list []Affiliation, who Identities,
	run uint64) error {
	of := map[common.Address][]repute.TokenID{}
	for _, a := range list {
		of[a.Identity] = append(of[a.Identity], a.TokenID)
	}
	var b pgx.Batch
	for identity, tokens := range of {
		var itself *column.TokenNum // an agent does not limit itself; two agents limit each other
		if len(tokens) == 1 {
			itself = (*column.TokenNum)(&tokens[0])
		}
		b.Queue(`
			insert into trust_related (chain_id, final, members, except_agent, updated)
			select $1, $2, $3, $4, coalesce((
				select max(was.boundary) from trust_runs was join trust_runs is_ using (chain_id)
				where was.chain_id = $1 and is_.run = $5 and was.run < $5 and was.closed_at is not null and is_.repaired = 0), -1)`,
			chainID, final, column.AddressColumn(who.Members(identity)), itself, int64(run))
	}
	return tx.SendBatch(ctx, &b).Close()
}

// relatedMark is a row of trust_related: an identity whose agents are being marked.
type relatedMark struct {
	id, updated int64
	// final says that final scores are marked.
	final bool
	// members are the addresses of the identity.
	members [][]byte
	// itself is the agent that the penalty comes from; nil for several.
	itself *string
	// after is the last agent that is marked, -1 for none.
	after string
}

// MarkRelated makes up to limit agents of identities with changed penalties stale and reports
// whether there may be more. They are scored after agents with events, because an identity
// may have any number of agents. Any number of processes may call it. A run is not closed
// before all are marked.
func MarkRelated(ctx context.Context, db *store.DB, chainID uint64, limit int) (more bool, err error) {
	err = db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("mark related agents on chain %d", chainID), func(tx pgx.Tx) error {
		var f relatedMark
		err := tx.QueryRow(ctx, `
			select id, updated, final, members, except_agent::text, after::text
			from trust_related where chain_id = $1 order by id limit 1 for update skip locked`, chainID).Scan(
			&f.id, &f.updated, &f.final, &f.members, &f.itself, &f.after)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err == nil && f.after == "-1" {
			err = f.merge(ctx, tx, chainID)
		}
		if err != nil {
			return err
		}
		more = true
		return f.mark(ctx, tx, chainID, limit)
	})
	return more, err
}

// merge joins all rows of one identity that no process has begun.
func (f *relatedMark) merge(ctx context.Context, tx pgx.Tx, chainID uint64) error {
	return tx.QueryRow(ctx, `
		with same as (
			delete from trust_related where id in (
				select id from trust_related where chain_id = $1 and id > $2 and (final, members) = ($3, $4) and after = -1 for
					update skip locked)
			returning updated, except_agent)
		select least($5::bigint, min(updated)), case when coalesce(bool_and(except_agent is not distinct from
			$6::text::numeric), true) then $6 end from same`,
		chainID, f.id, f.final, f.members, f.updated, f.itself).Scan(&f.updated, &f.itself)
}

// mark makes the next agents that the identity ever had stale. Final scores are marked only
// while the run is open.
func (f *relatedMark) mark(ctx context.Context, tx pgx.Tx, chainID uint64, limit int) error {
	_, err := tx.Exec(ctx, `
		with part as (
			select token_id from unnest($3::bytea[]) m(a) cross join lateral (
				(select distinct token_id from agent_states
					where chain_id = $1 and owner = m.a and token_id > $4::text::numeric order by token_id limit $5)
				union (select distinct token_id from agent_states
					where chain_id = $1 and wallet = m.a and wallet <> '' and wallet <> owner and token_id > $4::text::numeric
						order by token_id limit $5)) had
			group by token_id order by token_id limit $5),
		done as (
			insert into trust_stale (chain_id, token_id, cause, final)
			select $1, p.token_id, $6, $7 and exists (
				select from trust_runs where chain_id = $1 and closed_at is null and run = (select max(run) from trust_runs
					where chain_id = $1))
			from part p
			join agents a on (a.chain_id, a.token_id) = ($1, p.token_id)
			where a.updated_block > $8 and p.token_id is distinct from $9::text::numeric
			order by p.token_id`+markTokens+`),
		gone as (
			delete from trust_related where id = $2 and (select count(*) from part) < $5)
		update trust_related set (after, updated, except_agent) = ((select max(token_id) from part), $8, $9::text::numeric)
		where id = $2 and (select count(*) from part) = $5`,
		chainID, f.id, f.members, f.after, limit, causeRun, f.final, f.updated, f.itself)
	return err
}
