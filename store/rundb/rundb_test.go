package rundb_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/rundb"
	"repute/store/walletdb"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

func open(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(context.WithoutCancel(t.Context()), pgtest.New(t), store.Options{})
	ok(t, err)
	t.Cleanup(db.Close)
	return db
}

// wide are limits that no test reaches.
var wide = repute.Limits{Steps: 100, ToolCalls: 100, Writes: 100, Runtime: time.Hour}

// add stores a task "task of ID" with a root run of an id.
func add(t testing.TB, db *store.DB, id string, limits repute.Limits) {
	t.Helper()
	_, added, err := rundb.AddTask(t.Context(), db, repute.Task{ID: "task of " + id, Goal: "g", Coordinator: "c",
		Terms: json.RawMessage(`{}`)}, repute.Run{ID: id, Agent: "c", Limits: limits}, func(pgx.Tx) error { return nil })
	if ok(t, err); !added {
		t.Fatalf("task of %s was there", id)
	}
}

// held stores a task whose root run "r" is taken.
func held(t testing.TB, db *store.DB, limits repute.Limits) rundb.Lease {
	t.Helper()
	add(t, db, "r", limits)
	_, lease, err := rundb.TakeRun(t.Context(), db, "r", time.Hour)
	ok(t, err)
	return lease
}

// call is a call of run "r" by a key.
func call(kind repute.CallKind, key string) repute.Receipt {
	return repute.Receipt{Run: "r", Step: "s", Key: key, Kind: kind, Summary: key}
}

// save ends a phase of run "r".
func save(t testing.TB, db *store.DB, l rundb.Lease, p repute.Phase, status repute.PhaseStatus, run repute.RunStatus,
	attempt int) {
	t.Helper()
	now := time.Now()
	ok(t, rundb.SavePhase(t.Context(), db, l, rundb.PhaseOutcome{Run: "r", Status: run, Ended: run.Ended(),
		RunPhase: repute.RunPhase{Phase: p, Attempt: attempt, Status: status, Started: now, Ended: now}}, nil))
}

// stored returns what is stored about runs, without times.
func stored(t testing.TB, db *store.DB) (text string) {
	t.Helper()
	ok(t, db.Pool().QueryRow(t.Context(), `select json_build_object(
		'runs', (select json_agg(r order by r.id) from (select id, status, phase, attempt, awaiting, steps, tool_calls, writes,
			gas, tokens, cost, max_steps, events, decisions, error from runs) r),
		'calls', (select json_agg(c order by c.id) from run_calls c),
		'steps', (select json_agg(s order by s.step_id) from run_steps s),
		'phases', (select json_agg(p order by p.run_id, p.attempt, p.phase) from run_phases p),
		'events', (select json_agg(e order by e.number) from run_events e),
		'decisions', (select json_agg(d order by d.id) from run_decisions d))::text`).Scan(&text))
	return text
}

