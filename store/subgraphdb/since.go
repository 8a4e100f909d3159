package subgraphdb

import (
	"context"
	"errors"
	"math"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// since is a time in seconds since 1970, from which on the rows of a filter are.
type since int64

// since returns the time from which on all values are that a comparison with a time admits. ok is false for comparisons
// with no such bound. Unknown times are 0, so 0 is no bound.
func (f *Filter) since() (_ since, ok bool) {
	if f.Field == nil || f.Child != nil || f.Field.Block == "" || f.Field.Type != BigInt || f.Op != Greater && f.Op != GreaterEqual {
		return 0, false
	}
	text, _ := f.Values[0].(string)
	n, err := strconv.ParseInt(text, 10, 64)
	return since(n), err == nil && n > 0 && n <= math.MaxInt32*8
}

// firstBlocks returns, for each time that the filter of a query compares with, a block before which all times are earlier.
// With it a comparison with a time is one with a block, which an index answers.
func (s *Snapshot) firstBlocks(ctx context.Context, f *Filter) (map[since]int64, error) {
	out := map[since]int64{}
	for _, c := range f.all() {
		t, bounds := c.since()
		if _, known := out[t]; !bounds || known {
			continue
		}
		n, err := s.firstBlock(ctx, t)
		if err != nil {
			return nil, err
		}
		out[t] = n
	}
	return out, nil
}

// firstBlock finds the block by halves, because times ascend with the numbers of blocks and only these have an index.
func (s *Snapshot) firstBlock(ctx context.Context, t since) (int64, error) {
	low, high := int64(0), s.Chain.Cursor+1
	for low < high {
		middle := low + (high-low)/2
		var number, seconds int64
		err := s.tx.QueryRow(ctx, `
			select number, extract(epoch from time)::bigint from blocks
			where chain_id = $1 and number >= $2 and time is not null order by number limit 1`, int64(s.Chain.ID), middle).
			Scan(&number, &seconds)
		switch {
		case errors.Is(err, pgx.ErrNoRows) || err == nil && seconds >= int64(t):
			high = middle
		case err != nil:
			return 0, err
		default:
			low = number + 1
		}
	}
	return low, nil
}
