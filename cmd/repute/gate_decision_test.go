package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"repute"
	"repute/orchestrator/trustgate"
	"repute/policy"
	"repute/store"
	"repute/store/rootdb"
	"repute/store/scoredb"
	"repute/trust/engine"
	"repute/trust/explain"
)

// A decision that rests on a score is made again from what it pins, also when the roots have
// changed since and the epoch has another score; one that pins another score is not.
func TestGateDecisionOfAScoredAgentHolds(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), scoredDatabase(t), store.Options{MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	run, err := scoredb.ReadClosedRun(t.Context(), db, 31337)
	check(err)
	agent := repute.AgentID{ChainID: 31337, Registry: client(1)}
	p, err := policy.Parse([]byte("version: \"1\"\ntrust: {threshold: {minReputation: 10}}\n"))
	check(err)
	_, err = scoredb.KeepInput(t.Context(), db, p.Text())
	check(err)
	v, err := trustgate.Decide(t.Context(), db, p, true, repute.Module{Slug: "plain", Agent: &agent},
		policy.Task{Coordinator: "plain", Value: "0", Budget: policy.DefaultBudget()}, policy.Threshold{})
	check(err)
	replay, err := explain.NewReader(db, explain.Options{})
	check(err)
	if v.Pin.Block == 0 {
		t.Fatalf("no score is pinned: %+v", v.Pin)
	}
	check(trustgate.Verify(t.Context(), db, replay, v))
	check(rootdb.AddRoots(t.Context(), db, 31337, repute.DefaultRoots,
		[]repute.TrustRoot{{Address: client(40), Weight: repute.RootUnit, Reason: "test"}}, false))
	e, err := engine.New(db, engine.EngineOptions{Poll: 10 * time.Millisecond})
	check(err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	defer func() { stop(); <-done }()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		next, err := scoredb.ReadClosedRun(t.Context(), db, 31337)
		check(err)
		if next.Run > run.Run {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no run by other roots")
		}
	}
	check(trustgate.Verify(t.Context(), db, replay, v))
	v.Pin.Result[0]++
	if err := trustgate.Verify(t.Context(), db, replay, v); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("a score that never was: %v", err)
	}
}
