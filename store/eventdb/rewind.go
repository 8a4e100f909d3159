package eventdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/changedata"
	"repute/store/column"
	"repute/store/docdb"
	"repute/store/hourdb"
	"repute/store/scoredb"
	"repute/store/trustmark"
	"repute/store/verifydb"
)

// Rewind removes all blocks above ancestor, a stored block, and applies b, whose parent is
// ancestor, in the same transaction: readers see the old chain or the new one. repute.ErrFinalized
// when ancestor is below a final block, repute.ErrFenced when the lease is lost or ancestor is not
// stored; nothing is changed then.
func Rewind(ctx context.Context, db *store.DB, ancestor repute.Block, b Batch) error {
	if !sameBlock(ancestor, b.Parent) {
		return repute.Invalid("parent", "is not the ancestor", "the batch that follows the ancestor")
	}
	ids, err := prepare(ctx, db, &b)
	if err != nil {
		return err
	}
	first := func(tx pgx.Tx) error { return scoredb.BeginRewind(ctx, tx, b.ChainID) }
	return storeBatch(ctx, db, "rewind", &b, ids, first, func(tx pgx.Tx, c *chaindb.ChainRow) error {
		if err := checkAncestor(ctx, c, tx, ancestor); err != nil {
			return err
		}
		return rewindTo(ctx, tx, c, ancestor)
	})
}

// checkAncestor returns an error unless ancestor is a stored block at or above the newest final
// one.
func checkAncestor(ctx context.Context, c *chaindb.ChainRow, tx pgx.Tx, ancestor repute.Block) error {
	if ancestor.Number < c.Finalized {
		return fmt.Errorf("block %d is below finalized block %d: %w", ancestor.Number, c.Finalized, repute.ErrFinalized)
	}
	stored := repute.Block{Number: c.Start - 1}
	if ancestor.Number != stored.Number {
		var err error
		stored, err = chaindb.ScanBlock(tx.QueryRow(ctx, `
			select number, hash, parent, time from blocks where chain_id = $1 and number = $2`, c.ID, ancestor.Number))
		if err != nil && !errors.Is(err, repute.ErrNotFound) {
			return err
		}
	}
	if !sameBlock(stored, ancestor) || ancestor.Number > c.Cursor.Number {
		return fmt.Errorf("block %d %s is not stored: %w", ancestor.Number, ancestor.Hash, repute.ErrFenced)
	}
	return nil
}

// rewindTo removes everything above a block: histories by their block numbers, and current rows by
// computing them again from the histories, so that no earlier error survives.
func rewindTo(ctx context.Context, tx pgx.Tx, c *chaindb.ChainRow, to repute.Block) error {
	agents, err := agentsAbove(ctx, tx, c.ID, to.Number)
	if err != nil {
		return store.Failed("find rewound agents", err)
	}
	if err := hourdb.Rewind(ctx, tx, c.ID, column.TokenArray(agents), to.Number); err != nil {
		return err
	}
	if err := rewindFeedback(ctx, tx, c.ID, agents, to.Number); err != nil {
		return err
	}
	owners, err := ownersAbove(ctx, tx, c.ID, to.Number)
	if err != nil {
		return store.Failed("find rewound operators", err)
	}
	if err := trustmark.Add(ctx, tx, c.ID, trustmark.Marks{Tokens: agents, Owners: owners}); err != nil {
		return err
	}
	var b pgx.Batch
	queueRewind(&b, c.ID, column.TokenArray(agents), to.Number)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return store.Failed("rewind histories", err)
	}
	if err := recomputeAgents(ctx, tx, c, agents, to.Number); err != nil {
		return err
	}
	if err := retractChanges(ctx, tx, c, to); err != nil {
		return err
	}
	if err := scoredb.HideAbove(ctx, tx, c.ID, to); err != nil {
		return err
	}
	if err := verifydb.Unverify(ctx, tx, c.ID, to.Number); err != nil {
		return err
	}
	c.Rewound = true
	_, err = tx.Exec(ctx, `
		update chains set reorgs = reorgs + 1, cursor_block = $2, cursor_hash = $3,
			cursor_time = (select time from blocks where chain_id = $1 and number = $2)
		where chain_id = $1`, c.ID, to.Number, column.HashBytes(to.Hash))
	return store.Failed("set cursor back", err)
}

// agentsAbove returns the agents that events above block n name.
func agentsAbove(ctx context.Context, tx pgx.Tx, chainID, n uint64) ([]repute.TokenID, error) {
	rows, _ := tx.Query(ctx, `
		select distinct token_id from events where chain_id = $1 and block > $2 and token_id is not null`, chainID, n)
	return pgx.CollectRows(rows, column.ScanToken)
}

