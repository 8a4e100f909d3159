package subgraphdb

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTokensOfIDs: whatever id lies in a range of texts begins with a token id of one of the ranges of numbers, and
// each range has numbers of one length.
func TestTokensOfIDs(t *testing.T) {
	t.Parallel()
	bound := rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[0-9]{0,5}(:0x[0-9a-f]{0,3})?`),
		rapid.StringMatching(`[0-9a-z:]{0,4}`))
	rapid.Check(t, func(t *rapid.T) {
		r := idRange{bound.Draw(t, "from"), bound.Draw(t, "to")}
		token := rapid.StringMatching(`0|[1-9][0-9]{0,6}|[1-9][0-9]{77}`).Draw(t, "token")
		id := token + rapid.SampledFrom([]string{"", ":0xab:1", ":key"}).Draw(t, "rest")
		low, high := tokensOf(r)
		found := false
		for i := range low {
			if len(low[i]) != len(high[i]) || low[i] > high[i] || len(low[i]) > 1 && low[i][0] == '0' {
				t.Fatalf("%v: %s to %s", r, low[i], high[i])
			}
			found = found || len(low[i]) == len(token) && low[i] <= token && token <= high[i]
		}
		if inside := id >= r.from && (r.to == "" || id <= r.to); inside && !found {
			t.Fatalf("%v leaves out %s: %v %v", r, id, low, high)
		}
	})
}

// TestRangeOfFilter: the conditions that must all be true bound the ids, others do not.
func TestRangeOfFilter(t *testing.T) {
	t.Parallel()
	s := Entities()
	agent := s.Entity("Agent")
	is := func(op Op, id string) Filter { return Filter{Field: agent.ID(), Op: op, Values: []any{id}} }
	for _, c := range []struct {
		where Filter
		want  idRange
	}{
		{is(Greater, "8453:12"), idRange{from: "12"}}, {is(LessEqual, "8453:12"), idRange{to: "12"}},
		{is(Greater, "1:12"), idRange{}}, {is(Not, "8453:12"), idRange{}}, {is(Greater, ""), idRange{}},
		{Filter{And: []Filter{is(Greater, "8453:12"), {And: []Filter{is(GreaterEqual, "8453:2"), is(Less, "8453:3")}}}},
			idRange{"2", "3"}},
		{Filter{Or: []Filter{is(Greater, "8453:12")}}, idRange{}},
	} {
		if got := c.where.idRange(agent, 8453); got != c.want {
			t.Errorf("%+v: %v, not %v", c.where, got, c.want)
		}
	}
}

// TestStatementOfIDs: a list in the order of ids reads an index by token id, unless its rows have one token.
func TestStatementOfIDs(t *testing.T) {
	t.Parallel()
	s := Entities()
	feedback := s.Entity("Feedback")
	of := func(ids ...any) Filter { return Filter{Field: feedback.Field("agent"), Op: In, Values: ids} }
	for _, c := range []struct {
		q    Query
		want string
	}{
		{Query{Entity: feedback}, "between n.low and n.high"},
		{Query{Entity: feedback, Where: of("8453:1", "8453:2")}, "between n.low and n.high"},
		{Query{Entity: feedback, Where: of("8453:1")}, "order by f0.token_id asc, f0.client asc"},
		{Query{Entity: feedback, Order: Order{Field: feedback.Field("createdAt"), Desc: true}},
			"order by (f0.block) desc, "},
		{Query{Entity: s.Entity("Agent"), Order: Order{Field: s.Entity("Agent").Field("chainId")}},
			"between n.low and n.high"},
		{Query{Entity: s.Entity("FeedbackPoint")}, "order by n0.block asc, n0.log asc"},
		{Query{Entity: feedback, Parents: []Value{{"1"}}, Parent: s.Entity("Agent"),
			Of: s.Entity("Agent").Field("feedback")},
			"order by f0.token_id asc, f0.client asc"},
	} {
		c.q.Columns = []*Field{c.q.Entity.ID()}
		b := &builder{schema: s, chain: 8453, args: []any{int64(8453)}}
		if sql := b.statement(c.q); !strings.Contains(sql, c.want) {
			t.Errorf("%s: no %q in %s", c.q.Entity.Name, c.want, sql)
		}
	}
}
