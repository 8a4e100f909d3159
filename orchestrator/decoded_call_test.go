package orchestrator_test

import (
	"context"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts/bindings/fixtures"
	"repute/orchestrator"
	"repute/orchestrator/approval"
	"repute/orchestrator/safety"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/store/rundb"
	"repute/store/walletdb"
)

// shifting is a chain whose simulations show an amount of a token leaving the treasury that
// a test changes.
type shifting struct {
	outside
	amount atomic.Int64
}

func (c *shifting) Simulate(ctx context.Context, o transaction.Origin, tx transaction.Tx) (transaction.Simulation,
	error) {
	s, err := c.outside.Simulate(ctx, o, tx)
	s.Treasury = common.Address{9}
	s.Logs = []types.Log{{Address: common.Address{10},
		Data: common.LeftPadBytes(big.NewInt(c.amount.Load()).Bytes(), 32),
		Topics: []common.Hash{crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)")),
			common.BytesToHash(s.Treasury[:]), {1}}}}
	return s, err
}

// shown is what the one question of a run shows.
func (h *house) shown(run string) (subject string, s approval.Shown) {
	h.t.Helper()
	open, err := rundb.Awaited(h.t.Context(), h.db, run)
	ok(h.t, err)
	if len(open) != 1 {
		h.t.Fatalf("run %s waits for %v", run, open)
	}
	var asked struct{ Shown *approval.Shown }
	ok(h.t, json.Unmarshal(open[0].Input, &asked))
	if asked.Shown == nil {
		h.t.Fatalf("nothing is shown of %s", open[0].Subject)
	}
	return open[0].Subject, *asked.Shown
}

// The person who approves sees the decoded call, amounts, names, effects and bounds; when any of it changes the answer
// is void, and the question comes again.
func TestApprovalIsOfWhatIsShown(t *testing.T) {
	t.Parallel()
	token, payee := common.Address{10}, common.Address{5}
	pay := transaction.Tx{ChainID: 7, Target: token,
		Data: fixtures.NewTestToken().PackTransfer(payee, big.NewInt(1_250_000)), Purpose: "rent"}
	open := pay
	open.Placeholders = []transaction.Placeholder{{Path: "1", Type: "uint256", Min: "1", Max: "2000000"}}
	h, _ := newHouse(t)
	chain, agent := &shifting{}, newWorker("payer")
	chain.amount.Store(1_250_000)
	agent.do = sends(pay)
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Policy: rules(t, askCalls),
		Modules:    []orchestrator.Module{shower{agent, []transaction.Tx{open}}},
		Tokens:     []repute.Stablecoin{{ChainID: 7, Address: token, Symbol: "USDX", Decimals: 6}},
		Registries: []safety.Registries{{ChainID: 7, Identity: common.Address{77}}},
		Names: func(_ uint64, a common.Address) []string {
			if a == payee {
				return []string{"wallet of landlord"}
			}
			return nil
		}})
	task := h.submit(standard.Request{Coordinator: "payer"})
	h.awaits(task.Run)
	first, s := h.shown(task.Run)
	if len(s.Calls) != 1 || s.Calls[0].Function != "transfer(address,uint256)" || len(s.Calls[0].Arguments) != 2 ||
		s.Calls[0].Arguments[0].Value != payee.Hex() {
		t.Errorf("calls %+v", s.Calls)
	}
	if len(s.Amounts) != 1 || s.Amounts[0].Text != "1.25 USDX" || len(s.Effects) != 1 ||
		s.Effects[0].Text != "1.25 USDX" || len(s.Declared) != 1 || s.Declared[0].Max != "2000000" {
		t.Errorf("amounts %+v, effects %+v, placeholders %+v", s.Amounts, s.Effects, s.Declared)
	}
	if names, _ := json.Marshal(s.Names); !strings.Contains(string(names), "wallet of landlord") ||
		!strings.Contains(string(names), "token USDX") {
		t.Errorf("names %s", names)
	}
	if s.Agent.Slug != "payer" || s.Agent.Status != "unrated" || s.Agent.Low != -100 || s.Agent.High != 100 {
		t.Errorf("agent %+v", s.Agent)
	}
	chain.amount.Store(9_000_000) // the same call takes more by now
	ok(t, h.client.Approve(t.Context(), task.Run, first, true, "ann", "1.25 is fine"))
	h.awaits(task.Run)
	again, s := h.shown(task.Run)
	if again == first || len(chain.sent) != 0 || s.Effects[0].Text != "9 USDX" {
		t.Errorf("asked again about %s, effects %+v, %d sent", again, s.Effects, len(chain.sent))
	}
	ok(t, h.client.Approve(t.Context(), task.Run, again, true, "ann", "9 is fine too"))
	if task, run := h.ended(task); task.Status != repute.TaskCompleted || len(chain.sent) != 1 {
		t.Errorf("task %s, %d sent: %s", task.Status, len(chain.sent), run.Error)
	}
}