// ownersAbove returns the addresses whose operators changed above block n.
func ownersAbove(ctx context.Context, tx pgx.Tx, chainID, n uint64) ([]common.Address, error) {
	rows, _ := tx.Query(ctx, `
		select owner from operators where chain_id = $1 and from_block > $2
		union select owner from operators where chain_id = $1 and to_block > $2`, chainID, n)
	return pgx.CollectRows(rows, column.ScanAddress)
}

// rewindFeedback removes feedback and revocations above block n and computes the totals of the
// affected clients again.
func rewindFeedback(ctx context.Context, tx pgx.Tx, chainID uint64, agents []repute.TokenID, n uint64) error {
	rows, _ := tx.Query(ctx, `
		select u.t, f.client from unnest($2::numeric[]) u(t)
		cross join lateral (select client from feedback where chain_id = $1 and token_id = u.t and block > $3 offset 0) f
		union select token_id, client from feedback where chain_id = $1 and revoked_block > $3`,
		chainID, column.TokenArray(agents), n)
	pairs, err := pgx.CollectRows(rows, scanPair)
	if err != nil {
		return store.Failed("find rewound feedback", err)
	}
	if err := clearTotals(ctx, tx, chainID, pairs); err != nil {
		return err
	}
	err = eachPair(ctx, tx, chainID, pairs, "rewind feedback", []any{n},
		`delete from feedback where ctid = any(array(select f.id from unnest($2::numeric[], $3::bytea[]) u(t, c) cross join lateral (
			select ctid id from feedback where chain_id = $1 and token_id = u.t and client = u.c and block > $4 offset 0) f))`,
		`update feedback set revoked_block = null, revoked_log = null
		where ctid = any(array(select f.id from unnest($2::numeric[], $3::bytea[]) u(t, c) cross join lateral (
			select ctid id from feedback where chain_id = $1 and token_id = u.t and client = u.c and revoked_block > $4
				offset 0) f))`)
	if err != nil {
		return err
	}
	return fillTotals(ctx, tx, chainID, pairs)
}

// scanPair reads an agent and a client.
func scanPair(row pgx.CollectableRow) (p pairKey, err error) {
	return p, row.Scan((*column.TokenNum)(&p.token), (*column.Address)(&p.client))
}

// WhereAgent returns the SQL that selects the rows of agents $2 of chain $1 in a table that meet a
// condition. It looks up one agent at a time through the index: on a table that grew since its last
// statistics, the planner could choose to scan it for a join.
func WhereAgent(table, condition string) string {
	return `where ctid = any(array(select d.id from unnest($2::numeric[]) u(t) cross join lateral (
		select ctid id from ` + table + ` where chain_id = $1 and token_id = u.t and ` + condition + ` offset 0) d))`
}

// WhereAnswerOfAgent is WhereAgent for validation_responses, which belong to the agent of their
// request.
func WhereAnswerOfAgent(condition string) string {
	return `where ctid = any(array(select d.id from unnest($2::numeric[]) u(t)
		cross join lateral (select contract, request_hash from validation_requests where chain_id = $1 and token_id = u.t
			offset 0) r
		cross join lateral (select ctid id from validation_responses
			where chain_id = $1 and contract = r.contract and request_hash = r.request_hash and ` + condition + ` offset 0) d))`
}

// queueRewind removes the rows of the other histories that begin above block n and reopens those
// that end above it.
func queueRewind(b *pgx.Batch, chainID uint64, agents string, n uint64) {
	for _, sql := range []string{
		`delete from agent_states ` + WhereAgent("agent_states", "from_block > $3"),
		`update agent_states set to_block = null ` + WhereAgent("agent_states", "to_block > $3"),
		`delete from metadata ` + WhereAgent("metadata", "from_block > $3"),
		`update metadata set to_block = null ` + WhereAgent("metadata", "to_block > $3"),
		`delete from responses ` + WhereAgent("responses", "block > $3"),
		`delete from validation_responses ` + WhereAnswerOfAgent("block > $3"),
		`delete from validation_requests ` + WhereAgent("validation_requests", "block > $3"),
	} {
		b.Queue(sql, chainID, agents, n)
	}
	for _, sql := range []string{
		`delete from operators where chain_id = $1 and from_block > $2`,
		`update operators set to_block = null where chain_id = $1 and to_block > $2`,
		`delete from pending where chain_id = $1 and block > $2`,
		`delete from events where chain_id = $1 and block > $2`, // and, by its foreign key, from treasury_events
		`delete from blocks where chain_id = $1 and number > $2`,
		`update chains set covered = covered * int8multirange(int8range(null, $2, '[]')) where chain_id = $1`,
	} {
		b.Queue(sql, chainID, n)
	}
}

