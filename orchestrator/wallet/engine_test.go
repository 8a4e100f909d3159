package wallet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/safety"
	"repute/orchestrator/standard"
	"repute/orchestrator/tasks"
	"repute/orchestrator/transaction"
	"repute/policy"
	"repute/store/rundb"
)

// payer is an agent that sends the transactions that it is given, the one after the other.
type payer struct{ does []transaction.Tx }

func (p payer) Info() standard.Info {
	return standard.Info{Slug: "payer", Version: "1.0.0", IdentityMode: standard.IdentityMode,
		Manifest: standard.Manifest{Schema: standard.ManifestSchema, Name: "payer", Slug: "payer", Version: "1.0.0"}}
}

func (payer) CanHandle(context.Context, standard.Task) (bool, error) { return true, nil }

func (payer) Plan(context.Context, standard.Task, *orchestrator.Context) (standard.Plan, error) {
	return standard.Plan{Steps: []standard.Step{{ID: "pay", Agent: "payer"}}}, nil
}

func (p payer) Execute(ctx context.Context, _ standard.Task, plan standard.Plan,
	c *orchestrator.Context) (standard.Execution, error) {
	return c.RunPlan(ctx, plan, func(ctx context.Context, _ standard.Step, _ map[string]json.RawMessage,
		c *orchestrator.Context) (json.RawMessage, error) {
		for _, tx := range p.does {
			if _, err := c.Send(ctx, tx); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
}

func (payer) Verify(context.Context, standard.Task, standard.Execution,
	*orchestrator.Context) (standard.Verification, error) {
	return standard.Verification{Checks: []standard.Check{{Name: "done", Passed: true}}, Score: 1}, nil
}

func (payer) Summarize(context.Context, standard.Task, standard.Execution, standard.Verification,
	*orchestrator.Context) (standard.Summary, error) {
	return standard.Summary{Text: "paid"}, nil
}

// run has the payer send transactions under a policy's text, and gives the task as it ended
// with its root run.
func (w *world) run(text string, does ...transaction.Tx) (repute.Task, repute.Run) {
	w.t.Helper()
	chain := w.d.Chain()
	for i := range does {
		does[i].ChainID, does[i].Purpose = chain.ID, "test"
	}
	purse, db := w.open(w.config(w.rpcs...))
	if w.agent != nil {
		ok(w.t, rundb.SaveModule(w.t.Context(), db,
			repute.Module{Slug: "payer", Agent: w.agent, Manifest: json.RawMessage("{}")}))
	}
	p, err := policy.Parse([]byte("version: \"1\"\n" + text))
	ok(w.t, err)
	e, err := orchestrator.New(db, orchestrator.Options{Lenient: true, Policy: func() *policy.Policy { return p },
		Chain: purse, TrustChain: chain.ID, ExecutionChain: chain.ID,
		Registries: []safety.Registries{{ChainID: chain.ID, Identity: chain.Identity, Reputation: chain.Reputation,
			Validations: chain.Validations}},
		Modules: []orchestrator.Module{payer{does}}})
	ok(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Run(ctx) }()
	defer func() { cancel(); <-done }()
	client, err := tasks.NewClient(db)
	ok(w.t, err)
	until(w.t, "the agent is installed", func() bool { _, err := rundb.Module(ctx, db, "payer"); return err == nil })
	task, _, err := client.Submit(w.t.Context(), standard.Request{Goal: "pay", Coordinator: "payer"})
	ok(w.t, err)
	var run repute.Run
	until(w.t, "the task ends", func() bool {
		run, err = rundb.Run(w.t.Context(), db, task.Run)
		ok(w.t, err)
		return run.Status.Ended()
	})
	task, err = rundb.Task(w.t.Context(), db, task.ID)
	ok(w.t, err)
	return task, run
}

// tokens are what an account has of the token.
func (w *world) tokens() string {
	w.t.Helper()
	out, err := w.d.Client().CallContract(w.t.Context(), callTo(w.token, tokenABI.PackBalanceOf(w.payee)), nil)
	ok(w.t, err)
	v, err := tokenABI.UnpackBalanceOf(out)
	ok(w.t, err)
	return v.String()
}

// TestTokensAreAtRisk lets an agent that nobody vouches for move tokens out of the treasury
// up to the value from which the policy asks for more, and no unit beyond it.
func TestTokensAreAtRisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mining()
	step := `trust:
  byValue: [{fromWei: "100", threshold: {minReputation: 50}}]
`
	price := `  tokens: [{chainId: ` + chainText(w) + `, token: "` + w.token.Hex() + `", units: "10", wei: "20"}]
`
	pay := func(amount string) transaction.Tx {
		return transaction.Tx{Target: w.payee, Token: &w.token, Amount: amount}
	}
	for _, c := range []struct {
		text string
		does []transaction.Tx
		has  string // the payee afterwards
	}{
		{step, []transaction.Tx{pay("1")}, "0"},
		{step + price, []transaction.Tx{pay("50")}, "0"},
		{step + price, []transaction.Tx{pay("40"), {Target: w.payee, Value: "20"}}, "40"},
		{step + price, []transaction.Tx{{Target: w.payee,
			Data: payeeABI.PackCallback(w.token, tokenABI.PackTransfer(w.payee, n(1)))}}, "40"},
		{"", []transaction.Tx{pay("60")}, "100"},
	} {
		task, run := w.run(c.text, c.does...)
		if w.tokens() != c.has || w.paid() != 0 {
			t.Errorf("policy %q: the payee has %s units and %d wei, want %s and 0; task %s: %s", c.text, w.tokens(),
				w.paid(),
				c.has, task.Status, run.Error)
		}
		if wants := c.text == ""; wants != (task.Status == repute.TaskCompleted) || !wants &&
			!strings.Contains(run.Error, "nobody") {
			t.Errorf("policy %q: task %s: %s", c.text, task.Status, run.Error)
		}
	}
}

// TestNobodyRatesItselfThroughOthers lets a contract that the treasury may call give the
// feedback that the agent must not give. It is refused before it is sent; with a node that
// does not tell what would be emitted the run fails its verification.
func TestNobodyRatesItselfThroughOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner, b, chain := w.d.Account(agentOwner), w.d.Batch(), w.d.Chain()
	b.Register(owner, "")
	m, err := b.Mine(t.Context())
	ok(t, err)
	number := m.Registered()[0]
	w.agent = &repute.AgentID{ChainID: chain.ID, Registry: chain.Identity}
	w.agent.TokenID.SetUint64(number)
	praise := reputationABI.PackGiveFeedback(new(big.Int).SetUint64(number), n(100), 0, "quality", "", "", "",
		[32]byte{})
	b = w.d.Batch()
	b.Send(w.d.Account(strangerAccount), &w.payee, payeeABI.PackCallback(chain.Reputation, praise))
	_, err = b.Mine(t.Context())
	ok(t, err)
	w.mining()
	simple := w.proxy(func(asked string) *message {
		if asked == "eth_simulateV1" {
			return &message{Error: json.RawMessage(`{"code":-32601,"message":"the method does not exist"}`)}
		}
		return nil
	}, nil)
	for _, c := range []struct {
		rpcs    []string
		ratings int
		says    string
	}{{nil, 0, "step pay: refused"}, {[]string{simple}, 1, "verification failed"}} {
		w.rpcs = c.rpcs
		task, run := w.run("", transaction.Tx{Target: w.payee, Value: "5", Data: payeeABI.PackPay(n(7))})
		all, err := w.d.View().AllFeedback(t.Context(), number)
		ok(t, err)
		if task.Status != repute.TaskFailed || !strings.Contains(run.Error, c.says) ||
			!strings.Contains(run.Error, "its own identity or trust records") || len(all) != c.ratings {
			t.Errorf("task %s: %s; %d ratings, want %d", task.Status, run.Error, len(all), c.ratings)
		}
	}
}

func chainText(w *world) string { return fmt.Sprint(w.d.Chain().ID) }

func callTo(to common.Address, data []byte) ethereum.CallMsg {
	return ethereum.CallMsg{To: &to, Data: data}
}
