package store_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute/store/statsdb"
)

// TestLeaders: every ranking has its values from the records, in order, each agent once, with ranks that go on from
// page to page; agents with too few reviewers are left out.
func TestLeaders(t *testing.T) {
	t.Parallel()
	db, worlds := twoWorlds(t, 87)
	ctx := context.Background()
	sqlExec(t, db,
		`insert into trust_runs (chain_id, run, epoch, boundary, block, block_hash, scorer, params, tags, roots, links, weights, identities, edges)
		select chain_id, 1, 1, cursor_block, cursor_block, cursor_hash, '', '', '', '', '', '', 0, 0 from chains`)
	sqlExec(t, db,
		`insert into trust_scores (chain_id, token_id, run, block, block_hash, evidence, status, score, low, high, mean, confidence, tier, result)
		select chain_id, token_id, 1, c.cursor_block, c.cursor_hash, '', case when token_id % 4 = 0 then 'thin' else 'rated' end,
			(token_id * 7919 % 5)::int * 1000, 0, 0, 0, 0, 1, '' from agents join chains c using (chain_id)`)
	const period = 7 * 24 * time.Hour
	for _, by := range []statsdb.Ranking{statsdb.ByScore, statsdb.ByReviewers, statsdb.ByGrowth} {
		for _, least := range []int64{0, 3} {
			f := statsdb.LeaderFilter{By: by, MinReviewers: least, Limit: 3}
			if by == statsdb.ByGrowth {
				f.Period = period
			}
			want := map[string][3]int64{} // value, new ratings, reviewers
			for _, w := range worlds {
				w.rank(by, least, period, want)
			}
			var rank, last int64 = 0, 1 << 40
			for {
				page, err := statsdb.Leaders(ctx, db, f)
				ok(t, err)
				for _, l := range page.Items {
					key := l.Agent.ID.Short()
					if rank++; l.Rank != rank || l.Value > last ||
						[3]int64{l.Value, l.NewRatings, l.Reviewers} != want[key] {
						t.Errorf("%s, %d: %s is %+v, want %v at %d", by, least, key, l, want[key], rank)
					}
					last = l.Value
					delete(want, key)
				}
				if f.After = page.Next; f.After == "" {
					break
				}
			}
			if len(want) > 0 {
				t.Errorf("%s, %d: not listed: %v", by, least, want)
			}
		}
	}
}

// rank adds to want what a ranking says of the agents of a world.
func (w *world) rank(by statsdb.Ranking, least int64, period time.Duration, want map[string][3]int64) {
	since := w.tip().Time.Add(-period)
	var block uint64 // the newest one before
	for _, b := range w.blocks {
		if !b.Time.IsZero() && b.Time.Before(since) {
			block = b.Number
		}
	}
	for agent := range w.agents {
		clients, known, fresh, given := map[common.Address]bool{}, map[common.Address]bool{}, map[common.Address]bool{}, int64(0)
		for _, r := range w.ratings(tokenID(agent), w.tip().Number) {
			if r.revoked != nil {
				continue
			}
			clients[r.Client] = true
			if r.point.Block <= block {
				known[r.Client] = true
				continue
			}
			given++
			fresh[r.Client] = true
		}
		maps.DeleteFunc(fresh, func(a common.Address, _ bool) bool { return known[a] })
		n := int64(len(clients))
		var v [3]int64
		switch by {
		case statsdb.ByScore:
			if agent%4 == 0 {
				continue
			}
			v = [3]int64{int64(agent*7919%5) * 1000, 0, n}
		case statsdb.ByReviewers:
			if n == 0 {
				continue
			}
			v = [3]int64{n, 0, n}
		default:
			if len(fresh) == 0 {
				continue
			}
			v = [3]int64{int64(len(fresh)), given, n}
		}
		if n >= least {
			want[w.id(agent).Short()] = v
		}
	}
}
