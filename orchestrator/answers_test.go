package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/policy"
	"repute/store/rundb"
)

const askCalls = "version: \"1\"\nrules:\n  - {id: ask, when: 'phase == \"call\"', effect: require_approval, reason: looked at}\n"

// What a person approved is what is sent.
func TestApprovalIsOfOneTransaction(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	chain, agent := &outside{}, newWorker("payer")
	var asked atomic.Int32
	agent.do = func(ctx context.Context, _ standard.Step, _ map[string]json.RawMessage,
		c *orchestrator.Context) (json.RawMessage, error) {
		tx := pays(1, "1")
		if asked.Add(1) > 1 {
			tx = pays(66, "1000000000000000000")
		}
		_, err := c.Send(ctx, tx)
		return nil, err
	}
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Policy: rules(t, askCalls),
		Modules: []orchestrator.Module{agent}})
	task := h.submit(standard.Request{Coordinator: "payer"})
	h.awaits(task.Run)
	h.approve(task.Run, true, "1 wei is fine")
	h.until("ended or waits again", func() bool {
		r, err := rundb.Run(t.Context(), h.db, task.Run)
		ok(t, err)
		return r.Status.Ended() || r.Awaiting != ""
	})
	chain.mu.Lock()
	defer chain.mu.Unlock()
	for _, tx := range chain.sent {
		if tx.Value != "1" {
			t.Errorf("1 wei to 0x01 was approved, %s wei to %s were sent", tx.Value, tx.Target)
		}
	}
}

// Of two steps that ask at once, the one that the event names is the one that is approved.
func TestApprovalOfTheNamedSubject(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	chain, agent := &outside{}, newWorker("payer")
	agent.plan = func(standard.Task) standard.Plan {
		return standard.Plan{Steps: []standard.Step{{ID: "small", Agent: "payer"}, {ID: "large", Agent: "payer"}}}
	}
	var smallAsked = make(chan struct{})
	var once atomic.Bool
	agent.do = func(ctx context.Context, s standard.Step, _ map[string]json.RawMessage,
		c *orchestrator.Context) (json.RawMessage, error) {
		tx := pays(1, "1")
		if s.ID == "large" {
			<-smallAsked
			tx = pays(2, "1000000000000000000")
		}
		_, err := c.Send(ctx, tx)
		if s.ID == "small" && once.CompareAndSwap(false, true) {
			close(smallAsked)
		}
		return nil, err
	}
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Policy: rules(t, askCalls),
		Modules: []orchestrator.Module{agent}})
	task := h.submit(standard.Request{Coordinator: "payer"})
	h.awaits(task.Run)
	var named []string
	events, err := rundb.Events(t.Context(), h.db, task.Run, 0, 1000)
	ok(t, err)
	for _, e := range events {
		var d struct{ Subject string }
		if e.Kind == "approval.requested" {
			ok(t, json.Unmarshal(e.Data, &d))
			named = append(named, d.Subject)
		}
	}
	slices.Sort(named)
	if len(named) != 2 || !strings.HasPrefix(named[1], "small/") {
		t.Fatalf("asked about %q", named)
	}
	if err := h.client.Approve(t.Context(), task.Run, "", true, "ann", "fine"); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("an answer about nothing: %v", err)
	}
	if err := h.client.Approve(t.Context(), task.Run, "small", true, "ann", "fine"); !errors.Is(err,
		repute.ErrConflict) {
		t.Errorf("an answer about what nobody asked: %v", err)
	}
	ok(t, h.client.Approve(t.Context(), task.Run, named[1], true, "ann", "fine"))
	h.awaits(task.Run)
	chain.mu.Lock()
	if len(chain.sent) != 1 || chain.sent[0].Value != "1" {
		t.Errorf("1 wei was approved, sent were %+v", chain.sent)
	}
	chain.mu.Unlock()
	ok(t, h.client.Approve(t.Context(), task.Run, named[0], true, "ann", "fine"))
	if task, run := h.ended(task); task.Status != repute.TaskCompleted || len(chain.sent) != 2 {
		t.Errorf("both approved; task %s, %d sent: %s", task.Status, len(chain.sent), run.Error)
	}
}

// Two sub-runs wait for people; the answer to one leaves the other waiting.
func TestTwoSubRunsWait(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	chain, head, a, b := &outside{}, newWorker("head"), newWorker("hand-a"), newWorker("hand-b")
	head.plan = func(standard.Task) standard.Plan {
		return standard.Plan{Steps: []standard.Step{{ID: "a", Agent: "hand-a"}, {ID: "b", Agent: "hand-b"}}}
	}
	a.do, b.do = sends(pays(1, "1")), sends(pays(2, "2"))
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Policy: rules(t, askCalls),
		Modules: []orchestrator.Module{head, a, b}})
	task := h.submit(standard.Request{Coordinator: "head"})
	var subs []repute.Run
	h.until("both wait, and nobody works", func() bool {
		runs, err := rundb.TaskRuns(t.Context(), h.db, task.ID)
		ok(t, err)
		subs = runs[1:]
		if len(subs) != 2 || subs[0].Awaiting == "" || subs[1].Awaiting == "" {
			return false
		}
		for _, p := range h.phases(task.Run) {
			if p == "execute:waiting" {
				return true
			}
		}
		return false
	})
	h.approve(subs[0].ID, true, "fine")
	h.until("waits again or ended", func() bool {
		r, err := rundb.Run(t.Context(), h.db, task.Run)
		ok(t, err)
		return r.Awaiting != "" || r.Status.Ended()
	})
	h.approve(subs[1].ID, true, "fine")
	got, run := h.ended(task)
	if got.Status != repute.TaskCompleted {
		t.Errorf("both were approved; the task is %s: %s", got.Status, run.Error)
	}
}

// A transaction that was journaled and never sent asks the policy of the day it is sent.
type away struct {
	outside
	down atomic.Bool
}

func (a *away) Send(ctx context.Context, i transaction.Intent) (transaction.Sent, error) {
	if a.down.Load() { // nothing was signed, nothing sent
		return transaction.Sent{}, fmt.Errorf("endpoint: %w", repute.ErrUnavailable)
	}
	return a.outside.Send(ctx, i)
}

func TestJournaledIsNotAllowedForEver(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	chain, agent := &away{}, newWorker("payer")
	chain.down.Store(true)
	agent.do = sends(pays(1, "5"))
	now := &changing{t: t}
	now.set(anything)
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7,
		Policy: func() *policy.Policy { return now.now.Load() }, Modules: []orchestrator.Module{agent}})
	task, _ := h.ended(h.submit(standard.Request{Coordinator: "payer"}))
	now.set("version: \"1\"\nrules:\n  - {id: no, when: 'phase == \"call\"', effect: deny, reason: nothing is paid any more}\n")
	chain.down.Store(false)
	ok(t, h.client.Retry(t.Context(), task.ID, repute.PhaseExecute, "ann"))
	task, run := h.ended(task)
	if len(chain.sent) != 0 || !strings.Contains(run.Error, "nothing is paid") {
		t.Errorf("task %s: the policy denies every transaction, %d were sent: %s", task.Status, len(chain.sent),
			run.Error)
	}
}
