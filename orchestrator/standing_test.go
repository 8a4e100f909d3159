package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
	"repute/store/walletdb"
)

// Nothing is sent any more by a run whose agent lost its identity or its registration, or
// whose policy refuses it, although Execute began while all was well. Each refusal leaves a
// receipt, an event and a decision.
func TestNothingIsSentAfterStandingIsLost(t *testing.T) {
	t.Parallel()
	const never = "version: \"1\"\ntrust: {threshold: {minTrustScore: 1}}\n"
	for name, c := range map[string]struct {
		change func(*house, *changing)
		says   string
	}{
		"identity sold": {func(h *house, _ *changing) { h.sells() }, "neither wallet nor owner"},
		"agent removed": {func(h *house, _ *changing) { ok(h.t, rundb.RemoveModule(h.t.Context(), h.db, "payer")) },
			"is not registered any more"},
		"gate turned to deny": {func(_ *house, p *changing) { p.set(never) },
			"identity checks do not reach the threshold"},
	} {
		for _, below := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, below another: %t", name, below), func(t *testing.T) {
				t.Parallel()
				h, _ := newHouse(t)
				h.block(repute.Transfer{To: seller}, repute.Registered{Owner: seller})
				chain, p := &outside{}, &changing{t: t}
				p.set(anything)
				agent, head := newWorker("payer"), newWorker("head")
				for _, m := range []*worker{agent, head} {
					m.info.Manifest.ERC8004 = &standard.ManifestIdentity{AgentRegistry: sold.Registry.Hex(),
						AgentID: "0",
						ChainID: 7}
				}
				head.plan = func(standard.Task) standard.Plan {
					return standard.Plan{Steps: []standard.Step{{ID: "a", Agent: "payer"}}}
				}
				var refused []string
				agent.do = func(ctx context.Context, _ standard.Step, _ map[string]json.RawMessage,
					k *orchestrator.Context) (json.RawMessage, error) {
					if _, err := k.Send(ctx, pays(1, "1")); err != nil {
						return nil, err
					}
					c.change(h, p)
					for i := range 3 {
						_, err := k.Send(ctx, pays(byte(i+2), "1"))
						refused = append(refused, fmt.Sprint(err))
					}
					return nil, nil
				}
				h.start(orchestrator.Options{Policy: p.now.Load, Chain: chain, ExecutionChain: 7, TrustChain: 7,
					Modules: []orchestrator.Module{agent, head},
					Keys:    func(uint64, string) (common.Address, error) { return seller, nil }})
				coordinator := "payer"
				if below {
					coordinator = "head"
				}
				task, _ := h.ended(h.submit(standard.Request{Coordinator: coordinator}))
				if len(chain.sent) != 1 || len(refused) != 3 || !strings.Contains(strings.Join(refused, ""), c.says) {
					t.Fatalf("%d transactions were sent, the others: %q", len(chain.sent), refused)
				}
				h.refusals(task, "payer", 3)
			})
		}
	}
}

// refusals looks for what refused transactions leave.
func (h *house) refusals(task repute.Task, agent string, want int) {
	h.t.Helper()
	runs, err := rundb.TaskRuns(h.t.Context(), h.db, task.ID)
	ok(h.t, err)
	for _, r := range runs {
		if r.Agent != agent {
			continue
		}
		receipts, err := rundb.Receipts(h.t.Context(), h.db, r.ID)
		ok(h.t, err)
		decisions, err := rundb.Decisions(h.t.Context(), h.db, r.ID, 1000)
		ok(h.t, err)
		events, err := rundb.Events(h.t.Context(), h.db, r.Root, 0, 1000)
		ok(h.t, err)
		var left, decided, told int
		for _, x := range receipts {
			if x.Kind == repute.CallRefused && x.Done && x.Error != "" {
				left++
			}
		}
		for _, d := range decisions {
			if strings.HasPrefix(d.Subject, "only/execute/transaction/") && d.Effect == string(policy.Deny) {
				decided++
			}
		}
		for _, e := range events {
			if e.Kind == "call" && e.Run == r.ID && strings.Contains(string(e.Data), `"refused"`) {
				told++
			}
		}
		if left != want || decided != want || told != want {
			h.t.Errorf("%d refused transactions left %d receipts, %d decisions and %d events", want, left,
				decided, told)
		}
	}
}

