package statsdb

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/query"
)

// Validator is how an address answers requests for validations on one chain.
type Validator struct {
	ChainID uint64
	Address common.Address
	// Requests are all that were made of it, Answered those with an answer. Agents are those of all requests.
	Requests, Answered, Agents int64
	// MedianBlocks and MedianSeconds are between a request and its first answer; nil without an answer, and where the
	// times of blocks are not known.
	MedianBlocks, MedianSeconds *int64
	// MeanResponse is that of the newest answer of each request, 0 to 100; nil without one.
	MeanResponse *float64
	First, Last  repute.Block // of its requests
	Tags         []TagCount   // of the newest answers, the ten with most
}

// TagCount is how many have a tag.
type TagCount struct {
	Tag   Text
	Count int64
}

// Text is the head of a text of the chain.
type Text struct {
	Bytes   []byte // no more than the first column.MaxListed bytes
	Hash    [32]byte
	Partial bool // the text is longer
}

// textOf returns a text of which HeadOf was read.
func textOf(head []byte, hash column.Hash) (t Text) {
	t.Bytes, t.Hash = column.Head(head, column.MaxListed, &t.Partial), hash
	return t
}

// ValidatorFilter selects validators.
type ValidatorFilter struct {
	ChainIDs []uint64        // nil for all
	Address  *common.Address // nil for all validators
	// TrustedOnly counts only requests in validation contracts on the allow-list of their chain.
	TrustedOnly bool
	After       string // Next of the page before, with the same filter
	Limit       int    // 1..MaxPage
}

// usePos is the position in a list by use: a count, a chain where the list has one, and what tells equal ones apart.
type usePos struct {
	Count int64  `json:"n"`
	Chain int64  `json:"c,omitempty"`
	Key   []byte `json:"k"`
}

// mostUsed is the position before everything.
func mostUsed() usePos {
	return usePos{Count: chaindb.Everything, Chain: chaindb.Everything, Key: []byte{}}
}

// Validators returns validators by chain, those with most requests first.
func Validators(ctx context.Context, db *store.DB, f ValidatorFilter) (page store.Page[Validator], err error) {
	if err := store.CheckLimit(f.Limit); err != nil {
		return page, err
	}
	question, from, err := store.BeginPage(f.After, mostUsed(), "validators", f.ChainIDs, f.Address, f.TrustedOnly)
	if err != nil {
		return page, err
	}
	err = chaindb.View(ctx, db, "list validators", func(ctx context.Context, tx pgx.Tx) error {
		chains, err := chaindb.AskedChains(ctx, tx, f.ChainIDs)
		if err != nil {
			return err
		}
		page.AsOf = chaindb.LatestOf(chains)
		items, err := f.read(ctx, tx, chains, from)
		if err != nil {
			return err
		}
		page.Items, page.Next, err = store.Cut(items, f.Limit, question, func(v Validator) usePos {
			return usePos{v.Requests, int64(v.ChainID), v.Address.Bytes()}
		})
		return err
	})
	return page, err
}

// ValidatorInto reads how a validator answers on each chain into list, on a snapshot that has other things to read.
func ValidatorInto(address common.Address, trustedOnly bool, list *[]Validator) query.Beside {
	return func(ctx context.Context, tx pgx.Tx, chains []*chaindb.ChainView) (err error) {
		f := ValidatorFilter{Address: &address, TrustedOnly: trustedOnly, Limit: store.MaxPage}
		*list, err = f.read(ctx, tx, chains, mostUsed())
		return err
	}
}

// read reads one row more than the page has.
func (f ValidatorFilter) read(ctx context.Context, tx pgx.Tx, chains []*chaindb.ChainView, from usePos) ([]Validator,
	error) {
	args := []any{chaindb.ChainIDs(chains), from.Count, from.Chain, column.OrEmpty(from.Key), f.Limit + 1,
		f.TrustedOnly}
	only := ""
	if f.Address != nil {
		only = " and q.validator = $7"
		args = append(args, f.Address[:])
	}
	rows, _ := tx.Query(ctx, validatorsSQL(only), args...)
	return pgx.CollectRows(rows, scanValidator)
}

