package operate_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"repute"
	"repute/orchestrator/operate"
	"repute/policy"
)

// What could not be signed at once is decided again when it can, and ends after a while.
func TestOldActsAreJudgedAgain(t *testing.T) {
	w := newWorld(t)
	begun := func(key string) {
		act, err := w.with(open, operate.Options{Wait: 1}).ExecuteCall(t.Context(),
			operate.TreasuryCall{AgentSlug: "payer", Target: somebody.Hex(), Value: "40"}, by(key))
		if err != nil || act.Status != operate.Pending {
			t.Fatalf("begun %+v, %v", act, err)
		}
	}
	ended := func(o *operate.Operator, key string, want operate.Status, says string) {
		t.Helper()
		act, err := o.ExecuteCall(t.Context(), operate.TreasuryCall{AgentSlug: "payer", Target: somebody.Hex(),
			Value: "40"}, by(key))
		if err != nil || act.Status != want || !strings.Contains(act.Error, says) {
			t.Errorf("%s: %+v, %v; want %s %q", key, act, err, want, says)
		}
	}
	now := operate.Options{Wait: 30 * time.Second, Fresh: 1}
	begun("denied")
	ended(w.with("version: \"1\"\nrules:\n  - {id: no, when: 'true', effect: deny, reason: no longer}\n", now),
		"denied",
		operate.Failed, "no longer")
	begun("left to a person")
	ended(w.with("version: \"1\"\ndefault: require_approval\n", now), "left to a person", operate.Failed,
		"no rule applies")
	begun("old")
	ended(w.with(open, operate.Options{Wait: 30 * time.Second, Fresh: 1, Expire: 1}), "old", operate.Failed,
		"ask again")
	if got := w.balance(somebody); got != 0 {
		t.Errorf("%d wei arrived", got)
	}
	begun("allowed")
	ended(w.with(open, now), "allowed", operate.Confirmed, "")
}

// TestApprovalIsOfOneRule keeps an approval from counting for a rule that asks later.
func TestApprovalIsOfOneRule(t *testing.T) {
	w := newWorld(t)
	how := by("k")
	how.Approve = true
	call := operate.TreasuryCall{AgentSlug: "payer", Target: somebody.Hex(), Value: "40"}
	const small, listed = "  - {id: small, when: 'gt(call.value, \"30\")', effect: require_approval, reason: small}\n",
		"  - {id: listed, when: 'true', effect: require_approval, reason: the target is listed}\n"
	if act, err := w.with("version: \"1\"\nrules:\n"+small, operate.Options{Wait: 1}).ExecuteCall(t.Context(), call,
		how); err != nil || act.Status != operate.Pending {
		t.Fatalf("begun %+v, %v", act, err)
	}
	later := operate.Options{Wait: 30 * time.Second, Fresh: 1}
	act, err := w.with("version: \"1\"\nrules:\n"+small+listed, later).ExecuteCall(t.Context(), call, how)
	if err != nil || act.Status != operate.Failed || act.Policy.Approved != "" ||
		!strings.Contains(act.Error, "listed") || w.balance(somebody) != 0 {
		t.Errorf("%+v, %v, %d wei arrived", act, err, w.balance(somebody))
	}
	how.Key = "same"
	if act, err := w.with("version: \"1\"\nrules:\n"+small, operate.Options{Wait: 1}).ExecuteCall(t.Context(), call,
		how); err != nil || act.Status != operate.Pending {
		t.Fatalf("begun %+v, %v", act, err)
	}
	if act, err := w.with("version: \"1\"\nrules:\n"+small, later).ExecuteCall(t.Context(), call, how); err != nil ||
		act.Status != operate.Confirmed || act.Policy.Approved != how.By {
		t.Errorf("by the same rule: %+v, %v", act, err)
	}
}