// Whatever refuses a transaction, the attempt is on record.
func TestRefusedAttemptsAreKept(t *testing.T) {
	t.Parallel()
	shown := pays(1, "5")
	for name, c := range map[string]struct {
		does   transaction.Tx
		budget policy.Bounds
		policy string
	}{
		"not shown":   {does: pays(9, "5")},
		"over budget": {does: shown, budget: policy.Bounds{OnchainWrites: new(int64(1)), GasWei: "1"}},
		"by a rule": {does: shown,
			policy: "rules: [{id: never, when: 'phase == \"call\"', effect: deny, reason: no}]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := newHouse(t)
			chain, agent := &outside{}, newWorker("payer")
			agent.do = sends(c.does)
			h.start(orchestrator.Options{Lenient: true, Policy: rules(t, anything+c.policy), Chain: chain,
				ExecutionChain: 7,
				Modules:        []orchestrator.Module{shower{agent, []transaction.Tx{shown}}}})
			task, run := h.ended(h.submit(standard.Request{Coordinator: "payer",
				Terms: standard.Terms{Budget: c.budget}}))
			if len(chain.sent) != 0 || task.Status == repute.TaskCompleted {
				t.Fatalf("task %s %s, %d sent", task.Status, run.Error, len(chain.sent))
			}
			h.refusals(task, "payer", 1)
		})
	}
}

// mining is a chain that mines what it was sent when a test says so.
type mining struct {
	outside
	db   *store.DB
	sent chan string // ids of intents
}

func (m *mining) Send(ctx context.Context, i transaction.Intent) (transaction.Sent, error) {
	in, err := walletdb.ReadIntent(ctx, m.db, i.ID)
	if errors.Is(err, repute.ErrNotFound) {
		in, err = walletdb.AddIntent(ctx, m.db, walletdb.Intent{ID: i.ID, Run: i.Run, Task: i.Task, Agent: i.Agent,
			ChainID: 7, To: i.Target, Value: new(big.Int)},
			func(_ context.Context, next walletdb.Nonces) (walletdb.IntentAttempt, error) {
				return walletdb.IntentAttempt{Hash: crypto.Keccak256Hash([]byte(i.ID)), Raw: []byte{1},
					Nonce:  next.Next,
					FeeCap: new(big.Int), TipCap: new(big.Int)}, nil
			})
		m.sent <- i.ID
	}
	if err != nil || in.State == walletdb.IntentConfirmed {
		return transaction.Sent{OK: true, FeeWei: "10", Hash: crypto.Keccak256Hash([]byte(i.ID))}, err
	}
	<-ctx.Done()
	return transaction.Sent{}, fmt.Errorf("not confirmed: %w: %w", repute.ErrUnavailable, ctx.Err())
}

// A run that is cancelled while its transaction is under way gets the receipt of it, once it
// is mined.
func TestReceiptOfACancelledRun(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	chain, agent := &mining{db: h.db, sent: make(chan string, 1)}, newWorker("payer")
	agent.do = sends(pays(1, "1"))
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Modules: []orchestrator.Module{agent},
		Hold: time.Second})
	task := h.submit(standard.Request{Coordinator: "payer"})
	intent := <-chain.sent
	ok(t, h.client.Cancel(t.Context(), task.ID, "ann", "no longer wanted"))
	if done, run := h.ended(task); done.Status != repute.TaskCancelled {
		t.Fatalf("task %s: %s", done.Status, run.Error)
	}
	receipt := func() repute.Receipt {
		list, err := rundb.Receipts(t.Context(), h.db, task.Run)
		ok(t, err)
		for _, r := range list {
			if r.Kind == repute.CallTransaction {
				return r
			}
		}
		return repute.Receipt{}
	}
	if r := receipt(); r.Done || r.ID == 0 {
		t.Fatalf("receipt %+v before anything is mined", r)
	}
	ok(t, walletdb.MarkIntent(t.Context(), h.db, intent, walletdb.IntentConfirmed,
		walletdb.Mining{Fee: new(big.Int)}, ""))
	h.until("receipt is completed", func() bool { return receipt().Done })
	var sent transaction.Sent
	r := receipt()
	ok(t, json.Unmarshal(r.Result, &sent))
	if r.Error != "" || !sent.OK || r.Ref != sent.Hash.Hex() {
		t.Errorf("receipt %+v", r)
	}
	run, err := rundb.Run(t.Context(), h.db, task.Run)
	if ok(t, err); run.Status != repute.RunCancelled {
		t.Errorf("the run is %s", run.Status)
	}
}