// A worker that lost its claim stores nothing, whatever it calls; the one that has it stores everything.
func TestLostClaimStoresNothing(t *testing.T) {
	t.Parallel()
	db := open(t)
	lease := held(t, db, wide)
	begun, _, err := rundb.BeginCall(t.Context(), db, lease, call(repute.CallTool, "begun"), rundb.Charge{MostOfRun: 9})
	ok(t, err)
	decision := rundb.Decision{Phase: repute.PhaseExecute, Kind: repute.DecisionCall, Subject: "x", Effect: "allow"}
	type write func(context.Context, rundb.Lease) error
	writes := map[string]write{
		"AddDecision": func(ctx context.Context, l rundb.Lease) error {
			return rundb.AddDecision(ctx, db, l, "r", decision)
		},
		"BeginCall": func(ctx context.Context, l rundb.Lease) error {
			_, _, err := rundb.BeginCall(ctx, db, l, call(repute.CallTool, "new"), rundb.Charge{ToolCalls: 1, MostOfRun: 9})
			return err
		},
		"EndCall": func(ctx context.Context, l rundb.Lease) error {
			return rundb.EndCall(ctx, db, l, begun.ID, rundb.CallOutcome{Result: json.RawMessage(`1`)})
		},
		"RefuseCall": func(ctx context.Context, l rundb.Lease) error {
			refusal := decision
			refusal.Subject, refusal.Effect = "no", "deny"
			_, err := rundb.RefuseCall(ctx, db, l, call(repute.CallRefused, "no"), refusal)
			return err
		},
		"BoundRun": func(ctx context.Context, l rundb.Lease) error {
			return rundb.BoundRun(ctx, db, l, repute.Limits{Steps: 50, ToolCalls: 50, Writes: 50, Runtime: time.Minute})
		},
		"AddModelText": func(ctx context.Context, l rundb.Lease) error {
			return rundb.AddModelText(ctx, db, l, "r", "s", 1, "hello")
		},
		"BeginStep": func(ctx context.Context, l rundb.Lease) error {
			_, err := rundb.BeginStep(ctx, db, l, "r", "s")
			return err
		},
		"EndStep": func(ctx context.Context, l rundb.Lease) error {
			return rundb.EndStep(ctx, db, l, "r", rundb.Step{ID: "s", Status: rundb.StepCompleted})
		},
		"SubRun": func(ctx context.Context, l rundb.Lease) error {
			_, err := rundb.SubRun(ctx, db, l, repute.Run{ID: "sub", Task: "task of r", Parent: "r", ParentStep: "s",
				Agent: "d", Limits: wide})
			return err
		},
		"DelayPhase": func(ctx context.Context, l rundb.Lease) error {
			_, _, err := rundb.DelayPhase(ctx, db, l, "r", repute.PhaseExecute, 1, "later")
			return err
		},
		"SavePhase": func(ctx context.Context, l rundb.Lease) error {
			return rundb.SavePhase(ctx, db, l, rundb.PhaseOutcome{Run: "r", Status: repute.RunRunning,
				RunPhase: repute.RunPhase{Phase: repute.PhaseDiscover, Attempt: 1, Status: repute.PhaseOK}},
				func(pgx.Tx) error { return nil })
		},
	}
	lost := rundb.Lease{Root: lease.Root, Fence: lease.Fence - 1}
	before := stored(t, db)
	for name, w := range writes {
		if err := w(t.Context(), lost); !errors.Is(err, repute.ErrFenced) {
			t.Errorf("%s without the claim: %v", name, err)
		}
		if now := stored(t, db); now != before {
			t.Fatalf("%s without the claim stored\n%s\nbefore\n%s", name, now, before)
		}
	}
	for _, name := range []string{"BeginStep", "EndStep", "BeginCall", "EndCall", "RefuseCall", "AddDecision", "BoundRun",
		"AddModelText", "SubRun", "DelayPhase", "SavePhase"} {
		if err := writes[name](t.Context(), lease); err != nil {
			t.Errorf("%s with the claim: %v", name, err)
		}
		now := stored(t, db)
		if now == before {
			t.Errorf("%s with the claim stored nothing", name)
		}
		before = now
	}
}

// Each limit of a task refuses the call that would pass it, by its name, and charges nothing for it.
func TestLimits(t *testing.T) {
	t.Parallel()
	db := open(t)
	lease := held(t, db, repute.Limits{Steps: 2, ToolCalls: 2, Writes: 2, Runtime: time.Hour, GasWei: "100",
		Tokens: 100, Cost: 100})
	begin := func(c rundb.Charge, key string) error {
		c.MostOfRun = 100
		_, _, err := rundb.BeginCall(t.Context(), db, lease, call(repute.CallTool, key), c)
		return err
	}
	refused := func(limit string, c rundb.Charge) {
		t.Helper()
		var budget *rundb.BudgetError
		err := begin(c, limit)
		if !errors.As(err, &budget) || budget.Limit != limit || !errors.Is(err, repute.ErrLimited) {
			t.Errorf("%s: %v", limit, err)
		}
	}
	over := map[string]rundb.Charge{"maxSteps": {Steps: 3}, "maxToolCalls": {ToolCalls: 3}, "maxOnchainWrites": {Writes: 3},
		"maxGasWei": {GasWei: "101"}, "maxTokens": {Tokens: 101}, "maxCostUsd": {Cost: 101}}
	for limit, c := range over {
		refused(limit, c)
	}
	run, err := rundb.Run(t.Context(), db, "r")
	ok(t, err)
	if u := run.Used; u.Steps+u.ToolCalls+u.Writes != 0 || u.GasWei != "0" || u.Tokens != 0 || u.Cost != 0 {
		t.Errorf("refused calls were charged: %+v", u)
	}
	if calls, err := rundb.Receipts(t.Context(), db, "r"); err != nil || len(calls) != 0 {
		t.Errorf("refused calls were stored: %+v, %v", calls, err)
	}
	ok(t, begin(rundb.Charge{Steps: 2, ToolCalls: 2, Writes: 2, GasWei: "100", Tokens: 100, Cost: 100}, "all of it"))
	for limit, c := range map[string]rundb.Charge{"maxSteps": {Steps: 1}, "maxToolCalls": {ToolCalls: 1},
		"maxOnchainWrites": {Writes: 1}, "maxGasWei": {GasWei: "1"}, "maxTokens": {Tokens: 1}, "maxCostUsd": {Cost: 1}} {
		refused(limit, c)
	}
	for kind, limit := range map[repute.CallKind]string{repute.CallTool: "the manifest's maxToolCalls",
		repute.CallTransaction: "the manifest's maxOnchainWrites"} {
		most := 1
		if kind == repute.CallTransaction {
			most = 0 // none was made
		}
		var budget *rundb.BudgetError
		_, _, err := rundb.BeginCall(t.Context(), db, lease, call(kind, "more"), rundb.Charge{MostOfRun: most})
		if !errors.As(err, &budget) || budget.Limit != limit {
			t.Errorf("%s: %v", limit, err)
		}
	}
}