// TestApprovalIsOfOneTransaction keeps an approval of a change from counting when the policy that
// it changes is another one by then.
func TestApprovalIsOfOneTransaction(t *testing.T) {
	w := newWorld(t)
	p, err := policy.Parse([]byte("version: \"1\"\nrules:\n  - {id: ask, when: 'call.selector != \"\"', effect: require_approval, reason: the owner looks}\n"))
	ok(t, err)
	var between sync.Once
	id := w.d.Chain().ID
	o := operate.New(w.db, w.w, operate.Options{Wait: 30 * time.Second, Lenient: true, TrustChain: id,
		ExecutionChain: id, Policy: func() *policy.Policy {
			between.Do(func() {
				act, err := w.operator(open).ConfigurePolicy(t.Context(),
					operate.PolicyChange{AgentSlug: "payer", NativeWindowCapWei: "900000"}, by("meanwhile"))
				if err != nil || act.Status != operate.Confirmed {
					t.Errorf("meanwhile %+v, %v", act, err)
				}
			})
			return p
		}})
	how := by("caps")
	how.Approve = true
	act, err := o.ConfigurePolicy(t.Context(), operate.PolicyChange{AgentSlug: "payer", NativePerTxCapWei: "60"}, how)
	if err != nil || act.Status != operate.Failed || act.Policy.Approved != "" {
		t.Errorf("%+v, %v", act, err)
	}
}

// Two changes of a policy leave what each of them says: one waits for the other's end.
func TestOneChangeOfAPolicyAtATime(t *testing.T) {
	w := newWorld(t)
	first, second := operate.PolicyChange{AgentSlug: "payer", NativePerTxCapWei: "60"},
		operate.PolicyChange{AgentSlug: "payer", NativeWindowCapWei: "70"}
	o, hasty := w.operator(open), w.with(open, operate.Options{Wait: 1})
	begun, err := hasty.ConfigurePolicy(t.Context(), first, by("first"))
	if err != nil || begun.Status != operate.Pending {
		t.Fatalf("begun %+v, %v", begun, err)
	}
	for _, key := range []string{"second", ""} {
		if act, err := o.ConfigurePolicy(t.Context(), second, by(key)); !errors.Is(err, repute.ErrConflict) ||
			!strings.Contains(err.Error(), begun.ID) {
			t.Fatalf("a second change beside the first, with key %q: %+v, %v", key, act, err)
		}
	}
	if act, err := hasty.ConfigurePolicy(t.Context(), operate.PolicyChange{AgentSlug: "rater", NativePerTxCapWei: "1",
		Operator: somebody.Hex()}, by("other")); err != nil || act.Status != operate.Pending {
		t.Errorf("another agent's: %+v, %v", act, err)
	}
	for _, c := range []struct {
		change operate.PolicyChange
		key    string
	}{{first, "first"}, {second, "second"}} {
		if act, err := o.ConfigurePolicy(t.Context(), c.change, by(c.key)); err != nil ||
			act.Status != operate.Confirmed {
			t.Fatalf("%s: %+v, %v", c.key, act, err)
		}
	}
	w.caps("60", "70")
}

// A change of a policy is made of what the policy is when it is signed, whatever it was when
// the change was asked for.
func TestChangeOfAPolicyThatChanged(t *testing.T) {
	w := newWorld(t)
	p, err := policy.Parse([]byte(open))
	ok(t, err)
	var between sync.Once
	id := w.d.Chain().ID
	o := operate.New(w.db, w.w, operate.Options{Wait: 30 * time.Second, Lenient: true, TrustChain: id,
		ExecutionChain: id, Policy: func() *policy.Policy {
			between.Do(func() { // it is judged: the treasury was read before
				act, err := w.operator(open).ConfigurePolicy(t.Context(),
					operate.PolicyChange{AgentSlug: "payer", NativeWindowCapWei: "70"}, by("meanwhile"))
				if err != nil || act.Status != operate.Confirmed {
					t.Errorf("meanwhile %+v, %v", act, err)
				}
			})
			return p
		}})
	act, err := o.ConfigurePolicy(t.Context(), operate.PolicyChange{AgentSlug: "payer", NativePerTxCapWei: "60"},
		by("caps"))
	if err != nil || act.Status != operate.Confirmed {
		t.Fatalf("%+v, %v", act, err)
	}
	w.caps("60", "70")
}

// caps checks what the payer may move at once and in a window.
func (w *world) caps(once, window string) {
	w.t.Helper()
	if p, err := w.operator(open).TreasuryPolicy(w.t.Context(), "payer"); err != nil || p.NativePerTxCapWei != once ||
		p.NativeWindowCapWei != window {
		w.t.Errorf("the policy is %+v, %v", p, err)
	}
}
