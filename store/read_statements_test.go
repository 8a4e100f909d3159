package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/batchdb"
	"repute/store/historydb"
	"repute/store/query"
	"repute/store/searchdb"
	"repute/store/statsdb"
)

// TestStatementsDoNotGrowWithThePage counts what reads send.
func TestStatementsDoNotGrowWithThePage(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	r := &recorder{}
	db := store.OpenTraced(t, url, r)
	worlds := []*world{newWorld(1, 50, 61), newWorld(10, 7, 62)}
	var ids []repute.AgentID
	for _, w := range worlds {
		w.grow(60)
		w.store(t, db, w.tip().Number)
		for token := range w.agents {
			ids = append(ids, w.id(token))
		}
	}
	ctx := context.Background()
	for _, c := range []struct {
		name string
		most int
		call func(limit int) error
	}{
		{"agents", 5,
			func(n int) error { _, err := searchdb.Agents(ctx, db, searchdb.AgentFilter{Limit: n}); return err }},
		{"agent", 6, func(int) error { _, _, err := query.Agent(ctx, db, ids[0], latest); return err }},
		{"feedback", 4, func(n int) error {
			_, err := query.Feedback(ctx, db, ids[0], query.FeedbackFilter{Limit: n, At: latest})
			return err
		}},
		{"validations", 3, func(n int) error {
			_, err := query.Validations(ctx, db, ids[0], query.ValidationFilter{Limit: n, At: latest})
			return err
		}},
		{"reputation", 10, func(int) error {
			_, err := query.ReadReputation(ctx, db, ids[0], query.ReputationQuery{At: latest})
			return err
		}},
		{"history", 3, func(n int) error {
			_, err := historydb.History(ctx, db, ids[0], historydb.Filter{Limit: n, At: latest})
			return err
		}},
		{"series", 3, func(n int) error {
			_, err := historydb.ReadSeries(ctx, db, ids[0],
				historydb.SeriesFilter{Measure: historydb.MeasureRatings, Every: historydb.StepHour,
					From: worldStart, To: worldStart.Add(time.Duration(n) * time.Hour), At: latest})
			return err
		}},
		{"histories", 1, func(n int) error {
			_, err := historydb.HistoryByAgents(ctx, db, ids, historydb.Filter{Limit: n})
			return err
		}},
		{"client", 5, func(n int) error {
			var list []statsdb.ClientChain
			_, err := query.FeedbackOf(ctx, db, person(1), query.ParticipantFilter{Limit: n},
				statsdb.ClientInto(person(1), &list))
			return err
		}},
		{"validators", 2, func(n int) error {
			_, err := statsdb.Validators(ctx, db, statsdb.ValidatorFilter{Limit: n})
			return err
		}},
		{"tags", 2, func(n int) error { _, err := statsdb.Tags(ctx, db, statsdb.TagFilter{Limit: n}); return err }},
		{"leaders", 4, func(n int) error {
			_, err := statsdb.Leaders(ctx, db, statsdb.LeaderFilter{By: statsdb.ByGrowth, Period: time.Hour, Limit: n})
			return err
		}},
		{"agents by id", 3,
			func(n int) error { _, err := query.AgentsByID(ctx, db, ids[:min(n, len(ids))]); return err }},
		{"feedback by agents", 2, func(n int) error { _, err := query.FeedbackByAgents(ctx, db, ids, n); return err }},
		{"validations by agents", 1,
			func(n int) error { _, err := query.ValidationsByAgents(ctx, db, ids, n); return err }},
		{"batch", 11, func(n int) error {
			_, err := batchdb.Read(ctx, db, batchItems(ids[:min(n, len(ids))]), 0)
			return err
		}},
		{"comparison", 13, func(n int) error {
			var refs []repute.AgentRef
			for _, id := range ids[:min(n, 5)] {
				refs = append(refs, repute.AgentRef{ChainID: id.ChainID, TokenID: id.TokenID})
			}
			_, _, err := batchdb.Compare(ctx, db, refs, 0)
			return err
		}},
		{"reputations", 5, func(n int) error {
			_, err := query.Reputations(ctx, db, ids[:min(n, len(ids))],
				query.ReputationParts{Summary: true, Tags: true, Results: true, Independence: true})
			return err
		}},
	} {
		for _, limit := range []int{1, 10, store.MaxPage} {
			r.take()
			if err := c.call(limit); err != nil {
				t.Fatal(err)
			}
			if got := r.take(); len(got) > c.most || len(got) == 0 {
				t.Errorf("%s by %d sends %d statements, at most %d are expected", c.name, limit, len(got), c.most)
			}
		}
	}
}

// batchItems names every agent by its id, by an address and by a domain.
func batchItems(ids []repute.AgentID) (items []batchdb.Item) {
	for i, id := range ids {
		ref, address := repute.AgentRef{ChainID: id.ChainID, TokenID: id.TokenID}, person(i)
		items = append(items, batchdb.Item{ID: &ref}, batchdb.Item{Address: &address},
			batchdb.Item{Domain: strings.Repeat("d", 1+i%60) + ".example"})
	}
	return items[:min(len(items), batchdb.MaxItems)]
}

// A list by scores reads as many scores as its page needs, also where the chain has one run, so that the planner cannot
// tell by the runs how many scores are valid.
func TestScoreListReadsOnePage(t *testing.T) {
	t.Parallel()
	db, r := crowd(t)
	sqlExec(t, db, "delete from trust_runs where run < 1000")
	sqlExec(t, db, "analyze trust_runs")
	r.take()
	for _, desc := range []bool{false, true} {
		if _, err := searchdb.Agents(t.Context(), db,
			searchdb.AgentFilter{Sort: query.SortScore, Desc: desc, Limit: 20}); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range r.take() {
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			if plan := explain(t, db, mode, s); strings.Contains(plan, "Sort Key: ts.score") {
				t.Errorf("%s: all scores are sorted for a page:\n%s", mode, plan)
			}
		}
	}
}
