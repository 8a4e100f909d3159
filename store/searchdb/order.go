package searchdb

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/query"
)

// agentPos is the position of a list on one chain: sort key and token of the last agent. Key is 0
// when the list is ordered by id.
type agentPos struct {
	Key   int64  `json:"k"`
	Token string `json:"t"`
}

// agentsPos is the position of a list: on each chain, and the mode in which its text was matched.
type agentsPos struct {
	Match  Match               `json:"m,omitempty"`
	Chains map[uint64]agentPos `json:"c"`
}

// agentEntry is one candidate of a page.
type agentEntry struct {
	id     repute.AgentID
	pos    agentPos
	key    int64 // comparable across chains: the sort key, or the time in seconds
	folded int64 // near-identical agents that are not listed
}

// agentOrder is the order of one chain's agents: by a key, then by token.
type agentOrder struct {
	key, token string // the columns; key is "" for the token alone
	join       string // what the key needs besides relation a
	time       bool   // the key is a block, which compares across chains by its time
	desc       bool
}

// order returns the order that the filter asks for.
func (f AgentFilter) order() (agentOrder, error) {
	byToken := agentOrder{token: "a.token_id", desc: f.Desc}
	byFeedback := agentOrder{key: "a.feedback", token: "a.token_id", desc: f.Desc}
	switch f.Sort {
	case query.SortID:
		return byToken, nil
	case query.SortFeedback:
		return byFeedback, nil
	case query.SortUpdated:
		return agentOrder{key: "a.updated_block", token: "a.token_id", time: true, desc: f.Desc}, nil
	case query.SortScore:
		return agentOrder{key: "ts.score", token: "ts.token_id", join: scoreJoin(), desc: f.Desc}, nil
	case "", query.SortRelevance:
		if f.Text != "" { // class before ratings, of which nobody has a trillion
			return agentOrder{key: "((a.class::bigint << 40) + least(a.feedback, (1::bigint << 40) - 1))",
				token: "a.token_id",
				desc:  f.Desc || f.Sort == ""}, nil
		}
		if f.Sort == "" {
			return byToken, nil
		}
		return byFeedback, nil
	}
	return byToken, repute.Invalid("sort", fmt.Sprintf("%q is no order", f.Sort),
		"id, feedback, updated, score or relevance")
}

// direction returns the comparison and the direction in SQL.
func (o agentOrder) direction() (than, direction string) {
	if o.desc {
		return "<", "desc"
	}
	return ">", "asc"
}

// behind returns the SQL condition of rows after the position of relation k.
func (o agentOrder) behind() string {
	than, _ := o.direction()
	if o.key == "" {
		return fmt.Sprintf("%s %s k.token", o.token, than)
	}
	return fmt.Sprintf("(%s, %s) %s (k.key, k.token)", o.key, o.token, than)
}

// by returns the SQL order by key and token.
func (o agentOrder) by() string {
	_, direction := o.direction()
	if o.key == "" {
		return o.token + " " + direction
	}
	return fmt.Sprintf("%[1]s %[3]s, %[2]s %[3]s", o.key, o.token, direction)
}

// column returns the key as a number, 0 where there is none.
func (o agentOrder) column() string {
	if o.key == "" {
		return "0::bigint"
	}
	return o.key + "::bigint"
}

// rank returns what rows of several chains are ordered by, and the join that it needs: their keys,
// or the times of the blocks that the keys are.
func (o agentOrder) rank(rows, key string) (rank, join string) {
	if o.time {
		return "coalesce(extract(epoch from b.time)::bigint, 0)",
			fmt.Sprintf(" left join blocks b on (b.chain_id, b.number) = (%s.chain_id, %s)", rows, key)
	}
	return key, ""
}

// startPos returns the position before every agent, in either direction.
func startPos(desc bool) (int64, *big.Int) {
	if desc {
		return chaindb.Everything, new(big.Int).Lsh(big.NewInt(1), 256)
	}
	return -chaindb.Everything, big.NewInt(-1)
}

// page reads the next agents of every chain: as many as the page may need of one chain, and one
// more that shows whether there is another page.
func (q *agentQuery) page(ctx context.Context, tx pgx.Tx, o agentOrder, chains []*chaindb.ChainView,
	from map[uint64]agentPos, limit int) (map[uint64][]agentEntry, error) {
	keys, tokens := make([]int64, len(chains)), make([]column.BigNum, len(chains))
	for i, c := range chains {
		key, token := startPos(o.desc)
		if p, ok := from[c.ID]; ok {
			id, err := repute.ParseTokenID(p.Token)
			if err != nil {
				return nil, store.BadCursor()
			}
			key, token = p.Key, id.ToBig()
		}
		keys[i], tokens[i] = key, column.BigNum{Int: token}
	}
	sql := q.listed(o)
	if q.match != nil {
		sql = q.ranked(o)
	}
	rows, _ := tx.Query(ctx, sql, q.withArgs(chains, keys, tokens, limit+1)...)
	out := map[uint64][]agentEntry{}
	var e agentEntry
	_, err := pgx.ForEachRow(rows, []any{&e.id.ChainID, (*column.TokenNum)(&e.id.TokenID), &e.pos.Key, &e.folded,
		&e.key},
		func() error {
			e.pos.Token = e.id.TokenID.Dec()
			out[e.id.ChainID] = append(out[e.id.ChainID], e)
			return nil
		})
	return out, err
}

