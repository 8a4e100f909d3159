package eventdb

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
	"repute/store/docdb"
)

// newFold returns a fold with an empty entry for everything that records name. Its chain MUST be
// set before it is used.
func newFold(ids docdb.Interned, records []repute.Record) *fold {
	f := &fold{
		ids:       ids,
		agents:    make(map[repute.TokenID]*foldAgent),
		pairs:     make(map[pairKey]*foldPair),
		ratings:   make(map[ratingKey]*foldRating),
		operators: make(map[operatorKey]*foldOperator),
		requests:  make(map[requestKey]*foldRequest),
		metadata:  make(map[metadataKey]int),
		sums:      make(map[sumKey]*sumRow),
		votes:     make(map[voteKey]*voteRow),
	}
	for i := range records {
		f.expect(&records[i])
	}
	return f
}

// expect adds the entries that a record names.
func (f *fold) expect(r *repute.Record) {
	if id, ok := repute.AgentOf(r.Event); ok && f.agents[id] == nil {
		f.agents[id] = &foldAgent{id: id, open: -1}
	}
	switch e := r.Event.(type) {
	case repute.ApprovalForAll:
		if key := (operatorKey{e.Owner, e.Operator}); f.operators[key] == nil {
			f.operators[key] = &foldOperator{open: -1}
		}
	case repute.NewFeedback:
		f.expectPair(pairKey{e.TokenID, e.Client}, e.Index == 1)
	case repute.FeedbackRevoked:
		key := pairKey{e.TokenID, e.Client}
		f.expectPair(key, false)
		f.ratings[ratingKey{key, e.Index}] = &foldRating{}
	case repute.ResponseAppended:
		f.expectPair(pairKey{e.TokenID, e.Client}, false)
	case repute.ValidationRequest:
		f.requests[requestKey{r.Log.Address, e.RequestHash}] = &foldRequest{}
	case repute.ValidationResponse:
		f.requests[requestKey{r.Log.Address, e.RequestHash}] = &foldRequest{}
	}
}

// expectPair adds a pair; first says that its first record is feedback number 1.
func (f *fold) expectPair(key pairKey, first bool) {
	if f.pairs[key] == nil {
		f.pairs[key] = &foldPair{pairKey: key, fresh: true, first: first}
	}
}

// load fills the entries from the database with a few queries by key, sent together.
func (f *fold) load(ctx context.Context, tx pgx.Tx) error {
	var b pgx.Batch
	if len(f.agents) > 0 {
		f.queueAgents(&b)
	}
	if len(f.pairs) > 0 {
		f.queuePairs(&b)
	}
	if len(f.ratings) > 0 {
		f.queueRatings(&b)
	}
	if len(f.operators) > 0 {
		f.queueOperators(&b)
	}
	if len(f.requests) > 0 {
		f.queueRequests(&b)
	}
	if b.Len() == 0 {
		return nil
	}
	return store.Failed("load state", tx.SendBatch(ctx, &b).Close())
}

// queueAgents loads the rows of agents. For agents without a row it loads how many validations they
// have, because a foreign contract may name an agent before it exists.
func (f *fold) queueAgents(b *pgx.Batch) {
	agents := slices.DeleteFunc(slices.Collect(maps.Values(f.agents)), func(a *foldAgent) bool { return a.cached })
	if len(agents) == 0 {
		return
	}
	slices.SortFunc(agents, func(a, b *foldAgent) int { return a.id.Cmp(&b.id) })
	ids := column.NumericArray(agents, func(a **foldAgent) string { return (*a).id.Dec() })
	b.Queue(`
		select u.i, a.chain_id is not null, coalesce(a.owner, ''), coalesce(a.claimed, false), coalesce(a.wallet, ''),
			coalesce(a.approved, ''),
			coalesce(a.uri_id, 0), coalesce(a.registered_block, 0), coalesce(a.registered_log, 0), coalesce(a.updated_block, 0), coalesce(a.updated_log, 0),
			coalesce(a.feedback, 0), coalesce(a.revoked, 0), coalesce(a.clients, 0), coalesce(a.responses, 0),
			coalesce(a.validations, (select count(*) from validation_requests r
				where r.chain_id = $1 and r.token_id = u.t and r.contract = any($3) and exists (select from validation_responses v
					where v.chain_id = $1 and v.contract = r.contract and v.request_hash = r.request_hash)))
		from unnest($2::numeric[]) with ordinality u(t, i)
		left join lateral (select * from agents where chain_id = $1 and token_id = u.t offset 0) a on true`,
		f.chain.ID, ids, f.chain.TrustedBytes()).Query(func(rows pgx.Rows) error {
		var i int
		var l foldAgent
		_, err := pgx.ForEachRow(rows, []any{&i, &l.stored, (*column.Address)(&l.owner), &l.claimed,
			(*column.Address)(&l.wallet), (*column.Address)(&l.approved), &l.uri,
			&l.registered.Block, &l.registered.Log, &l.updated.Block, &l.updated.Log,
			&l.counts.Feedback, &l.counts.Revoked, &l.counts.Clients, &l.counts.Responses, &l.counts.Validations},
			func() error {
				a := agents[i-1]
				if !l.stored {
					a.counts = l.counts
					return nil
				}
				a.load(cachedAgent{l.agentState, l.registered, l.updated, l.counts})
				return nil
			})
		return err
	})
}

