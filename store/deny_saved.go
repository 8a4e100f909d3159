package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

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
		turns as (`+scheduleHosts("due")+`)
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