// recomputeAgents computes the current rows of agents from their histories at block n, the newest
// stored one. Agents minted later are removed.
func recomputeAgents(ctx context.Context, tx pgx.Tx, c *chaindb.ChainRow, agents []repute.TokenID, n uint64) error {
	var b pgx.Batch
	ids := column.TokenArray(agents)
	b.Queue(`delete from agents `+WhereAgent("agents", "registered_block > $3"), c.ID, ids, n)
	b.Queue(`
		update agents a set owner = s.owner, claimed = s.claimed, wallet = s.wallet, approved = s.approved, uri_id = s.uri_id,
			updated_block = e.block, updated_log = e.log_index, feedback = live.n, clients = live.clients, revoked = gone.n,
			responses = said.n, validations = checked.n
		from unnest($2::numeric[]) u(t)
		cross join lateral (select ctid id from agents where chain_id = $1 and token_id = u.t offset 0) o
		cross join lateral (select * from agent_states where chain_id = $1 and token_id = u.t order by from_block desc
			limit 1) s
		cross join lateral `+LastEffect("u.t", "true")+`
		cross join lateral (select coalesce(sum(n), 0) n, count(distinct client) clients from sums where chain_id = $1 and
			token_id = u.t) live
		cross join lateral (select count(*) n from feedback where chain_id = $1 and token_id = u.t and revoked_block is
			not null) gone
		cross join lateral (select count(*) n from responses where chain_id = $1 and token_id = u.t) said
		cross join lateral (select count(*) n from validation_requests r where r.chain_id = $1 and r.token_id = u.t and
			r.contract = any($3)
			and exists (select from validation_responses v where v.chain_id = $1 and v.contract = r.contract and
				v.request_hash = r.request_hash)) checked
		where a.ctid = o.id`, c.ID, ids, c.TrustedBytes())
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return store.Failed("recompute agents", err)
	}
	return showURIsOf(ctx, tx, c.ID, ids)
}

// showURIsOf tells documents which URIs some agents show again.
func showURIsOf(ctx context.Context, tx pgx.Tx, chainID uint64, agents string) error {
	rows, _ := tx.Query(ctx, `
		select distinct uri_id from unnest($2::numeric[]) u(t)
		cross join lateral (select uri_id from agents where chain_id = $1 and token_id = u.t offset 0) a`, chainID, agents)
	shown, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return store.Failed("read documents of agents", err)
	}
	return docdb.ShowURIs(ctx, tx, shown)
}

// retractable are the kinds of changes that an event of the chain caused.
var retractable = []string{changedata.KindTransferred, changedata.KindRegistered, changedata.KindURI,
	changedata.KindWallet,
	changedata.KindMetadata, changedata.KindApproval, changedata.KindOperator,
	changedata.KindFeedback, changedata.KindRevoked, changedata.KindResponse, changedata.KindRequested,
	changedata.KindResponded,
	changedata.KindBackfilled}

// retractChanges adds a change for the rewind and one for each change that it undoes, newest first.
// A backfilled range that is cut is announced again for the part that stays.
func retractChanges(ctx context.Context, tx pgx.Tx, c *chaindb.ChainRow, to repute.Block) error {
	if c.Identity == (common.Address{}) {
		return nil // readers of the feed do not know chains without registries
	}
	rewound := ChangeRow{Kind: changedata.KindRewound, At: chaindb.Point{Block: to.Number},
		Data: changedata.Marshal(rewoundData{to.Number, to.Hash, c.Cursor.Number})}
	if err := StoreChanges(ctx, tx, c.ID, []ChangeRow{rewound}); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		with undone as (
			select * from changes c where chain_id = $1 and block > $2 and kind = any($3) and retracts is null
			and not exists (select from changes r where r.chain_id = $1 and r.block = c.block and r.retracts = c.seq)
		), told as (
			insert into changes (chain_id, kind, block, log_index, token_id, data, retracts)
			select chain_id, $4, block, log_index, token_id, jsonb_build_object('kind', kind), seq from undone order by xid
				desc, seq desc
		)
		insert into changes (chain_id, kind, block, log_index, data)
		select chain_id, kind, $2, 0, jsonb_build_object('from', data->'from', 'to', $2::bigint)
		from undone where kind = $5 and (data->>'from')::bigint <= $2`,
		c.ID, to.Number, retractable, changedata.KindRetracted, changedata.KindBackfilled)
	return store.Failed("retract changes", err)
}
