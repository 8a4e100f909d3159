package verify

import (
	"context"
	"testing"
	"time"

	"repute"
	"repute/internal/rpctest"
	"repute/store/verifydb"
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
	if judged, least := effort(judgedBlocks, leastJudged, 0), effort(judgedBlocks, leastJudged, 1<<40); judged != judgedBlocks || least != leastJudged {
		t.Errorf("%d receipts at first and %d at last", judged, least)
	}
}

// A comparison is made anew within the week for which it counts.
func TestPauseAfterAComparison(t *testing.T) {
	t.Parallel()
	v := New(nil, repute.Chain{}, nil, Options{Every: 10 * time.Minute})
	for took, want := range map[time.Duration]time.Duration{0: 10 * time.Minute, time.Hour: 20 * time.Hour, 40 * time.Hour: 3 * 24 * time.Hour} {
		if got := v.pauseAfter(took); got != want {
			t.Errorf("after %s: %s, want %s", took, got, want)
		}
	}
}

// The questions about an agent with very many clients are not all in memory at once,
// and all are asked.
func TestClientsAreAskedInPortions(t *testing.T) {
	t.Parallel()
	dn := rpctest.LivedIn(t)
	head := dn.Head()
	v := New(nil, dn.Chain(), nil, Options{Rate: 1e6})
	c := v.comparer(nodeAt(t, dn.RPCURL()), head)
	clients := make([]verifydb.ClientThen, 3*clientsAtOnce)
	for i := range clients {
		clients[i].Client = rpctest.Account(uint64(i + 1_000_000)) // none of them gave any
	}
	most := 0
	c.spend = func(context.Context, int) error {
		most = max(most, len(c.calls))
		return nil
	}
	c.ratings(&verifydb.AgentThen{}, clients)
	if err := c.ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := 2 * len(clients); c.asked != want || most > 3*clientsAtOnce || len(c.gaps) > 0 || len(c.unanswered) > 0 {
		t.Errorf("%d of %d questions were asked, %d held at once; %d holes, %v", c.asked, want, most, len(c.gaps), c.unanswered)
	}
}