// emitting is a chain whose simulations emit events that a test sets.
type emitting struct {
	outside
	logs atomic.Pointer[[]types.Log]
}

func (c *emitting) Simulate(ctx context.Context, o transaction.Origin, tx transaction.Tx) (transaction.Simulation,
	error) {
	s, err := c.outside.Simulate(ctx, o, tx)
	s.Treasury, s.Logs = common.Address{9}, *c.logs.Load()
	return s, err
}

// tokenLog is an event of a token with two addresses and a word.
func tokenLog(event string, token, from, to byte, word int64) types.Log {
	return types.Log{Address: common.Address{token}, Data: common.LeftPadBytes(big.NewInt(word).Bytes(), 32),
		Topics: []common.Hash{crypto.Keccak256Hash([]byte(event)), common.BytesToHash(common.Address{from}.Bytes()),
			common.BytesToHash(common.Address{to}.Bytes())}}
}

const (
	moved    = "Transfer(address,address,uint256)"
	approves = "Approval(address,address,uint256)"
	forAll   = "ApprovalForAll(address,address,bool)"
)

// What the simulation emits is shown beside what leaves the treasury: approvals of any account, and transfers of
// others. The answer holds while amounts that others move change, and for nothing else.
func TestApprovalShowsEffects(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	chain, agent := &emitting{}, newWorker("payer")
	out := func(in, allowance int64) *[]types.Log {
		logs := []types.Log{tokenLog(moved, 10, 9, 5, 1_000_000), tokenLog(moved, 11, 5, 9, in),
			tokenLog(approves, 10, 9, 6, allowance), tokenLog(forAll, 12, 9, 6, 1), numbered(13, 9, 5, 42),
			severalOf(14, 9, 5, 43, 3)}
		return &logs
	}
	chain.logs.Store(out(7, 3))
	agent.do = sends(pays(5, "1"))
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Policy: rules(t, askCalls),
		Modules: []orchestrator.Module{agent},
		Tokens:  []repute.Stablecoin{{ChainID: 7, Address: common.Address{10}, Symbol: "USDX", Decimals: 6}}})
	task := h.submit(standard.Request{Coordinator: "payer"})
	h.awaits(task.Run)
	subject, s := h.shown(task.Run)
	var got []string
	for _, e := range s.Events {
		bound := ""
		if !e.Bound {
			bound = ", or another amount"
		}
		got = append(got, e.Kind+" "+e.Text+" to "+e.To[:6]+bound)
	}
	want := []string{"approval 0.000003 USDX to 0x0600",
		"approval_for_all everything of " + common.Address{12}.Hex() + " to 0x0600", "transfer 1 USDX to 0x0500",
		"transfer 1 of number 42 of " + common.Address{13}.Hex() + " to 0x0500",
		"transfer 3 of number 43 of " + common.Address{14}.Hex() + " to 0x0500",
		"transfer 7 units of " + common.Address{11}.Hex() + " to 0x0900, or another amount"}
	if !slices.Equal(got, want) {
		t.Errorf("shown %q, wanted %q", got, want)
	}
	chain.logs.Store(out(7, 4)) // more may be taken later
	ok(t, h.client.Approve(t.Context(), task.Run, subject, true, "ann", ""))
	h.awaits(task.Run)
	again, _ := h.shown(task.Run)
	if again == subject || len(chain.sent) != 0 {
		t.Fatalf("another allowance was sent unseen: %d sent", len(chain.sent))
	}
	chain.logs.Store(out(8, 4)) // the exchange pays another amount out
	ok(t, h.client.Approve(t.Context(), task.Run, again, true, "ann", ""))
	if task, run := h.ended(task); task.Status != repute.TaskCompleted || len(chain.sent) != 1 {
		t.Errorf("task %s, %d sent: %s", task.Status, len(chain.sent), run.Error)
	}
}

// numbered is the transfer of an NFT.
func numbered(token, from, to byte, id int64) types.Log {
	l := tokenLog(moved, token, from, to, 0)
	l.Topics, l.Data = append(l.Topics, common.BigToHash(big.NewInt(id))), nil
	return l
}

// severalOf is the transfer of some of one kind of an ERC-1155 token.
func severalOf(token, from, to byte, id, count int64) types.Log {
	l := tokenLog(moved, token, from, to, 0)
	l.Topics = []common.Hash{crypto.Keccak256Hash([]byte("TransferSingle(address,address,address,uint256,uint256)")), {},
		l.Topics[1], l.Topics[2]}
	l.Data = append(common.BigToHash(big.NewInt(id)).Bytes(), common.BigToHash(big.NewInt(count)).Bytes()...)
	return l
}