// losing is a chain whose database fails from the moment that a transaction is signed, until a
// test mends it.
type losing struct {
	outside
	db     *store.DB
	mended atomic.Bool
	lost   atomic.Int32 // how often a transaction was asked about in vain
}

func (l *losing) Send(ctx context.Context, i transaction.Intent) (transaction.Sent, error) {
	if _, err := walletdb.ReadIntent(ctx, l.db, i.ID); errors.Is(err, repute.ErrNotFound) {
		if _, err = walletdb.AddIntent(ctx, l.db, walletdb.Intent{ID: i.ID, Run: i.Run, Task: i.Task, Agent: i.Agent,
			ChainID: 7, To: i.Target, Value: new(big.Int)},
			func(_ context.Context, next walletdb.Nonces) (walletdb.IntentAttempt, error) {
				return walletdb.IntentAttempt{Hash: crypto.Keccak256Hash([]byte(i.ID)), Raw: []byte{1},
					Nonce:  next.Next,
					FeeCap: new(big.Int), TipCap: new(big.Int)}, nil
			}); err != nil {
			return transaction.Sent{}, err
		}
	}
	if !l.mended.Load() {
		l.lost.Add(1)
		return transaction.Sent{}, fmt.Errorf("%w: words of the driver", store.ErrDatabase)
	}
	return transaction.Sent{FeeWei: "10", Hash: crypto.Keccak256Hash([]byte(i.ID))}, nil
}

// A transaction stays open whose end the database did not tell, when the phase fails by that
// in the end and after it: its receipt says what became of it once the database answers.
func TestTransactionStaysOpenWhileTheDatabaseFails(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	chain, agent := &losing{db: h.db}, newWorker("payer")
	agent.do = sends(pays(1, "1"))
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Modules: []orchestrator.Module{agent},
		Hold: time.Second})
	r := standard.Request{Coordinator: "payer"}
	r.Budget.RuntimeMS = new(int64(2000))
	task, run := h.ended(h.submit(r))
	if task.Status != repute.TaskFailed || strings.Contains(run.Error, "driver") {
		t.Fatalf("task %s: %s", task.Status, run.Error)
	}
	var receipt repute.Receipt
	read := func() repute.Receipt {
		list, err := rundb.Receipts(t.Context(), h.db, run.ID)
		ok(t, err)
		for _, r := range list {
			if r.Kind == repute.CallTransaction {
				receipt = r
			}
		}
		return receipt
	}
	if read(); receipt.ID == 0 || receipt.Done {
		t.Fatalf("when the phase was given up: receipt %+v", receipt)
	}
	ok(t, walletdb.MarkIntent(t.Context(), h.db, fmt.Sprintf("%s/%s/%s", run.ID, receipt.Step, receipt.Key),
		walletdb.IntentReverted, walletdb.Mining{Fee: new(big.Int)}, "reverted"))
	before := chain.lost.Load()
	h.until("the receipt was looked at in vain", func() bool { return chain.lost.Load() > before+1 || read().Done })
	if read(); receipt.Done {
		t.Errorf("while the database fails: receipt %+v", receipt)
	}
	chain.mended.Store(true)
	h.until("receipt is completed", func() bool { return read().Done })
	if !strings.Contains(receipt.Error, "was reverted") || strings.Contains(receipt.Error, "driver") {
		t.Errorf("receipt %+v", receipt)
	}
}