// Calls that begin at once take from the limits one after the other: none passes them, and none is lost.
func TestLimitsOfManyAtOnce(t *testing.T) {
	t.Parallel()
	const most, many = 7, 20
	db := open(t)
	lease := held(t, db, repute.Limits{Steps: 100, ToolCalls: most, Writes: 100, Runtime: time.Hour})
	errs := make([]error, many)
	var calls sync.WaitGroup
	for i := range many {
		calls.Go(func() {
			_, _, errs[i] = rundb.BeginCall(t.Context(), db, lease, call(repute.CallTool, fmt.Sprint("call ", i)),
				rundb.Charge{ToolCalls: 1, GasWei: "3", MostOfRun: many})
		})
	}
	calls.Wait()
	began := 0
	for _, err := range errs {
		if err == nil {
			began++
		} else if !errors.Is(err, repute.ErrLimited) {
			t.Error(err)
		}
	}
	run, err := rundb.Run(t.Context(), db, "r")
	ok(t, err)
	if began != most || run.Used.ToolCalls != most || run.Used.GasWei != fmt.Sprint(3*most) {
		t.Errorf("%d calls began, %+v is used", began, run.Used)
	}
}

// A call that is stored is returned and not charged again; what it used at last corrects its charge, never below zero.
func TestCallIsChargedOnce(t *testing.T) {
	t.Parallel()
	db := open(t)
	lease := held(t, db, repute.Limits{Steps: 9, ToolCalls: 9, Writes: 9, Runtime: time.Hour, GasWei: "1000"})
	charge := rundb.Charge{ToolCalls: 1, GasWei: "100", Tokens: 10, MostOfRun: 9}
	first, known, err := rundb.BeginCall(t.Context(), db, lease, call(repute.CallModel, "k"), charge)
	if ok(t, err); known || first.Done {
		t.Fatalf("a new call: %+v, known %t", first, known)
	}
	again, known, err := rundb.BeginCall(t.Context(), db, lease, call(repute.CallModel, "k"), charge)
	if ok(t, err); !known || again.ID != first.ID || again.Done {
		t.Errorf("after a crash: %+v, known %t", again, known)
	}
	ok(t, rundb.EndCall(t.Context(), db, lease, first.ID, rundb.CallOutcome{GasWei: "-40", Tokens: -25,
		Result: json.RawMessage(`{"a":1}`)}))
	again, known, err = rundb.BeginCall(t.Context(), db, lease, call(repute.CallModel, "k"), charge)
	if ok(t, err); !known || !again.Done || string(again.Result) != `{"a":1}` {
		t.Errorf("after its end: %+v, known %t", again, known)
	}
	run, err := rundb.Run(t.Context(), db, "r")
	ok(t, err)
	if run.Used.ToolCalls != 1 || run.Used.GasWei != "60" || run.Used.Tokens != 0 {
		t.Errorf("used %+v", run.Used)
	}
}

