package query

import (
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/trustdb"
)

// maxInlineResponses is how many responses come with a rating, the oldest ones.
const maxInlineResponses = 10

// feedbackColumns returns the statement that reads ratings from a relation f with the columns of
// table feedback. What happened after block {at} is left out. The order of the columns is that of scanFeedback. A
// rating whose event or block is not stored has no transaction or time.
func feedbackColumns() string {
	return `
	select f.chain_id, c.identity, f.token_id, f.client, f.idx, f.value, f.decimals,
		` + column.HeadOf("t1.value") + `, ` + column.HeadOf("t2.value") + `, ` + column.HeadOf("f.endpoint") + `, ` + column.HeadOf("u.uri") + `, f.hash,
		f.block, f.log_index, e.tx_hash, b.time,
		f.revoked_block, f.revoked_log, re.tx_hash, rb.time, ` + trustdb.PaymentColumns + `, ` + ratingColumns("u") + `
	from f
	join chains c on c.chain_id = f.chain_id
	join tags t1 on t1.id = f.tag1
	join tags t2 on t2.id = f.tag2
	join uris u on u.id = f.uri_id
	left join events e on (e.chain_id, e.block, e.log_index) = (f.chain_id, f.block, f.log_index)
	left join blocks b on (b.chain_id, b.number) = (f.chain_id, f.block)
	left join events re on (re.chain_id, re.block, re.log_index) = (f.chain_id, f.revoked_block, f.revoked_log)
	left join blocks rb on (rb.chain_id, rb.number) = (f.chain_id, f.revoked_block)` + trustdb.JoinPayment("f") + joinRating("u")
}

// scanFeedback reads a row of feedbackColumns.
func scanFeedback(row pgx.CollectableRow) (f repute.Feedback, err error) {
	var tag1, tag2, endpoint, uri []byte
	var value column.BigNum
	var given, revoked pointRow
	var paid trustdb.PaymentRow
	var file fileRow
	into := slices.Concat(
		[]any{&f.Agent.ChainID, (*column.Address)(&f.Agent.Registry), (*column.TokenNum)(&f.Agent.TokenID),
			(*column.Address)(&f.Client), &f.Index, &value, &f.Decimals, &tag1, &tag2, &endpoint, &uri,
			(*column.Hash)(&f.Hash)},
		given.into(), revoked.into(), paid.Into(), file.into())
	if err := row.Scan(into...); err != nil {
		return f, err
	}
	f.Payment = paid.Payment()
	f.Value = value.Int
	f.Tag1, f.Tag2 = cutField(tag1, "tag1", &f.Cut, &f.Partial), cutField(tag2, "tag2", &f.Cut, &f.Partial)
	f.Endpoint = cutField(endpoint, "endpoint", &f.Cut, &f.Partial)
	f.Given, f.Revoked = *given.point(), revoked.point()
	f.File, err = file.file(f.Hash)
	f.URI = cutURI(uri, f.File, &f.Cut, &f.Partial)
	return f, err
}

// logPos is a position in a list: an event of one chain. Its members have short names because it is part of cursors.
type logPos struct {
	Block int64 `json:"b"`
	Log   int64 `json:"l"`
}

