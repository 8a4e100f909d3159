package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
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
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/store/rundb"
)

// A retry makes again a call that failed.
func TestRetryMakesFailedCallsAgain(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	var calls atomic.Int32
	flaky := toolFunc(func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		if calls.Add(1) == 1 {
			return nil, fmt.Errorf("away for a moment: %w", repute.ErrUnavailable)
		}
		return json.RawMessage("1"), nil
	})
	head := newWorker("head")
	head.do = func(ctx context.Context, _ standard.Step, _ map[string]json.RawMessage,
		c *orchestrator.Context) (json.RawMessage, error) {
		return c.Tool(ctx, "flaky", json.RawMessage("{}"))
	}
	h.start(orchestrator.Options{Lenient: true, Modules: []orchestrator.Module{head},
		Tools: map[string]orchestrator.Tool{"flaky": flaky}})
	task, _ := h.ended(h.submit(standard.Request{Coordinator: "head"}))
	ok(t, h.client.Retry(t.Context(), task.ID, 0, "ann"))
	task, run := h.ended(task)
	if task.Status != repute.TaskCompleted || calls.Load() != 2 {
		t.Errorf("task %s, attempt %d, the tool was called %d times: %s", task.Status, run.Attempt, calls.Load(),
			run.Error)
	}
}

// A step of a new plan is done by the agent that the new plan names.
func TestRetryFromPlan(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	head, bad, good := newWorker("head"), newWorker("bad"), newWorker("good")
	var plans atomic.Int32
	head.plan = func(standard.Task) standard.Plan {
		by := "bad"
		if plans.Add(1) > 1 {
			by = "good"
		}
		return standard.Plan{Steps: []standard.Step{{ID: "s", Agent: by}}}
	}
	bad.do = func(context.Context, standard.Step, map[string]json.RawMessage,
		*orchestrator.Context) (json.RawMessage, error) {
		return nil, fmt.Errorf("cannot")
	}
	h.start(orchestrator.Options{Lenient: true, Modules: []orchestrator.Module{head, bad, good}})
	task, _ := h.ended(h.submit(standard.Request{Coordinator: "head"}))
	ok(t, h.client.Retry(t.Context(), task.ID, repute.PhasePlan, "ann"))
	task, run := h.ended(task)
	runs, err := rundb.TaskRuns(t.Context(), h.db, task.ID)
	ok(t, err)
	if task.Status != repute.TaskCompleted {
		t.Errorf("the new plan names good; task %s: %s", task.Status, run.Error)
	}
	for _, r := range runs {
		t.Logf("run of %s attempt %d: %s", r.Agent, r.Attempt, r.Status)
	}
}

// An agent that trust refuses has used no tool.
type planner struct{ *worker }

func (p planner) Plan(ctx context.Context, t standard.Task, c *orchestrator.Context) (standard.Plan, error) {
	if _, err := c.Tool(ctx, "acts", json.RawMessage(`{"pay":"me"}`)); err != nil {
		return standard.Plan{}, err
	}
	return p.worker.Plan(ctx, t, c)
}

func TestNoToolBeforeTrust(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	var calls atomic.Int32
	acts := toolFunc(func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		calls.Add(1)
		return nil, nil
	})
	h.start(orchestrator.Options{Lenient: true, Policy: rules(t, unrated("deny")),
		Modules: []orchestrator.Module{planner{newWorker("stranger")}},
		Tools:   map[string]orchestrator.Tool{"acts": acts}})
	task, _ := h.ended(h.submit(standard.Request{Coordinator: "stranger"}))
	if task.Status != repute.TaskRejected && task.Status != repute.TaskFailed || calls.Load() != 0 {
		t.Errorf("task %s, but the refused agent used tools %d times", task.Status, calls.Load())
	}
}

// The manifest's own bounds hold (safety.maxOnchainWritesPerRun, computeConstraints).
func TestManifestBounds(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	chain, agent := &outside{}, newWorker("payer")
	agent.info.Manifest.Safety.MaxOnchainWritesPerRun = new(int64(1))
	agent.info.Manifest.ComputeConstraints.MaxOnchainWrites = new(int64(1))
	agent.do = sends(pays(1, "1"), pays(1, "1"), pays(1, "1"))
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Modules: []orchestrator.Module{agent}})
	task, run := h.ended(h.submit(standard.Request{Coordinator: "payer"}))
	if len(chain.sent) != 1 {
		t.Errorf("the manifest allows one transaction per run, %d were sent; task %s %s", len(chain.sent), task.Status,
			run.Error)
	}
}

