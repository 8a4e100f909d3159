package subgraphdb

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Sums of agents up to each hour or day are computed for the agents of a page, once the page is found. A page that
// depends on a sum, by its order or its conditions, needs the sums of all agents.

// hasRows reports whether the page of a query is found among the Rows of its entity.
func (q *Query) hasRows() bool {
	if q.Entity.Rows == "" || q.Order.Of == nil && q.Order.Field != nil && q.Order.Field.Sum {
		return false
	}
	return !q.Where.ofSums()
}

// ofSums reports whether a filter compares sums.
func (f *Filter) ofSums() bool {
	of := func(one Filter) bool { return one.ofSums() }
	return f.Field != nil && f.Field.Sum || slices.ContainsFunc(f.And, of) || slices.ContainsFunc(f.Or, of)
}

// pageOfSums returns the statement of a page that is found among the Rows of its entity.
func (b *builder) pageOfSums(q Query, columns []string) string {
	var keys, same []string
	for i, sql := range q.Entity.RowKey {
		keys = append(keys, fmt.Sprintf("%s as k%d", at(sql, 0), i))
		same = append(same, fmt.Sprintf("%s = k.k%d", at(sql, 0), i))
	}
	found := "select " + strings.Join(keys, ", ") + b.page(q, "")
	const some = "and h.token_id = any(array(select k0 from k))"
	return "with k as materialized (select z.*, row_number() over () as r from (" + found + ") z) select " +
		strings.Join(append([]string{"1::bigint"}, columns...), ", ") + " from k join " +
		at(q.Series.of(q.Entity.From, some), 0) + " on " + strings.Join(same, " and ") + " order by k.r"
}

// hours returns the SQL of a condition that follows from a comparison of a time with a value, and that an index of
// hours answers; empty where there is none.
func (b *builder) hours(level int, f *Filter) string {
	if f.Field.Hour == "" || len(f.Values) != 1 {
		return ""
	}
	text, _ := f.Values[0].(string)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n == math.MinInt64 {
		return ""
	}
	const micros, day = 3_600_000_000, 24
	column, hour := at(f.Field.Hour, level), n/micros
	switch f.Op {
	case Greater, GreaterEqual:
		return " and " + column + " >= " + b.arg(hour) + "::bigint"
	case Less, LessEqual: // a day may begin with any of its hours
		return " and " + column + " <= " + b.arg(hour+day) + "::bigint"
	}
	return ""
}