// listed returns the statement that reads every chain by its own index. Parameters after those of
// the filter are the positions of the chains and the limit.
func (q *agentQuery) listed(o agentOrder) string {
	_, from := q.source(true)
	_, direction := o.direction()
	rank, join := o.rank("m", "m.key")
	n := len(q.args)
	return fmt.Sprintf(`
		select m.chain_id, m.token_id, m.key, 0::bigint, %[1]s
		from unnest($1::bigint[], $%[2]d::bigint[], $%[3]d::numeric[]) as k(chain_id, key, token)
		cross join lateral (
			select a.chain_id, %[5]s as token_id, %[6]s as key from %[7]s%[8]s
			where a.chain_id = k.chain_id and %[9]s%[10]s
			order by %[11]s limit $%[4]d) m
		%[12]s
		order by m.chain_id, m.key %[13]s, m.token_id %[13]s`,
		rank, n+1, n+2, n+3, o.token, o.column(), from, o.join, o.behind(), q.whereIn(o), o.by(), join, direction)
}

// foldKey is the SQL of what near-identical agents of one owner have in common; one of them is
// listed for all.
const foldKey = "a.owner, coalesce(s.alike::text, a.chain_id || ':' || a.token_id)"

// ranked returns the statement that orders all matches of a text and returns the next ones of each
// chain. Of near-identical agents the first in the order is listed.
func (q *agentQuery) ranked(o agentOrder) string {
	with, from := q.source(true)
	than, direction := o.direction()
	rank, join := o.rank("a", o.column())
	first, others := "1", "0::bigint"
	if !q.unfolded {
		first = fmt.Sprintf("row_number() over (partition by %[1]s order by %[2]s %[3]s, a.chain_id %[3]s, %[4]s %[3]s, a.token_id %[3]s)",
			foldKey, rank, direction, o.column())
		others = fmt.Sprintf("count(*) over (partition by %s) - 1", foldKey)
	}
	n := len(q.args)
	return fmt.Sprintf(`%[1]s,
		found as (
			select a.chain_id, a.token_id, %[2]s as key, %[13]s as rank, %[3]s as first, %[4]s as others from
				%[5]s%[6]s%[14]s where true%[7]s),
		m as (
			select found.*, row_number() over (partition by found.chain_id order by found.key %[8]s, found.token_id %[8]s) as nth
			from found join unnest($1::bigint[], $%[9]d::bigint[], $%[10]d::numeric[]) as k(chain_id, at, token) using (chain_id)
			where found.first = 1 and (found.key, found.token_id) %[12]s (k.at, k.token))
		select m.chain_id, m.token_id, m.key, m.others, m.rank from m
		where m.nth <= $%[11]d order by m.chain_id, m.nth`,
		with, o.column(), first, others, from, o.join, q.whereIn(o), direction, n+1, n+2, n+3, than, rank, join)
}

// mergeStreams merges the streams of the chains into a page. It returns the page, the position
// after it, and whether there are more agents.
func mergeStreams(streams map[uint64][]agentEntry, limit int, desc bool, from map[uint64]agentPos) (page []agentEntry,
	after map[uint64]agentPos, more bool) {
	after = maps.Clone(from)
	if after == nil {
		after = map[uint64]agentPos{}
	}
	chains := slices.Sorted(maps.Keys(streams))
	if desc {
		slices.Reverse(chains)
	}
	for len(page) < limit {
		next, ok := firstHead(streams, chains, desc)
		if !ok {
			return page, after, false
		}
		e := streams[next][0]
		streams[next] = streams[next][1:]
		page, after[next] = append(page, e), e.pos
	}
	_, more = firstHead(streams, chains, desc)
	return page, after, more
}

// firstHead returns the chain whose next agent comes first. Ties are resolved by the order of
// chains.
func firstHead(streams map[uint64][]agentEntry, chains []uint64, desc bool) (first uint64, ok bool) {
	for _, c := range chains {
		if len(streams[c]) == 0 {
			continue
		}
		if !ok || before(streams[c][0].key, streams[first][0].key, desc) {
			first, ok = c, true
		}
	}
	return first, ok
}

// before reports whether key a comes before key b.
func before(a, b int64, desc bool) bool {
	if desc {
		return a > b
	}
	return a < b
}

// scoreJoin returns the join with the newest scores ts of agents that have one.
func scoreJoin() string {
	return " join (trust_scores ts join trust_runs tr on (tr.chain_id, tr.run) = (ts.chain_id, ts.run)) on " +
		query.Scored()
}
