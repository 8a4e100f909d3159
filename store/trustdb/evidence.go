package trustdb

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
)

// ReadEvidence reads everything that a score of an agent follows from, with the answers of these
// validation contracts. repute.ErrNotFound as in query.Agent.
func ReadEvidence(ctx context.Context, db *store.DB, id repute.AgentID, at repute.At,
	validations []common.Address) (out Subject, err error) {
	err = chaindb.ViewAgent(ctx, db, "read evidence", id, at, func(ctx context.Context, s chaindb.Subject) error {
		var b pgx.Batch
		q := evidence{s.Tx, s.Chain.Chain, s.Block, -1, validations}
		found := q.queue(&b, []repute.TokenID{s.ID.TokenID})
		if err := s.Tx.SendBatch(ctx, &b).Close(); err != nil {
			return err
		}
		if len(found.list) == 0 {
			return repute.Missing("agent %s", id.Short())
		}
		out = found.list[0]
		out.Block = s.AsOf.Block
		return nil
	})
	return out, err
}

// ReadSubjects reads the same for many agents of a chain on one snapshot: as of block, or of the
// newest state for nil. Agents that do not exist are left out; the others are in order. Block is
// not set.
func ReadSubjects(ctx context.Context, db *store.DB, chainID uint64, tokens []repute.TokenID, block *uint64,
	validations []common.Address) (out []Subject, err error) {
	var b pgx.Batch
	// A long timeout: one agent may have as many rows as all others, and a retry would take as long.
	b.Queue("set local statement_timeout = '10min'")
	if len(tokens) <= fewAgents {
		b.Queue(store.PlanOnce)
	}
	q := evidence{nil, repute.Chain{ID: chainID}, chaindb.Everything, -1, validations}
	if block != nil {
		q.block = int64(*block)
	}
	found := q.withChain(&b, tokens)
	if err := db.ReadBatch(ctx, "read evidence", &b); err != nil {
		return nil, err
	}
	return found.list, nil
}

// fewAgents is the largest number of agents for which statements need not be planned again.
const fewAgents = 64

// withChain is queue for a chain of which only the id is known.
func (q evidence) withChain(b *pgx.Batch, tokens []repute.TokenID) *foundAgents {
	var found *foundAgents
	b.Queue(chaindb.SelectChain, q.chain.ID).QueryRow(func(row pgx.Row) error {
		c, err := chaindb.ScanChainRow(q.chain.ID, row)
		if err == nil {
			found.registry = c.Identity
		}
		return err
	})
	found = q.queue(b, tokens)
	return found
}

// Known says which ratings of an agent a caller has: the live ones up to a block.
type Known struct {
	Block uint64
	Hash  common.Hash // of that block
	// Live and Revoked are how many ratings the agent had.
	Live, Revoked int64
	// AnyRevoked says that Revoked is unknown: Live alone is compared.
	AnyRevoked bool
}

// ReadGrowth reads the newest state of an agent, but of its ratings only those after a block and those that were
// revoked since, on one snapshot. grown is false when something else happened to the ratings: a reorganization, a late
// event, or a revocation of one of several ratings with equal words in one block; or when payments or answers of
// validation contracts count, which this does not read.
func ReadGrowth(ctx context.Context, db *store.DB, chainID uint64, token repute.TokenID, known Known,
	validations []common.Address) (s Subject, grown bool, err error) {
	var b pgx.Batch
	b.Queue(store.PlanOnce)
	b.Queue(`
		with gone as materialized (
			select client, idx, block, value, decimals, tag1, tag2, uri_id from feedback
			where chain_id = $1 and token_id = $2 and revoked_block > $3)
		select ($8 or a.revoked = $6 + (select count(*) from gone))
			and exists (select from blocks where (chain_id, number, hash) = ($1, $3, $4))
			and a.feedback = $5 - (select count(*) from gone where block <= $3) + (
				select count(*) from feedback where chain_id = $1 and token_id = $2 and block > $3 and revoked_block is null)
			and not exists (
				select from gone g join feedback f on (f.chain_id, f.token_id, f.block) = ($1, $2, g.block)
				where g.block <= $3 and (f.client, f.idx) <> (g.client, g.idx)
					and (f.tag1, f.tag2, f.uri_id) = (g.tag1, g.tag2, g.uri_id)
					and f.value * 10::numeric ^ g.decimals = g.value * 10::numeric ^ f.decimals)
			and `+ratingsAlone("$1", "$2", "$7")+`
		from agents a where chain_id = $1 and token_id = $2`, chainID, column.TokenNum(token), int64(known.Block),
		known.Hash[:], known.Live, known.Revoked, column.AddressColumn(validations),
		known.AnyRevoked).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(&grown); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return nil
	})
	q := evidence{nil, repute.Chain{ID: chainID}, chaindb.Everything, int64(known.Block), validations}
	found := q.withChain(&b, []repute.TokenID{token})
	if err = db.ReadBatch(ctx, "read later evidence", &b); err != nil || !grown || len(found.list) != 1 {
		return s, false, err
	}
	return found.list[0], true, nil
}

