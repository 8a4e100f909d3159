package orchestrator_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/store"
	"repute/store/chaindb"
)

// pausing is a chain that runs a function between the journal and the signature.
type pausing struct {
	outside
	before func()
	wallet common.Address // the agent's, on the chain
}

func (c *pausing) Read(context.Context, uint64, common.Address, []byte) ([]byte, error) {
	return common.LeftPadBytes(c.wallet.Bytes(), 32), nil
}

func (c *pausing) Send(ctx context.Context, i transaction.Intent) (transaction.Sent, error) {
	c.before()
	if err := i.Still(ctx); err != nil {
		return transaction.Sent{}, err
	}
	return c.outside.Send(ctx, i)
}

// wallet sets the agent's wallet in a block; final makes the block final.
func (h *house) wallet(a common.Address, final bool) {
	h.t.Helper()
	h.block(repute.MetadataSet{TokenID: sold.TokenID, Key: "agentWallet", Value: a[:]})
	if final {
		h.finalize()
	}
}

// finalize makes all that is indexed final.
func (h *house) finalize() {
	h.t.Helper()
	at, err := chaindb.Cursor(h.t.Context(), h.db, 7)
	ok(h.t, err)
	ok(h.t, chaindb.SetHead(h.t.Context(), h.db, 7, store.Lease{}, chaindb.Head{Head: at.Number, Finalized: at.Number}))
}

// A payment to an agent goes to the wallet that the newest final block of the index has, and
// nowhere else: in the dry run, before it is journaled, and before it is signed.
func TestPayeeHasTheIndexedWallet(t *testing.T) {
	t.Parallel()
	pay := func(to common.Address, payee string) transaction.Tx {
		return transaction.Tx{ChainID: 7, Target: to, Value: "1", Purpose: "pay", Payee: payee}
	}
	nothing := func(*house) {}
	for name, c := range map[string]struct {
		before, during, signing func(*house)
		tx                      transaction.Tx
		says                    string
	}{
		"the wallet": {nothing, nothing, nothing, pay(seller, sold.String()), ""},
		"a newer one, open": {nothing, func(h *house) { h.wallet(buyer, false) }, nothing, pay(seller, "7:0"),
			"the newest one that is indexed"},
		"not yet indexed": {nothing, nothing, nothing, pay(seller, "7:0"), "the agent's wallet on the chain is"},
		"another account": {nothing, nothing, nothing, pay(buyer, "7:0"), "the agent's wallet is " + seller.Hex()},
		"not final yet": {func(h *house) { h.wallet(buyer, false) }, nothing, nothing, pay(buyer, "7:0"),
			"pay again once a change of the wallet is final"},
		"changed in execute": {nothing, func(h *house) { h.wallet(buyer, true) }, nothing, pay(seller, "7:0"),
			"the agent's wallet is " + buyer.Hex()},
		"changed in signing": {nothing, nothing, func(h *house) { h.wallet(buyer, true) }, pay(seller, "7:0"),
			"the agent's wallet is " + buyer.Hex()},
		"unknown agent": {nothing, nothing, nothing, pay(seller, "7:1"), "cannot be compared with the index"},
		"unknown chain": {nothing, nothing, nothing, pay(seller, "8:0"), "cannot be compared with the index"},
		"no agent":      {nothing, nothing, nothing, pay(seller, "nobody"), "is no id of an agent"},
		"a call": {nothing, nothing, nothing, transaction.Tx{ChainID: 7, Target: seller, Data: []byte{1, 2, 3, 4},
			Purpose: "call", Payee: "7:0"},
			"comes with data"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := newHouse(t)
			h.block(repute.Transfer{To: seller}, repute.Registered{Owner: seller},
				repute.MetadataSet{Key: "agentWallet", Value: seller[:]})
			h.finalize()
			c.before(h)
			chain, agent := &pausing{before: func() { c.signing(h) }, wallet: seller}, newWorker("payer")
			if name == "not yet indexed" {
				chain.wallet = buyer
			}
			agent.do = func(ctx context.Context, _ standard.Step, _ map[string]json.RawMessage,
				k *orchestrator.Context) (json.RawMessage, error) {
				c.during(h)
				_, err := k.Send(ctx, c.tx)
				return nil, err
			}
			h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7,
				Modules: []orchestrator.Module{shower{agent, []transaction.Tx{c.tx}}}})
			task, run := h.ended(h.submit(standard.Request{Coordinator: "payer"}))
			why := run.Error + string(run.Reasons)
			if c.says == "" && (task.Status != repute.TaskCompleted || len(chain.sent) != 1) || c.says != "" &&
				(len(chain.sent) != 0 || !strings.Contains(why, c.says)) {
				t.Errorf("task %s, %d sent: %s", task.Status, len(chain.sent), why)
			}
		})
	}
}

// A payment that the dry run showed for an agent is not sent without its name, which would
// escape the comparison.
func TestPayeeIsPartOfWhatIsShown(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	h.block(repute.Transfer{To: seller}, repute.Registered{Owner: seller},
		repute.MetadataSet{Key: "agentWallet", Value: seller[:]})
	h.finalize()
	shown := transaction.Tx{ChainID: 7, Target: seller, Value: "1", Purpose: "pay", Payee: "7:0"}
	without := shown
	without.Payee = ""
	chain, agent := &pausing{before: func() {}, wallet: seller}, newWorker("payer")
	agent.do = sends(without)
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7,
		Modules: []orchestrator.Module{shower{agent, []transaction.Tx{shown}}}})
	if task, run := h.ended(h.submit(standard.Request{Coordinator: "payer"})); len(chain.sent) != 0 ||
		!strings.Contains(run.Error, "the dry run showed no such transaction") {
		t.Errorf("task %s, %d sent: %s", task.Status, len(chain.sent), run.Error)
	}
}
