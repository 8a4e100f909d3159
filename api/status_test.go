package api_test

import (
	"strings"
	"testing"
	"time"

	"repute"
	"repute/api"
	"repute/api/wire"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
)

// TestStatusForOperators: endpoints, gaps and upgrades show, secrets do not.
func TestStatusForOperators(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t))
	l := newLedger(t, db, 8453)
	l.add(mint(7, addr(1), "")...)
	l.add(repute.Upgraded{Implementation: addr(4)}) // with the proxy itself
	b := l.add(repute.Upgraded{Implementation: addr(5)})
	err := chaindb.SaveEndpoints(t.Context(), db, 8453,
		[]repute.Endpoint{{ChainID: 8453, Name: "rpc.example", Kind: "http", State: repute.EndpointOpen,
			Latency: 12_345 * time.Microsecond, ErrorRate: 0.5, Requests: 10, Failures: 5, Concurrency: 4, Head: 99,
			LastError: "Post https://rpc.example/v3/KEY: refused", Owner: "machine.internal:17"}})
	if err != nil {
		t.Fatal(err)
	}
	agent, client := token(7), addr(9)
	err = chaindb.OpenGaps(t.Context(), db, 8453, store.Lease{},
		[]chaindb.Gap{{Subject: "7/9/3", Gap: repute.Gap{Kind: repute.KindNewFeedback,
			Agent: &agent, Client: &client, Blocks: repute.BlockRange{From: 5, To: 8}, Reason: "getLastIndex says 3"}}})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, api.Options{DB: db})
	r := get(t, s, "/chains/8453")
	c := as[wire.Chain](t, r)
	if len(c.Endpoints) != 1 || c.Upgrades != 1 || c.UpgradedAtBlock == nil || uint64(*c.UpgradedAtBlock) != b.Number {
		t.Fatalf("%+v", c)
	}
	if e := c.Endpoints[0]; e.Name != "rpc.example" || e.State != "open" || e.LatencyMs != 12.345 || e.Head == nil ||
		*e.Head != 99 || e.LastError == nil || e.Process == "" {
		t.Errorf("endpoint %+v", e)
	}
	if body := string(r.body); strings.Contains(body, "KEY") || strings.Contains(body, "machine.internal") {
		t.Errorf("shows too much: %s", body)
	}
	var found *wire.KindCompleteness
	for i := range c.Kinds {
		if c.Kinds[i].Kind == "NewFeedback" {
			found = &c.Kinds[i]
		}
	}
	if found == nil || found.Status != "incomplete" || found.OpenGaps != 1 || len(found.Gaps) != 1 ||
		c.AsOf.Completeness.OpenGaps != 1 {
		t.Fatalf("kinds %+v", c.Kinds)
	}
	if g := found.Gaps[0]; g.Agent == nil || *g.Agent != "8453:7" || g.Client == nil || g.Blocks.From != 5 ||
		g.Reason == "" || g.Since == nil {
		t.Errorf("gap %+v", g)
	}
	if status := as[wire.StatusAnswer](t, get(t, s, "/status")); status.Status != "degraded" {
		t.Errorf("status %s", status.Status)
	}
}
