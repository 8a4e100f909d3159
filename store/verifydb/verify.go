package verifydb

import (
	"context"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
)

// AgentThen is what the chain's view functions should return about an agent at a block.
type AgentThen struct {
	ID                      repute.TokenID
	Owner, Wallet, Approved common.Address
	Claimed                 bool   // no mint is stored
	Named                   bool   // a Registered is stored
	Registered              uint64 // block
	URI                     [32]byte
	Metadata                []KeyThen
	Clients                 []ClientThen // in order of their first feedback
	Requests                []RequestThen
	Moves                   []Move
}

// KeyThen is a metadata key with the sha256 of its value.
type KeyThen struct {
	Key   string
	Value [32]byte
	Block uint64
}

// ClientThen is the sum of one client's ratings of an agent.
type ClientThen struct {
	Client    common.Address
	Last      uint64 // newest index
	At        uint64 // block of the newest
	Live      []repute.Tally
	Responses uint64
}

// RequestThen is a validation request with its newest answer.
type RequestThen struct {
	Contract  common.Address
	Hash      common.Hash
	Validator common.Address
	Block     uint64
	Updated   time.Time // of the newest answer, else of the request; zero when unknown
	Answered  bool
	Response  uint8
	Answer    common.Hash
	Tag       string
}

// Move is one stored Transfer.
type Move struct {
	Block    uint64
	From, To common.Address
}

// AgentsThen returns agents registered at or before a block, as they were then, on one snapshot and
// ordered by id: those named, or for nil up to limit from a token id on.
func AgentsThen(ctx context.Context, db *store.DB, chainID, block uint64, named []repute.TokenID, from repute.TokenID,
	limit int) (out []AgentThen, err error) {
	err = chaindb.View(ctx, db, "read agents to verify", func(ctx context.Context, tx pgx.Tx) error {
		r := &verifyReader{tx: tx, chain: chainID, block: block, byID: map[repute.TokenID]*AgentThen{}}
		// Two statements: one plan for both would read every agent.
		sql, which := `token_id >= $3::numeric`, any(column.TokenNum(from))
		if named != nil {
			sql, which = `token_id = any($3::numeric[])`, column.TokenArray(named)
		}
		rows, _ := tx.Query(ctx, `
			select token_id, registered_block from agents
			where chain_id = $1 and registered_block <= $2 and `+sql+` order by agents.token_id limit $4`, chainID, block, which, limit)
		if out, err = pgx.CollectRows(rows, scanAgentThen); err != nil {
			return err
		}
		for i := range out {
			r.byID[out[i].ID] = &out[i]
			r.ids = append(r.ids, out[i].ID)
		}
		return r.readAll(ctx)
	})
	return out, err
}

// scanAgentThen reads the current columns of an agent.
func scanAgentThen(row pgx.CollectableRow) (a AgentThen, err error) {
	return a, row.Scan((*column.TokenNum)(&a.ID), &a.Registered)
}

// verifyReader completes agents. It looks up each agent by key, whatever the statistics of the
// tables say.
type verifyReader struct {
	tx    pgx.Tx
	chain uint64
	block uint64
	ids   []repute.TokenID
	byID  map[repute.TokenID]*AgentThen
}

// readAll reads all parts.
func (r *verifyReader) readAll(ctx context.Context) error {
	if len(r.ids) == 0 {
		return nil
	}
	for _, read := range []func(context.Context) error{r.states, r.metadata, r.clients, r.responses, r.requests,
		r.answers, r.moves} {
		if err := read(ctx); err != nil {
			return err
		}
	}
	return nil
}

// each executes a query over the agents $2 of chain $1 at block $3 and calls f for each row, whose
// first column is the token.
func (r *verifyReader) each(ctx context.Context, sql string, into []any, f func(*AgentThen) error) error {
	rows, _ := r.tx.Query(ctx, sql, r.chain, column.TokenArray(r.ids), r.block)
	var token repute.TokenID
	_, err := pgx.ForEachRow(rows, append([]any{(*column.TokenNum)(&token)}, into...),
		func() error { return f(r.byID[token]) })
	return err
}

// states reads owner, wallet, approval and URI.
func (r *verifyReader) states(ctx context.Context) error {
	var owner, wallet, approved column.Address
	var uri column.Hash
	var claimed, named bool
	return r.each(ctx, `
		select u.t, s.owner, s.claimed, s.wallet, s.approved, x.hash, n.named from unnest($2::numeric[]) u(t)
		cross join lateral (select * from agent_states where chain_id = $1 and token_id = u.t
			and from_block <= $3 and (to_block is null or to_block > $3) offset 0) s
		cross join lateral (select exists (select from events where chain_id = $1 and token_id = u.t and kind = 2) named) n
		join uris x on x.id = s.uri_id`, []any{&owner, &claimed, &wallet, &approved, &uri, &named}, func(a *AgentThen) error {
		a.Owner, a.Wallet, a.Approved = common.Address(owner), common.Address(wallet), common.Address(approved)
		a.Claimed, a.Named, a.URI = claimed, named, uri
		return nil
	})
}

