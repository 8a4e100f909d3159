package audit_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/orchestrator/audit"
	"repute/orchestrator/journal"
	"repute/orchestrator/standard"
	"repute/orchestrator/trustgate"
	"repute/policy"
	"repute/store/rundb"
)

const rules = "version: 1\n"

// task is all that was decided about a task.
type task = rundb.DecidedTask

// newTask returns a task with one run that trust and the policy allowed, and that a person approved where asked is
// set. Nothing is wrong with it.
func newTask(t testing.TB, asked bool) *task {
	t.Helper()
	hash := common.Hash(sha256.Sum256([]byte(rules)))
	terms := standard.Terms{ValueAtRisk: "25", Threshold: policy.Threshold{MinTier: 2}}
	gate := trustgate.Decision{Task: policy.Task{ID: "task-1", Value: "25"}, Threshold: terms.Threshold, Policy: hash,
		Decision: policy.Decision{Effect: policy.Allow, Reasons: []policy.Reason{}}}
	effect := string(policy.Allow)
	if asked {
		effect = string(policy.RequireApproval)
	}
	reasons := json.RawMessage(`[{"id":"large","effect":"` + effect + `","text":"a large amount"}]`)
	out := &task{Head: repute.SealedHead{DecisionsHead: repute.DecisionsHead{Task: "task-1", Root: "run-1"}},
		Terms: journal.JSON(terms), Policies: map[common.Hash][]byte{hash: []byte(rules)},
		Runs: map[string]rundb.DecidedRun{"run-1": {Attempt: 1, Status: repute.RunCompleted}},
		Phases: map[string][]repute.RunPhase{"run-1": {
			{Phase: repute.PhaseTrust, Attempt: 1, Status: repute.PhaseOK, Result: journal.JSON(gate)},
			{Phase: repute.PhasePolicy, Attempt: 1, Status: repute.PhaseOK,
				Result: fmt.Appendf(nil, `{"policy":"%x","decision":{"effect":%q,"reasons":%s}}`, hash, effect, reasons)},
			{Phase: repute.PhaseExecute, Attempt: 1, Status: repute.PhaseOK, Result: json.RawMessage(`{"steps":[]}`)},
			{Phase: repute.PhaseRecord, Attempt: 1, Status: repute.PhaseOK, Result: json.RawMessage(`null`)}}},
		Decisions: []repute.RunDecision{
			{Phase: repute.PhaseTrust, Kind: repute.DecisionTrust, Subject: "trust", Effect: string(policy.Allow),
				Reasons: json.RawMessage(`[]`), Input: journal.JSON(gate)},
			{Phase: repute.PhasePolicy, Kind: repute.DecisionPolicy, Subject: "policy", Effect: effect, Reasons: reasons,
				Input: json.RawMessage(`{}`)}}}
	if asked {
		answer := rundb.AnswerInput{Answers: 2, Approved: true, By: "ann", Reason: "fine"}
		out.Decisions = append(out.Decisions, repute.RunDecision{Phase: repute.PhasePolicy, Kind: repute.DecisionApproval,
			Subject: "policy", Effect: string(policy.Allow), Reasons: json.RawMessage(`[]`), Input: journal.JSON(answer)})
		out.Approvals = map[string][]rundb.GivenApproval{"run-1": {{Attempt: 1,
			Approval: rundb.Approval{Subject: "policy", Approved: true, By: "ann", Reason: "fine"}}}}
	}
	for i := range out.Decisions {
		d := &out.Decisions[i]
		d.Task, d.Root, d.Run, d.Attempt, d.Policy = "task-1", "run-1", "run-1", 1, hash
		d.At = time.Unix(int64(i), 0).UTC()
	}
	link(t, out)
	return out
}

// link numbers the decisions and computes their hashes and the head, as the store does.
func link(t testing.TB, k *task) {
	t.Helper()
	var last common.Hash
	for i := range k.Decisions {
		d := &k.Decisions[i]
		d.Number, d.Previous = int64(i)+1, last
		sum, err := d.Sum()
		if err != nil {
			t.Fatal(err)
		}
		d.Hash, last = sum, sum
	}
	k.Head.Count, k.Head.Hash = int64(len(k.Decisions)), last
}

// TestNothingIsWrong: a task as the engine stores it has no fault, with and without a person's answer.
func TestNothingIsWrong(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{false, true} {
		if faults := audit.CheckDecisions(newTask(t, asked)); len(faults) > 0 {
			t.Errorf("asked %t: %+v", asked, faults)
		}
	}
}