// LargeAgents returns the agents whose Subject is Large, in order.
func LargeAgents(ctx context.Context, db *store.DB, chainID uint64, validations []common.Address) ([]repute.TokenID,
	error) {
	rows, _ := db.Pool().Query(ctx, `
		select a.token_id from agents a where a.chain_id = $1 and a.feedback > $2 and `+
		ratingsAlone("$1", "a.token_id", "$3")+` order by a.token_id`, chainID, ManyRatings,
		column.AddressColumn(validations))
	list, err := pgx.CollectRows(rows, scanToken)
	return list, store.Failed("large agents", err)
}

// ratingsAlone returns the SQL of whether the evidence about an agent is ratings without payments
// and answers.
func ratingsAlone(chain, token, validations string) string {
	return fmt.Sprintf(`not exists (select from payments where chain_id = %[1]s and token_id = %[2]s and state = 'verified')
		and not exists (select from validation_requests where chain_id = %[1]s and token_id = %[2]s and contract = any(%[3]s))`,
		chain, token, validations)
}

// evidence reads what scores follow from, as of a block.
type evidence struct {
	tx    pgx.Tx // of a Snapshot, which sends the statements itself; nil otherwise
	chain repute.Chain
	block int64
	after int64 // ratings up to this block are left out
	// validations are the contracts whose answers count: those of a run, not of the chain now.
	validations []common.Address
}

// queue adds statements to a batch that read the existing agents among tokens, in order: each round trip takes longer
// than most of them.
func (q evidence) queue(b *pgx.Batch, tokens []repute.TokenID) *foundAgents {
	found, paid := q.owned(b, tokens), map[ratingOf]*repute.Payment{}
	q.payments(b, tokens, paid)
	add := func(id repute.TokenID, r Row) {
		if s := found.at[id]; s != nil {
			r.Payment = paid[ratingOf{id, r.Client(), r.Index}]
			s.Rows = append(s.Rows, r)
		}
	}
	q.ratings(b, tokens, liveRatings, add)
	if q.after >= 0 {
		q.ratings(b, tokens, goneRatings, func(id repute.TokenID, r Row) {
			if s := found.at[id]; s != nil {
				s.Gone = append(s.Gone, r)
			}
		})
	}
	if len(q.validations) > 0 {
		q.answers(b, tokens, add)
	}
	return found
}

// foundAgents are the agents that a batch reads: in order, and by token id.
type foundAgents struct {
	list     []Subject
	at       map[repute.TokenID]*Subject
	registry common.Address
}

// owned reads the existing agents among tokens without payments, ratings and answers.
func (q evidence) owned(b *pgx.Batch, tokens []repute.TokenID) *foundAgents {
	found := &foundAgents{at: make(map[repute.TokenID]*Subject, len(tokens)), registry: q.chain.Identity}
	q.holders(b, tokens, found)
	q.tenures(b, tokens, found.at)
	q.actions(b, tokens, found.at)
	return found
}

