package graph

import (
	"testing"
	"time"

	"repute/api/answers"
	"repute/internal/cache"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/docstats"
	"repute/store/rundb"
)

// Requests share the counts that read whole tables: while they are kept the database is not asked.
func TestCountsAreShared(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), pgtest.New(t), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	kept := countsOf(db)
	kept.jobs = cache.NewBrief[[]rundb.JobCount]("jobs", time.Hour, time.Minute)
	kept.documents = cache.NewBrief[[]docstats.RankQueue]("documents", time.Hour, time.Minute)
	o := &operations{&queryResolver{index: &answers.Index{DB: db}}}
	ctx, spent := withBudget(t.Context(), 1_000_000)
	for i := range 2 {
		_, err := o.Jobs(ctx)
		list, failed := o.Documents(ctx)
		if err != nil || failed != nil || len(list) == 0 {
			t.Fatalf("asked %d times: %v, %v, %v", i+1, err, list, failed)
		}
		db.Close() // the next one reads nothing
	}
	if spent.exceeded() {
		t.Error("the budget was spent")
	}
}
