package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/api"
	"repute/internal/pgtest"
	"repute/store"
)

// status shows endpoints, what was verified and what is missing; --watch looks
// again until it is stopped, which is no failure.
func TestStatusShowsTrouble(t *testing.T) {
	c := small(t)
	database := pgtest.New(t)
	config := configure(t, c, database)
	mustRun(t, "serve", "--once", "--config", config)
	db := openTest(t, database)
	err := db.SaveEndpoints(t.Context(), 31337, []repute.Endpoint{{ChainID: 31337, Name: "rpc.example", Kind: "ws",
		State: repute.EndpointHalfOpen, Latency: 12 * time.Millisecond, ErrorRate: 0.25, Requests: 8, Owner: "me"}})
	if err != nil {
		t.Fatal(err)
	}
	err = db.OpenGaps(t.Context(), 31337, store.Lease{}, []store.Gap{{Subject: "x", Gap: repute.Gap{Kind: repute.KindApproval,
		Blocks: repute.BlockRange{From: 1, To: 2}, Reason: "getApproved differs"}}})
	if err != nil {
		t.Fatal(err)
	}
	out := mustRun(t, "status", "--config", config)
	for _, want := range []string{"busy", "incomplete", "rpc.example", "trying", "25%", "Approval", "1 to 2", "getApproved differs"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	var status api.StatusAnswer
	if err := json.Unmarshal([]byte(mustRun(t, "status", "--json", "--config", config)), &status); err != nil || status.Status != "degraded" || len(status.Chains) != 1 {
		t.Errorf("%v: %+v", err, status)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*watchPause+watchPause/2)
	defer cancel()
	var stdout, stderr bytes.Buffer
	if code := run(ctx, []string{"status", "--watch", "--config", config}, &stdout, &stderr); code != 0 || strings.Count(stdout.String(), "CHAIN  ID") < 2 {
		t.Errorf("--watch: exit code %d, says %s, shows %s", code, &stderr, &stdout)
	}
}