// maxTagsOfValidator is how many tags of a validator are listed.
const maxTagsOfValidator = 10

// validatorsSQL returns the statement of Validators. It counts requests by their index and reads answers of the page's
// validators alone. only is a further condition on requests q.
func validatorsSQL(only string) string {
	return fmt.Sprintf(`
		with page as (
			select * from (
				select q.chain_id, q.validator, count(*) as requests
				from validation_requests q join chains c on c.chain_id = q.chain_id
				where q.chain_id = any($1) and (not $6 or q.contract = any(c.validations))%[1]s
				group by 1, 2) u
			where (requests, chain_id, validator) < ($2, $3, $4)
			order by requests desc, chain_id desc, validator desc limit $5),
		asked as (
			select p.chain_id, p.validator, q.token_id, q.block, f.block as answered, l.response, l.tag,
				extract(epoch from fb.time - qb.time)::bigint as seconds
			from page p
			join chains c on c.chain_id = p.chain_id
			join validation_requests q on q.chain_id = p.chain_id and q.validator = p.validator
				and (not $6 or q.contract = any(c.validations))
			left join lateral (
				select block from validation_responses x
				where (x.chain_id, x.contract, x.request_hash) = (q.chain_id, q.contract, q.request_hash)
				order by x.block, x.log_index limit 1) f on true
			left join lateral (
				select response, tag from validation_responses x
				where (x.chain_id, x.contract, x.request_hash) = (q.chain_id, q.contract, q.request_hash)
				order by x.block desc, x.log_index desc limit 1) l on true
			left join blocks qb on (qb.chain_id, qb.number) = (q.chain_id, q.block)
			left join blocks fb on (fb.chain_id, fb.number) = (q.chain_id, f.block))
		select p.chain_id, p.validator, p.requests, d.*, fb.hash, fb.time, lb.hash, lb.time, g.tags, g.hashes, g.counts
		from page p
		join lateral (
			select count(a.response), count(distinct a.token_id), avg(a.response)::float8,
				percentile_disc(0.5) within group (order by a.answered - a.block),
				percentile_disc(0.5) within group (order by a.seconds), min(a.block) as first, max(a.block) as last
			from asked a where a.chain_id = p.chain_id and a.validator = p.validator) d on true
		left join blocks fb on (fb.chain_id, fb.number) = (p.chain_id, d.first)
		left join blocks lb on (lb.chain_id, lb.number) = (p.chain_id, d.last)
		join lateral (
			select array_agg(tag order by n desc, hash) as tags, array_agg(hash order by n desc, hash) as hashes,
				array_agg(n order by n desc, hash) as counts
			from (
				select %[2]s as tag, t.hash, count(*) as n from asked a join tags t on t.id = a.tag
				where a.chain_id = p.chain_id and a.validator = p.validator
				group by t.id order by n desc, t.hash limit %[3]d) g) g on true
		order by p.requests desc, p.chain_id desc, p.validator desc`, only, column.HeadOf("t.value"), maxTagsOfValidator)
}

// scanValidator reads a row of validatorsSQL.
func scanValidator(row pgx.CollectableRow) (v Validator, err error) {
	var first, last blockRow
	var tags [][]byte
	var hashes []column.Hash
	var counts []int64
	err = row.Scan(&v.ChainID, (*column.Address)(&v.Address), &v.Requests, &v.Answered, &v.Agents, &v.MeanResponse,
		&v.MedianBlocks, &v.MedianSeconds, &first.number, &last.number, &first.hash, &first.time, &last.hash,
		&last.time, &tags, &hashes, &counts)
	v.First, v.Last = first.block(), last.block()
	for i := range tags {
		v.Tags = append(v.Tags, TagCount{textOf(tags[i], hashes[i]), counts[i]})
	}
	return v, err
}
