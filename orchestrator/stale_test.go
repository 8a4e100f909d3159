package orchestrator_test

import (
	"context"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
	"repute/store/rundb"
)

// becoming is a shower whose facts change after the first trust check.
type becoming struct {
	shower
	between func()
}

func (b becoming) DryRun(ctx context.Context, t standard.Task, p standard.Plan,
	c *orchestrator.Context) (standard.DryRun, error) {
	b.between()
	return b.shower.DryRun(ctx, t, p, c)
}

// Rules about calls see the agent as the last trust check saw it.
func TestRulesSeeTheAgentOfNow(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	at := common.HexToAddress("0x8004")
	var token repute.TokenID
	token.SetUint64(22)
	ok(t, chaindb.AddChain(t.Context(), h.db,
		repute.Chain{ID: 7, Name: "seven", Identity: at, Reputation: common.HexToAddress("0x8005"), StartBlock: 1}))
	chain, agent := &outside{}, becoming{shower: shower{newWorker("payer"), []transaction.Tx{pays(1, "1")}}}
	agent.info.Manifest.ERC8004 = &standard.ManifestIdentity{AgentRegistry: at.Hex(), AgentID: "22", ChainID: 7}
	agent.do = sends(pays(1, "1"))
	agent.between = func() {
		parent, err := chaindb.Cursor(context.Background(), h.db, 7)
		if err != nil {
			t.Error(err)
		}
		block := repute.Block{Number: 1, Parent: parent.Hash, Hash: common.Hash{1},
			Time: time.Unix(1_750_000_000, 0).UTC()}
		batch := eventdb.Batch{ChainID: 7, Parent: parent, To: block, Blocks: []repute.Block{block}}
		owner := common.HexToAddress("0xa1")
		for i, e := range []repute.Event{repute.Transfer{To: owner, TokenID: token},
			repute.Registered{TokenID: token, Owner: owner}} {
			batch.Records = append(batch.Records,
				repute.Record{Log: types.Log{Address: at, Topics: []common.Hash{{1}}, BlockNumber: 1,
					BlockHash: block.Hash,
					Index:     uint(i)}, Time: block.Time, Event: e})
		}
		if err := eventdb.Apply(context.Background(), h.db, batch); err != nil {
			t.Error(err)
		}
		if err := chaindb.SetHead(context.Background(), h.db, 7, store.Lease{},
			chaindb.Head{Head: 1, Safe: 1, Finalized: 1}); err != nil {
			t.Error(err)
		}
	}
	text := "version: \"1\"\nrules:\n  - {id: now, when: 'phase == \"call\" && agent.identityExists', effect: deny, reason: what is known now counts}\n"
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Policy: rules(t, text),
		Modules: []orchestrator.Module{agent}})
	task, run := h.ended(h.submit(standard.Request{Coordinator: "payer"}))
	phases, err := rundb.Phases(t.Context(), h.db, run.ID)
	ok(t, err)
	for _, p := range phases {
		if p.Phase == repute.PhaseExecute {
			t.Logf("execute: %.300s", p.Result)
		}
	}
	if len(chain.sent) != 0 {
		t.Errorf("task %s %s: the second trust check saw an identity, the rule of the call did not", task.Status,
			run.Error)
	}
}