// queuePairs loads the newest feedback index and the live ratings of pairs that are not cached.
func (f *fold) queuePairs(b *pgx.Batch) {
	pairs := slices.DeleteFunc(slices.Collect(maps.Values(f.pairs)),
		func(p *foldPair) bool { return p.cached || p.first && !f.careful })
	if len(pairs) == 0 {
		return
	}
	slices.SortFunc(pairs, func(a, b *foldPair) int { return a.compare(&b.pairKey) })
	ids, clients := pairArrays(pairs, func(p *foldPair) *pairKey { return &p.pairKey })
	b.Queue(`
		select u.i, l.idx, coalesce((select sum(n) from sums s where s.chain_id = $1 and s.token_id = u.t and s.client =
			u.c), 0)::bigint
		from unnest($2::numeric[], $3::bytea[]) with ordinality u(t, c, i)
		cross join lateral (select idx from feedback f where f.chain_id = $1 and f.token_id = u.t and f.client = u.c
			and f.block <= $4 order by idx desc limit 1) l`,
		f.chain.ID, ids, clients, f.parent).Query(func(rows pgx.Rows) error {
		var i int
		var l foldPair
		_, err := pgx.ForEachRow(rows, []any{&i, &l.last, &l.live}, func() error {
			p := pairs[i-1]
			p.last, p.live, p.fresh = l.last, l.live, false
			return nil
		})
		return err
	})
}

// compare orders keys as the primary keys do, so that neighboring keys lie on the same pages.
func (k *pairKey) compare(with *pairKey) int {
	return cmp.Or(k.token.Cmp(&with.token), k.client.Cmp(with.client))
}

// pairArrays returns keys of agent and client as numeric[] and bytea[] parameters.
func pairArrays[T any](items []T, key func(T) *pairKey) (ids string, clients [][]byte) {
	clients = make([][]byte, len(items))
	for i := range items {
		clients[i] = key(items[i]).client[:]
	}
	return column.NumericArray(items, func(p *T) string { return key(*p).token.Dec() }), clients
}

// queueRatings loads what the named ratings say and which of them are revoked.
func (f *fold) queueRatings(b *pgx.Batch) {
	ratings := slices.Collect(maps.Keys(f.ratings))
	ids, clients, indexes := ratingArrays(ratings)
	b.Queue(`
		select u.i, f.revoked_block is not null, f.value, f.decimals
		from unnest($2::numeric[], $3::bytea[], $4::bigint[]) with ordinality u(t, c, x, i)
		cross join lateral (select * from feedback where chain_id = $1 and token_id = u.t and client = u.c and idx = u.x
			and block <= $5 offset 0) f`,
		f.chain.ID, ids, clients, indexes, f.parent).Query(func(rows pgx.Rows) error {
		var i int
		var revoked bool
		var value column.BigNum
		var decimals uint8
		_, err := pgx.ForEachRow(rows, []any{&i, &revoked, &value, &decimals}, func() error {
			r := f.ratings[ratings[i-1]]
			r.revoked, r.value, r.decimals = revoked, value.Int, decimals
			return nil
		})
		return err
	})
}

// ratingArrays returns keys of ratings as array parameters. An index beyond bigint, which only a
// foreign log can hold, finds nothing.
func ratingArrays(ratings []ratingKey) (ids string, clients [][]byte, indexes []int64) {
	indexes = make([]int64, len(ratings))
	ptrs := make([]*ratingKey, len(ratings))
	for i := range ratings {
		indexes[i], ptrs[i] = int64(ratings[i].index), &ratings[i]
	}
	ids, clients = pairArrays(ptrs, func(k *ratingKey) *pairKey { return &k.pairKey })
	return ids, clients, indexes
}

// queueOperators loads which of the named approvals for all are in force.
func (f *fold) queueOperators(b *pgx.Batch) {
	spans := slices.Collect(maps.Keys(f.operators))
	owners, operators := make([][]byte, len(spans)), make([][]byte, len(spans))
	for i := range spans {
		owners[i], operators[i] = spans[i].owner[:], spans[i].operator[:]
	}
	b.Queue(`
		select u.i from unnest($2::bytea[], $3::bytea[]) with ordinality u(w, o, i)
		cross join lateral (select from operators where chain_id = $1 and owner = u.w and operator = u.o and to_block is
			null offset 0) s`,
		f.chain.ID, owners, operators).Query(func(rows pgx.Rows) error {
		var i int
		_, err := pgx.ForEachRow(rows, []any{&i}, func() error {
			o := f.operators[spans[i-1]]
			o.approved, o.before = true, true
			return nil
		})
		return err
	})
}

// queueRequests loads the named validation requests and whether they are answered.
func (f *fold) queueRequests(b *pgx.Batch) {
	requests := slices.Collect(maps.Keys(f.requests))
	contracts, hashes := make([][]byte, len(requests)), make([][]byte, len(requests))
	for i := range requests {
		contracts[i], hashes[i] = requests[i].contract[:], requests[i].hash[:]
	}
	b.Queue(`
		select u.i, r.token_id, r.validator, r.block, r.log_index, exists (select from validation_responses v
			where v.chain_id = $1 and v.contract = u.c and v.request_hash = u.h)
		from unnest($2::bytea[], $3::bytea[]) with ordinality u(c, h, i)
		cross join lateral (select * from validation_requests where chain_id = $1 and contract = u.c and request_hash =
			u.h offset 0) r`,
		f.chain.ID, contracts, hashes).Query(func(rows pgx.Rows) error {
		var i int
		l := foldRequest{known: true}
		_, err := pgx.ForEachRow(rows, []any{&i, (*column.TokenNum)(&l.token), (*column.Address)(&l.validator),
			&l.at.Block, &l.at.Log, &l.answered}, func() error {
			*f.requests[requests[i-1]] = l
			return nil
		})
		return err
	})
}
