package verify

import (
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/internal/synth"
	"repute/store/query"
)

// A generated history with every kind of event, and a node that loses the first, the
// middle, the last or all logs of blocks, one of every kind and the newest rating,
// wherever more than one block is asked for.
func TestLossyHistoryIsWhole(t *testing.T) {
	t.Parallel()
	events := 4_000
	if n, err := strconv.Atoi(os.Getenv("REPUTE_TEST_EVENTS")); err == nil {
		events = n
	}
	h, err := synth.Open(t.Context(), t.TempDir(), synth.Spec{Shape: synth.Base, Seed: 3, Events: events})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	var want strings.Builder
	if err := h.WriteDump(&want); err != nil {
		t.Fatal(err)
	}
	server, err := synth.NewServer(h)
	if err == nil {
		err = h.LoseLogs(server)
	}
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(server)
	t.Cleanup(srv.Close)
	db, n := openStore(t), nodeAt(t, srv.URL)
	indexFrom(t, db, synth.Chain(), n)
	if dump(t, db) == want.String() {
		t.Fatal("nothing was lost")
	}
	before, start := server.Stats(), time.Now()
	settleDown(t, verifierOf(db, synth.Chain(), n))
	after := server.Stats()
	t.Logf("%d events verified in %s with %d requests, calls %v", events, time.Since(start),
		after.Requests-before.Requests, after.Calls)
	wantSame(t, dump(t, db), want.String())
	s, err := query.Chains(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if got := s[0].Completeness; got.Status != repute.Complete || got.VerifiedTo == 0 {
		t.Errorf("%+v", got)
	}
}
