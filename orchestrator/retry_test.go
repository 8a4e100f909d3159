package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/store"
	"repute/store/rundb"
	"repute/store/walletdb"
)

// ledger is a chain that refuses, or takes and brings to an end of a test's choice, the
// first transaction of each target, and lets all others succeed. It stores intents as the
// wallet does.
type ledger struct {
	outside
	db    *store.DB
	end   map[common.Address]walletdb.IntentState // "": nothing is signed
	tried map[common.Address]int
}

func (l *ledger) Send(ctx context.Context, i transaction.Intent) (transaction.Sent, error) {
	l.mu.Lock()
	l.tried[i.Target]++
	state, first := l.end[i.Target], l.tried[i.Target] == 1
	l.mu.Unlock()
	if first && state == "" {
		return transaction.Sent{}, repute.Invalid("tx", "would fail: not today", "another day")
	}
	if !first {
		state = walletdb.IntentConfirmed
	}
	_, err := walletdb.AddIntent(ctx, l.db, walletdb.Intent{ID: i.ID, Run: i.Run, Task: i.Task, Agent: i.Agent,
		ChainID: 7, To: i.Target, Value: new(big.Int)},
		func(_ context.Context, next walletdb.Nonces) (walletdb.IntentAttempt, error) {
			return walletdb.IntentAttempt{Hash: crypto.Keccak256Hash([]byte(i.ID)), Raw: []byte{1}, Nonce: next.Next,
				FeeCap: new(big.Int), TipCap: new(big.Int)}, nil
		})
	if err != nil {
		return transaction.Sent{}, err
	}
	if err := walletdb.MarkIntent(ctx, l.db, i.ID, state, walletdb.Mining{Fee: new(big.Int)}, ""); err != nil {
		return transaction.Sent{}, err
	}
	in, err := walletdb.ReadIntent(ctx, l.db, i.ID)
	if err != nil {
		return transaction.Sent{}, err
	}
	switch in.State {
	case walletdb.IntentConfirmed:
		return l.outside.Send(ctx, i)
	case walletdb.IntentReverted:
		return transaction.Sent{FeeWei: "10"}, nil
	}
	return transaction.Sent{}, repute.Conflict("the intent is %s", in.State)
}

// A retry sends again what was refused, reverted or can never be mined, under an intent of
// its own; what succeeded stays sent once, and what may still be mined is followed by the
// intent that it has. The task then completes.
func TestRetrySendsWhatFailed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		state   walletdb.IntentState
		intents int // of the second transaction
	}{
		"refused":      {"", 1},
		"reverted":     {walletdb.IntentReverted, 2},
		"failed":       {walletdb.IntentFailed, 2},
		"on its way":   {walletdb.IntentBroadcast, 1},
		"went through": {walletdb.IntentConfirmed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := newHouse(t)
			chain := &ledger{db: h.db, end: map[common.Address]walletdb.IntentState{{1}: walletdb.IntentConfirmed,
				{2}: c.state}, tried: map[common.Address]int{}}
			agent := newWorker("payer")
			agent.info.Manifest.Safety.MaxOnchainWritesPerRun = new(int64(2))
			agent.info.Manifest.ComputeConstraints.MaxOnchainWrites = new(int64(2))
			second := pays(2, "5")
			second.Key = "attempt 1/a/b"
			agent.do = sends(pays(1, "5"), second)
			h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7,
				Modules: []orchestrator.Module{agent}})
			task, run := h.ended(h.submit(standard.Request{Coordinator: "payer"}))
			if fine := c.state == walletdb.IntentConfirmed; fine != (task.Status == repute.TaskCompleted) {
				t.Fatalf("task %s: %s", task.Status, run.Error)
			} else if fine {
				return
			}
			h.failedAs(run.ID, common.Address{2}, c.state)
			ok(t, h.client.Retry(t.Context(), task.ID, 0, "ann"))
			task, run = h.ended(task)
			if task.Status != repute.TaskCompleted || run.Attempt != 2 {
				t.Errorf("task %s, attempt %d: %s", task.Status, run.Attempt, run.Error)
			}
			sent := map[common.Address]int{}
			for _, tx := range chain.sent {
				sent[tx.Target]++
			}
			if len(chain.sent) != 2 || sent[common.Address{1}] != 1 || sent[common.Address{2}] != 1 {
				t.Errorf("succeeded: %v", sent)
			}
			if n := h.intents(run.ID, common.Address{2}); n != c.intents {
				t.Errorf("%d intents of the second transaction, want %d", n, c.intents)
			}
		})
	}
}

// failedAs looks at the last transaction, which was not sent with success: its call has not ended where
// it may be mined yet, and what ended without a signature is not signed later.
func (h *house) failedAs(run string, target common.Address, state walletdb.IntentState) {
	h.t.Helper()
	receipts, err := rundb.Receipts(h.t.Context(), h.db, run)
	ok(h.t, err)
	for _, r := range slices.Backward(receipts) {
		if r.Kind != repute.CallTransaction {
			continue
		}
		if open := state == walletdb.IntentBroadcast; r.Done == open || (r.Error == "") != open {
			h.t.Errorf("the call is done: %t, error %q", r.Done, r.Error)
		}
		if state == "" {
			_, err := walletdb.AddIntent(h.t.Context(), h.db,
				walletdb.Intent{ID: fmt.Sprintf("%s/%s/%s", r.Run, r.Step, r.Key), ChainID: 7, To: target,
					Value: new(big.Int)},
				nil)
			if !errors.Is(err, repute.ErrConflict) {
				h.t.Errorf("signed after the end: %v", err)
			}
		}
		return
	}
	h.t.Errorf("no transaction among %d calls", len(receipts))
}

// intents counts those of a run that were stored for a target.
func (h *house) intents(run string, target common.Address) (n int) {
	h.t.Helper()
	receipts, err := rundb.Receipts(h.t.Context(), h.db, run)
	ok(h.t, err)
	for _, r := range receipts {
		in, err := walletdb.ReadIntent(h.t.Context(), h.db, fmt.Sprintf("%s/%s/%s", r.Run, r.Step, r.Key))
		if err == nil && in.To == target {
			n++
		}
	}
	return n
}

// A step whose id could make two transactions one is refused.
func TestStepsHaveNoSlash(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	head := newWorker("head")
	head.plan = func(standard.Task) standard.Plan {
		return standard.Plan{Steps: []standard.Step{{ID: "a", Agent: "head"},
			{ID: "a/execute/transaction/b", Agent: "head"}}}
	}
	h.start(orchestrator.Options{Lenient: true, Modules: []orchestrator.Module{head}})
	task, run := h.ended(h.submit(standard.Request{Coordinator: "head"}))
	if task.Status != repute.TaskFailed || !strings.Contains(run.Error, "plan.steps[1].stepId") {
		t.Errorf("task %s: %s", task.Status, run.Error)
	}
}
