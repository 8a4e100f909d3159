package store_test

import (
	"context"
	"errors"
	"testing"

	"repute/store/searchdb"
)

// TestStatementsOfASearchShareTheTimeout ends a search of several statements, none of which reaches
// the limit by itself.
func TestStatementsOfASearchShareTheTimeout(t *testing.T) {
	t.Parallel()
	db := hasty(t)
	catalogue(t, db, 7, []int{0}, agentDoc("robot", ""))
	sqlExec(t, db, "alter table searchable rename to fast_searchable")
	sqlExec(t, db, `create view searchable as with pause as materialized (select pg_sleep(0.7))
		select * from fast_searchable where exists (select from pause)`)
	_, err := searchdb.Agents(t.Context(), db, searchdb.AgentFilter{Text: "zebra giraffe lion", Limit: 1})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want %v: seven statements sleep 0.7 seconds each", err, context.DeadlineExceeded)
	}
}
