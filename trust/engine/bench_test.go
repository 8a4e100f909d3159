package engine_test

import (
	"syscall"
	"testing"
	"time"

	"repute/trust/engine"
)

// BenchmarkOneEvent is the work for one more rating of an agent that has forty: from the
// change feed to the stored score.
func BenchmarkOneEvent(b *testing.B) {
	l := newLedger(1)
	db, _ := l.fresh(b)
	l.grow(300)
	s := l.state()
	for n := range 40 {
		l.mine(s, s.rate(1, person(n%people), 90))
		s = l.state()
	}
	l.store(b, db, 300)
	stop := start(b, db)
	settle(b, db, 9, 300)
	stop()
	e, err := engine.NewSteps(db, shortEpochs(b), 9)
	ok(b, err)
	ok(b, e.Walk(b.Context()))
	var busy time.Duration
	for b.Loop() {
		b.StopTimer()
		s := l.state()
		l.mine(s, s.rate(1, person(b.N%people), 90))
		l.store(b, db, 300)
		b.StartTimer()
		before := cpu(b)
		n, err := e.Follow(b.Context())
		ok(b, err)
		busy += cpu(b) - before
		if n == 0 {
			b.Fatal("nothing was scored")
		}
	}
	b.ReportMetric(float64(busy.Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// cpu is what this process has worked, which is the same on a busy machine. The
// database's work is not in it.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	ok(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
