package docdb

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"repute/store"
)

// ReasonDenied is the reason of a document that the operator's deny-list forbids.
const ReasonDenied = "denied"

// judge marks the results whose bytes are denied.
func judge(ctx context.Context, db *store.DB, results []FetchResult) error {
	sums, roots := make([][]byte, len(results)), make([][]byte, len(results))
	for i, r := range results {
		sums[i], roots[i] = r.sum, r.Root
	}
	rows, err := db.Pool().Query(ctx, `
		select n from unnest($1::bytea[], $2::bytea[]) with ordinality as k(sum, root, n)
		where exists (select from denied) and k.sum is not null and (`+deniedBytes("k.sum")+` is not null
			or exists (select from denied where kind = 'cid' and value = encode(k.root, 'hex')))`, sums, roots)
	if err != nil {
		return err
	}
	var n int
	_, err = pgx.ForEachRow(rows, []any{&n}, func() error { results[n-1].denied = true; return nil })
	return err
}

// holdDenials keeps the deny-list as it is while refusals are stored: whoever takes a
// denial back finds all of them, before it or after. It comes in front of every lock of a
// URI, as it does there.
func (s saving) holdDenials(ctx context.Context, tx pgx.Tx) error {
	if !slices.ContainsFunc(s.results, refused) {
		return nil
	}
	_, err := tx.Exec(ctx, "lock table denied in share mode")
	return err
}

func refused(r FetchResult) bool { return r.Reason == ReasonDenied }

// withoutAllowed leaves out the refusals whose denial was taken back since the claim:
// nothing was learnt, and their URIs are due again.
func (s saving) withoutAllowed(ctx context.Context, tx pgx.Tx) (saving, error) {
	var ids []int64
	var kinds, values []string
	for _, r := range s.results {
		if refused(r) {
			ids, kinds, values = append(ids, r.URIID), append(kinds, string(r.Denial.Kind)), append(values, r.Denial.Value)
		}
	}
	if ids == nil {
		return s, nil
	}
	rows, err := tx.Query(ctx, `
		with allowed as (
			select u.id from unnest($1::bigint[], $2::text[], $3::text[]) as k(id, kind, value) join uris u on u.id = k.id
			where `+deniedURI("u")+` is null and not exists (select from denied d where (d.kind, d.value) = (k.kind, k.value))),
		due as (
			update uris u set next_due = now(), attempts = greatest(u.attempts - 1, 0) from allowed a where u.id = a.id
			returning u.id, u.host, u.rank),
		turns as (`+ScheduleHosts("due")+`)
		select id from due`, ids, kinds, values)
	if err != nil {
		return s, err
	}
	allowed, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return s, err
	}
	return saving{
		results: slices.DeleteFunc(slices.Clone(s.results), func(r FetchResult) bool { return slices.Contains(allowed, r.URIID) }),
		ids:     slices.DeleteFunc(slices.Clone(s.ids), func(id int64) bool { return slices.Contains(allowed, id) }),
	}, nil
}

// What the deny-list forbids, as SQL for all who read: each gives the reason, null when
// there is none. Mostly nothing is denied, and then no row is asked about.

// orNothing is null at once while the deny-list is empty.
func orNothing(reason string) string {
	return `case when exists (select from denied) then ` + reason + ` end`
}

// deniedBytes is about the bytes with hash sum, wherever they come from: they are named
// by their sha256, or by a CID that stands for nothing else.
func deniedBytes(sum string) string {
	return orNothing(`(select max(x.reason) from (
		select reason from denied where (kind, value) in (('sha256', encode(` + sum + `, 'hex')), ('cid', '1220' || encode(` + sum + `, 'hex')))
		union all
		select n.reason from documents whole cross join unnest(whole.roots) root join denied n on n.kind = 'cid' and n.value = encode(root, 'hex')
		where whole.sha256 = ` + sum + `) x)`)
}

// deniedWay is about URI u, whatever it gives: by its host, the host it leads to, or the
// CID it begins with.
func deniedWay(u string) string {
	return orNothing(`(select max(x.reason) from denied x where (x.kind, x.value) in (('cid', encode(` + u + `.cid, 'hex')),
		('host', split_part(` + u + `.host, ':', 1)), ('host', split_part(` + u + `.served_by, ':', 1))))`)
}

// deniedAgent is about agent a.
func deniedAgent(a string) string { return deniedToken(a+".chain_id", a+".token_id") }

// deniedToken is about the agent of a chain with a token.
func deniedToken(chain, token string) string {
	return orNothing(`(select x.reason from denied x where x.kind = 'agent' and x.value = ` + chain + ` || ':' || ` + token + `)`)
}

// DeniedFile selects why the file of URI u must not be shown.
func DeniedFile(u string) string {
	return `coalesce(` + deniedBytes(u+".sha256") + `, ` + deniedWay(u) + `)`
}

// DeniedDocument selects why the document of URI u must not be shown for agent a.
func DeniedDocument(u, a string) string {
	return `coalesce(` + deniedBytes(u+".sha256") + `, ` + deniedWay(u) + `, ` + deniedAgent(a) + `)`
}

// deniedUsers selects why URI u must not be read for its agents: each that has it is
// denied, or nobody has it and a denied one had it. Files of feedback are everybody's.
func deniedUsers(u string) string {
	return orNothing(`(case when ` + u + `.rank < 2 and not exists (
			select from agents a where a.uri_id = ` + u + `.id and ` + deniedAgent("a") + ` is null)
		then (select max(x.reason) from denied x
			join agent_states s on s.chain_id = case x.kind when 'agent' then split_part(x.value, ':', 1)::bigint end
				and s.token_id = case x.kind when 'agent' then split_part(x.value, ':', 2)::numeric end
			where x.kind = 'agent' and s.uri_id = ` + u + `.id) end)`)
}

// deniedURI is the reason why a URI must not be fetched.
func deniedURI(u string) string {
	return `coalesce(` + deniedWay(u) + `, ` + deniedUsers(u) + `)`
}

// DeniedServed selects why the stored bytes with hash sum must not be given to anybody:
// they are denied themselves, or every URI is that gave them, now or before.
func DeniedServed(sum string) string {
	return orNothing(`coalesce(` + deniedBytes(sum) + `,
		(select max(w.reason) from (
			select ` + deniedURI("y") + ` as reason from (
				select id from uris where sha256 = ` + sum + ` union select uri_id from fetches where sha256 = ` + sum + `) g
			join uris y on y.id = g.id) w
		having bool_and(w.reason is not null)))`)
}
