package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/api/wire"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/scoredb"
)

// status shows endpoints, what was verified and what is missing; --watch looks
// again until it is stopped, which is no failure.
func TestStatusShowsTrouble(t *testing.T) {
	c := small(t)
	database := pgtest.New(t)
	config := configure(t, c, database)
	mustRun(t, "serve", "--once", "--config", config)
	db := openTest(t, database)
	err := chaindb.SaveEndpoints(t.Context(), db, 31337,
		[]repute.Endpoint{{ChainID: 31337, Name: "rpc.example", Kind: "ws",
			State: repute.EndpointHalfOpen, Latency: 12 * time.Millisecond, ErrorRate: 0.25, Requests: 8, Owner: "me"}})
	if err != nil {
		t.Fatal(err)
	}
	err = chaindb.OpenGaps(t.Context(), db, 31337, store.Lease{},
		[]chaindb.Gap{{Subject: "x", Gap: repute.Gap{Kind: repute.KindApproval,
			Blocks: repute.BlockRange{From: 1, To: 2}, Reason: "getApproved differs"}}})
	if err != nil {
		t.Fatal(err)
	}
	out := mustRun(t, "status", "--config", config)
	for _, want := range []string{"busy", "incomplete", "rpc.example", "trying", "25%", "Approval", "1 to 2",
		"getApproved differs"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	var status wire.StatusAnswer
	if err := json.Unmarshal([]byte(mustRun(t, "status", "--json", "--config", config)), &status); err != nil ||
		status.Status != "degraded" || len(status.Chains) != 1 {
		t.Errorf("%v: %+v", err, status)
	}
	mustExec(t, db, "update chains set finalized_block = cursor_block, last_error = ''")
	if out := mustRun(t, "status", "--config", config); !strings.Contains(out,
		"no scores: no process does the role trust") {
		t.Errorf("nobody scores, and\n%s", out)
	}
	if err := scoredb.AddRun(t.Context(), db, scoredb.Run{ChainID: 31337, Run: 1, Epoch: 3, Boundary: 60,
		Readings: `[{"source":"club","chain":31337,"status":"incomplete","reason":"no route to it","kept":3}]`,
		Scorer:   "test"}); err != nil {
		t.Fatal(err)
	}
	mustExec(t, db, "update trust_runs set closed_at = now()")
	if out := mustRun(t, "status", "--config", config); !strings.Contains(out, "FINAL SCORES") ||
		!strings.Contains(out, "GO BEYOND") || !strings.Contains(out, "0, and 1 sources") ||
		!strings.Contains(out, "no route to it") || strings.Contains(out, "role trust") {
		t.Errorf("after a walk:\n%s", out)
	}
	mustExec(t, db, "update trust_runs set started_at = now() - interval '2 minutes'")
	if out := mustRun(t, "status", "--config", config); !strings.Contains(out, "scores are late") {
		t.Errorf("nobody looks, and\n%s", out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*watchPause+watchPause/2)
	defer cancel()
	var stdout, stderr bytes.Buffer
	if code := run(ctx, []string{"status", "--watch", "--config", config}, &stdout, &stderr); code != 0 ||
		strings.Count(stdout.String(), "CHAIN  ID") < 2 {
		t.Errorf("--watch: exit code %d, says %s, shows %s", code, &stderr, &stdout)
	}
}

func mustExec(t *testing.T, db *store.DB, sql string) {
	t.Helper()
	if _, err := db.Pool().Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}