// metadata reads the metadata keys.
func (r *verifyReader) metadata(ctx context.Context) error {
	var key []byte
	var value column.Hash
	var block uint64
	return r.each(ctx, `
		select u.t, m.key, sha256(m.value), m.from_block from unnest($2::numeric[]) u(t)
		cross join lateral (select * from metadata where chain_id = $1 and token_id = u.t
			and from_block <= $3 and (to_block is null or to_block > $3) offset 0) m
		order by u.t, m.key_hash`, []any{&key, &value, &block}, func(a *AgentThen) error {
		a.Metadata = append(a.Metadata, KeyThen{Key: string(key), Value: value, Block: block})
		return nil
	})
}

// clients reads the sums of each client.
func (r *verifyReader) clients(ctx context.Context) error {
	var client column.Address
	var decimals uint8
	var n, last, at uint64
	var sum column.BigNum
	return r.each(ctx, `
		select u.t, f.client, f.decimals, f.n, f.sum, f.last, f.at from unnest($2::numeric[]) u(t)
		cross join lateral (
			select client, decimals, count(*) filter (where live) n, coalesce(sum(value) filter (where live), 0) sum,
				max(idx) last, max(block) at, min(min(block)) over w b, min(min(log_index)) over w l
			from (select *, revoked_block is null or revoked_block > $3 live from feedback
				where chain_id = $1 and token_id = u.t and block <= $3 offset 0) f
			group by client, decimals window w as (partition by client)) f
		order by u.t, f.b, f.l, f.client`, []any{&client, &decimals, &n, &sum, &last, &at}, func(a *AgentThen) error {
		c := a.clientOf(common.Address(client))
		c.Last, c.At = max(c.Last, last), max(c.At, at)
		if n > 0 {
			c.Live = append(c.Live, repute.Tally{Decimals: decimals, Count: n, Sum: sum.Int})
		}
		return nil
	})
}

// clientOf returns the entry of a client, which it adds when there is none.
func (a *AgentThen) clientOf(client common.Address) *ClientThen {
	for i := len(a.Clients) - 1; i >= 0; i-- {
		if a.Clients[i].Client == client {
			return &a.Clients[i]
		}
	}
	a.Clients = append(a.Clients, ClientThen{Client: client})
	return &a.Clients[len(a.Clients)-1]
}

// responses counts the responses per client.
func (r *verifyReader) responses(ctx context.Context) error {
	var client column.Address
	var n uint64
	return r.each(ctx, `
		select u.t, x.client, x.n from unnest($2::numeric[]) u(t)
		cross join lateral (select client, count(*) n from (select client from responses
			where chain_id = $1 and token_id = u.t and block <= $3 offset 0) x group by client) x`,
		[]any{&client, &n}, func(a *AgentThen) error {
			a.clientOf(common.Address(client)).Responses = n
			return nil
		})
}

// requests reads the validation requests.
func (r *verifyReader) requests(ctx context.Context) error {
	var contract, validator column.Address
	var hash column.Hash
	var block uint64
	var at column.Time
	return r.each(ctx, `
		select u.t, q.contract, q.request_hash, q.validator, q.block, b.time from unnest($2::numeric[]) u(t)
		cross join lateral (select * from validation_requests where chain_id = $1 and token_id = u.t and block <= $3
			offset 0) q
		left join blocks b on b.chain_id = $1 and b.number = q.block
		order by u.t, q.block, q.log_index`, []any{&contract, &hash, &validator, &block, &at}, func(a *AgentThen) error {
		a.Requests = append(a.Requests, RequestThen{Contract: common.Address(contract), Hash: common.Hash(hash),
			Validator: common.Address(validator), Block: block, Updated: time.Time(at)})
		return nil
	})
}

