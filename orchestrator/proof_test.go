package orchestrator_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/standard"
	"repute/orchestrator/trustgate"
	"repute/policy"
	"repute/store/chaindb"
	"repute/store/eventdb"
	"repute/store/rundb"
	"repute/store/scoredb"
)

// block adds a block with the events to chain 7, which is made where it is missing.
func (h *house) block(events ...repute.Event) {
	h.t.Helper()
	at := common.HexToAddress("0x8004")
	ok(h.t, chaindb.AddChain(h.t.Context(), h.db,
		repute.Chain{ID: 7, Name: "seven", Identity: at, Reputation: common.HexToAddress("0x8005"), StartBlock: 1}))
	parent, err := chaindb.Cursor(h.t.Context(), h.db, 7)
	ok(h.t, err)
	n := parent.Number + 1
	block := repute.Block{Number: n, Parent: parent.Hash, Hash: common.Hash{byte(n)},
		Time: time.Unix(1_750_000_000+int64(n), 0).UTC()}
	batch := eventdb.Batch{ChainID: 7, Parent: parent, To: block, Blocks: []repute.Block{block}}
	for i, e := range events {
		batch.Records = append(batch.Records,
			repute.Record{Log: types.Log{Address: at, Topics: []common.Hash{{1}}, BlockNumber: n, BlockHash: block.Hash,
				Index: uint(i)}, Time: block.Time, Event: e})
	}
	ok(h.t, eventdb.Apply(h.t.Context(), h.db, batch))
}

var (
	seller = common.HexToAddress("0xa1")
	buyer  = common.HexToAddress("0xb2")
	sold   = repute.AgentID{ChainID: 7, Registry: common.HexToAddress("0x8004")}
)

// sells gives the agent another owner.
func (h *house) sells() {
	h.block(repute.MetadataSet{TokenID: sold.TokenID, Key: "agentWallet"},
		repute.Transfer{From: seller, To: buyer, TokenID: sold.TokenID})
}

// judged is the decision on a module now, made again from what is pinned.
func (h *house) judged(m repute.Module, p *policy.Policy, lenient bool) trustgate.Decision {
	h.t.Helper()
	v, err := trustgate.Decide(h.t.Context(), h.db, p, lenient, m,
		policy.Task{Coordinator: m.Slug, Value: "0", Budget: policy.DefaultBudget()}, policy.Threshold{})
	ok(h.t, err)
	_, err = scoredb.KeepInput(h.t.Context(), h.db, p.Text())
	ok(h.t, err)
	ok(h.t, trustgate.Verify(h.t.Context(), h.db, nil, v))
	return v
}

// What was shown at the registration of a program is looked at again by each decision.
func TestProofIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	h.block(repute.Transfer{To: seller}, repute.Registered{Owner: seller})
	module := func(p repute.ModuleProof) repute.Module {
		m := repute.Module{Slug: "plain", URL: "https://one.example", Agent: &sold, Manifest: []byte("{}"), Proof: p}
		if p.Kind == repute.ProofKey {
			m.URL = ""
		}
		ok(t, rundb.SaveModule(t.Context(), h.db, m))
		stored, err := rundb.Module(t.Context(), h.db, "plain")
		ok(t, err)
		return stored
	}
	now := time.Now().UTC()
	signed, key := repute.ModuleProof{Kind: repute.ProofSignature, Signer: seller, At: now},
		repute.ModuleProof{Kind: repute.ProofKey, Signer: seller, At: now}
	deny, ask, allow := rules(t, anything)(), rules(t, "version: \"1\"\ntrust: {unproven: require_approval}\n")(),
		rules(t, "version: \"1\"\ntrust: {unproven: allow}\n")()
	check := func(name string, v trustgate.Decision, effect policy.Effect, says string) {
		t.Helper()
		reason := policy.Reason{}
		for _, r := range v.Decision.Reasons {
			if r.ID == "identity.proof" {
				reason = r
			}
		}
		if v.Decision.Effect != effect || says == "" && reason.ID != "" || !strings.Contains(reason.Text, says) {
			t.Errorf("%s: %+v", name, v.Decision)
		}
	}
	for _, p := range []repute.ModuleProof{signed, key} {
		check("while it holds", h.judged(module(p), deny, false), policy.Allow, "")
	}
	check("none", h.judged(module(repute.ModuleProof{}), deny, false), policy.Deny, "register it again, with a proof")
	check("none in development", h.judged(module(repute.ModuleProof{}), deny, true), policy.Allow, "")
	check("a domain that is not proven",
		h.judged(module(repute.ModuleProof{Kind: repute.ProofDomain, Host: "one.example", At: now}), deny, false),
		policy.Deny, "do not name each other")
	h.sells()
	check("sold", h.judged(module(signed), deny, false), policy.Deny, "neither wallet nor owner")
	check("sold, of the program", h.judged(module(key), deny, false), policy.Deny, "configured key")
	check("sold, asks", h.judged(module(signed), ask, false), policy.RequireApproval, "neither wallet nor owner")
	check("sold, allowed", h.judged(module(signed), allow, false), policy.Allow, "neither wallet nor owner")

	v := h.judged(module(signed), deny, false)
	v.Proof.Owner, v.Agent.Unproven = &seller, ""
	if err := trustgate.Verify(t.Context(), h.db, nil, v); err == nil {
		t.Error("a decision with another owner than decided is taken for good")
	}
}

