package operate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/orchestrator/operate"
	"repute/orchestrator/standard"
	"repute/orchestrator/tasks"
	"repute/orchestrator/transaction"
	"repute/orchestrator/wallet"
	"repute/policy"
	"repute/store/rundb"
	"repute/store/walletdb"
)

const open = "version: \"1\"\n"

var somebody = common.HexToAddress("0x00000000000000000000000000000000000000aa")

func by(key string) operate.How { return operate.How{By: "ops", Key: key} }

func TestTreasuryReads(t *testing.T) {
	w := newWorld(t)
	o := w.operator(open)
	s, err := o.TreasuryStatus(t.Context())
	ok(t, err)
	if s.Balance != "1000" || s.Paused || s.Owner != w.d.Account(ownerAccount).Address.Hex() ||
		s.Operator != w.d.Account(operatorAccount).Address.Hex() || s.Block == 0 {
		t.Errorf("status %+v", s)
	}
	p, err := o.TreasuryPolicy(t.Context(), "payer")
	ok(t, err)
	if !p.Active || p.NativePerTxCapWei != "100" || p.NativeWindowCapWei != "250" || p.NativeLeftWei != "100" ||
		p.WindowDurationSeconds != 86400 {
		t.Errorf("policy %+v", p)
	}
	if p, err = o.TreasuryPolicy(t.Context(), "nobody"); err != nil || p.Active {
		t.Errorf("policy of nobody %+v, %v", p, err)
	}
	s, list, err := o.TreasuryOverview(t.Context(), "nobody", "payer")
	if err != nil || s.Balance != "1000" || len(list) != 2 || list[0].Active || list[0].AgentSlug != "nobody" ||
		!list[1].Active ||
		list[1].NativeLeftWei != "100" || list[0].BlockHash != s.BlockHash || list[1].BlockHash != s.BlockHash {
		t.Errorf("overview %+v %+v, %v", s, list, err)
	}
	if _, _, err := o.TreasuryOverview(t.Context(), "No Slug"); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("overview of no slug: %v", err)
	}
	if _, err := o.TreasuryPolicy(t.Context(), "No Slug"); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("no slug: %v", err)
	}
}

// A dry run tells everything and does nothing; the act itself happens once per key.
func TestCallOnce(t *testing.T) {
	w := newWorld(t)
	o := w.operator(open)
	call := operate.TreasuryCall{AgentSlug: "payer", Target: somebody.Hex(), Value: "40", RunID: "run_1",
		TaskID: "task_1", Purpose: "test"}
	dry, err := o.ExecuteCall(t.Context(), call, operate.How{DryRun: true, By: "ops", Key: "k"})
	ok(t, err)
	if s := dry.Transactions[0].Simulation; dry.Status != operate.Simulated || dry.ID != "" ||
		dry.Policy.Effect != policy.Allow || !s.OK || s.Gas == 0 || !s.WithinCaps || w.balance(somebody) != 0 {
		t.Fatalf("dry run %+v", dry)
	}
	if acts, err := o.Acts(t.Context(), time.Time{}, "", 10); err != nil || len(acts) != 0 {
		t.Fatalf("a dry run was recorded: %v, %v", acts, err)
	}
	first, err := o.ExecuteCall(t.Context(), call, by("k"))
	ok(t, err)
	again, err := o.ExecuteCall(t.Context(), call, by("k"))
	ok(t, err)
	if tx := first.Transactions[0]; first.Status != operate.Confirmed || again.ID != first.ID ||
		tx.Status != "confirmed" || tx.Hash == "" || tx.Hash != again.Transactions[0].Hash || tx.GasUsed == 0 {
		t.Fatalf("first %+v, again %+v", first, again)
	}
	if got := w.balance(somebody); got != 40 {
		t.Fatalf("%d wei arrived, wanted 40", got)
	}
	call.Value = "41"
	if _, err := o.ExecuteCall(t.Context(), call, by("k")); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("another call by the same key: %v", err)
	}
	known, err := o.Act(t.Context(), first.ID)
	if err != nil || known.Status != operate.Confirmed || known.AskedBy != "ops" || known.Ended == nil {
		t.Errorf("recorded %+v, %v", known, err)
	}
}