// TestEveryChangeIsFound: each change of what is stored gives a fault that says what does not agree. The changes that
// relink compute all hashes again, as somebody who can write the database would.
func TestEveryChangeIsFound(t *testing.T) {
	t.Parallel()
	phase := func(k *task, p repute.Phase) *repute.RunPhase {
		list := k.Phases["run-1"]
		return &list[slices.IndexFunc(list, func(r repute.RunPhase) bool { return r.Phase == p })]
	}
	run := func(k *task, change func(*rundb.DecidedRun)) {
		r := k.Runs["run-1"]
		change(&r)
		k.Runs["run-1"] = r
	}
	for name, c := range map[string]struct {
		change func(*task)
		relink bool
		why    string
	}{
		"effect": {func(d *task) { d.Decisions[1].Effect = "deny" }, false, "its hash is not that of its content"},
		"effect, linked again": {func(d *task) { d.Decisions[1].Effect = "deny" }, true,
			"the result of phase policy, attempt 1, says something else"},
		"reasons, linked again": {func(d *task) { d.Decisions[1].Reasons = json.RawMessage(`[]`) }, true,
			"says something else"},
		"input is no JSON": {func(d *task) { d.Decisions[1].Input = json.RawMessage(`{`) }, false,
			"it has no canonical form"},
		"previous": {func(d *task) {
			d.Decisions[1].Previous = common.Hash{1}
			d.Decisions[1].Hash, _ = d.Decisions[1].Sum()
		}, false, "it follows another decision"},
		"removed at the end": {func(d *task) { d.Decisions = d.Decisions[:2] }, false,
			"has 3 decisions, and 2 are stored"},
		"removed in between": {func(d *task) { d.Decisions = slices.Delete(d.Decisions, 1, 2) }, false,
			"was removed, added or moved"},
		"of another task": {func(d *task) { d.Decisions[0].Task = "task-2" }, true,
			"it is of run run-1 of task task-2"},
		"head": {func(d *task) { d.Head.Hash = common.Hash{1} }, false,
			"the head of the run is not the hash"},
		"policy is gone": {func(d *task) { clear(d.Policies) }, false, "is not stored"},
		"policy was exchanged": {func(d *task) { d.Policies[d.Decisions[0].Policy] = []byte("x") }, false,
			"has another sha256"},
		"phase is gone": {func(d *task) { d.Phases["run-1"] = d.Phases["run-1"][1:] }, false,
			"the record of phase trust, attempt 1, is gone"},
		"phase is of no decision": {func(d *task) { d.Decisions = d.Decisions[1:] }, true,
			"the result of phase trust, attempt 1, follows from no decision"},
		"phase cannot be read": {func(d *task) { phase(d, repute.PhasePolicy).Result = json.RawMessage(`[]`) }, false,
			"the result of phase policy, attempt 1, cannot be read"},
		"phase failed without an error": {func(d *task) { phase(d, repute.PhaseExecute).Status = repute.PhaseFailed }, false,
			"its error says otherwise"},
		"phase waits behind a later one": {func(d *task) { phase(d, repute.PhasePolicy).Status = repute.PhaseWaiting }, false,
			"is waiting, and a later phase was done"},
		"phase was rejected": {func(d *task) { phase(d, repute.PhaseTrust).Status = repute.PhaseRejected }, false,
			"decision 1 does not reject it"},
		"nobody answered": {func(d *task) { clear(d.Approvals) }, false, "who has not answered"},
		"answer was changed": {func(d *task) { d.Approvals["run-1"][0].By = "bob" }, false,
			"the stored answer is gone or says something else"},
		"answer was denied": {func(d *task) { d.Approvals["run-1"][0].Approved = false }, false,
			"a person denied what decision 2 asked for"},
		"answer of nobody": {func(d *task) { d.Decisions = d.Decisions[:2] }, true,
			"an answer is stored that nobody gave"},
		"terms": {func(d *task) { d.Terms = json.RawMessage(`{"valueAtRisk":"25"}`) }, false,
			"another threshold"},
		"terms, value": {func(d *task) { d.Terms = json.RawMessage(`{"threshold":{"minTier":2}}`) }, false,
			"another value at risk"},
		"terms, no JSON": {func(d *task) { d.Terms = nil }, false, "cannot be read"},
		"run goes on": {func(d *task) { run(d, func(r *rundb.DecidedRun) { r.Status = "running" }) }, false,
			"its phases say otherwise"},
		"run failed for nothing": {func(d *task) { run(d, func(r *rundb.DecidedRun) { r.Status = repute.RunFailed }) }, false,
			"none of its phases failed"},
		"run is complete without a record": {func(d *task) { d.Phases["run-1"] = d.Phases["run-1"][:3] }, false,
			"its phases say otherwise"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTask(t, true)
			c.change(k)
			if c.relink {
				link(t, k)
			}
			faults := audit.CheckDecisions(k)
			if !slices.ContainsFunc(faults, func(f audit.DecisionFault) bool { return strings.Contains(f.Why, c.why) }) {
				t.Errorf("no fault with %q: %+v", c.why, faults)
			}
			for _, f := range faults {
				if f.Run == "" || f.Why == "" {
					t.Errorf("a fault of nothing: %+v", f)
				}
			}
		})
	}
}

