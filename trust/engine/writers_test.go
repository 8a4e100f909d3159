package engine_test

import (
	"fmt"
	"testing"

	"repute"
	"repute/store/rootdb"
)

// More rules of writers than the table holds do not end all scoring: a run leaves some out, and is made again as it
// was.
func TestTooManyRulesOfWritersDoNotStopScoring(t *testing.T) {
	t.Parallel()
	l := newLedger(12)
	db, _ := l.fresh(t)
	var writers []repute.TrustRoot
	for i := range 81 {
		writers = append(writers, repute.TrustRoot{Address: person(1000 + i), Class: repute.ReviewedWriter,
			Weight: repute.MaxWriterWeight, Reason: "test",
			Rules: fmt.Sprintf(`[{"tags":["grade%d"],"channel":"quality","unit":"grade","better":"lower","range":[1,6],
				"weight":1,"curve":[[1,1],[6,-1]],"reason":"a school"}]`, i)})
	}
	ok(t, rootdb.AddRoots(t.Context(), db, l.chain.ID, repute.DefaultRoots, writers, false))
	s := l.state()
	l.mine(s, append(s.mint(person(9)), s.rate(0, person(0), 90), s.rate(0, person(1), 90),
		s.rate(0, person(1000), 90))...)
	l.pad(20)
	l.store(t, db, 20)
	start(t, db)
	settle(t, db, 9, 20)
	if s := newest(t, db, 0); s.Mean <= 0 {
		t.Errorf("mean %v", s.Mean)
	}
	replayAll(t, db)
}
