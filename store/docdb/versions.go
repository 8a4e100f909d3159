package docdb

import (
	"context"
	"errors"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
)

// Body returns stored bytes. repute.ErrNotFound when they were never seen. repute.ErrGone when they
// were dropped to save space, or are denied (*repute.DeniedError): by their hash, or because every
// URI that returned them is.
func Body(ctx context.Context, db *store.DB, sum [32]byte) (c repute.Content, err error) {
	var kept bool
	var keccak []byte
	var denied *string
	err = db.Readers().QueryRow(ctx, `
		select d.body, d.body is not null, d.keccak, d.size, d.media_type, d.first_seen, `+DeniedServed("d.sha256")+`
		from documents d where d.sha256 = $1`, sum[:]).
		Scan(&c.Body, &kept, &keccak, &c.Size, &c.MediaType, &c.FirstSeen, &denied)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return c, repute.Missing("document 0x%x", sum)
	case err != nil:
		return c, store.Failed("read document", err)
	case denied != nil:
		return repute.Content{}, &repute.DeniedError{Reason: *denied}
	case !kept:
		return repute.Content{}, &droppedError{}
	}
	c.SHA256, c.Keccak = sum, common.BytesToHash(keccak)
	return c, nil
}

// droppedError is returned for bytes that are known and no longer stored.
type droppedError struct{}

// Error says why there are no bytes.
func (*droppedError) Error() string { return "the bytes were dropped to save space" }

// Unwrap returns repute.ErrGone.
func (*droppedError) Unwrap() error { return repute.ErrGone }

// versionPos is a position in a list of versions.
type versionPos struct {
	Block int64     `json:"b"`
	At    time.Time `json:"t"`
}

// Versions returns what an agent's URIs returned while the agent had them: the newest URI first and
// of each the newest outcome first. A URI that was not read in that time has one entry without
// FetchedAt. after is Next of the page before, limit 1 to MaxPage.
func Versions(ctx context.Context, db *store.DB, id repute.AgentID, after string,
	limit int) (page store.Page[repute.DocumentVersion], err error) {
	if err := store.CheckLimit(limit); err != nil {
		return page, err
	}
	question, err := store.CursorFor("documents", id.ChainID, id.TokenID)
	if err != nil {
		return page, err
	}
	from, ok, err := store.DecodeCursor[versionPos](question, after)
	if err != nil {
		return page, err
	}
	if !ok {
		from = versionPos{chaindb.Everything, time.Now().Add(time.Hour)}
	}
	err = chaindb.ViewAgent(ctx, db, "list documents", id, repute.At{Finality: repute.Latest},
		func(ctx context.Context, s chaindb.Subject) error {
			page.AsOf = []repute.AsOf{s.AsOf}
			rows, _ := s.Tx.Query(ctx, versionsSQL(), id.ChainID, column.TokenNum(id.TokenID), from.Block, from.At,
				limit+1)
			items, err := pgx.CollectRows(rows, scanVersion)
			if err != nil {
				return err
			}
			page.Items, page.Next, err = store.Cut(items, limit, question, func(v repute.DocumentVersion) versionPos {
				return versionPos{int64(v.FromBlock), v.FetchedAt}
			})
			return err
		})
	return page, err
}

// versionsSQL returns the statement of Versions. It joins successive states of an agent that have
// one URI. Of a URI whose content can change it takes only what was read while the agent had the
// URI.
func versionsSQL() string {
	return `
	with moves as (
		select uri_id, from_block, to_block, uri_id is distinct from lag(uri_id) over (order by from_block) as moved
		from agent_states where chain_id = $1 and token_id = $2),
	spans as (
		select uri_id, min(from_block) as from_block, case when bool_or(to_block is null) then 0 else max(to_block) end as
			to_block
		from (select *, count(*) filter (where moved) over (order by from_block) as span from moves) s group by span, uri_id),
	timed as (
		select s.*, b.time as begun, e.time as ended from spans s
		left join blocks b on (b.chain_id, b.number) = ($1, s.from_block)
		left join blocks e on (e.chain_id, e.number) = ($1, s.to_block))
	select ` + column.HeadOf("u.uri") + `, octet_length(u.uri), s.from_block, s.to_block,
		f.fetched_at, coalesce(f.source, ''), f.sha256, coalesce(d.size, 0), d.body is not null and ` + DeniedServed("f.sha256") + ` is null and ` + deniedURI("u") + ` is null
			and ` + deniedToken("$1::bigint", "$2::numeric") + ` is null, coalesce(f.reason, ''),
		coalesce(` + DeniedFile("u") + `, ` + deniedBytes("f.sha256") + `, ` + deniedToken("$1::bigint", "$2::numeric") + `) is not null
	from timed s
	join uris u on u.id = s.uri_id
	left join fetches f on f.uri_id = s.uri_id and (u.kind not in ('https', 'http') or ` + readMeanwhile + `)
	left join documents d on d.sha256 = f.sha256
	where (s.from_block, coalesce(f.fetched_at, '0001-01-01Z')) < ($3::bigint, $4::timestamptz)
	order by s.from_block desc, f.fetched_at desc nulls last limit $5`
}

// readMeanwhile is the SQL of whether fetch f belongs to the time of span s: it was done within it,
// or it is the last one before, whose outcome was current when the agent got the URI.
const readMeanwhile = `((s.ended is null or f.fetched_at < s.ended) and (s.begun is null or f.fetched_at >= coalesce((
	select max(l.fetched_at) from fetches l where l.uri_id = s.uri_id and l.fetched_at < s.begun), s.begun)))`

// scanVersion reads a row of versionsSQL.
func scanVersion(row pgx.CollectableRow) (v repute.DocumentVersion, err error) {
	var uri, sum []byte
	var fetched *time.Time
	var partial, denied bool
	err = row.Scan(&uri, &v.URISize, &v.FromBlock, &v.ToBlock, &fetched, &v.Source, &sum, &v.Size, &v.Kept, &v.Reason,
		&denied)
	copy(v.SHA256[:], sum)
	v.URI, v.FetchedAt = column.HeadText(uri, &partial), column.TimeOf(fetched)
	if denied {
		v.URI = column.WithoutContent(v.URI)
	}
	return v, err
}
