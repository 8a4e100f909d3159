package docdb

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"repute/store"
)

// ReasonDenied is the reason of a document that is withheld because of the operator's deny-list.
const ReasonDenied = "denied"

// markDenied marks the results whose bytes are denied.
func markDenied(ctx context.Context, db *store.DB, results []FetchResult) error {
	sums, roots := make([][]byte, len(results)), make([][]byte, len(results))
	for i, r := range results {
		sums[i], roots[i] = r.sum, r.Root
	}
	rows, _ := db.Pool().Query(ctx, `
		select n from unnest($1::bytea[], $2::bytea[]) with ordinality as k(sum, root, n)
		where exists (select from denied) and k.sum is not null and (`+deniedBytes("k.sum")+` is not null
			or exists (select from denied where kind = 'cid' and value = encode(k.root, 'hex')))`, sums, roots)
	var n int
	_, err := pgx.ForEachRow(rows, []any{&n}, func() error { results[n-1].denied = true; return nil })
	return err
}

// holdDenials locks the deny-list against changes while refusals are stored, so that removing a
// denial finds all of them. The lock is taken before the lock of any URI, in the same order as
// there.
func (s saving) holdDenials(ctx context.Context, tx pgx.Tx) error {
	if !slices.ContainsFunc(s.results, refused) {
		return nil
	}
	_, err := tx.Exec(ctx, "lock table denied in share mode")
	return err
}

// refused reports whether a fetch was not done because of the deny-list.
func refused(r FetchResult) bool { return r.Reason == ReasonDenied }

// withoutAllowed removes refusals whose denial was removed since the claim. Their URIs are due
// again.
func (s saving) withoutAllowed(ctx context.Context, tx pgx.Tx) (saving, error) {
	var ids []int64
	var kinds, values []string
	for _, r := range s.results {
		if refused(r) {
			ids, kinds, values = append(ids, r.URIID), append(kinds, string(r.Denial.Kind)), append(values,
				r.Denial.Value)
		}
	}
	if ids == nil {
		return s, nil
	}
	rows, _ := tx.Query(ctx, `
		with allowed as (
			select u.id from unnest($1::bigint[], $2::text[], $3::text[]) as k(id, kind, value) join uris u on u.id = k.id
			where `+deniedURI("u")+` is null and not exists (select from denied d where (d.kind, d.value) = (k.kind, k.value))),
		due as (
			update uris u set next_due = now(), attempts = greatest(u.attempts - 1, 0) from allowed a where u.id = a.id
			returning u.id, u.host, u.rank),
		turns as (`+ScheduleHosts("due")+`)
		select id from due`, ids, kinds, values)
	allowed, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return s, err
	}
	return saving{
		results: slices.DeleteFunc(slices.Clone(s.results),
			func(r FetchResult) bool { return slices.Contains(allowed, r.URIID) }),
		ids: slices.DeleteFunc(slices.Clone(s.ids), func(id int64) bool { return slices.Contains(allowed, id) }),
	}, nil
}

// The functions below return SQL for statements that read documents: the reason why something is
// denied, null when it is not.

// orNothing returns the SQL of a reason that is null at once while the deny-list is empty, which is
// the common case.
func orNothing(reason string) string {
	return `case when exists (select from denied) then ` + reason + ` end`
}

// deniedBytes returns the SQL of why the bytes with hash sum are denied, wherever they come from:
// by their sha256, or by a CID that stands for exactly these bytes.
func deniedBytes(sum string) string {
	return orNothing(`(select max(x.reason) from (
		select reason from denied where (kind, value) in (('sha256', encode(` + sum + `, 'hex')), ('cid', '1220' || encode(` + sum + `, 'hex')))
		union all
		select n.reason from documents whole cross join unnest(whole.roots) root join denied n on n.kind = 'cid' and
			n.value = encode(root, 'hex')
		where whole.sha256 = ` + sum + `) x)`)
}

// deniedWay returns the SQL of why URI u is denied, whatever it returns: by its host, the host it
// redirects to, or the CID it begins with.
func deniedWay(u string) string {
	return orNothing(`(select max(x.reason) from denied x where (x.kind, x.value) in (('cid', encode(` + u +
		`.cid, 'hex')),
		('host', split_part(` + u + `.host, ':', 1)), ('host', split_part(` + u + `.served_by, ':', 1))))`)
}

// DeniedAgent returns the SQL of why the documents of agent a must not be shown; null when they may be.
func DeniedAgent(a string) string { return deniedToken(a+".chain_id", a+".token_id") }

// deniedToken returns the SQL of why the agent of a chain and a token is denied.
func deniedToken(chain, token string) string {
	return orNothing(`(select x.reason from denied x where x.kind = 'agent' and x.value = ` + chain + ` || ':' || ` +
		token + `)`)
}

// DeniedFile returns the SQL of why the file of URI u must not be shown; null when it may be.
func DeniedFile(u string) string {
	return `coalesce(` + deniedBytes(u+".sha256") + `, ` + deniedWay(u) + `)`
}

// DeniedDocument returns the SQL of why the document of URI u must not be shown for agent a; null
// when it may be.
func DeniedDocument(u, a string) string {
	return `coalesce(` + deniedBytes(u+".sha256") + `, ` + deniedWay(u) + `, ` + DeniedAgent(a) + `)`
}

// deniedUsers returns the SQL of why URI u must not be fetched for its agents: all agents that have
// it are denied, or no agent has it and a denied one had it. Files of feedback may always be
// fetched.
func deniedUsers(u string) string {
	return orNothing(`(case when ` + u + `.rank < 2 and not exists (
			select from agents a where a.uri_id = ` + u + `.id and ` + DeniedAgent("a") + ` is null)
		then (select max(x.reason) from denied x
			join agent_states s on s.chain_id = case x.kind when 'agent' then split_part(x.value, ':', 1)::bigint end
				and s.token_id = case x.kind when 'agent' then split_part(x.value, ':', 2)::numeric end
			where x.kind = 'agent' and s.uri_id = ` + u + `.id) end)`)
}

// deniedURI returns the SQL of why URI u must not be fetched; null when it may be.
func deniedURI(u string) string {
	return `coalesce(` + deniedWay(u) + `, ` + deniedUsers(u) + `)`
}

// DeniedServed returns the SQL of why the stored bytes with hash sum must not be served: they are
// denied themselves, or every URI that ever returned them is denied. Null when they may be served.
func DeniedServed(sum string) string {
	return orNothing(`coalesce(` + deniedBytes(sum) + `,
		(select max(w.reason) from (
			select ` + deniedURI("y") + ` as reason from (
				select id from uris where sha256 = ` + sum + ` union select uri_id from fetches where sha256 = ` + sum + `) g
			join uris y on y.id = g.id) w
		having bool_and(w.reason is not null)))`)
}