// Feedback returns one agent's ratings with up to ten responses each.
func Feedback(ctx context.Context, db *store.DB, id repute.AgentID,
	f FeedbackFilter) (page store.Page[repute.Feedback], err error) {
	desc := f.Order != OldestFirst
	if f.Order != "" && f.Order != OldestFirst && f.Order != NewestFirst {
		return page, repute.Invalid("order", fmt.Sprintf("%q is no order", f.Order), "newest or oldest")
	}
	if err := store.CheckLimit(f.Limit); err != nil {
		return page, err
	}
	question, from, err := store.BeginPage(f.After, startLog(desc), "feedback", id.ChainID, id.TokenID, f.Clients,
		tagHash(f.Tag1), tagHash(f.Tag2), f.IncludeRevoked, desc, f.At)
	if err != nil {
		return page, err
	}
	err = chaindb.ViewAgent(ctx, db, "list feedback", id, f.At, func(ctx context.Context, s chaindb.Subject) error {
		page.AsOf = []repute.AsOf{s.AsOf}
		sql, args := f.statement(desc)
		items, err := readFeedback(ctx, s.Tx, s.Block, sql,
			append(s.Key(), append([]any{from.Block, from.Log, f.Limit + 1}, args...)...)...)
		if err != nil {
			return err
		}
		page.Items, page.Next,
			err = store.Cut(items, f.Limit, question, func(f repute.Feedback) logPos { return posOf(f.Given) })
		return err
	})
	return page, err
}

// startLog returns the position before every event, in either direction.
func startLog(desc bool) logPos {
	if desc {
		return logPos{Block: chaindb.Everything}
	}
	return logPos{Block: -1}
}

// posOf returns the position of an event.
func posOf(p repute.Point) logPos { return logPos{int64(p.Block), int64(p.LogIndex)} }

// statement returns the statement that reads a page by the index on block and log index. $1 to $3
// are agent and block, $4 and $5 the position to continue after, $6 the limit. The conditions come after the range of
// the index, so that a page of few matches may read many rows.
func (f FeedbackFilter) statement(desc bool) (string, []any) {
	than, direction := ">", "asc"
	if desc {
		than, direction = "<", "desc"
	}
	var where string
	var args []any
	and := func(condition string, arg any) {
		args = append(args, arg)
		where += fmt.Sprintf(" and "+condition, 6+len(args))
	}
	if !f.IncludeRevoked {
		where += " and (revoked_block is null or revoked_block > $3)"
	}
	if f.Clients != nil {
		and("client = any($%d)", column.AddressColumn(f.Clients))
	}
	if f.Tag1 != nil {
		and("tag1 = (select id from tags where hash = $%d)", tagHash(f.Tag1))
	}
	if f.Tag2 != nil {
		and("tag2 = (select id from tags where hash = $%d)", tagHash(f.Tag2))
	}
	return fmt.Sprintf(`
		with f as (
			select * from feedback
			where chain_id = $1 and token_id = $2 and block <= $3 and (block, log_index) %s ($4, $5)%s
			order by block %s, log_index %s limit $6)`, than, where, direction, direction) + feedbackColumns() +
		fmt.Sprintf("\norder by f.block %s, f.log_index %s", direction, direction), args
}

// tagHash returns the hash of a tag, by which table tags finds it; nil for no tag.
func tagHash(tag *string) []byte {
	if tag == nil {
		return nil
	}
	h := column.Keccak(*tag)
	return h[:]
}

// readFeedback executes a statement over feedbackColumns and adds the responses as of a block. A revocation after the
// block is taken off here, because the row has the present one.
func readFeedback(ctx context.Context, tx pgx.Tx, block int64, sql string, args ...any) ([]repute.Feedback, error) {
	rows, _ := tx.Query(ctx, sql, args...)
	items, err := pgx.CollectRows(rows, scanFeedback)
	if err != nil {
		return nil, err
	}
	for i := range items {
		if r := items[i].Revoked; r != nil && int64(r.Block) > block {
			items[i].Revoked = nil
		}
	}
	return items, readResponses(ctx, tx, block, items)
}

// ratingID identifies a rating within one statement.
type ratingID struct {
	column.AgentKey
	client common.Address
	index  uint64
}