// A run whose job is lost is queued again, once, and only where the job could be inserted. A run whose job waits is
// not.
func TestRequeueLost(t *testing.T) {
	t.Parallel()
	db := open(t)
	add(t, db, "lost", wide)
	add(t, db, "waits", wide)
	_, err := db.Pool().Exec(t.Context(), `
		insert into river_job (kind, args, max_attempts, state) values ('run', '{"root": "waits"}', 3, 'available')`)
	ok(t, err)
	if n, err := rundb.RequeueLost(t.Context(), db, 10, nil); err != nil || n != 0 {
		t.Errorf("new runs: %d, %v", n, err)
	}
	_, err = db.Pool().Exec(t.Context(), "update runs set lost_after = now() - interval '1 second'")
	ok(t, err)
	full := errors.New("the queue is full")
	if _, err := rundb.RequeueLost(t.Context(), db, 10, func(pgx.Tx, []string) error { return full }); !errors.Is(err,
		full) {
		t.Errorf("a queue that fails: %v", err)
	}
	var queued []string
	note := func(_ pgx.Tx, roots []string) error { queued = append(queued, roots...); return nil }
	for range 2 {
		_, err := rundb.RequeueLost(t.Context(), db, 10, note)
		ok(t, err)
	}
	if !slices.Equal(queued, []string{"lost"}) {
		t.Errorf("queued %v", queued)
	}
}

// A retry keeps what succeeded and what may have had an effect, makes failed calls again, and takes the run from the
// worker that had it. Another plan is refused while a transaction of the former one may be on the chain.
func TestRetry(t *testing.T) {
	t.Parallel()
	db := open(t)
	lease := held(t, db, wide)
	begin := func(kind repute.CallKind, key string, once bool) int64 {
		r, _, err := rundb.BeginCall(t.Context(), db, lease, call(kind, key), rundb.Charge{MostOfRun: 50, Once: once})
		ok(t, err)
		return r.ID
	}
	end := func(id int64, o rundb.CallOutcome) { ok(t, rundb.EndCall(t.Context(), db, lease, id, o)) }
	end(begin(repute.CallTool, "tool that succeeded", false), rundb.CallOutcome{})
	end(begin(repute.CallTool, "tool that failed", false), rundb.CallOutcome{Error: "no"})
	end(begin(repute.CallHTTP, "surely without effect", true), rundb.CallOutcome{Error: "refused"})
	end(begin(repute.CallHTTP, "maybe with effect", true), rundb.CallOutcome{Error: "timeout", Uncertain: true})
	begin(repute.CallModel, "model without an end", false)
	begin(repute.CallHTTP, "once without an end", true)
	begin(repute.CallPayment, "payment without an end", false)
	begin(repute.CallTransaction, "transaction without an end", false)
	for _, s := range []rundb.Step{{ID: "done", Status: rundb.StepCompleted}, {ID: "failed", Status: rundb.StepFailed}} {
		_, err := rundb.BeginStep(t.Context(), db, lease, "r", s.ID)
		ok(t, err)
		ok(t, rundb.EndStep(t.Context(), db, lease, "r", s))
	}
	for p := repute.PhaseDiscover; p < repute.PhaseExecute; p++ {
		save(t, db, lease, p, repute.PhaseOK, repute.RunPlanning, 1)
	}
	queue := func(pgx.Tx, string) error { return nil }
	if err := rundb.RetryTask(t.Context(), db, "task of r", 0, "me", queue); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("a retry of a run that has not ended: %v", err)
	}
	save(t, db, lease, repute.PhaseExecute, repute.PhaseFailed, repute.RunFailed, 1)
	for p, why := range map[repute.Phase]string{repute.PhasePlan: "again", repute.PhaseVerify: "did not get to"} {
		err := rundb.RetryTask(t.Context(), db, "task of r", p, "me", queue)
		if !errors.Is(err, repute.ErrConflict) || !strings.Contains(err.Error(), why) {
			t.Errorf("from phase %s: %v", p, err)
		}
	}
	ok(t, rundb.RetryTask(t.Context(), db, "task of r", 0, "me", queue))
	calls, err := rundb.Receipts(t.Context(), db, "r")
	ok(t, err)
	var kept []string
	for _, c := range calls {
		kept = append(kept, c.Key)
	}
	if want := []string{"tool that succeeded", "maybe with effect", "once without an end", "payment without an end",
		"transaction without an end"}; !slices.Equal(kept, want) {
		t.Errorf("kept %q, want %q", kept, want)
	}
	steps, err := rundb.Steps(t.Context(), db, "r")
	if ok(t, err); len(steps) != 1 || steps[0].ID != "done" {
		t.Errorf("steps %+v", steps)
	}
	if err := rundb.CheckLease(t.Context(), db, lease); !errors.Is(err, repute.ErrFenced) {
		t.Errorf("the worker before: %v", err)
	}
	work, _, err := rundb.TakeRun(t.Context(), db, "r", time.Hour)
	ok(t, err)
	if work.Attempt != 2 || work.Phase != repute.PhaseDryRun || len(work.Phases) != 5 {
		t.Errorf("attempt %d goes on after phase %s with %d phases", work.Attempt, work.Phase, len(work.Phases))
	}
}

