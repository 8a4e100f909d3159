package graph

import (
	"time"

	"repute/api/graph/runtimes"
	"repute/internal/cache"
	"repute/store"
	"repute/store/docstats"
	"repute/store/rundb"
)

const (
	// countsKept is how long callers share counts that read whole tables. Each request still checks the caller's role.
	countsKept = 10 * time.Second
	// countsLimit bounds the making of one.
	countsLimit = time.Minute
)

// counts are answers for operators that cost too much to be read for each request. They live as long as the database.
type counts struct {
	jobs      *cache.Brief[[]rundb.JobCount]
	documents *cache.Brief[[]docstats.RankQueue]
	runtimes  *cache.Brief[[]*runtimes.Runtime]
}

// countsOf returns the counts of a database.
func countsOf(db *store.DB) *counts {
	return store.Kept(db, func() *counts {
		return &counts{
			jobs:      cache.NewBrief[[]rundb.JobCount]("the count of jobs", countsKept, countsLimit),
			documents: cache.NewBrief[[]docstats.RankQueue]("the count of documents", countsKept, countsLimit),
			runtimes:  cache.NewBrief[[]*runtimes.Runtime]("the list of runtimes", countsKept, countsLimit),
		}
	})
}