// TestCancelled: a run that counts as cancelled has somebody who cancelled the task, or was dropped by a retry.
func TestCancelled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run    rundb.DecidedRun
		faults int
	}{
		"by nobody": {rundb.DecidedRun{Attempt: 1, Status: repute.RunCancelled}, 1},
		"by ann":    {rundb.DecidedRun{Attempt: 1, Status: repute.RunCancelled, Cancel: "ann: too slow"}, 0},
		"dropped":   {rundb.DecidedRun{Attempt: 1, Status: repute.RunCancelled, Dropped: true}, 0},
	} {
		k := &task{Head: repute.SealedHead{DecisionsHead: repute.DecisionsHead{Task: "task-1", Root: "run-1"}},
			Runs: map[string]rundb.DecidedRun{"run-1": c.run}}
		if faults := audit.CheckDecisions(k); len(faults) != c.faults {
			t.Errorf("%s: %+v", name, faults)
		}
	}
}

// TestLinksByPages: the pages of a chain have no fault however it is divided, and a page that is changed has one in the
// changed decision. Only the last page is compared with the head.
func TestLinksByPages(t *testing.T) {
	t.Parallel()
	whole := newTask(t, true)
	rapid.Check(t, func(rt *rapid.T) {
		at := rapid.IntRange(0, 3).Draw(rt, "first page")
		list := slices.Clone(whole.Decisions)
		changed := rapid.IntRange(-1, 2).Draw(rt, "changed")
		if changed >= 0 {
			list[changed].Subject += "x"
		}
		var before *repute.RunDecision
		if at > 0 {
			before = &list[at-1]
		}
		faults := slices.Concat(audit.CheckLinks(&whole.Head, nil, list[:at], true),
			audit.CheckLinks(&whole.Head, before, list[at:], false))
		if changed < 0 && len(faults) > 0 {
			rt.Fatalf("divided at %d: %+v", at, faults)
		}
		if changed >= 0 && (len(faults) != 1 || faults[0].Number != int64(changed)+1) {
			rt.Fatalf("divided at %d, decision %d changed: %+v", at, changed+1, faults)
		}
	})
	if faults := audit.CheckLinks(&whole.Head, nil, whole.Decisions[:2], false); len(faults) != 2 {
		t.Errorf("the end is missing: %+v", faults)
	}
}

// TestGateDecisionOf: a trust decision is returned only where the decision in the chain says the same.
func TestGateDecisionOf(t *testing.T) {
	t.Parallel()
	good := newTask(t, false).Decisions[0]
	if v, gate, err := audit.GateDecisionOf(&good); err != nil || !gate || v.Task.ID != "task-1" {
		t.Errorf("%+v, %t, %v", v, gate, err)
	}
	other := newTask(t, false).Decisions[1]
	if _, gate, err := audit.GateDecisionOf(&other); gate || err != nil {
		t.Errorf("a decision of the policy: %t, %v", gate, err)
	}
	changes := map[string]func(*repute.RunDecision){
		"effect": func(d *repute.RunDecision) { d.Effect = "deny" },
		"policy": func(d *repute.RunDecision) { d.Policy = common.Hash{1} },
		"reasons": func(d *repute.RunDecision) {
			d.Reasons = json.RawMessage(`[{"id":"x","effect":"deny","text":"y"}]`)
		},
		"no reasons":      func(d *repute.RunDecision) { d.Reasons = json.RawMessage(`{`) },
		"input, no JSON":  func(d *repute.RunDecision) { d.Input = json.RawMessage(`{"task":`) },
		"input, no trust": func(d *repute.RunDecision) { d.Input = json.RawMessage(`{}`) },
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		d := good
		changes[name](&d)
		if _, gate, err := audit.GateDecisionOf(&d); !gate || !errors.Is(err, repute.ErrConflict) {
			t.Errorf("%s: %t, %v", name, gate, err)
		}
	}
}
