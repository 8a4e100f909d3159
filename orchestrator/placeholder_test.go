package orchestrator_test

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts/bindings/fixtures"
	"repute/orchestrator"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/policy"
	"repute/store/rundb"
)

// pair is the text of a function that no decoder knows, and set a call of it.
const pair = "setPair(address who, uint64 n, bytes note)"

func set(t *testing.T, who byte, n uint64, note string) transaction.Tx {
	t.Helper()
	of, err := abi.JSON(strings.NewReader(`[{"type":"function","name":"setPair","inputs":[{"name":"who","type":"address"},{"name":"n","type":"uint64"},{"name":"note","type":"bytes"}]}]`))
	ok(t, err)
	data, err := of.Pack("setPair", common.Address{who}, n, []byte(note))
	ok(t, err)
	return transaction.Tx{ChainID: 7, Target: common.Address{1}, Data: data, Purpose: "set", Function: pair}
}

// What is sent has each byte that the dry run showed, or a value within the bounds of a
// placeholder that the dry run declared.
func TestSentIsWhatWasDeclared(t *testing.T) {
	t.Parallel()
	number := transaction.Placeholder{Path: "1", Type: "uint64", Min: "1", Max: "9"}
	one := transaction.Placeholder{Path: "0", Type: "address", OneOf: []common.Address{{5}, {6}}}
	note := transaction.Placeholder{Path: "2", Type: "bytes", MaxLength: 3}
	coin := transaction.Placeholder{Path: "value", Type: "uint256", Min: "0", Max: "10"}
	all := []transaction.Placeholder{number, one, note, coin}
	paid := set(t, 5, 3, "ab")
	paid.Value = "11"
	for name, c := range map[string]struct {
		open []transaction.Placeholder
		does []transaction.Tx
		says string // empty: it completes
	}{
		"another argument":           {nil, []transaction.Tx{set(t, 6, 3, "ab")}, "showed no such transaction"},
		"as shown":                   {nil, []transaction.Tx{set(t, 5, 3, "ab")}, ""},
		"within all bounds":          {all, []transaction.Tx{set(t, 6, 9, "xyz")}, ""},
		"a number that is too large": {all, []transaction.Tx{set(t, 6, 10, "xyz")}, "showed no such transaction"},
		"another address":            {all, []transaction.Tx{set(t, 7, 9, "xyz")}, "showed no such transaction"},
		"too many bytes":             {all, []transaction.Tx{set(t, 6, 9, "four")}, "showed no such transaction"},
		"too much coin":              {all, []transaction.Tx{paid}, "showed no such transaction"},
		"what is no placeholder": {[]transaction.Placeholder{one}, []transaction.Tx{set(t, 6, 4, "ab")},
			"showed no such transaction"},
		"twice": {all, []transaction.Tx{set(t, 6, 9, "xyz"), set(t, 5, 2, "")},
			"showed this transaction 1 times"},
		"a placeholder that is sent": {all, []transaction.Tx{{ChainID: 7, Target: common.Address{1},
			Placeholders: all}},
			"has no placeholders"},
		"no bounds": {[]transaction.Placeholder{{Path: "1", Type: "uint64"}}, nil, "min and max"},
		"a sample beyond the bounds": {[]transaction.Placeholder{{Path: "1", Type: "uint64", Min: "4", Max: "9"}}, nil,
			"does not allow the value"},
		"another type": {[]transaction.Placeholder{{Path: "1", Type: "uint256", Min: "1", Max: "9"}}, nil,
			"uint64"},
		"no such argument": {[]transaction.Placeholder{{Path: "3", Type: "uint64", Min: "1", Max: "9"}}, nil,
			"no argument"},
		"any address":         {[]transaction.Placeholder{{Path: "0", Type: "address"}}, nil, "oneOf"},
		"bytes of any length": {[]transaction.Placeholder{{Path: "2", Type: "bytes"}}, nil, "maxLength"},
		"bounds beyond the type": {[]transaction.Placeholder{{Path: "1", Type: "uint64", Min: "0",
			Max: "18446744073709551616"}}, nil, "bounds of its type"},
		"the same argument twice": {[]transaction.Placeholder{number, number}, nil, "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := newHouse(t)
			chain, agent := &outside{}, newWorker("setter")
			agent.do = sends(c.does...)
			shown := set(t, 5, 3, "ab")
			shown.Placeholders = c.open
			h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7,
				Modules: []orchestrator.Module{shower{agent, []transaction.Tx{shown}}}})
			task, run := h.ended(h.submit(standard.Request{Coordinator: "setter"}))
			if (c.says == "") != (task.Status == repute.TaskCompleted) || !strings.Contains(run.Error, c.says) ||
				c.does == nil && task.Status != repute.TaskRejected {
				t.Errorf("task %s, sent %d: %s", task.Status, len(chain.sent), run.Error)
			}
		})
	}
}

// Of two declared calls each is sent once, in whatever order they fit.
func TestPlaceholdersAreMatchedTogether(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	wide, exact := set(t, 5, 3, ""), set(t, 5, 4, "")
	wide.Placeholders = []transaction.Placeholder{{Path: "1", Type: "uint64", Min: "1", Max: "9"}}
	chain, agent := &outside{}, newWorker("setter")
	agent.do = sends(set(t, 5, 4, ""), set(t, 5, 7, "")) // the first fits both, the second the wide one alone
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7,
		Modules: []orchestrator.Module{shower{agent, []transaction.Tx{wide, exact}}}})
	if task, run := h.ended(h.submit(standard.Request{Coordinator: "setter"})); task.Status != repute.TaskCompleted ||
		len(chain.sent) != 2 {
		t.Errorf("task %s, sent %d: %s", task.Status, len(chain.sent), run.Error)
	}
}

