package statsdb

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/query"
)

// Ranking is what a leaderboard is ordered by.
type Ranking string

// Rankings.
const (
	ByScore     Ranking = "score"     // the newest score, of rated agents
	ByReviewers Ranking = "reviewers" // distinct clients with a live rating
	ByGrowth    Ranking = "growth"    // clients that rated the agent for the first time in the period
)

// LeaderFilter selects and orders agents.
type LeaderFilter struct {
	By           Ranking
	Period       time.Duration // of ByGrowth, up to the newest block; 0 for others
	ChainIDs     []uint64      // nil for all
	MinReviewers int64         // least number of distinct clients with a live rating
	After        string        // Next of the page before, with the same filter
	Limit        int           // 1..MaxPage
}

// Leader is a ranked agent.
type Leader struct {
	Rank  int64 // from 1
	Agent repute.Agent
	// Value is what the agent is ranked by: thousandths of a point, or a number of clients.
	Value int64
	// Reviewers are the distinct clients with a live rating. NewReviewers and NewRatings are those of the period of
	// ByGrowth, 0 for others.
	Reviewers, NewReviewers, NewRatings int64
}

// leaderPos is the position in a leaderboard.
type leaderPos struct {
	Value int64  `json:"v"`
	Chain int64  `json:"c"`
	Token string `json:"t"`
	Rank  int64  `json:"r"` // how many agents are before it
}

// leaderRow is a row of a ranking.
type leaderRow struct {
	id                             repute.AgentID
	value, reviewers, fresh, given int64
}

// Leaders returns agents by rank. Equal ones are ordered by chain and token, the largest first.
func Leaders(ctx context.Context, db *store.DB, f LeaderFilter) (page store.Page[Leader], err error) {
	if err := f.check(); err != nil {
		return page, err
	}
	first := leaderPos{Value: chaindb.Everything, Chain: chaindb.Everything, Token: "0"}
	question, from, err := store.BeginPage(f.After, first, "leaders", f.By, f.Period, f.ChainIDs, f.MinReviewers)
	if err != nil {
		return page, err
	}
	token, err := repute.ParseTokenID(from.Token)
	if err != nil || from.Rank < 0 || from.Rank > chaindb.Everything/2 {
		return page, store.BadCursor()
	}
	err = chaindb.View(ctx, db, "rank agents", func(ctx context.Context, tx pgx.Tx) error {
		chains, err := chaindb.AskedChains(ctx, tx, f.ChainIDs)
		if err != nil {
			return err
		}
		page.AsOf = chaindb.LatestOf(chains)
		rows, err := f.read(ctx, tx, chains, from, token)
		if err != nil {
			return err
		}
		if page.Items, err = leadersOf(ctx, tx, rows, from.Rank); err != nil {
			return err
		}
		page.Items, page.Next, err = store.Cut(page.Items, f.Limit, question, func(l Leader) leaderPos {
			return leaderPos{l.Value, int64(l.Agent.ID.ChainID), l.Agent.ID.TokenID.Dec(), l.Rank}
		})
		return err
	})
	return page, err
}

// check returns what is wrong with the filter.
func (f LeaderFilter) check() error {
	switch {
	case f.By != ByScore && f.By != ByReviewers && f.By != ByGrowth:
		return repute.Invalid("by", fmt.Sprintf("%.50q is no ranking", string(f.By)), "score, reviewers or growth")
	case f.MinReviewers < 0:
		return repute.Invalid("minReviewers", "is negative", "0 or more")
	case (f.By == ByGrowth) != (f.Period > 0):
		return repute.Invalid("period", "belongs to by=growth", "7d, 30d or 90d with by=growth, and none with others")
	}
	return store.CheckLimit(f.Limit)
}

// read reads one row more than the page has.
func (f LeaderFilter) read(ctx context.Context, tx pgx.Tx, chains []*chaindb.ChainView, from leaderPos,
	token repute.TokenID) ([]leaderRow, error) {
	values, tokens := make([]int64, len(chains)), make([]column.BigNum, len(chains))
	for i, c := range chains {
		values[i], tokens[i] = from.Value, from.on(c.ID, token)
	}
	args := []any{chaindb.ChainIDs(chains), values, tokens, f.Limit + 1, f.MinReviewers}
	var sql string
	switch f.By {
	case ByScore:
		sql = scoreLeaders()
	case ByReviewers:
		sql = reviewerLeaders
	default:
		since := make([]*time.Time, len(chains))
		for i, c := range chains {
			if at := c.Latest().Block.Time; !at.IsZero() {
				since[i] = column.MaybeTime(at.Add(-f.Period))
			}
		}
		sql, args = growthLeaders(), append(args, since)
	}
	rows, _ := tx.Query(ctx, sql, args...)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r leaderRow, err error) {
		return r, row.Scan(&r.id.ChainID, (*column.TokenNum)(&r.id.TokenID), &r.value, &r.reviewers, &r.fresh, &r.given)
	})
}