// eachRow returns a function for a queued query that calls use for each of its rows, scanned into variables. what names
// the rows in errors.
func eachRow(what string, into []any, use func() error) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		if _, err := pgx.ForEachRow(rows, into, use); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
}

// ManyRatings is above what agents usually have: reading those of a larger one for each event would
// take longer than all else.
const ManyRatings = 5000

// holders reads who owns each agent, since when, and who acts for it.
func (q evidence) holders(b *pgx.Batch, tokens []repute.TokenID, found *foundAgents) {
	query := b.Queue(`
		select u.t, now.owner, now.wallet, now.approved, acts.list,
			newest.number, newest.hash, newest.time,
			exists (select from feedback where chain_id = $1 and token_id = u.t and block <= $3) or exists (
				select from validation_requests q join validation_responses x using (chain_id, contract, request_hash)
				where q.chain_id = $1 and q.token_id = u.t and q.contract = any($4) and x.block <= $3),
			coalesce(a.revoked, 0), a.feedback > $5 and `+ratingsAlone("$1", "u.t", "$4")+`
		from unnest($2::numeric[]) u(t)
		cross join lateral (select owner, wallet, approved from agent_states
			where chain_id = $1 and token_id = u.t and from_block <= $3 order by from_block desc limit 1) now
		cross join lateral (
			select coalesce(array_agg(operator order by operator) filter (where to_block is null or to_block > $3), '{}') as
				list,
				max(greatest(from_block, to_block)) as block
			from operators where chain_id = $1 and owner = now.owner and from_block <= $3) acts
		left join agents a on (a.chain_id, a.token_id) = ($1, u.t)
		left join blocks newest on (newest.chain_id, newest.number) = ($1, greatest(a.updated_block, acts.block))
		order by u.t`, q.chain.ID, column.TokenArray(tokens), q.block, column.AddressColumn(q.validations), ManyRatings)
	var token column.TokenNum
	var revoked int64
	var large *bool
	var owner, wallet, approved, hash []byte
	var operators [][]byte
	var at *time.Time
	var number *uint64
	var judged bool
	each := eachRow("holders", []any{&token, &owner, &wallet, &approved, &operators, &number,
		&hash, &at, &judged, &revoked, &large}, func() error {
		s := Subject{Judged: judged, Revoked: revoked, Large: large != nil && *large,
			Agent: repute.AgentID{ChainID: q.chain.ID, Registry: found.registry, TokenID: repute.TokenID(token)},
			Owner: common.BytesToAddress(owner), Wallet: common.BytesToAddress(wallet),
			Approved: common.BytesToAddress(approved)}
		for _, o := range operators {
			s.Operators = append(s.Operators, common.BytesToAddress(o))
		}
		if number != nil {
			s.Updated = repute.Block{Number: *number, Hash: common.BytesToHash(hash), Time: column.TimeOf(at)}
		}
		found.list = append(found.list, s)
		return nil
	})
	query.Query(func(rows pgx.Rows) error {
		err := each(rows)
		for i := range found.list { // only now, because the list grew
			found.at[found.list[i].Agent.TokenID] = &found.list[i]
		}
		return err
	})
}

// tenures reads the earlier owners of each agent.
func (q evidence) tenures(b *pgx.Batch, tokens []repute.TokenID, at map[repute.TokenID]*Subject) {
	query := b.Queue(`
		select s.token_id, s.from_block, s.owner, s.wallet, b.time from (
			select token_id, from_block, owner, wallet, lag(owner) over w as owner_was, lag(wallet) over w as wallet_was
			from agent_states where chain_id = $1 and token_id = any($2::numeric[]) and from_block <= $3
			window w as (partition by token_id order by from_block)) s
		left join blocks b on (b.chain_id, b.number) = ($1, s.from_block)
		where (owner, wallet) is distinct from (owner_was, wallet_was)
		order by s.token_id, s.from_block`, q.chain.ID, column.TokenArray(tokens), q.block)
	var token column.TokenNum
	var from uint64
	var owner, wallet []byte
	var began *time.Time
	query.Query(eachRow("earlier holders", []any{&token, &from, &owner, &wallet, &began}, func() error {
		if s := at[repute.TokenID(token)]; s != nil {
			s.Holders = append(s.Holders, Holder{from, column.TimeOf(began), common.BytesToAddress(owner),
				common.BytesToAddress(wallet)})
		}
		return nil
	}))
}

