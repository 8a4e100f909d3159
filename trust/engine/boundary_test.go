package engine

import (
	"testing"

	"pgregory.net/rapid"

	"repute/store/scoredb"
)

// A run never ends beyond what is final, never before a verified one, and beyond what is verified only where nothing
// verified is near: no more than mostUnverified epochs behind.
func TestBoundary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const length = 10
		last := scoredb.Run{Run: 1, Boundary: length * rapid.Uint64Range(1, 9).Draw(t, "last"),
			VerifiedTo: rapid.Uint64Range(0, 100).Draw(t, "wasVerified")}
		final := rapid.Uint64Range(last.Boundary, 200).Draw(t, "final")
		c := scoredb.Chain{VerifiedTo: rapid.Uint64Range(0, final).Draw(t, "verified")}
		if last.Verified() {
			c.VerifiedTo = max(c.VerifiedTo, last.Boundary)
		}
		got := boundaryOf(c, last, final, length)
		newest := final / length * length
		switch {
		case got%length != 0 || got > newest || got < c.VerifiedTo/length*length && got != newest:
			t.Fatalf("boundary %d of %d", got, newest)
		case last.Verified() && got < last.Boundary:
			t.Fatalf("boundary %d before the verified %d", got, last.Boundary)
		case newest <= c.VerifiedTo && got != newest:
			t.Fatalf("boundary %d although %d is verified", got, newest)
		case got > c.VerifiedTo && c.VerifiedTo >= length && newest <= c.VerifiedTo/length*length+mostUnverified*length:
			t.Fatalf("boundary %d, verified to %d: it does not wait", got, c.VerifiedTo)
		case newest-got > mostUnverified*length:
			t.Fatalf("boundary %d is far behind %d", got, newest)
		}
	})
}

// An epoch waits for sources until the next one ends, in every engine; never the first, and never beside one that was
// scored.
func TestMayWait(t *testing.T) {
	run := func(epoch uint64) scoredb.Run { return scoredb.Run{Run: 1, Epoch: epoch, Boundary: epoch * 10} }
	for _, c := range []struct {
		next, last uint64
		want       bool
	}{{2, 1, true}, {3, 1, false}, {2, 2, false}, {1, 2, false}, {9, 1, false}} {
		if got := mayWait(run(c.next), run(c.last)); got != c.want {
			t.Errorf("epoch %d after %d: %v", c.next, c.last, got)
		}
	}
	if mayWait(run(1), scoredb.Run{}) {
		t.Error("a chain's first run waits")
	}
}
