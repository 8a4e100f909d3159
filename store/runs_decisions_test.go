package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/rundb"
)

// heldRun stores a task whose root run is taken.
func heldRun(t *testing.T, db *store.DB) (repute.Run, rundb.Lease) {
	t.Helper()
	ctx := ctxOf(t)
	nothing := func(pgx.Tx) error { return nil }
	limits := repute.Limits{Steps: 100, ToolCalls: 100, Writes: 100, Runtime: time.Hour}
	_, _, err := rundb.AddTask(ctx, db, repute.Task{ID: "t", Goal: "g", Coordinator: "c", Terms: json.RawMessage(`{}`)},
		repute.Run{ID: "r", Agent: "c", Limits: limits}, nothing)
	ok(t, err)
	w, lease, err := rundb.TakeRun(ctx, db, "r", time.Hour)
	ok(t, err)
	return w.Run, lease
}

// decision is one with a subject of its own. Its input has all that Postgres might write
// in another way than it was given.
func decision(n int) rundb.Decision {
	return rundb.Decision{Phase: repute.PhaseExecute, Kind: repute.DecisionCall, Subject: fmt.Sprint("call ", n),
		Effect:  "allow",
		Reasons: json.RawMessage(`[]`), Policy: [32]byte{byte(n)},
		Input: json.RawMessage(`{"b": 1e400, "a":"\u0000<é>","b":0.10}`)}
}

// chained fails where the stored decisions of a run are not one chain of so many.
func chained(t *testing.T, db *store.DB, run string, want int) {
	t.Helper()
	decided, err := rundb.ReadDecidedTask(ctxOf(t), db, run)
	ok(t, err)
	var last common.Hash
	for i, d := range decided.Decisions {
		sum, err := d.Sum()
		if ok(t, err); sum != d.Hash || d.Previous != last || d.Number != int64(i+1) {
			t.Errorf("decision %d at place %d does not follow", d.Number, i+1)
		}
		last = d.Hash
	}
	if decided.Head.Hash != last || decided.Head.Count != int64(want) || len(decided.Decisions) != want {
		t.Errorf("%d decisions, head says %d, want %d", len(decided.Decisions), decided.Head.Count, want)
	}
}

// However many write decisions at once, from several processes, the chain does not fork, and
// a decision is stored with its link or not at all.
func TestDecisionsDoNotFork(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	run, lease := heldRun(t, db)
	var writers sync.WaitGroup
	const each, many = 10, 6
	for w := range many {
		writers.Add(1)
		go func() {
			defer writers.Done()
			for i := range each {
				d := decision(w*each + i)
				var err error
				if i%2 == 0 {
					err = rundb.AddDecision(ctx, db, lease, run.ID, d)
				} else {
					_, _, err = rundb.BeginCall(ctx, db, lease,
						repute.Receipt{Run: run.ID, Key: d.Subject, Kind: repute.CallTool},
						rundb.Charge{MostOfRun: 1000}, d)
				}
				if err != nil {
					t.Error(err)
				}
			}
		}()
	}
	writers.Wait()
	chained(t, db, run.ID, each*many)
	failed := errors.New("after the decision")
	out := rundb.PhaseOutcome{Run: run.ID, RunPhase: repute.RunPhase{Phase: repute.PhaseExecute, Attempt: 1,
		Status: repute.PhaseOK, Started: time.Now(), Ended: time.Now()},
		Status: repute.RunRunning, Decisions: []rundb.Decision{decision(100)}}
	if err := rundb.SavePhase(ctx, db, lease, out, func(pgx.Tx) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("a phase that cannot be stored: %v", err)
	}
	chained(t, db, run.ID, each*many)
	if err := rundb.AddDecision(ctx, db, rundb.Lease{Root: run.ID, Fence: lease.Fence - 1}, run.ID,
		decision(101)); !errors.Is(err, repute.ErrFenced) {
		t.Errorf("a former holder: %v", err)
	}
	ok(t, rundb.SavePhase(ctx, db, lease, out, nil))
	chained(t, db, run.ID, each*many+1)
}

// A process that has no key takes the signature of the head before away: it is not that of
// the new head.
func TestHeadIsSignedByTheWriterAlone(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	seals := func(h repute.DecisionsHead) (repute.SealedHead, error) {
		return repute.SealedHead{DecisionsHead: h, Signer: common.Address{1},
			Signature: append(h.Hash.Bytes(), make([]byte, 33)...)}, nil
	}
	var dbs [2]*store.DB
	for i, o := range []store.Options{{Seal: seals}, {}} {
		db, err := store.Open(ctxOf(t), url, o)
		ok(t, err)
		t.Cleanup(db.Close)
		dbs[i] = db
	}
	run, lease := heldRun(t, dbs[0])
	for i, db := range dbs {
		ok(t, rundb.AddDecision(ctxOf(t), db, lease, run.ID, decision(i)))
		head, err := rundb.DecisionsHead(ctxOf(t), db, run.ID)
		ok(t, err)
		if signed := len(head.Signature) > 0 &&
			common.BytesToHash(head.Signature[:32]) == head.Hash; signed != (i == 0) ||
			(head.Signer != common.Address{}) != signed {
			t.Errorf("decision %d: signed %v by %s", i+1, signed, head.Signer)
		}
	}
}

// A decision is kept once for each reason it was made for.
func TestDecisionsForOtherReasonsAreKept(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	run, lease := heldRun(t, db)
	for _, reasons := range []string{`[]`, `[{"code":"cap"}]`, `[{"code":"cap"}]`, `[]`, `[{"code":"identity"}]`} {
		d := decision(1)
		d.Reasons = json.RawMessage(reasons)
		ok(t, rundb.AddDecision(ctx, db, lease, run.ID, d))
	}
	chained(t, db, run.ID, 3)
}
