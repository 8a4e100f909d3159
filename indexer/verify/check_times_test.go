package verify

import (
	"strings"
	"testing"

	"repute"
	"repute/indexer/node"
	"repute/internal/livedin"
	"repute/internal/rpctest"
	"repute/store"
)

// A stored time that is not the header's is a difference, and repaired.
func TestCheckComparesBlockTimes(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	c := dn.Chain()
	db := openStore(t)
	n := nodeAt(t, dn.RPCURL())
	indexFrom(t, db, c, n)
	before := dump(t, db)
	tag, err := db.Pool().Exec(t.Context(),
		"update blocks set time = time - interval '1 hour' where number = (select max(block) from events where block < 20)")
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatal(tag, err)
	}
	check := func(repair bool) (r CheckResult, found []Difference) {
		t.Helper()
		r, err := verifierOf(db, c, n).Check(t.Context(), CheckOptions{Repair: repair},
			func(d Difference) { found = append(found, d) })
		if err != nil {
			t.Fatal(err)
		}
		return r, found
	}
	if r, found := check(true); r.Differences != 1 || r.Retimed != 1 || found[0].Kind != 0 ||
		found[0].Blocks.From == 0 {
		t.Errorf("got %+v, %+v", r, found)
	}
	if r, found := check(false); r.Differences != 0 {
		t.Errorf("after the repair: %+v, %+v", r, found)
	}
	wantSame(t, dump(t, db), before)
}

// backdate makes the stored time of a block with ratings wrong by a year, and gives the
// block.
func backdate(t *testing.T, db *store.DB) (number uint64) {
	t.Helper()
	err := db.Pool().QueryRow(t.Context(), `update blocks set time = time + interval '1 year'
		where number = (select min(block) from events where kind = 9) returning number`).Scan(&number)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// A wrong time goes with the first look at its block, and the agents of the block are made
// anew: their scores may have another age.
func TestWrongTimesAreMended(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	db, n := openStore(t), nodeAt(t, dn.RPCURL())
	indexFrom(t, db, dn.Chain(), n)
	want := dump(t, db)
	backdate(t, db)
	settleDown(t, verifierOf(db, dn.Chain(), n))
	wantSame(t, dump(t, db), want)
	eventually(t, "a change says repaired", func() bool { return repairs(t, db) > 0 })
	wantComplete(t, db)
}

// A wrong time in a block that was compared already is found by a check beside the leader,
// which then looks at the block again.
func TestLeaderMendsReportedTimes(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	db, n := openStore(t), nodeAt(t, dn.RPCURL())
	indexFrom(t, db, dn.Chain(), n)
	want := dump(t, db)
	leader, beside := verifierOf(db, dn.Chain(), n), verifierOf(db, dn.Chain(), n)
	settleDown(t, leader)
	number := backdate(t, db)
	var found []Difference
	add := func(d Difference) {
		if d.Total != "hours" { // which were counted by the time before
			found = append(found, d)
		}
	}
	if _, err := beside.Check(t.Context(), CheckOptions{}, add); err != nil || len(found) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	if err := beside.Report(t.Context(), found); err != nil {
		t.Fatal(err)
	}
	if s := status(t, db).Completeness; s.Status != repute.Verifying || !strings.Contains(s.Reason, "again") {
		t.Errorf("%+v while block %d is to be looked at", s, number)
	}
	settleDown(t, leader)
	wantSame(t, dump(t, db), want)
	eventually(t, "a change says repaired", func() bool { return repairs(t, db) > 0 })
	wantComplete(t, db)
}

// A node that is dead is one reason, however many blocks it leaves unchecked.
func TestCheckSaysAReasonOnce(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	for i := range uint64(30) {
		c.Mine(c.Register(i, rpctest.Account(1), ""))
	}
	c.MineEmpty(20)
	db := openStore(t)
	n := newNode(t, c, node.Options{})
	indexFrom(t, db, chainOf(c), n)
	c.GoDark(true)
	r, err := verifierOf(db, chainOf(c), n).Check(t.Context(), CheckOptions{To: c.Head().Number()}, func(Difference) {})
	if err != nil || len(r.Unchecked) == 0 || len(r.Unchecked) > 6 {
		t.Errorf("%v, %d reasons: %q", err, len(r.Unchecked), r.Unchecked)
	}
}
