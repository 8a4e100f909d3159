package orchestrator_test

import (
	"context"
	"encoding/json"
	"math/big"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts/bindings/fixtures"
	"repute/orchestrator"
)

// shifting is a chain whose simulations show an amount of a token leaving the treasury that
// a test changes.
type shifting struct {
	outside
	amount atomic.Int64
}

func (c *shifting) Simulate(ctx context.Context, o orchestrator.Origin, tx orchestrator.Tx) (orchestrator.Simulation, error) {
	s, err := c.outside.Simulate(ctx, o, tx)
	s.Treasury = common.Address{9}
	s.Logs = []types.Log{{Address: common.Address{10}, Data: common.LeftPadBytes(big.NewInt(c.amount.Load()).Bytes(), 32),
		Topics: []common.Hash{crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)")), common.BytesToHash(s.Treasury[:]), {1}}}}
	return s, err
}

// shown is what the one question of a run shows.
func (h *house) shown(run string) (subject string, s orchestrator.Shown) {
	h.t.Helper()
	open, err := h.db.Awaited(h.t.Context(), run)
	ok(h.t, err)
	if len(open) != 1 {
		h.t.Fatalf("run %s waits for %v", run, open)
	}
	var asked struct{ Shown *orchestrator.Shown }
	ok(h.t, json.Unmarshal(open[0].Input, &asked))
	if asked.Shown == nil {
		h.t.Fatalf("nothing is shown of %s", open[0].Subject)
	}
	return open[0].Subject, *asked.Shown
}

// Whoever approves sees the decoded call, amounts, names, effects and bounds; when any of it
// changes the answer is void, and the question comes again.
func TestApprovalIsOfWhatIsShown(t *testing.T) {
	t.Parallel()
	token, payee := common.Address{10}, common.Address{5}
	pay := orchestrator.Tx{ChainID: 7, Target: token, Data: fixtures.NewTestToken().PackTransfer(payee, big.NewInt(1_250_000)), Purpose: "rent"}
	open := pay
	open.Placeholders = []orchestrator.Placeholder{{Path: "1", Type: "uint256", Min: "1", Max: "2000000"}}
	h, _ := newHouse(t)
	chain, agent := &shifting{}, newWorker("payer")
	chain.amount.Store(1_250_000)
	agent.do = sends(pay)
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Policy: rules(t, askCalls), Modules: []orchestrator.Module{shower{agent, []orchestrator.Tx{open}}},
		Tokens:     []repute.Stablecoin{{ChainID: 7, Address: token, Symbol: "USDX", Decimals: 6}},
		Registries: []orchestrator.Registries{{ChainID: 7, Identity: common.Address{77}}},
		Names: func(_ uint64, a common.Address) []string {
			if a == payee {
				return []string{"wallet of landlord"}
			}
			return nil
		}})
	task := h.submit(orchestrator.Request{Coordinator: "payer"})
	h.awaits(task.Run)
	first, s := h.shown(task.Run)
	if len(s.Calls) != 1 || s.Calls[0].Function != "transfer(address,uint256)" || len(s.Calls[0].Arguments) != 2 || s.Calls[0].Arguments[0].Value != payee.Hex() {
		t.Errorf("calls %+v", s.Calls)
	}
	if len(s.Amounts) != 1 || s.Amounts[0].Text != "1.25 USDX" || len(s.Effects) != 1 || s.Effects[0].Text != "1.25 USDX" || len(s.Declared) != 1 || s.Declared[0].Max != "2000000" {
		t.Errorf("amounts %+v, effects %+v, placeholders %+v", s.Amounts, s.Effects, s.Declared)
	}
	if names, _ := json.Marshal(s.Names); !strings.Contains(string(names), "wallet of landlord") || !strings.Contains(string(names), "token USDX") {
		t.Errorf("names %s", names)
	}
	if s.Agent.Slug != "payer" || s.Agent.Status != "unrated" || s.Agent.Low != -100 || s.Agent.High != 100 {
		t.Errorf("agent %+v", s.Agent)
	}
	chain.amount.Store(9_000_000) // the same call takes more by now
	ok(t, h.desk.Approve(t.Context(), task.Run, first, true, "ann", "1.25 is fine"))
	h.awaits(task.Run)
	again, s := h.shown(task.Run)
	if again == first || len(chain.sent) != 0 || s.Effects[0].Text != "9 USDX" {
		t.Errorf("asked again about %s, effects %+v, %d sent", again, s.Effects, len(chain.sent))
	}
	ok(t, h.desk.Approve(t.Context(), task.Run, again, true, "ann", "9 is fine too"))
	if task, run := h.ended(task); task.Status != repute.TaskCompleted || len(chain.sent) != 1 {
		t.Errorf("task %s, %d sent: %s", task.Status, len(chain.sent), run.Error)
	}
}

// Rules see the decoded arguments of calls.
func TestRulesSeeArguments(t *testing.T) {
	t.Parallel()
	const text = "version: \"1\"\nrules:\n  - {id: most, when: 'phase == \"call\" && call.function == \"transfer(address,uint256)\" && gt(call.args.amount, \"100\")', effect: deny, reason: too much}\n" +
		"  - {id: who, when: 'phase == \"call\" && call.args.to != \"0x0500000000000000000000000000000000000000\"', effect: deny, reason: somebody else}\n"
	token := fixtures.NewTestToken()
	to := func(who byte, amount int64) orchestrator.Tx {
		return orchestrator.Tx{ChainID: 7, Target: common.Address{10}, Data: token.PackTransfer(common.Address{who}, big.NewInt(amount)), Purpose: "pay"}
	}
	for says, tx := range map[string]orchestrator.Tx{"": to(5, 100), "too much": to(5, 101), "somebody else": to(6, 1), "could not be evaluated": pays(1, "1")} {
		h, _ := newHouse(t)
		chain, agent := &outside{}, newWorker("payer")
		agent.do = sends(tx)
		h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Policy: rules(t, text), Modules: []orchestrator.Module{agent}})
		task, run := h.ended(h.submit(orchestrator.Request{Coordinator: "payer"}))
		if (says == "") != (task.Status == repute.TaskCompleted) || !strings.Contains(run.Error, says) {
			t.Errorf("%q: task %s: %s", says, task.Status, run.Error)
		}
	}
}
