package query

import (
	"context"
	"errors"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
)

// validationColumns returns the statement that reads validations from a relation q with the columns
// of table validation_requests, each with its answers up to block {at}.
func validationColumns(at string) string {
	return `
	select q.chain_id, c.identity, q.token_id, q.contract, q.contract = any(c.validations), q.request_hash, q.validator, ` + column.HeadOf("qu.uri") + `,
		q.block, q.log_index, qe.tx_hash, qb.time,
		n.n, x.response, ` + column.HeadOf("xu.uri") + `, x.hash, ` + column.HeadOf("xt.value") + `, x.block, x.log_index, xe.tx_hash, xb.time,
		` + fileColumns("qu") + `, ` + fileColumns("xu") + `
	from q
	join chains c on c.chain_id = q.chain_id
	join uris qu on qu.id = q.uri_id
	left join events qe on (qe.chain_id, qe.block, qe.log_index) = (q.chain_id, q.block, q.log_index)
	left join blocks qb on (qb.chain_id, qb.number) = (q.chain_id, q.block)
	cross join lateral (
		select count(*) as n from validation_responses x
		where (x.chain_id, x.contract, x.request_hash) = (q.chain_id, q.contract, q.request_hash) and x.block <= ` + at + `) n
	left join lateral (
		select * from validation_responses x
		where (x.chain_id, x.contract, x.request_hash) = (q.chain_id, q.contract, q.request_hash) and x.block <= ` + at + `
		order by x.block desc, x.log_index desc limit 1) x on true
	left join uris xu on xu.id = x.uri_id
	left join tags xt on xt.id = x.tag
	left join events xe on (xe.chain_id, xe.block, xe.log_index) = (x.chain_id, x.block, x.log_index)
	left join blocks xb on (xb.chain_id, xb.number) = (x.chain_id, x.block)` + joinFile("qu") + joinFile("xu")
}

// scanValidation reads a row of validationColumns.
func scanValidation(row pgx.CollectableRow) (v repute.Validation, err error) {
	var requestURI, uri, tag []byte
	var hash column.Hash
	var response *uint8
	var requested, answered pointRow
	var asked, said fileRow
	into := slices.Concat(
		[]any{&v.ChainID, (*column.Address)(&v.Agent.Registry), (*column.TokenNum)(&v.Agent.TokenID),
			(*column.Address)(&v.Contract), &v.ContractTrusted, (*column.Hash)(&v.RequestHash),
			(*column.Address)(&v.Validator), &requestURI},
		requested.into(),
		[]any{&v.Answers, &response, &uri, &hash, &tag}, answered.into(), asked.into(), said.into())
	if err := row.Scan(into...); err != nil {
		return v, err
	}
	v.Agent.ChainID = v.ChainID
	v.Requested = *requested.point()
	if v.RequestFile, err = asked.file(v.RequestHash); err != nil {
		return v, err
	}
	v.RequestURI = cutURI(requestURI, v.RequestFile, &v.Cut, &v.Partial)
	if response != nil {
		v.Answered = &repute.ValidationAnswer{
			Response: *response, Hash: common.Hash(hash), At: *answered.point(),
		}
		v.Answered.Tag = cutField(tag, "tag", &v.Answered.Cut, &v.Partial)
		v.Answered.File, err = said.file(v.Answered.Hash)
		v.Answered.URI = cutURI(uri, v.Answered.File, &v.Answered.Cut, &v.Partial)
	}
	return v, err
}

// Validations returns one agent's validations, the newest request first, each with its latest
// answer.
func Validations(ctx context.Context, db *store.DB, id repute.AgentID,
	f ValidationFilter) (page store.Page[repute.Validation], err error) {
	if err := store.CheckLimit(f.Limit); err != nil {
		return page, err
	}
	question, from, err := store.BeginPage(f.After, startLog(true), "validations", id.ChainID, id.TokenID,
		f.TrustedOnly, f.At)
	if err != nil {
		return page, err
	}
	err = chaindb.ViewAgent(ctx, db, "list validations", id, f.At, func(ctx context.Context, s chaindb.Subject) error {
		page.AsOf = []repute.AsOf{s.AsOf}
		items, err := validations(ctx, s, from, f)
		if err != nil {
			return err
		}
		page.Items, page.Next,
			err = store.Cut(items, f.Limit, question, func(v repute.Validation) logPos { return posOf(v.Requested) })
		return err
	})
	return page, err
}

// validations reads one row more than the page has.
func validations(ctx context.Context, s chaindb.Subject, from logPos, f ValidationFilter) ([]repute.Validation, error) {
	rows, _ := s.Tx.Query(ctx, `
		with q as (
			select * from validation_requests
			where chain_id = $1 and token_id = $2 and block <= $3 and (block, log_index) < ($4, $5)
				and (not $6 or contract = any($7))
			order by block desc, log_index desc limit $8)`+validationColumns("$3")+`
		order by q.block desc, q.log_index desc`,
		append(s.Key(), from.Block, from.Log, f.TrustedOnly, column.AddressColumn(s.Chain.Validations), f.Limit+1)...)
	return pgx.CollectRows(rows, scanValidation)
}

// ValidationSubject returns the agent of a validation request. repute.ErrNotFound when no such
// request is indexed.
func ValidationSubject(ctx context.Context, db *store.DB, chainID uint64, contract common.Address,
	request common.Hash) (token repute.TokenID, err error) {
	err = db.Readers().QueryRow(ctx,
		`select token_id from validation_requests where (chain_id, contract, request_hash) = ($1, $2, $3)`,
		int64(chainID), contract[:], request[:]).Scan((*column.TokenNum)(&token))
	if errors.Is(err, pgx.ErrNoRows) {
		return token, repute.Missing("validation request %s of contract %s", request, contract)
	}
	return token, store.Failed("read validation request", err)
}

// ValidationsByAgents returns up to limit of the newest validations of each agent, of any contract.
// Agents without any are absent.
func ValidationsByAgents(ctx context.Context, db *store.DB, ids []repute.AgentID,
	limit int) (out map[repute.AgentID]store.FirstRows[repute.Validation], err error) {
	if err := store.CheckLimit(limit); err != nil {
		return nil, err
	}
	chains, tokens := column.KeyColumns(ids)
	err = chaindb.View(ctx, db, "read validations", func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `
			with q as (
				select q.* from unnest($1::bigint[], $2::numeric[]) as k(chain_id, token_id)
				cross join lateral (
					select * from validation_requests q
					where q.chain_id = k.chain_id and q.token_id = k.token_id
					order by q.block desc, q.log_index desc limit $3) q)`+validationColumns("$4")+`
			order by q.chain_id, q.token_id, q.block desc, q.log_index desc`, chains, tokens, limit+1, int64(chaindb.Everything))
		items, err := pgx.CollectRows(rows, scanValidation)
		out = store.FirstRowsOf(items, limit, func(v repute.Validation) repute.AgentID { return v.Agent })
		return err
	})
	return out, err
}

// ValidationContracts returns up to limit contracts with stored validations of a chain, on the
// allow-list or not, ordered by address.
func ValidationContracts(ctx context.Context, db *store.DB, chainID uint64, limit int) ([]common.Address, error) {
	rows, _ := db.Pool().Query(ctx, `
		select distinct contract from validation_requests where chain_id = $1 order by contract limit $2`, chainID, limit)
	list, err := pgx.CollectRows(rows, column.ScanAddress)
	return list, store.Failed("validation contracts", err)
}
