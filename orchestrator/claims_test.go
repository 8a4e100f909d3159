package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/store/rundb"
)

// What is there may be named: receipts of the run in its results and texts, and those of runs
// below it wherever their results are handed on. Numbers that name no receipt are free.
func TestClaimsThatHold(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	chain, agent, head := &outside{}, newWorker("payer"), newWorker("head")
	agent.do = func(ctx context.Context, _ standard.Step, _ map[string]json.RawMessage,
		k *orchestrator.Context) (json.RawMessage, error) {
		sent, err := k.Send(ctx, pays(1, "1"))
		id := k.TakeReceipt()
		agent.summary = standard.Summary{Text: fmt.Sprintf("Made 77 payments: receipts %d, (#%d) and %d; transaction %s at block 99.", id, id, id, strings.ToUpper(sent.Hash.Hex()[2:])),
			KeyActions: []string{"tx " + sent.Hash.Hex() + " of 12 wei"}, Receipts: []string{fmt.Sprint(id)}}
		return json.RawMessage(fmt.Sprintf(`{"receiptIds":["%d"],"of":[{"receiptIds":[%d]}]}`, id, id)), err
	}
	head.plan = func(standard.Task) standard.Plan {
		return standard.Plan{Steps: []standard.Step{{ID: "a", Agent: "payer"}}}
	}
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7,
		Modules: []orchestrator.Module{agent, head}})
	if task, run := h.ended(h.submit(standard.Request{Coordinator: "head"})); task.Status != repute.TaskCompleted {
		t.Errorf("task %s: %s", task.Status, run.Error)
	}
}

// A refused transaction leaves a receipt that its caller learns of, each time it is refused.
func TestRefusedSendsHaveReceipts(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	chain, agent := &outside{}, newWorker("payer")
	var got [3]int64
	agent.do = func(ctx context.Context, _ standard.Step, _ map[string]json.RawMessage,
		k *orchestrator.Context) (json.RawMessage, error) {
		for i, tx := range []transaction.Tx{pays(9, "1"), pays(8, "1"), pays(9, "1")} {
			tx.Key = fmt.Sprint("payment to ", tx.Target)
			if _, err := k.Send(ctx, tx); err == nil {
				return nil, fmt.Errorf("payment %d is sent", i)
			}
			got[i] = k.TakeReceipt()
		}
		agent.summary = standard.Summary{Text: fmt.Sprintf("Nothing was paid: receipts %d and %d.", got[0], got[1])}
		return json.RawMessage(`{}`), nil
	}
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7,
		Modules: []orchestrator.Module{shower{agent, []transaction.Tx{pays(1, "1")}}}})
	task, run := h.ended(h.submit(standard.Request{Coordinator: "payer"}))
	if task.Status != repute.TaskCompleted || len(chain.sent) != 0 {
		t.Fatalf("task %s, %d sent: %s", task.Status, len(chain.sent), run.Error)
	}
	receipts, err := rundb.Receipts(t.Context(), h.db, task.Run)
	ok(t, err)
	ids := map[int64]bool{}
	for _, r := range receipts {
		ids[r.ID] = r.Kind == repute.CallRefused
	}
	if !ids[got[0]] || !ids[got[1]] || got[0] == got[1] || got[2] != got[0] {
		t.Errorf("the receipts of refused transactions are %v, the run has %v", got, ids)
	}
}
