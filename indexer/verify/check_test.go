package verify

import (
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/internal/livedin"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/verifydb"
)

// A check finds what a lossy node left out without changing anything, and with
// Repair leaves nothing to find.
func TestCheckFindsAndRepairs(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	c := dn.Chain()
	honest, db := openStore(t), openStore(t)
	direct := nodeAt(t, dn.RPCURL())
	indexFrom(t, honest, c, direct)
	d := rpctest.NewProxy(t, dn.RPCURL())
	d.Lose(func(l types.Log) bool { return (l.BlockNumber+uint64(l.Index))%11 == 0 }, true, false)
	indexFrom(t, db, c, nodeAt(t, d.URL))
	before := dump(t, db)
	check := func(o CheckOptions) (CheckResult, []Difference) {
		t.Helper()
		var all []Difference
		r, err := verifierOf(db, c, direct).Check(t.Context(), o, func(d Difference) { all = append(all, d) })
		if err != nil {
			t.Fatal(err)
		}
		return r, all
	}
	result, found := check(CheckOptions{})
	if result.Differences == 0 || result.Differences != len(found) || result.Unproven != 0 ||
		len(result.Unchecked) != 0 {
		t.Fatalf("%+v with %d differences", result, len(found))
	}
	wantSame(t, dump(t, db), before)
	check(CheckOptions{Repair: true})
	// The newest blocks are not final: what they lack is found once they are named.
	check(CheckOptions{Repair: true, AllBlocks: true, To: cursorOf(t, db).Number})
	wantSame(t, dump(t, db), dump(t, honest))
	if result, found = check(CheckOptions{AllBlocks: true, To: cursorOf(t, db).Number}); result.Differences != 0 ||
		result.Checked != int(cursorOf(t, db).Number) {
		t.Errorf("after the repair: %+v, %+v", result, found)
	}
	if result, _ = check(CheckOptions{From: 5, To: 9, AllBlocks: true}); result.Checked != 5 || result.Agents == 0 {
		t.Errorf("a part: %+v", result)
	}
}

// Another process leads: it is told, and its verifier repairs.
func TestReportedDifferencesAreRepairedByTheLeader(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	c := dn.Chain()
	kinds := logsByKind(t, nodeAt(t, dn.RPCURL()), c)
	d := rpctest.NewProxy(t, dn.RPCURL())
	d.Lose(only(kinds[repute.KindMetadataSet][7]), true, false)
	honest, db := openStore(t), openStore(t)
	n := nodeAt(t, d.URL)
	indexFrom(t, honest, c, nodeAt(t, dn.RPCURL()))
	indexFrom(t, db, c, n)
	v := verifierOf(db, c, n)
	var found []Difference
	if _, err := v.Check(t.Context(), CheckOptions{}, func(d Difference) { found = append(found, d) }); err != nil ||
		len(found) == 0 {
		t.Fatalf("%d differences, %v", len(found), err)
	}
	if err := v.Report(t.Context(), found); err != nil {
		t.Fatal(err)
	}
	if s := status(t, db); s.Completeness.Status != repute.Incomplete {
		t.Errorf("told and not published: %+v", s.Completeness)
	}
	leader := verifierOf(db, c, n)
	at, err := verifydb.ReadStanding(t.Context(), db, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	for range found {
		if err := leader.settleNext(t.Context(), store.Lease{}, at); err != nil {
			break
		}
	}
	wantSame(t, dump(t, db), dump(t, honest))
}

// A part of a chain has no state of its own: only its blocks are compared.
func TestCheckOfAPartSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	c := dn.Chain()
	db := openStore(t)
	n := nodeAt(t, dn.RPCURL())
	indexFrom(t, db, c, n)
	if _, err := db.Pool().Exec(t.Context(), "update chains set covered = covered * '{[5,)}'"); err != nil {
		t.Fatal(err)
	}
	r, err := verifierOf(db, c, n).Check(t.Context(), CheckOptions{From: 5}, func(Difference) {})
	if err != nil || r.Differences != 0 || r.Agents != 0 ||
		!strings.Contains(strings.Join(r.Unchecked, ";"), "only parts") {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := verifierOf(db, c, n).Check(t.Context(), CheckOptions{From: 50, To: 9},
		func(Difference) {}); err == nil {
		t.Error("a range that ends before it begins was taken")
	}
}
