package indexer

import (
	"testing"

	"repute/internal/rpctest"
	"repute/store/chaindb"
	"repute/store/scoredb"
)

// The header of the block that ends an epoch of scores is stored, also of a block without
// events that was indexed in a range, and stays once it is final.
func TestBoundaryHeaderIsKept(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1), "https://example.org/0"))
	for range 88 {
		c.Mine()
	}
	c.Finalize(85, 85)
	db := openStore(t)
	f := follow(t, db, c, Options{})
	catchUp(t, f)
	if _, err := chaindb.StoredBlock(t.Context(), db, f.chain.ID, 80); err == nil {
		t.Fatal("the header of block 80 is stored without a reason")
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(scoredb.SetEpoch(t.Context(), db, f.chain.ID, 10))
	kept := func(number uint64) {
		t.Helper()
		catchUp(t, follow(t, db, c, Options{}))
		b, err := chaindb.StoredBlock(t.Context(), db, f.chain.ID, number)
		ok(err)
		theirs, err := f.source.Blocks(t.Context(), []uint64{number})
		ok(err)
		if b.Hash != theirs[0].Hash || !b.Time.Equal(theirs[0].Time) || b.Time.IsZero() {
			t.Errorf("stored %+v, of the chain %+v", b, theirs[0])
		}
		end, err := scoredb.EpochEnd(t.Context(), db, f.chain.ID, number)
		ok(err)
		if end != b {
			t.Errorf("the epoch ends with %+v, want %+v", end, b)
		}
	}
	c.Mine()
	c.Finalize(86, 86)
	kept(80)
	for range 20 {
		c.Mine()
		c.Finalize(c.Head().Number()-3, c.Head().Number()-3)
		catchUp(t, f)
	}
	kept(100)
	if _, err := chaindb.StoredBlock(t.Context(), db, f.chain.ID, 91); err == nil {
		t.Error("a header that ends no epoch was not forgotten")
	}
}
