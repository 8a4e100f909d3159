package store_test

import (
	"errors"
	"testing"

	"repute"
	"repute/store/query"
	"repute/store/trustdb"
)

// Checks are of the block asked for: the newest answer then, and files the index knows.
func TestTrustChecks(t *testing.T) {
	t.Parallel()
	db, w, ctx := open(t), newWorld(3, 50, 7), ctxOf(t)
	w.grow(150)
	w.store(t, db, w.tip().Number)
	answered := 0
	for i := range w.agents {
		id := w.id(i)
		for _, n := range []uint64{w.mintBlock(id.TokenID), w.tip().Number} {
			c, err := query.ReadTrustChecks(ctx, db, id, at(n), func(repute.Agent) []string { return nil })
			ok(t, err)
			agent, asOf, err := query.Agent(ctx, db, id, at(n))
			ok(t, err)
			if c.Agent.Owner != agent.Owner || c.Agent.Wallet != agent.Wallet || c.AsOf.Block != asOf.Block ||
				!c.Validating ||
				c.File != nil {
				t.Fatalf("agent %d at %d: %+v", i, n, c)
			}
			evidence, err := trustdb.ReadEvidence(ctx, db, id, at(n), w.chain.Validations)
			ok(t, err)
			var want *uint8
			newest := [2]uint64{}
			for _, r := range evidence.Rows {
				if p := [2]uint64{r.Block, uint64(r.LogIndex)}; r.Validation &&
					(p[0] > newest[0] || p[0] == newest[0] && p[1] >= newest[1]) {
					v := uint8(r.Amount.Value.Uint64())
					want, newest = &v, p
				}
			}
			if (want == nil) != (c.Answer == nil) ||
				want != nil && (*want != c.Answer.Response || newest[0] != c.Answer.Block) {
				t.Errorf("agent %d at %d: answer %+v, not %v in block %d", i, n, c.Answer, want, newest[0])
			}
			if want != nil {
				answered++
			}
		}
	}
	if answered == 0 {
		t.Error("no answer was met")
	}
	if _, err := query.ReadTrustChecks(ctx, db, w.id(9999), at(w.tip().Number),
		func(repute.Agent) []string { return nil }); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("no such agent: %v", err)
	}
}

// A file counts however it became known, the first that can be read before others.
func TestTrustChecksFindFiles(t *testing.T) {
	t.Parallel()
	const dead, good = "https://a.example/agent.json", "https://b.example/agent.json"
	db, w := queue(t, dead, good)
	files := func(repute.Agent) []string { return []string{"https://c.example/agent.json", dead, good} }
	latest := repute.At{Finality: repute.Latest}
	c, err := query.ReadTrustChecks(ctxOf(t), db, w.id(0), latest, files)
	ok(t, err)
	if c.File == nil || c.File.URI != dead || c.File.Body != nil || c.File.File.Status != repute.DocumentPending {
		t.Errorf("before anything was read: %+v", c.File)
	}
	u := claim(t, db, "")
	read(t, db, u[good], `{"a":1}`, nil)
	c, err = query.ReadTrustChecks(ctxOf(t), db, w.id(0), latest, files)
	ok(t, err)
	if c.File == nil || c.File.URI != good || string(c.File.Body) != `{"a":1}` || c.File.File.SHA256 == [32]byte{} {
		t.Errorf("once one is read: %+v", c.File)
	}
}