// A policy is set for agents that there are. One that was removed keeps its policy, which can
// be ended.
func TestPolicyOfKnownAgents(t *testing.T) {
	w := newWorld(t)
	o := w.operator(open)
	var missing *repute.MissingError
	act, err := o.ConfigurePolicy(t.Context(), operate.PolicyChange{AgentSlug: "payee", NativePerTxCapWei: "1",
		Operator: somebody.Hex()}, by(""))
	if !errors.As(err, &missing) || !strings.Contains(missing.Hint, "payer, rater") {
		t.Errorf("a policy of nobody: %+v, %v", act, err)
	}
	ok(t, rundb.RemoveModule(t.Context(), w.db, "payer"))
	off := false
	if act, err := o.ConfigurePolicy(t.Context(), operate.PolicyChange{AgentSlug: "payer", Active: &off},
		by("")); err != nil || act.Status != operate.Confirmed {
		t.Errorf("the policy of an agent that was removed: %+v, %v", act, err)
	}
	if p, err := o.TreasuryPolicy(t.Context(), "payer"); err != nil || p.Active {
		t.Errorf("it is %+v, %v", p, err)
	}
}

// What the treasury, the wallet's rules or the policy forbid is refused with the reason,
// and recorded.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	rules := `version: "1"
rules:
  - {id: big, when: 'gt(call.value, "60")', effect: require_approval, reason: looked at}
  - {id: never, when: 'call.value == "1"', effect: deny, reason: not there}
