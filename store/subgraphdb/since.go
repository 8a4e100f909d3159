package subgraphdb

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// since is a time in seconds since 1970, from which on the rows of a filter are.
type since int64

// since returns the time from which on all values are that a comparison with a time admits. ok is false for comparisons
// with no such bound. Unknown times are 0, so 0 is no bound.
func (f *Filter) since() (_ since, ok bool) {
	if f.Field == nil || f.Child != nil || f.Field.Block == "" || f.Field.Type != BigInt ||
		f.Op != Greater && f.Op != GreaterEqual {
		return 0, false
	}
	text, _ := f.Values[0].(string)
	n, err := strconv.ParseInt(text, 10, 64)
	return since(n), err == nil && n > 0 && n <= math.MaxInt32*8
}

// latest returns the times that bound the conjunction that a filter is: of each field the latest one, which implies the
// others.
func (f *Filter) latest() (times []int64) {
	of := map[*Field]since{}
	for _, c := range f.all() {
		if t, bounds := c.since(); bounds {
			of[c.Field] = max(of[c.Field], t)
		}
	}
	for _, t := range of {
		times = append(times, int64(t))
	}
	slices.Sort(times)
	return slices.Compact(times)
}

// firstBlocks returns, for the times that bound the filter of a query, a block before which all times are earlier. With
// it a comparison with a time is one with a block, which an index answers. All are found by one statement, whatever the
// number of conditions: by halves, because times ascend with the numbers of blocks and only these have an index.
func (s *Snapshot) firstBlocks(ctx context.Context, f *Filter) (map[since]int64, error) {
	times := f.latest()
	if len(times) == 0 {
		return nil, nil
	}
	rows, _ := s.tx.Query(ctx, `
		with recursive search (seconds, low, high) as (
			select t, 0::bigint, $2::bigint from unnest($3::bigint[]) t
			union all
			select s.seconds,
				case when b.seconds < s.seconds then b.number + 1 else s.low end,
				case when b.seconds < s.seconds then s.high else (s.low + s.high) / 2 end
			from search s left join lateral (
				select number, extract(epoch from time)::bigint as seconds from blocks
				where chain_id = $1 and number >= (s.low + s.high) / 2 and time is not null order by number limit 1) b on true
			where s.low < s.high)
		select seconds, low from search where low >= high`, int64(s.Chain.ID), s.Chain.Cursor+1, times)
	out := map[since]int64{}
	var seconds, number int64
	_, err := pgx.ForEachRow(rows, []any{&seconds, &number}, func() error {
		out[since(seconds)] = number
		return nil
	})
	return out, err
}