// A transaction that is signed has not failed, whatever the worker saw. Once its intent is final and its run has
// ended, its outcome is stored, once.
func TestSignedTransaction(t *testing.T) {
	t.Parallel()
	db := open(t)
	lease := held(t, db, wide)
	begun, _, err := rundb.BeginCall(t.Context(), db, lease, call(repute.CallTransaction, "k"), rundb.Charge{MostOfRun: 9})
	ok(t, err)
	id := "r/s/k"
	_, err = walletdb.AddIntent(t.Context(), db, walletdb.Intent{ID: id, Run: "r", Task: "task of r", ChainID: 7,
		From: common.Address{1}, To: common.Address{2}, Value: new(big.Int)},
		func(_ context.Context, n walletdb.Nonces) (walletdb.IntentAttempt, error) {
			return walletdb.IntentAttempt{Hash: common.Hash{1}, Raw: []byte{1}, Nonce: n.Next, Gas: 21000,
				FeeCap: big.NewInt(1), TipCap: big.NewInt(1)}, nil
		})
	ok(t, err)
	failed := rundb.CallOutcome{Error: "no answer"}
	if err := rundb.EndCall(t.Context(), db, lease, begun.ID, failed); !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("a signed transaction failed: %v", err)
	}
	if r, err := rundb.Receipt(t.Context(), db, "r", begun.ID); err != nil || r.Done {
		t.Errorf("its call: %+v, %v", r, err)
	}
	save(t, db, lease, repute.PhaseDiscover, repute.PhaseFailed, repute.RunFailed, 1)
	if list, err := rundb.OpenCalls(t.Context(), db, 10); err != nil || len(list) != 0 {
		t.Errorf("its intent is not final: %+v, %v", list, err)
	}
	ok(t, walletdb.MarkIntent(t.Context(), db, id, walletdb.IntentConfirmed, walletdb.Mining{Hash: common.Hash{1},
		Block: 5, BlockHash: common.Hash{5}, GasUsed: 21000, Fee: big.NewInt(21000)}, ""))
	list, err := rundb.OpenCalls(t.Context(), db, 10)
	if ok(t, err); len(list) != 1 || list[0].ID != begun.ID || list[0].Task != "task of r" || list[0].Agent != "c" {
		t.Fatalf("open calls %+v", list)
	}
	for _, result := range []string{`"first"`, `"second"`} {
		ok(t, rundb.SettleCall(t.Context(), db, list[0], rundb.CallOutcome{Result: json.RawMessage(result)}))
	}
	if r, err := rundb.Receipt(t.Context(), db, "r", begun.ID); err != nil || !r.Done || string(r.Result) != `"first"` {
		t.Errorf("its call: %+v, %v", r, err)
	}
	if list, err := rundb.OpenCalls(t.Context(), db, 10); err != nil || len(list) != 0 {
		t.Errorf("it is settled: %+v, %v", list, err)
	}
}

// Any bytes that a caller sends are a filter, which finds nothing, and no failure of the database.
func TestAnyBytesAreAFilter(t *testing.T) {
	t.Parallel()
	db := open(t)
	held(t, db, wide)
	for _, text := range []string{"\x00", "c\x00", "\xff", "'; --"} {
		for _, f := range []rundb.TaskFilter{{Coordinator: text}, {Status: repute.TaskStatus(text)}} {
			if list, err := rundb.Tasks(t.Context(), db, f, 10); err != nil || len(list) != 0 {
				t.Errorf("%+v: %+v, %v", f, list, err)
			}
		}
		for _, f := range []rundb.RunFilter{{Agent: text}, {Status: repute.RunStatus(text)}} {
			if list, err := rundb.Runs(t.Context(), db, f, 10); err != nil || len(list) != 0 {
				t.Errorf("%+v: %+v, %v", f, list, err)
			}
		}
		before := rundb.RunFilter{Before: time.Now().Add(time.Hour), BeforeID: text}
		if list, err := rundb.Runs(t.Context(), db, before, 10); err != nil || len(list) != 1 {
			t.Errorf("before %q: %+v, %v", text, list, err)
		}
	}
}