// A placeholder is judged by the worst that it allows: by rules, and by value at risk.
func TestPlaceholdersAreJudgedAtTheWorst(t *testing.T) {
	t.Parallel()
	const limit = "version: \"1\"\nrules:\n  - {id: most, when: 'phase == \"call\" && gt(call.value, \"100\")', effect: %EFFECT, reason: too much}\n"
	const value = `version: "1"
trust:
  byValue: [{fromWei: "1000", threshold: {minReputation: 50}}]
  tokens: [{chainId: 7, token: "0x0100000000000000000000000000000000000000", units: "1", wei: "1"}]
`
	token := fixtures.NewTestToken()
	pays := func(amount int64) transaction.Tx {
		return transaction.Tx{ChainID: 7, Target: common.Address{1},
			Data: token.PackTransfer(common.Address{9}, big.NewInt(amount)), Purpose: "pay"}
	}
	coin := transaction.Tx{ChainID: 7, Target: common.Address{1}, Value: "5", Purpose: "pay"}
	open := func(tx transaction.Tx, p transaction.Placeholder) transaction.Tx {
		tx.Placeholders = []transaction.Placeholder{p}
		return tx
	}
	for name, c := range map[string]struct {
		policy string
		shown  transaction.Tx
		does   transaction.Tx
		says   string
	}{
		"a rule": {strings.ReplaceAll(limit, "%EFFECT", "deny"),
			open(coin, transaction.Placeholder{Path: "value", Type: "uint256", Min: "0", Max: "101"}), coin,
			"too much"},
		"a rule that is kept": {strings.ReplaceAll(limit, "%EFFECT", "deny"),
			open(coin, transaction.Placeholder{Path: "value", Type: "uint256", Min: "0", Max: "100"}), coin, ""},
		"value at risk": {value,
			open(pays(1), transaction.Placeholder{Path: "1", Type: "uint256", Min: "0", Max: "1000"}), pays(1),
			"nobody can rate it"},
		"less value at risk": {value,
			open(pays(1), transaction.Placeholder{Path: "1", Type: "uint256", Min: "0", Max: "999"}), pays(1), ""},
		"bytes may be any call": {value,
			open(set(t, 1, 1, "abcd"), transaction.Placeholder{Path: "2", Type: "bytes", MaxLength: 4}),
			set(t, 1, 1, "abcd"),
			"nobody can rate it"},
		"fewer bytes are no call": {value,
			open(set(t, 1, 1, "abc"), transaction.Placeholder{Path: "2", Type: "bytes", MaxLength: 3}),
			set(t, 1, 1, "abc"),
			""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := newHouse(t)
			chain, agent := &outside{}, newWorker("payer")
			agent.do = sends(c.does)
			h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Policy: rules(t, c.policy),
				Modules: []orchestrator.Module{shower{agent, []transaction.Tx{c.shown}}}})
			task, run := h.ended(h.submit(standard.Request{Coordinator: "payer"}))
			if (c.says == "") != (task.Status == repute.TaskCompleted) || !strings.Contains(run.Error, c.says) ||
				c.says != "" && len(chain.sent) > 0 {
				t.Errorf("task %s, %d sent: %s", task.Status, len(chain.sent), run.Error)
			}
		})
	}
	h, _ := newHouse(t)
	chain, agent := &outside{}, newWorker("payer")
	agent.do = sends(coin)
	shown := open(coin, transaction.Placeholder{Path: "value", Type: "uint256", Min: "0", Max: "101"})
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7,
		Policy:  rules(t, strings.ReplaceAll(limit, "%EFFECT", string(policy.RequireApproval))),
		Modules: []orchestrator.Module{shower{agent, []transaction.Tx{shown}}}})
	task := h.submit(standard.Request{Coordinator: "payer"})
	h.awaits(task.Run)
	h.approve(task.Run, true, "up to 101 wei")
	if task, run := h.ended(task); task.Status != repute.TaskCompleted || len(chain.sent) != 1 {
		t.Errorf("approved: task %s, %d sent: %s", task.Status, len(chain.sent), run.Error)
	}
}

// The dry run that is stored names the whole call and its placeholders.
func TestDryRunRecordsWholeCalls(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	shown := set(t, 5, 3, "ab")
	shown.Placeholders = []transaction.Placeholder{{Path: "1", Type: "uint64", Min: "1", Max: "9"}}
	agent := newWorker("setter")
	agent.do = sends(set(t, 5, 8, "ab"))
	h.start(orchestrator.Options{Lenient: true, Chain: &outside{}, ExecutionChain: 7,
		Modules: []orchestrator.Module{shower{agent, []transaction.Tx{shown}}}})
	_, run := h.ended(h.submit(standard.Request{Coordinator: "setter"}))
	phases, err := rundb.Phases(t.Context(), h.db, run.ID)
	ok(t, err)
	i := slices.IndexFunc(phases, func(p repute.RunPhase) bool { return p.Phase == repute.PhaseDryRun })
	var stored standard.DryRun
	ok(t, json.Unmarshal(phases[i].Result, &stored))
	if len(stored.Calls) != 1 || string(stored.Calls[0].Data) != string(shown.Data) ||
		len(stored.Calls[0].Placeholders) != 1 || stored.Calls[0].Placeholders[0].Max != "9" {
		t.Errorf("stored %+v", stored.Calls)
	}
}
