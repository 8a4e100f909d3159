package store_test

import (
	"context"
	"reflect"
	"testing"

	"repute/store"
	"repute/store/subgraphdb"
)

// readSubgraph returns the rows of a query of chain 1.
func readSubgraph(t *testing.T, db *store.DB, s *subgraphdb.Schema, q subgraphdb.Query) (rows []subgraphdb.Row) {
	t.Helper()
	err := subgraphdb.View(t.Context(), db, s, 1, func(ctx context.Context, snapshot *subgraphdb.Snapshot) (err error) {
		rows, err = snapshot.Read(ctx, q)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestSubgraphPlacesOfBlocks: lists of agents that changed since different blocks do not share their places.
func TestSubgraphPlacesOfBlocks(t *testing.T) {
	t.Parallel()
	db, _ := crowd(t)
	sqlExec(t, db, "update agents set updated_block = 3000000 + token_id")
	s := subgraphdb.Entities()
	e := s.Entity("Agent")
	for _, from := range []int64{3_000_000, 3_000_300, 3_000_700} {
		page := func(first, skip int) []subgraphdb.Row {
			return readSubgraph(t, db, s, subgraphdb.Query{Entity: e, Columns: []*subgraphdb.Field{e.ID()},
				First: first, Skip: skip,
				Where: subgraphdb.Filter{ChangedFrom: &from}, Order: subgraphdb.Order{Field: e.Field("createdAt")}})
		}
		var walked []subgraphdb.Row
		for skip := 0; skip < 500; skip += 50 {
			walked = append(walked, page(50, skip)...)
		}
		if all := page(500, 0); len(all) != 500 || !reflect.DeepEqual(walked, all) {
			t.Errorf("since %d: pages differ from the list:\n%v\n%v", from, walked, all)
		}
	}
}
