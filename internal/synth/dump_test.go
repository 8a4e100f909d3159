package synth_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"repute/indexer"
	"repute/indexer/node"
	"repute/indexer/node/jsonrpc"
	"repute/internal/chainserver"
	"repute/internal/pgtest"
	"repute/internal/synth"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/importdb"
)

// index follows a history to its head and gives the canonical dump of what the
// store then holds.
func index(t *testing.T, h *synth.History) []byte {
	t.Helper()
	server, err := synth.NewServer(h)
	if err != nil {
		t.Fatal(err)
	}
	server.Inject(chainserver.LimitRange(500, chainserver.Error{Code: -32614,
		Message: "eth_getLogs is limited to a 500 range"}))
	srv := httptest.NewServer(server)
	t.Cleanup(srv.Close)
	n, err := node.New(srv.URL, node.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	db, err := store.Open(t.Context(), pgtest.New(t), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := chaindb.AddChain(t.Context(), db, synth.Chain()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	f := indexer.NewFollower(db, synth.Chain(), n, indexer.Options{})
	for err == nil || jsonrpc.IsTransient(err) || strings.Contains(err.Error(), "limited to a") {
		err = f.Step(ctx, store.Lease{})
	}
	if !errors.Is(err, indexer.ErrNothingNew) {
		t.Fatal(err)
	}
	var dump bytes.Buffer
	if err := importdb.Dump(ctx, db, &dump, synth.Chain().ID); err != nil {
		t.Fatal(err)
	}
	return dump.Bytes()
}

// The generator's own account of the history and the product's index of it are
// the same bytes.
func TestDumpEqualsIndex(t *testing.T) {
	for _, spec := range []synth.Spec{
		{Shape: synth.Base, Seed: 21, Events: 4_000},
		{Shape: synth.Busy, Seed: 22, Events: 2_000},
	} {
		t.Run(string(spec.Shape), func(t *testing.T) {
			h, err := synth.Open(t.Context(), t.TempDir(), spec)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			var want bytes.Buffer
			if err := h.WriteDump(&want); err != nil {
				t.Fatal(err)
			}
			compare(t, index(t, h), want.Bytes())
		})
	}
}

// compare names the first line that differs.
func compare(t *testing.T, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	a, b := bufio.NewScanner(bytes.NewReader(got)), bufio.NewScanner(bytes.NewReader(want))
	a.Buffer(nil, 1<<20)
	b.Buffer(nil, 1<<20)
	for line := 1; ; line++ {
		more, more2 := a.Scan(), b.Scan()
		if !more && !more2 {
			t.Fatal("the dumps differ in their line ends only")
		}
		if a.Text() != b.Text() {
			t.Fatalf("line %d\nindexed   %.900s\ngenerated %.900s", line, a.Text(), b.Text())
		}
	}
}
