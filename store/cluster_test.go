package store_test

import (
	"errors"
	"slices"
	"testing"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
)

// After a restore into another cluster every change is read again, in order, and
// cursors of the other cluster are gone.
func TestChangesSurviveAnotherCluster(t *testing.T) {
	t.Parallel()
	db, url := testDBAt(t)
	ctx, l := ctxOf(t), smallChain()
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	ok(t, eventdb.Apply(ctx, db, batchOf(1, l.genesis, l.blocks[:2])))
	kinds := func(changes []store.Change) (out []string) {
		for _, c := range changes {
			out = append(out, c.Kind)
		}
		return out
	}
	before := readChanges(t, ctx, db, "")
	cursor := before[len(before)-1].Cursor
	ok(t, store.Migrate(ctx, url)) // the same cluster: nothing happens
	if _, _, err := db.Changes(ctx, cursor, 10, store.ChangeFilter{}); err != nil {
		t.Fatal(err)
	}
	// As a restored dump looks: rows of a cluster whose counter was far ahead.
	_, err := db.Pool().Exec(ctx, `update cursors set position = position - 1 where job = 'cluster'`)
	ok(t, err)
	_, err = db.Pool().Exec(ctx, `update changes set xid = (xid::text::bigint + 1000000000000)::text::xid8`)
	ok(t, err)
	if hidden, _, err := db.Changes(ctx, "", 10, store.ChangeFilter{}); err != nil || len(hidden) != 0 {
		t.Fatalf("the test is none: %v %v", hidden, err)
	}
	ok(t, store.Migrate(ctx, url))
	after := readChanges(t, ctx, db, "")
	if !slices.Equal(kinds(before), kinds(after)) || len(before) < 3 {
		t.Errorf("got %v, want %v", kinds(after), kinds(before))
	}
	if _, _, err := db.Changes(ctx, cursor, 10, store.ChangeFilter{}); !errors.Is(err, repute.ErrGone) {
		t.Errorf("a cursor of the other cluster: %v", err)
	}
	ok(t, eventdb.Apply(ctx, db, batchOf(1, l.blocks[1].Block, l.blocks[2:3])))
	if more := readChanges(t, ctx, db, after[len(after)-1].Cursor); len(more) == 0 {
		t.Error("nothing behind the restored rows")
	}
}
