package store_test

import (
	"fmt"
	"reflect"
	"strconv"
	"testing"

	"repute/store/subgraphdb"
)

// TestSubgraphManyTimes: however many times a query compares with, few statements read the rows of the latest one.
func TestSubgraphManyTimes(t *testing.T) {
	t.Parallel()
	db, r := crowd(t)
	s := subgraphdb.Entities()
	e := s.Entity("Agent")
	where := func(seconds int, fields ...string) (out subgraphdb.Filter) {
		for _, f := range fields {
			out.And = append(out.And, subgraphdb.Filter{Field: e.Field(f), Op: subgraphdb.Greater,
				Values: []any{strconv.Itoa(seconds)}})
		}
		return out
	}
	read := func(f subgraphdb.Filter) ([]subgraphdb.Row, int) {
		r.take()
		rows := readSubgraph(t, db, s, subgraphdb.Query{Entity: e, Columns: []*subgraphdb.Field{e.ID()}, First: 10,
			Where: f,
			Order: subgraphdb.Order{Field: e.Field("createdAt")}})
		return rows, len(r.take())
	}
	none, without := read(subgraphdb.Filter{})
	if len(none) != 10 {
		t.Fatalf("%d agents", len(none))
	}
	for _, fields := range [][]string{{"createdAt"}, {"createdAt", "updatedAt"}} {
		var many subgraphdb.Filter
		for n := range 1_000 / len(fields) {
			many.And = append(many.And, where(1+n*20, fields...))
		}
		want, _ := read(where(1+(1_000/len(fields)-1)*20, fields...))
		got, statements := read(many)
		if len(want) != 10 || !reflect.DeepEqual(got, want) {
			t.Errorf("%v: %v, not %v", fields, got, want)
		}
		if statements != without+1 {
			t.Errorf("%v: %d statements, %d without conditions", fields, statements, without)
		}
	}
}

// TestSubgraphTimes: the rows since a time are those that the times say, where times are unknown too.
func TestSubgraphTimes(t *testing.T) {
	t.Parallel()
	db, _ := crowd(t)
	sqlExec(t, db,
		"update blocks set time = null where number % 3 = 1 or number between 5000 and 9000") // that of block n is n
	s := subgraphdb.Entities()
	e := s.Entity("Agent")
	for _, seconds := range []int{1, 99, 100, 101, 102, 4_999, 5_000, 9_000, 9_001, 20_099, 20_100, 20_101, 3_000_000} {
		rows := readSubgraph(t, db, s, subgraphdb.Query{Entity: e, Columns: []*subgraphdb.Field{e.ID()}, First: 10,
			Order: subgraphdb.Order{Field: e.Field("createdAt")}, Where: subgraphdb.Filter{Field: e.Field("createdAt"),
				Op: subgraphdb.GreaterEqual, Values: []any{strconv.Itoa(seconds)}}})
		var want []string
		for n := max(100, seconds); n <= 20_100 && len(want) < 10; n++ {
			if n%3 != 1 && (n < 5_000 || n > 9_000) {
				want = append(want, strconv.Itoa(n-100))
			}
		}
		var got []string
		for _, row := range rows {
			got = append(got, fmt.Sprint(row.Cells[0].(subgraphdb.Value)[0]))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("since %d: %v, not %v", seconds, got, want)
		}
	}
}