// readResponses sets ResponseCount and the first Responses of the items. It takes one statement for all items. Each
// rating has its first responses and the number of all.
func readResponses(ctx context.Context, tx pgx.Tx, block int64, items []repute.Feedback) error {
	if len(items) == 0 {
		return nil
	}
	n := len(items)
	chains, tokens := make([]uint64, n), make([]column.TokenNum, n)
	clients, indexes := make([][]byte, n), make([]uint64, n)
	byID := make(map[ratingID]*repute.Feedback, n)
	for i := range items {
		f := &items[i]
		chains[i], tokens[i] = f.Agent.ChainID, column.TokenNum(f.Agent.TokenID)
		clients[i], indexes[i] = f.Client.Bytes(), f.Index
		byID[ratingID{column.KeyOf(f.Agent), f.Client, f.Index}] = f
	}
	rows, _ := tx.Query(ctx, `
		select k.chain_id, k.token_id, k.client, k.idx, n.n, r.responder, `+column.HeadOf("u.uri")+`, r.hash, r.block, r.log_index, e.tx_hash, b.time, `+fileColumns("u")+`
		from unnest($1::bigint[], $2::numeric[], $3::bytea[], $4::bigint[]) as k(chain_id, token_id, client, idx)
		cross join lateral (
			select count(*) as n from responses r
			where (r.chain_id, r.token_id, r.client, r.idx) = (k.chain_id, k.token_id, k.client, k.idx) and r.block <= $5) n
		cross join lateral (
			select * from responses r
			where (r.chain_id, r.token_id, r.client, r.idx) = (k.chain_id, k.token_id, k.client, k.idx) and r.block <= $5
			order by r.block, r.log_index limit $6) r
		join uris u on u.id = r.uri_id
		left join events e on (e.chain_id, e.block, e.log_index) = (r.chain_id, r.block, r.log_index)
		left join blocks b on (b.chain_id, b.number) = (r.chain_id, r.block)`+joinFile("u")+`
		order by r.block, r.log_index`, chains, tokens, clients, indexes, block, maxInlineResponses)
	return collectResponses(rows, byID)
}

// collectResponses adds the responses in rows to their ratings.
func collectResponses(rows pgx.Rows, byID map[ratingID]*repute.Feedback) error {
	var id ratingID
	var responder column.Address
	var hash column.Hash
	var uri []byte
	var count int64
	var at pointRow
	var row fileRow
	into := slices.Concat([]any{&id.Chain, (*column.TokenNum)(&id.Token), (*column.Address)(&id.client), &id.index,
		&count, &responder, &uri, &hash}, at.into(), row.into())
	_, err := pgx.ForEachRow(rows, into, func() error {
		f := byID[id]
		f.ResponseCount = count
		file, err := row.file(common.Hash(hash))
		r := repute.Response{Responder: common.Address(responder), Hash: common.Hash(hash), File: file, At: *at.point()}
		r.URI = cutURI(uri, file, &r.Cut, &f.Partial)
		f.Responses = append(f.Responses, r)
		return err
	})
	return err
}

// FeedbackByAgents returns up to limit of the newest live ratings of each agent. Agents without any
// are absent.
func FeedbackByAgents(ctx context.Context, db *store.DB, ids []repute.AgentID,
	limit int) (out map[repute.AgentID]store.FirstRows[repute.Feedback], err error) {
	if err := store.CheckLimit(limit); err != nil {
		return nil, err
	}
	chains, tokens := column.KeyColumns(ids)
	err = chaindb.View(ctx, db, "read feedback", func(ctx context.Context, tx pgx.Tx) error {
		items, err := readFeedback(ctx, tx, chaindb.Everything, `
			with f as (
				select f.* from unnest($1::bigint[], $2::numeric[]) as k(chain_id, token_id)
				cross join lateral (
					select * from feedback f
					where f.chain_id = k.chain_id and f.token_id = k.token_id and f.revoked_block is null
					order by f.block desc, f.log_index desc limit $3) f)`+feedbackColumns()+`
			order by f.chain_id, f.token_id, f.block desc, f.log_index desc`, chains, tokens, limit+1)
		out = store.FirstRowsOf(items, limit, func(f repute.Feedback) repute.AgentID { return f.Agent })
		return err
	})
	return out, err
}