// on returns the token after which a chain continues among agents of the position's value: all of them on chains after
// that of the position, none on chains before it.
func (p leaderPos) on(chain uint64, token repute.TokenID) column.BigNum {
	switch {
	case int64(chain) < p.Chain:
		return column.BigNum{Int: new(big.Int).Lsh(big.NewInt(1), 256)}
	case int64(chain) > p.Chain:
		return column.BigNum{Int: big.NewInt(-1)}
	}
	return column.BigNum{Int: token.ToBig()}
}

// scoreLeaders returns the statement that ranks rated agents by score: each chain by its index.
func scoreLeaders() string {
	return `
		select x.chain_id, x.token_id, x.value, x.clients, 0::bigint, 0::bigint
		from unnest($1::bigint[], $2::bigint[], $3::numeric[]) as k(chain_id, value, token)
		cross join lateral (
			select ts.chain_id, ts.token_id, ts.score::bigint as value, a.clients
			from trust_scores ts, trust_runs tr, agents a
			where ts.chain_id = k.chain_id and ts.status = 'rated' and a.clients >= $5 and ` + query.Scored() + `
				and (ts.score, ts.token_id) < (k.value, k.token)
			order by ts.score desc, ts.token_id desc limit $4) x
		order by x.value desc, x.chain_id desc, x.token_id desc limit $4`
}

// reviewerLeaders is the statement that ranks agents by their distinct clients: each chain by its index.
const reviewerLeaders = `
	select x.chain_id, x.token_id, x.clients, x.clients, 0::bigint, 0::bigint
	from unnest($1::bigint[], $2::bigint[], $3::numeric[]) as k(chain_id, value, token)
	cross join lateral (
		select a.chain_id, a.token_id, a.clients from agents a
		where a.chain_id = k.chain_id and a.clients >= greatest($5::bigint, 1) and (a.clients, a.token_id) < (k.value, k.token)
		order by a.clients desc, a.token_id desc limit $4) x
	order by x.clients desc, x.chain_id desc, x.token_id desc limit $4`

// growthLeaders returns the statement that ranks agents by their new clients since the time of $6 for each chain. It
// finds the ratings of the period by their events, which are ordered by block.
func growthLeaders() string {
	return fmt.Sprintf(`
		with since as (
			select k.chain_id, coalesce((
				select number from blocks b where b.chain_id = k.chain_id and b.time < k.since order by number desc limit 1), -1) as block
			from unnest($1::bigint[], $6::timestamptz[]) as k(chain_id, since) where k.since is not null),
		recent as (
			select f.chain_id, f.token_id, f.client, count(*) as n, exists (
				select from feedback o where o.chain_id = f.chain_id and o.token_id = f.token_id and o.client = f.client
					and o.block <= s.block and o.revoked_block is null) as known
			from since s
			join events e on e.chain_id = s.chain_id and e.block > s.block and e.kind = %d
			join feedback f on (f.chain_id, f.token_id, f.block, f.log_index) = (e.chain_id, e.token_id, e.block, e.log_index)
			where f.revoked_block is null group by 1, 2, 3, s.block),
		grown as (
			select chain_id, token_id, count(*) filter (where not known) as fresh, sum(n)::bigint as given
			from recent group by 1, 2)
		select g.chain_id, g.token_id, g.fresh, a.clients, g.fresh, g.given
		from unnest($1::bigint[], $2::bigint[], $3::numeric[]) as k(chain_id, value, token)
		join grown g on g.chain_id = k.chain_id and (g.fresh, g.token_id) < (k.value, k.token)
		join agents a on (a.chain_id, a.token_id) = (g.chain_id, g.token_id)
		where g.fresh > 0 and a.clients >= $5
		order by g.fresh desc, g.chain_id desc, g.token_id desc limit $4`, repute.KindNewFeedback)
}

// leadersOf reads the agents of the rows, with two statements however many there are. before is how many agents are
// ranked before them.
func leadersOf(ctx context.Context, tx pgx.Tx, rows []leaderRow, before int64) ([]Leader, error) {
	ids := make([]repute.AgentID, len(rows))
	for i, r := range rows {
		ids[i] = r.id
	}
	agents, err := query.ReadAgents(ctx, tx, ids, false)
	if err != nil {
		return nil, err
	}
	out := make([]Leader, len(rows))
	for i, r := range rows {
		out[i] = Leader{Rank: before + int64(i) + 1, Agent: *agents[column.KeyOf(r.id)], Value: r.value,
			Reviewers: r.reviewers, NewReviewers: r.fresh, NewRatings: r.given}
	}
	return out, nil
}
