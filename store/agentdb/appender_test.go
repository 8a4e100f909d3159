package agentdb_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"repute/internal/pgtest"
	"repute/store"
	"repute/store/agentdb"
)

// inserts counts the statements that append to the log.
type inserts struct{ n atomic.Int64 }

// TraceQueryStart implements pgx.QueryTracer.
func (i *inserts) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	if strings.HasPrefix(strings.TrimSpace(d.SQL), "insert into agent_receipts") {
		i.n.Add(1)
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (i *inserts) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestLog appends the entries of many requests, each once and in its order, with fewer statements than requests; an
// entry that cannot be stored fails its own request alone.
func TestLog(t *testing.T) {
	t.Parallel()
	count := &inserts{}
	db, err := store.Open(context.WithoutCancel(t.Context()), pgtest.New(t), store.Options{Tracer: count})
	ok(t, err)
	t.Cleanup(db.Close)
	ok(t, agentdb.Maintain(t.Context(), db, agentdb.MinRetention))
	log := agentdb.NewLog(db)
	ok(t, log.Add(t.Context()))
	const requests, broken = 200, 77
	var all sync.WaitGroup
	failed := make([]error, requests)
	for i := range requests {
		e := agentdb.Entry{Kind: agentdb.Decision, Agent: "a", RequestID: fmt.Sprint(i), Outcome: "allow"}
		done := e
		done.Kind, done.Outcome = agentdb.Execution, "200"
		if i%3 == 0 {
			done.Amount = big.NewInt(5)
		}
		if i == broken {
			done.Detail = json.RawMessage("{")
		}
		all.Go(func() { failed[i] = log.Add(t.Context(), e, done) })
	}
	all.Wait()
	statements := count.n.Load()
	for i, err := range failed {
		if (err != nil) != (i == broken) {
			t.Errorf("request %d: %v", i, err)
		}
	}
	list, err := agentdb.Entries(t.Context(), db, agentdb.Query{Agent: "a", Limit: 1000})
	ok(t, err)
	seen := map[string]string{}
	for _, e := range list { // the newest first
		seen[e.RequestID] = string(e.Kind) + " " + seen[e.RequestID]
	}
	if len(list) != 2*(requests-1) || len(seen) != requests-1 || statements >= requests {
		t.Errorf("%d entries of %d requests in %d statements", len(list), len(seen), statements)
	}
	for request, kinds := range seen {
		if kinds != "decision execution " {
			t.Errorf("request %s has %s", request, kinds)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for range 100 { // the statement or the end may be noticed first
		if err := log.Add(ended, agentdb.Entry{Kind: agentdb.Decision, Agent: "b", Outcome: "allow"}); err != nil {
			return
		}
	}
	t.Error("no request that was canceled ends before its entry is stored")
}
