package store_test

import (
	"strings"
	"testing"

	"repute/store/query"
	"repute/store/searchdb"
)

// TestSearchFollowsTheOrder: agents with a filter that most documents meet are read in the order of an index up to the
// end of the page. Postgres must not look up the documents of all agents first.
func TestSearchFollowsTheOrder(t *testing.T) {
	t.Parallel()
	db, r := crowd(t)
	sqlExec(t, db, "update searchable set active = true")
	sqlExec(t, db, "analyze searchable")
	active := true
	r.take()
	f := searchdb.AgentFilter{Active: &active, Sort: query.SortUpdated, Desc: true, Limit: 20}
	_, err := searchdb.Agents(t.Context(), db, f)
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	for _, one := range r.take() {
		if !strings.Contains(one.sql, "order by a.updated_block desc") {
			continue
		}
		pages++
		if plan := explain(t, db, "force_custom_plan", one); strings.Contains(plan, "Cond: (a.uri_id = u.id)") {
			t.Errorf("documents of all agents are looked up:\n%s", plan)
		}
	}
	if pages != 1 {
		t.Errorf("%d statements read a page", pages)
	}
}