// An agent that is sold while its task runs does not execute it: the key that the program
// has is not its owner's any more.
func TestSoldAgentDoesNotExecute(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	h.block(repute.Transfer{To: seller}, repute.Registered{Owner: seller})
	agent := careful{newWorker("plain"), h.sells}
	agent.info.Manifest.ERC8004 = &standard.ManifestIdentity{AgentRegistry: sold.Registry.Hex(), AgentID: "0",
		ChainID: 7}
	agent.execute = func(context.Context, standard.Plan, *orchestrator.Context) (standard.Execution, error) {
		t.Error("it was executed")
		return standard.Execution{}, nil
	}
	h.start(orchestrator.Options{Keys: func(uint64, string) (common.Address, error) { return seller, nil },
		Modules: []orchestrator.Module{agent}})
	task, run := h.ended(h.submit(standard.Request{Coordinator: "plain"}))
	if task.Status != repute.TaskRejected || !strings.Contains(string(run.Reasons), "identity.proof") {
		t.Errorf("task %s: %s %s", task.Status, run.Error, run.Reasons)
	}
	h.gateDecisionsHold(run.ID)
}

// A chain of which no block is final gives no score: the decision says so.
func TestNothingIsFinalYet(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	h.block(repute.Transfer{To: seller}, repute.Registered{Owner: seller})
	m := repute.Module{Slug: "plain", Agent: &sold, Proof: repute.ModuleProof{Kind: repute.ProofKey, Signer: seller}}
	v := h.judged(m, rules(t, unrated("require_approval"))(), false)
	if v.Decision.Effect != policy.RequireApproval || len(v.Decision.Reasons) != 1 ||
		!strings.Contains(v.Decision.Reasons[0].Text, "known to be final") {
		t.Errorf("%+v", v.Decision)
	}
	if v.Agent.Low != -100 || v.Agent.High != 100 || v.Demanded == nil || v.Demanded.MinReputation == nil ||
		!v.Demanded.RequireIdentity {
		t.Errorf("%+v, demanded %+v", v.Agent, v.Demanded)
	}
}

// What a person said of a program at one URL does not hold for the next that takes its slug.
func TestApprovalIsOfOneProgram(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ policy, goal string }{"trust": {unrated("require_approval"), "do it"},
		"policy": {askFirst, "dear one"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := newHouse(t)
			h.start(orchestrator.Options{Lenient: true, Policy: rules(t, c.policy),
				Remote: func(repute.Module) (orchestrator.Module, error) { return newWorker("faraway"), nil }})
			at := func(url string) {
				ok(t, rundb.SaveModule(t.Context(), h.db,
					repute.Module{Slug: "faraway", URL: url, Manifest: []byte("{}")}))
			}
			at("https://one.example")
			task := h.submit(standard.Request{Coordinator: "faraway", Goal: c.goal})
			h.awaits(task.Run)
			first, err := rundb.Awaited(t.Context(), h.db, task.Run)
			ok(t, err)
			at("https://two.example")
			h.approve(task.Run, true, "I know the one")
			var second []rundb.Decision
			h.until("the run asks again", func() bool {
				second, err = rundb.Awaited(t.Context(), h.db, task.Run)
				ok(t, err)
				return len(second) > 0
			})
			if len(first) != 1 || len(second) != 1 || first[0].Subject == second[0].Subject {
				t.Errorf("asked about %v, then %v", first, second)
			}
			h.approve(task.Run, true, "and the other")
			if task, run := h.ended(task); task.Status != repute.TaskCompleted {
				t.Errorf("task %s: %s", task.Status, run.Error)
			}
		})
	}
}

// A phase that the database fails is tried again, and told of once, for the budget's time.
func TestDelayedPhaseFailsInTheEnd(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	h.block(repute.Transfer{To: seller}, repute.Registered{Owner: seller})
	agent := newWorker("plain")
	agent.info.Manifest.ERC8004 = &standard.ManifestIdentity{AgentRegistry: sold.Registry.Hex(), AgentID: "0",
		ChainID: 7}
	h.start(orchestrator.Options{Lenient: true, Modules: []orchestrator.Module{agent}})
	_, err := h.db.Pool().Exec(t.Context(), "alter table agents rename to agents_elsewhere")
	ok(t, err)
	r := standard.Request{Coordinator: "plain"}
	r.Budget.RuntimeMS = new(int64(2000))
	task, run := h.ended(h.submit(r))
	if task.Status != repute.TaskFailed || !strings.Contains(run.Error, "could not go on") {
		t.Errorf("task %s: %s", task.Status, run.Error)
	}
	events, err := rundb.Events(t.Context(), h.db, run.Root, 0, 1000)
	ok(t, err)
	delayed := 0
	for _, e := range events {
		if e.Kind == "phase.delayed" {
			delayed++
			if !strings.Contains(string(e.Data), `"trust"`) {
				t.Errorf("event %s", e.Data)
			}
		}
	}
	if delayed != 1 {
		t.Errorf("%d events of the delay", delayed)
	}
}