// A task that says nothing is at risk moves nothing, or is judged by all that it moves:
// coin, and tokens by the policy's prices, alone or together.
func TestValueAtRisk(t *testing.T) {
	t.Parallel()
	text := `version: "1"
trust:
  byValue: [{fromWei: "1000", threshold: {minReputation: 50}}]
  tokens: [{chainId: 7, token: "0x000000000000000000000000000000000000000A", units: "1", wei: "2"}]
`
	known, unknown := common.HexToAddress("0x0a"), common.HexToAddress("0x0b")
	tokens := func(of *common.Address, amount string) transaction.Tx {
		return transaction.Tx{ChainID: 7, Target: common.Address{1}, Token: of, Amount: amount, Purpose: "pay"}
	}
	allowance := transaction.Tx{ChainID: 7, Target: known, Purpose: "approve",
		Data: fixtures.NewTestToken().PackApprove(common.Address{1}, big.NewInt(500))}
	for name, c := range map[string]struct {
		does     []transaction.Tx
		declared string
		sent     int
	}{
		"coin":                   {[]transaction.Tx{pays(1, "1000")}, "", 0},
		"less coin":              {[]transaction.Tx{pays(1, "999")}, "", 1},
		"coin in two parts":      {[]transaction.Tx{pays(1, "500"), pays(1, "500")}, "", 1},
		"tokens":                 {[]transaction.Tx{tokens(&known, "500")}, "", 0},
		"fewer tokens":           {[]transaction.Tx{tokens(&known, "499")}, "", 1},
		"coin and tokens":        {[]transaction.Tx{pays(1, "500"), tokens(&known, "250")}, "", 1},
		"an allowance":           {[]transaction.Tx{allowance}, "", 0},
		"tokens without a price": {[]transaction.Tx{tokens(&unknown, "1")}, "", 0},
		"nothing after such tokens": {[]transaction.Tx{{ChainID: 7, Target: common.Address{1}, Purpose: "call"},
			tokens(&unknown, "1")}, "999", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := newHouse(t)
			chain, agent := &outside{}, newWorker("payer")
			agent.do = sends(c.does...)
			h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Policy: rules(t, text),
				Modules: []orchestrator.Module{agent}})
			task, run := h.ended(h.submit(standard.Request{Coordinator: "payer",
				Terms: standard.Terms{ValueAtRisk: c.declared}}))
			if len(chain.sent) != c.sent || (c.sent == len(c.does)) != (task.Status == repute.TaskCompleted) {
				t.Errorf("an unrated agent sent %d transactions, want %d; task %s %s", len(chain.sent), c.sent,
					task.Status,
					run.Error)
			}
		})
	}
}

// Who approves of an unrated agent does so for what the task declares: what it moves beyond
// that is asked about, each transaction by itself.
func TestApprovalIsOfTheDeclaredValue(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	chain, agent := &outside{}, newWorker("payer")
	agent.do = sends(pays(1, "10"), pays(2, "5000"))
	text := "version: \"1\"\ntrust:\n  unrated: require_approval\n  threshold: {minReputation: 20}\n"
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Policy: rules(t, text),
		Modules: []orchestrator.Module{agent}})
	task := h.submit(standard.Request{Coordinator: "payer", Terms: standard.Terms{ValueAtRisk: "10"}})
	waits := func(about string) {
		h.until("run waits for "+about, func() bool {
			open, err := rundb.Awaited(t.Context(), h.db, task.Run)
			ok(t, err)
			return len(open) == 1 && strings.HasPrefix(open[0].Subject, about)
		})
	}
	waits("trust ")
	h.approve(task.Run, true, "for 10 wei")
	waits("value of payer ")
	if len(chain.sent) != 1 {
		t.Errorf("%d transactions were sent before anybody was asked about 5000 wei", len(chain.sent))
	}
	h.approve(task.Run, true, "for 5000 wei")
	if done, run := h.ended(task); done.Status != repute.TaskCompleted || len(chain.sent) != 2 {
		t.Errorf("task %s, %d sent: %s", done.Status, len(chain.sent), run.Error)
	}
}

// telling is a chain whose simulations show a thousand of a token leaving the treasury with
// each call.
type telling struct{ outside }

func (c *telling) Simulate(ctx context.Context, o transaction.Origin, tx transaction.Tx) (transaction.Simulation,
	error) {
	s, err := c.outside.Simulate(ctx, o, tx)
	s.Treasury = common.Address{9}
	s.Logs = []types.Log{{Address: common.HexToAddress("0x0a"), Data: common.LeftPadBytes(big.NewInt(1000).Bytes(), 32),
		Topics: []common.Hash{crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)")),
			common.BytesToHash(s.Treasury[:]), {1}}}}
	return s, err
}

// What simulations show leaving the treasury is at risk, also where no transaction says so,
// and that of earlier ones counts with it.
func TestValueAtRiskAsShown(t *testing.T) {
	t.Parallel()
	text := `version: "1"
trust:
  byValue: [{fromWei: "3000", threshold: {minReputation: 50}}]
  tokens: [{chainId: 7, token: "0x000000000000000000000000000000000000000A", units: "1", wei: "1"}]
`
	h, _ := newHouse(t)
	chain, agent := &telling{}, newWorker("payer")
	agent.do = sends(pays(1, "0"), pays(2, "0"), pays(3, "0"))
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Policy: rules(t, text),
		Modules: []orchestrator.Module{agent}})
	task, run := h.ended(h.submit(standard.Request{Coordinator: "payer"}))
	if len(chain.sent) != 2 || task.Status == repute.TaskCompleted {
		t.Errorf("an unrated agent moved %d times 1000, want 2; task %s %s", len(chain.sent), task.Status, run.Error)
	}
}
