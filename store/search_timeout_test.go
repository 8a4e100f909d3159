package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"repute/store/searchdb"
)

// The statements of one search share its time limit: a search of several statements, none of
// which reaches the limit by itself, ends soon after it.
func TestStatementsOfASearchShareTheTimeout(t *testing.T) {
	t.Parallel()
	db := open(t)
	catalogue(t, db, 7, []int{0}, agentDoc("robot", ""))
	sqlExec(t, db, "alter table searchable rename to fast_searchable")
	sqlExec(t, db, `create view searchable as with pause as materialized (select pg_sleep(0.7))
		select * from fast_searchable where exists (select from pause)`)
	start := time.Now()
	_, err := searchdb.Agents(t.Context(), db, searchdb.AgentFilter{Text: "zebra giraffe lion", Limit: 1})
	if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took < 2*time.Second || took > 4500*time.Millisecond {
		t.Errorf("ended after %s: %v, want %v after about 3 seconds", took, err, context.DeadlineExceeded)
	}
}