`
	o := w.operator(rules)
	for name, c := range map[string]struct {
		call operate.TreasuryCall
		want string
	}{
		"over the cap":        {operate.TreasuryCall{Target: somebody.Hex(), Value: "101"}, "over the cap of 100"},
		"the treasury itself": {operate.TreasuryCall{Target: w.treasury.Hex()}, "through itself"},
		"a token": {operate.TreasuryCall{Target: w.token.Hex(), Data: "0xa9059cbb" + strings.Repeat("00", 64)},
			"tokens leave by transfers"},
		"a registry":       {operate.TreasuryCall{Target: w.d.Chain().Identity.Hex(), Data: "0x01020304"}, "registry"},
		"denied by policy": {operate.TreasuryCall{Target: somebody.Hex(), Value: "1"}, "not there"},
		"without approval": {operate.TreasuryCall{Target: somebody.Hex(), Value: "61"}, "looked at"},
	} {
		c.call.AgentSlug = "payer"
		act, err := o.ExecuteCall(t.Context(), c.call, by(""))
		var denied *transaction.DeniedError
		if !errors.As(err, &denied) || !strings.Contains(err.Error(), c.want) || act.Status != operate.Refused {
			t.Errorf("%s: %+v, %v", name, act, err)
			continue
		}
		if known, err := o.Act(t.Context(), act.ID); err != nil || known.Status != operate.Refused ||
			!strings.Contains(known.Error, c.want) {
			t.Errorf("%s: recorded %+v, %v", name, known, err)
		}
	}
	if got := w.balance(w.treasury); got != 1000 {
		t.Fatalf("the treasury has %d wei, wanted 1000", got)
	}
	how := by("")
	how.Approve = true
	act, err := o.ExecuteCall(t.Context(), operate.TreasuryCall{AgentSlug: "payer", Target: somebody.Hex(),
		Value: "61"},
		how)
	if err != nil || act.Status != operate.Confirmed || act.Policy.Approved != "ops" {
		t.Errorf("approved: %+v, %v", act, err)
	}
	for field, c := range map[string]operate.TreasuryCall{"agentSlug": {Target: somebody.Hex()},
		"target": {AgentSlug: "payer", Target: "0x1"},
		"value":  {AgentSlug: "payer", Target: somebody.Hex(), Value: "-1"},
		"data":   {AgentSlug: "payer", Target: somebody.Hex(), Data: "0x123"}} {
		var wrong *repute.InputError
		if _, err := o.ExecuteCall(t.Context(), c, by("")); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestTransfer(t *testing.T) {
	w := newWorld(t)
	o := w.operator(open)
	act, err := o.TransferERC20(t.Context(), operate.Transfer{AgentSlug: "payer", Token: w.token.Hex(),
		To: somebody.Hex(), Amount: "70"}, by(""))
	if err != nil || act.Status != operate.Confirmed {
		t.Fatalf("transfer %+v, %v", act, err)
	}
	if _, err := o.TransferERC20(t.Context(), operate.Transfer{AgentSlug: "payer", Token: w.token.Hex(),
		To: somebody.Hex(), Amount: "101"}, by("")); err == nil || !strings.Contains(err.Error(), "over the cap") {
		t.Errorf("over the cap: %v", err)
	}
}

func TestConfigurePolicy(t *testing.T) {
	w := newWorld(t)
	o := w.operator(open)
	yes, no, other := true, false, "0x00000000000000000000000000000000000000cc"
	act, err := o.ConfigurePolicy(t.Context(), operate.PolicyChange{AgentSlug: "payer", NativePerTxCapWei: "120",
		Active: &yes,
		Calls: []operate.CallAllowed{{Target: other, Selector: "0x00000000", Allowed: true},
			{Target: somebody.Hex(), Selector: "0x00000000"}},
		Tokens: []operate.TokenAllowed{{Token: w.token.Hex(), Allowed: false}}}, by("p"))
	if err != nil || act.Status != operate.Confirmed || len(act.Transactions) != 4 {
		t.Fatalf("configure %+v, %v", act, err)
	}
	p, err := o.TreasuryPolicy(t.Context(), "payer")
	if err != nil || p.NativePerTxCapWei != "120" || p.NativeWindowCapWei != "250" || !p.Active {
		t.Errorf("policy %+v, %v", p, err)
	}
	if a, err := o.ExecuteCall(t.Context(), operate.TreasuryCall{AgentSlug: "payer", Target: other, Value: "110"},
		by("")); err != nil || a.Status != operate.Confirmed {
		t.Errorf("allowed target: %+v, %v", a, err)
	}
	if _, err := o.ExecuteCall(t.Context(), operate.TreasuryCall{AgentSlug: "payer", Target: somebody.Hex(),
		Value: "1"},
		by("")); err == nil || !strings.Contains(err.Error(), "does not allow") {
		t.Errorf("a target that was allowed: %v", err)
	}
	if _, err := o.ConfigurePolicy(t.Context(), operate.PolicyChange{AgentSlug: "payer", Active: &no},
		by("")); err != nil {
		t.Errorf("deactivate: %v", err)
	}
	if _, err := o.ConfigurePolicy(t.Context(), operate.PolicyChange{AgentSlug: "payer"}, by("")); !errors.Is(err,
		repute.ErrInvalid) {
		t.Errorf("nothing: %v", err)
	}
}

func TestIdentityWalletFeedback(t *testing.T) {
	w := newWorld(t)
	o := w.operator(open)
	operator := w.d.Account(operatorAccount).Address
	act, err := o.RegisterIdentity(t.Context(),
		operate.Identity{Slug: "payer", OwnerWallet: w.d.Account(payerAccount).Address.Hex(),
			OperatorWallet: operator.Hex()}, by("r"))
	if err != nil || act.Status != operate.Confirmed || len(act.Transactions) != 2 || act.AgentID == "" {
		t.Fatalf("register %+v, %v", act, err)
	}
	m, err := rundb.Module(t.Context(), w.db, "payer")
	ok(t, err)
	if m.Agent == nil || m.Agent.String() != act.AgentID {
		t.Fatalf("agent %v, registered %s", m.Agent, act.AgentID)
	}
	view := w.d.View()
	if got, err := view.AgentWallet(t.Context(), m.Agent.TokenID.Uint64()); err != nil || got != operator {
		t.Errorf("wallet %s, %v", got, err)
	}
	if _, err := o.RegisterIdentity(t.Context(), operate.Identity{Slug: "payer"}, by("")); !errors.Is(err,
		repute.ErrConflict) {
		t.Errorf("nothing to update: %v", err)
	}
	act, err = o.SetAgentWallet(t.Context(),
		operate.AgentWallet{Slug: "payer", OperatorWallet: w.d.Account(raterAccount).Address.Hex()}, by(""))
	if err != nil || act.Status != operate.Confirmed {
		t.Fatalf("wallet %+v, %v", act, err)
	}
	if _, err := o.SetAgentWallet(t.Context(), operate.AgentWallet{Slug: "payer", OperatorWallet: somebody.Hex()},
		by("")); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("a wallet without a key: %v", err)
	}
	f := operate.FeedbackRequest{AgentID: m.Agent.TokenID.String(),
		FromAddress: w.d.Account(raterAccount).Address.Hex(),
		Value:       "850", ValueDecimals: 2, Tag1: "reliability"}
	if _, err := o.PostFeedback(t.Context(), f, by("")); err == nil ||
		!strings.Contains(err.Error(), "agent of its own") {
		t.Errorf("feedback by the agent's wallet: %v", err)
	}
	if act, err = o.SetAgentWallet(t.Context(), operate.AgentWallet{Slug: "payer", OperatorWallet: operator.Hex()},
		by("back")); err != nil || act.Status != operate.Confirmed {
		t.Fatalf("wallet %+v, %v", act, err)
	}
	again, err := o.SetAgentWallet(t.Context(), operate.AgentWallet{Slug: "payer", OperatorWallet: operator.Hex()},
		by("back"))
	if err != nil || again.ID != act.ID {
		t.Errorf("asked again %+v, %v", again, err)
	}
	if again, err = o.RegisterIdentity(t.Context(),
		operate.Identity{Slug: "payer", OwnerWallet: w.d.Account(payerAccount).Address.Hex(),
			OperatorWallet: operator.Hex()}, by("r")); err != nil || again.AgentID == "" {
		t.Errorf("registered again %+v, %v", again, err)
	}
	if act, err = o.PostFeedback(t.Context(), f, by("")); err != nil || act.Status != operate.Confirmed ||
		act.Domain != "trust" {
		t.Fatalf("feedback %+v, %v", act, err)
	}
	f.FromAddress = w.d.Account(payerAccount).Address.Hex()
	if _, err := o.PostFeedback(t.Context(), f, by("")); err == nil ||
		!strings.Contains(err.Error(), "agent of its own") {
		t.Errorf("an agent's own feedback: %v", err)
	}
}

// While one process judges an act again another may end it, or sign it: what is told to have
// failed is never sent, and what is signed never fails.
func TestActsOfTwoProcesses(t *testing.T) {
	w := newWorld(t)
	call := operate.TreasuryCall{AgentSlug: "payer", Target: somebody.Hex(), Value: "40"}
	begun := func(key string) operate.Act {
		act, err := w.with(open, operate.Options{Wait: 1}).ExecuteCall(t.Context(), call, by(key))
		if err != nil || act.Status != operate.Pending {
			t.Fatalf("begun %+v, %v", act, err)
		}
		return act
	}
	// judging is a process in which something happens once it has found nothing signed.
	judging := func(text string, meanwhile func()) *operate.Operator {
		p, err := policy.Parse([]byte(text))
		ok(t, err)
		return w.with(text, operate.Options{Wait: 30 * time.Second, Fresh: 1, Policy: func() *policy.Policy {
			meanwhile()
			return p
		}})
	}
	carried := func(o *operate.Operator, key string, want operate.Status, says string, paid int64) {
		t.Helper()
		act, err := o.ExecuteCall(t.Context(), call, by(key))
		if got := w.balance(somebody); err != nil || act.Status != want || !strings.Contains(act.Error, says) ||
			got != paid {
			t.Errorf("%s: %+v, %v, %d wei arrived; want %s %q and %d", key, act, err, got, want, says, paid)
		}
	}
	begun("ended")
	carried(judging(open, func() {
		carried(w.with(open, operate.Options{Wait: 30 * time.Second, Fresh: 1, Expire: 1}), "ended", operate.Failed,
			"ask again", 0)
	}), "ended", operate.Failed, "ask again", 0)

	id := begun("signed").ID
	carried(judging("version: \"1\"\nrules:\n  - {id: no, when: 'true', effect: deny, reason: no longer}\n", func() {
		_, err := w.w.Send(t.Context(),
			transaction.Intent{ID: id + "/1", Origin: transaction.Origin{Agent: "payer", Run: id, Task: id},
				Tx: transaction.Tx{ChainID: w.d.Chain().ID, Target: somebody, Value: "40"}})
		ok(t, err)
	}), "signed", operate.Pending, "", 40)
	row, err := walletdb.ReadAct(t.Context(), w.db, id)
	ok(t, err)
	carried(w.operator(open), "signed", operate.Confirmed, "", 40)
	if !row.Ended.IsZero() {
		t.Errorf("ended: %+v", row)
	}
}

// An act names no run or task of another agent; ids that are not known here are free.
func TestForeignRuns(t *testing.T) {
	w := newWorld(t)
	o := w.operator(open)
	client, err := tasks.NewClient(w.db)
	ok(t, err)
	task, _, err := client.Submit(t.Context(), standard.Request{Goal: "work", Coordinator: "rater"})
	ok(t, err)
	for name, c := range map[string]struct{ agent, run, task, field string }{
		"run of another":        {"payer", task.Run, "", "runId"},
		"task of another":       {"payer", "", task.ID, "taskId"},
		"run in another task":   {"rater", task.Run, "task_other", "runId"},
		"its own":               {"rater", task.Run, task.ID, ""},
		"one that nobody knows": {"payer", "run_other", "task_other", ""},
	} {
		_, err := o.ExecuteCall(t.Context(), operate.TreasuryCall{AgentSlug: c.agent, Target: somebody.Hex(),
			Value: "1",
			RunID: c.run, TaskID: c.task}, operate.How{DryRun: true, By: "ops"})
		var wrong *repute.InputError
		if got := errors.As(err, &wrong); got != (c.field != "") || got && wrong.Field != c.field {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// However many acts cannot be brought to an end, the newest gets its turn.
func TestEachActGetsItsTurn(t *testing.T) {
	w := newWorld(t)
	hasty := w.with(open, operate.Options{Wait: 1})
	var last operate.Act
	for range 3 {
		act, err := hasty.ExecuteCall(t.Context(), operate.TreasuryCall{AgentSlug: "payer", Target: somebody.Hex(),
			Value: "1"}, by(""))
		ok(t, err)
		last = act
	}
	first, err := walletdb.OpenActs(t.Context(), w.db, 0, time.Time{}, "", 2)
	ok(t, err)
	if len(first) != 2 {
		t.Fatalf("%d open acts", len(first))
	}
	rest, err := walletdb.OpenActs(t.Context(), w.db, 0, first[1].Created, first[1].ID, 2)
	if err != nil || len(rest) != 1 || rest[0].ID != last.ID {
		t.Errorf("behind two of three: %+v, %v", rest, err)
	}
}

// An operator action that nobody waits for is completed by any process, not only by the one that began it.
func TestRunEndsActs(t *testing.T) {
	w := newWorld(t)
	w.d.SetPeriod(0)
	p, err := policy.Parse([]byte(open))
	ok(t, err)
	id := w.d.Chain().ID
	hasty := operate.New(w.db, w.w, operate.Options{Policy: func() *policy.Policy { return p }, Lenient: true,
		TrustChain: id, ExecutionChain: id, PublicURL: "https://repute.example", Wait: 50 * time.Millisecond})
	act, err := hasty.RegisterIdentity(t.Context(),
		operate.Identity{Slug: "payer", OperatorWallet: w.d.Account(operatorAccount).Address.Hex()}, by("r"))
	if err != nil || act.Status != operate.Pending {
		t.Fatalf("begun %+v, %v", act, err)
	}
	if _, err := hasty.RegisterIdentity(t.Context(), operate.Identity{Slug: "payer", AgentURI: "https://other.example"},
		by("")); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("a second registration meanwhile: %v", err)
	}
	w.d.SetPeriod(20 * time.Millisecond)
	again, err := w.operator(open).RegisterIdentity(t.Context(),
		operate.Identity{Slug: "payer", OperatorWallet: w.d.Account(operatorAccount).Address.Hex()}, by("r"))
	if err != nil || again.ID != act.ID || again.Status != operate.Confirmed || again.AgentID == "" {
		t.Fatalf("ended %+v, %v", again, err)
	}
	if _, err := w.w.IdentityOf(id, somebody); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("key of a stranger: %v", err)
	}
}

// The owner's key sets policies and nothing else, and is nobody else's.
func TestOwnerKey(t *testing.T) {
	w := newWorld(t)
	c := w.config()
	c.Owner = c.Operator
	if _, err := wallet.Open(w.db, wallet.Config{Chains: []wallet.ChainConfig{c}}); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("owner and operator with one key: %v", err)
	}
	for name, data := range map[string][]byte{"withdraw": common.FromHex("0xf3fef3a3" + strings.Repeat("00", 64)),
		"transferOwnership": common.FromHex("0xf2fde38b" + strings.Repeat("00", 32)), "nothing": nil} {
		if _, err := w.w.SendOwner(t.Context(),
			transaction.Intent{ID: name, Tx: transaction.Tx{ChainID: c.ChainID, Data: data}}); !errors.Is(err,
			repute.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tx := transaction.Tx{ChainID: c.ChainID, Target: w.treasury, Data: common.FromHex("0x8456cb59")} // pause()
	if _, err := w.w.Send(t.Context(), transaction.Intent{ID: "pause", Origin: transaction.Origin{Agent: "payer"},
		Tx: tx}); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("an agent paused the treasury: %v", err)
	}
}