// answers reads the newest answer to each request.
func (r *verifyReader) answers(ctx context.Context) error {
	var contract column.Address
	var hash, answer column.Hash
	var tag []byte
	var response uint8
	var at column.Time
	return r.each(ctx, `
		select u.t, q.contract, q.request_hash, x.response, x.hash, g.value, b.time from unnest($2::numeric[]) u(t)
		cross join lateral (select * from validation_requests where chain_id = $1 and token_id = u.t and block <= $3
			offset 0) q
		cross join lateral (select * from validation_responses where chain_id = $1 and contract = q.contract and
			request_hash = q.request_hash
			and block <= $3 order by block desc, log_index desc limit 1) x
		join tags g on g.id = x.tag
		left join blocks b on b.chain_id = $1 and b.number = x.block`,
		[]any{&contract, &hash, &response, &answer, &tag, &at}, func(a *AgentThen) error {
			for i := range a.Requests {
				q := &a.Requests[i]
				if q.Contract == common.Address(contract) && q.Hash == common.Hash(hash) {
					q.Answered, q.Response, q.Answer, q.Tag = true, response, common.Hash(answer), string(tag)
					q.Updated = time.Time(at)
				}
			}
			return nil
		})
}

// moves reads the transfers from the events, whose topics hold sender and receiver.
func (r *verifyReader) moves(ctx context.Context) error {
	var block uint64
	var from, to column.Address
	return r.each(ctx, `
		select u.t, e.block, substring(e.topics from 45 for 20), substring(e.topics from 77 for 20)
		from unnest($2::numeric[]) u(t)
		cross join lateral (select * from events where chain_id = $1 and token_id = u.t and kind = 1 and block <= $3
			offset 0) e
		order by u.t, e.block, e.log_index`, []any{&block, &from, &to}, func(a *AgentThen) error {
		a.Moves = append(a.Moves, Move{block, common.Address(from), common.Address(to)})
		return nil
	})
}

// RatingThen is one rating as the contract's readFeedback should return it.
type RatingThen struct {
	Index      uint64
	Block      uint64
	Value      *big.Int
	Decimals   uint8
	Tag1, Tag2 string
	Revoked    bool
	Responses  uint64
}

// RatingsThen returns a client's ratings of an agent as they were at a block, ordered by index,
// after an index.
func RatingsThen(ctx context.Context, db *store.DB, chainID, block uint64, id repute.TokenID, client common.Address,
	after uint64, limit int) (out []RatingThen, err error) {
	err = chaindb.View(ctx, db, "read feedback to verify", func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `
			select f.idx, f.block, f.value, f.decimals, t1.value, t2.value, f.revoked_block is not null and
				f.revoked_block <= $5,
				(select count(*) from responses r where r.chain_id = $1 and r.token_id = $2 and r.client = $3 and r.idx = f.idx
					and r.block <= $5)
			from (select * from feedback where chain_id = $1 and token_id = $2 and client = $3 and idx > $4 and block <= $5
				order by idx limit $6) f
			join tags t1 on t1.id = f.tag1 join tags t2 on t2.id = f.tag2 order by f.idx`,
			chainID, column.TokenNum(id), client.Bytes(), after, block, limit)
		out, err = pgx.CollectRows(rows, scanRatingThen)
		return err
	})
	return out, err
}

// scanRatingThen reads a row of RatingsThen.
func scanRatingThen(row pgx.CollectableRow) (r RatingThen, err error) {
	var value column.BigNum
	var tag1, tag2 []byte
	err = row.Scan(&r.Index, &r.Block, &value, &r.Decimals, &tag1, &tag2, &r.Revoked, &r.Responses)
	r.Value, r.Tag1, r.Tag2 = value.Int, string(tag1), string(tag2)
	return r, err
}

// OperatorThen is a pair of owner and operator that was approved at some time.
type OperatorThen struct {
	Owner, Operator common.Address
	Approved        bool // at the block asked of
	Block           uint64
}

// OperatorsThen returns pairs of owner and operator in order as they were at a block, after one
// (nil for the first ones).
func OperatorsThen(ctx context.Context, db *store.DB, chainID, block uint64, after *OperatorThen,
	limit int) (out []OperatorThen, err error) {
	var owner, operator []byte
	if after != nil {
		owner, operator = after.Owner.Bytes(), after.Operator.Bytes()
	}
	err = chaindb.View(ctx, db, "read operators to verify", func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `
			select owner, operator, bool_or(to_block is null or to_block > $2), max(greatest(from_block, case when to_block
				<= $2 then to_block end))
			from operators where chain_id = $1 and from_block <= $2 and ($3::bytea is null or (owner, operator) > ($3, $4))
			group by owner, operator order by owner, operator limit $5`, chainID, block, owner, operator, limit)
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (o OperatorThen, err error) {
			return o, row.Scan((*column.Address)(&o.Owner), (*column.Address)(&o.Operator), &o.Approved, &o.Block)
		})
		return err
	})
	return out, err
}
