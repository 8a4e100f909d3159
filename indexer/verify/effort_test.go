package verify

import (
	"testing"
	"time"

	"repute"
)

// Searching for what stays lost gets cheaper, and yet goes through the whole range
// again and again.
func TestSearchesGetCheaperAndGoOn(t *testing.T) {
	t.Parallel()
	all := repute.BlockRange{From: 1_000, To: 50_999}
	if first := scanned(all, 0); first.To != all.To || first.To-first.From+1 != scannedBlocks {
		t.Errorf("the first search goes through %+v", first)
	}
	seen := map[uint64]bool{}
	before := uint64(scannedBlocks)
	for tries := range 1_000 {
		r := scanned(all, tries)
		if r.From < all.From || r.To > all.To || r.From > r.To || r.To-r.From+1 > before {
			t.Fatalf("try %d goes through %+v", tries, r)
		}
		before = max(r.To-r.From+1, leastScanned)
		for b := r.From; b <= r.To; b++ {
			seen[b] = true
		}
	}
	if before > leastScanned || len(seen) != int(all.To-all.From+1) {
		t.Errorf("after 1,000 searches one costs %d headers, and %d blocks were looked at", before, len(seen))
	}
	if judged, least := effort(judgedBlocks, leastJudged, 0),
		effort(judgedBlocks, leastJudged, 1<<40); judged != judgedBlocks || least != leastJudged {
		t.Errorf("%d receipts at first and %d at last", judged, least)
	}
}

// A comparison is made anew within the week for which it counts.
func TestPauseAfterAComparison(t *testing.T) {
	t.Parallel()
	v := New(nil, repute.Chain{}, nil, Options{Every: 10 * time.Minute})
	for took, want := range map[time.Duration]time.Duration{0: 10 * time.Minute, time.Hour: 20 * time.Hour,
		40 * time.Hour: 3 * 24 * time.Hour} {
		if got := v.pauseAfter(took); got != want {
			t.Errorf("after %s: %s, want %s", took, got, want)
		}
	}
}