// However many events a token emits, approvals and what leaves the treasury are shown.
func TestManyEventsHideNothing(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	chain, agent := &emitting{}, newWorker("payer")
	var logs []types.Log
	for range 100 {
		logs = append(logs, tokenLog(moved, 11, 5, 6, 1))
	}
	logs = append(logs, tokenLog(moved, 10, 9, 5, 2), tokenLog(approves, 10, 9, 6, 3))
	chain.logs.Store(&logs)
	agent.do = sends(pays(5, "1"))
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Policy: rules(t, askCalls),
		Modules: []orchestrator.Module{agent}})
	task := h.submit(standard.Request{Coordinator: "payer"})
	h.awaits(task.Run)
	_, s := h.shown(task.Run)
	if len(s.Events) != 64 || s.EventsOmitted != 38 || s.Events[0].Kind != "approval" || s.Events[1].Units != "2" {
		t.Errorf("%d events are shown, %d omitted: %+v", len(s.Events), s.EventsOmitted, s.Events[:2])
	}
}

// A call of a function that only the entry of the allow-list names is shown with its arguments,
// and its placeholders need no text of the agent's own, which would not count.
func TestApprovalShowsListedFunctions(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	tx := set(t, 5, 3, "ab")
	tx.Function = ""
	// The text of a function counts once its act succeeded: one that failed changes no name.
	for id, text := range map[string]string{"act_1": "setPair(address beneficiary, uint64 count, bytes note)",
		"act_0": "setPair(address wrong, uint64 wrong, bytes wrong)"} {
		_, _, err := walletdb.AddAct(t.Context(), h.db, walletdb.Act{ID: id, Kind: "policy", By: "ops", ChainID: 7,
			Agent: "setter"})
		ok(t, err)
		if id == "act_0" {
			ok(t, walletdb.FailAct(t.Context(), h.db, id, "", "no"))
		}
		ok(t, walletdb.EndAct(t.Context(), h.db, id, nil,
			[]walletdb.CallFunction{{Target: tx.Target, Selector: [4]byte(tx.Data), Text: text}}))
	}
	shown := tx
	shown.Placeholders = []transaction.Placeholder{{Path: "1", Type: "uint64", Min: "1", Max: "9"}}
	chain, agent := &outside{}, newWorker("setter")
	agent.do = sends(tx)
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7,
		Modules: []orchestrator.Module{shower{agent, []transaction.Tx{shown}}},
		Policy: rules(t,
			"version: \"1\"\nrules:\n  - {id: ask, when: 'phase == \"call\" && call.args.count == \"3\"', effect: require_approval, reason: look}\n")})
	task := h.submit(standard.Request{Coordinator: "setter"})
	h.awaits(task.Run)
	_, s := h.shown(task.Run)
	if c := s.Calls[0]; c.Source != "allow-list" || len(c.Arguments) != 3 || c.Arguments[0].Name != "beneficiary" ||
		c.Arguments[0].Value != (common.Address{5}).Hex() {
		t.Errorf("shown as %+v", c)
	}
}

// Rules see the decoded arguments of calls.
func TestRulesSeeArguments(t *testing.T) {
	t.Parallel()
	const text = "version: \"1\"\nrules:\n  - {id: most, when: 'phase == \"call\" && call.function == \"transfer(address,uint256)\" && gt(call.args.amount, \"100\")', effect: deny, reason: too much}\n" +
		"  - {id: who, when: 'phase == \"call\" && call.args.to != \"0x0500000000000000000000000000000000000000\"', effect: deny, reason: somebody else}\n"
	token := fixtures.NewTestToken()
	to := func(who byte, amount int64) transaction.Tx {
		return transaction.Tx{ChainID: 7, Target: common.Address{10},
			Data: token.PackTransfer(common.Address{who}, big.NewInt(amount)), Purpose: "pay"}
	}
	for says, tx := range map[string]transaction.Tx{"": to(5, 100), "too much": to(5, 101), "somebody else": to(6, 1),
		"could not be evaluated": pays(1, "1")} {
		h, _ := newHouse(t)
		chain, agent := &outside{}, newWorker("payer")
		agent.do = sends(tx)
		h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Policy: rules(t, text),
			Modules: []orchestrator.Module{agent}})
		task, run := h.ended(h.submit(standard.Request{Coordinator: "payer"}))
		if (says == "") != (task.Status == repute.TaskCompleted) || !strings.Contains(run.Error, says) {
			t.Errorf("%q: task %s: %s", says, task.Status, run.Error)
		}
	}
}