// tagHead returns the SQL of a tag, which may be of any length, cut to maxTrustTag.
func tagHead(column string) string {
	return fmt.Sprintf("case when length(%[1]s) <= %[2]d then %[1]s end", column, maxTrustTag)
}

// Conditions of SQL for the ratings f that evidence.ratings reads: those after block $4 that are live as of block $3,
// and those that were revoked between these blocks.
const (
	liveRatings = "f.block <= $3 and f.block > $4 and (f.revoked_block is null or f.revoked_block > $3)"
	goneRatings = "f.block <= $4 and f.revoked_block > $4 and f.revoked_block <= $3"
)

// ratings reads those ratings of agents for which a condition holds.
func (q evidence) ratings(b *pgx.Batch, tokens []repute.TokenID, which string, use func(repute.TokenID, Row)) {
	query := b.Queue(`
		select f.token_id, f.client, f.payer, f.idx, f.value, f.decimals, `+tagHead("t1.value")+`, `+tagHead("t2.value")+`, u.hash, f.block, f.log_index, b.time
		from feedback f
		join tags t1 on t1.id = f.tag1
		join tags t2 on t2.id = f.tag2
		join uris u on u.id = f.uri_id
		left join blocks b on (b.chain_id, b.number) = (f.chain_id, f.block)
		where f.chain_id = $1 and f.token_id = any($2::numeric[]) and `+which,
		q.chain.ID, column.TokenArray(tokens), q.block, q.after)
	var token column.TokenNum
	var r Row
	var client, payer, tag1, tag2, uri []byte
	var value column.BigNum
	var at *time.Time
	into := []any{&token, &client, &payer, &r.Index, &value, &r.Amount.Decimals, &tag1, &tag2, &uri, &r.Block,
		&r.LogIndex, &at}
	query.Query(eachRow("ratings", into, func() error {
		r.writtenBy(client, payer)
		r.Amount.Value, r.Content, r.Time = value.Int, common.BytesToHash(uri), column.TimeOf(at)
		r.Tag1, r.Tag2, r.Other = string(tag1), string(tag2), tag1 == nil
		use(repute.TokenID(token), r)
		return nil
	}))
}

// answers reads the latest answer to each validation request of agents.
func (q evidence) answers(b *pgx.Batch, tokens []repute.TokenID, use func(repute.TokenID, Row)) {
	query := b.Queue(`
		select q.token_id, q.validator, x.response, `+tagHead("t.value")+`, u.hash, x.block, x.log_index, b.time
		from validation_requests q
		cross join lateral (
			select * from validation_responses x
			where (x.chain_id, x.contract, x.request_hash) = (q.chain_id, q.contract, q.request_hash) and x.block <= $3
			order by x.block desc, x.log_index desc limit 1) x
		join tags t on t.id = x.tag
		join uris u on u.id = x.uri_id
		left join blocks b on (b.chain_id, b.number) = (x.chain_id, x.block)
		where q.chain_id = $1 and q.token_id = any($2::numeric[]) and q.block <= $3 and q.contract = any($4)`,
		q.chain.ID, column.TokenArray(tokens), q.block, column.AddressColumn(q.validations))
	var token column.TokenNum
	var validator, tag, uri []byte
	var response int64
	var at *time.Time
	r := Row{Validation: true}
	query.Query(eachRow("answers", []any{&token, &validator, &response, &tag, &uri, &r.Block, &r.LogIndex, &at},
		func() error {
			r.Rater, r.Tag1, r.Other = common.BytesToAddress(validator), string(tag), tag == nil
			r.Amount = repute.Amount{Value: big.NewInt(response)}
			r.Content, r.Time = common.BytesToHash(uri), column.TimeOf(at)
			use(repute.TokenID(token), r)
			return nil
		}))
}
