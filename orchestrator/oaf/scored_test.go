package oaf_test

import (
	"context"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"

	"repute"
	"repute/agent/llm/oafagent"
	"repute/internal/modeltest"
	format "repute/manifest/oaf"
	"repute/orchestrator/oaf"
	"repute/orchestrator/standard"
	"repute/policy"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
	"repute/store/rootdb"
	"repute/store/rundb"
	"repute/trust/engine"
)

// Tokens of the agents of scored.
const (
	mainToken = iota
	goodToken
	badToken
	agentCount
)

// scored indexes a chain on which four roots rated agents: the coordinator and a helper well, another helper badly. It
// returns when the final scores of the first epoch are stored.
func (h *house) scored() repute.Chain {
	h.t.Helper()
	address := func(n int) common.Address { return common.BigToAddress(big.NewInt(int64(0xc000 + n))) }
	chain := repute.Chain{ID: 31337, Name: "devnet", Identity: address(1), Reputation: address(2), StartBlock: 1}
	ok(h.t, chaindb.AddChain(h.t.Context(), h.db, chain))
	b := eventdb.Batch{ChainID: chain.ID}
	for n := uint64(1); n <= 30; n++ {
		block := repute.Block{Number: n, Parent: b.To.Hash, Hash: common.BigToHash(new(big.Int).SetUint64(n)),
			Time: time.Unix(1_750_000_000+int64(n), 0).UTC()}
		for token := range uint64(agentCount) {
			id, value, from := *uint256.NewInt(token), int64(95), chain.Reputation
			if token == badToken {
				value = 2
			}
			events := []repute.Event{repute.NewFeedback{TokenID: id, Client: address(10 + int(n)%4), Index: (n + 2) / 4,
				Value: big.NewInt(value), Tag1: "starred"}}
			if n == 1 {
				owner := address(100 + int(token))
				events = []repute.Event{repute.Transfer{TokenID: id, To: owner},
					repute.Registered{TokenID: id, Owner: owner}}
				from = chain.Identity
			}
			for _, e := range events {
				b.Records = append(b.Records, repute.Record{Event: e, Time: block.Time, Log: types.Log{Address: from,
					Topics: []common.Hash{{1}}, BlockNumber: n, BlockHash: block.Hash, Index: uint(len(b.Records)),
					TxHash: common.BigToHash(new(big.Int).SetUint64(1000 + n))}})
			}
		}
		b.Blocks, b.To = append(b.Blocks, block), block
	}
	var roots []repute.TrustRoot
	for i := range 4 {
		roots = append(roots, repute.TrustRoot{Address: address(10 + i), Weight: repute.RootUnit, Reason: "test"})
	}
	ok(h.t, eventdb.Apply(h.t.Context(), h.db, b))
	ok(h.t, rootdb.AddRoots(h.t.Context(), h.db, chain.ID, repute.DefaultRoots, roots, false))
	ok(h.t, chaindb.SetHead(h.t.Context(), h.db, chain.ID, store.Lease{},
		chaindb.Head{Head: 30, Finalized: 25, SeenAt: time.Now()}))
	e, err := engine.New(h.db, engine.EngineOptions{Poll: 10 * time.Millisecond})
	ok(h.t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Run(ctx) }()
	defer func() { stop(); <-done }()
	h.until("the scores are final", func() bool {
		var final bool
		ok(h.t, h.db.Pool().QueryRow(ctx, `select exists (select from trust_runs where closed_at is not null)
			and not exists (select from trust_stale)`).Scan(&final))
		return final
	})
	return chain
}

// Sub-agents that are registered on a chain are scored before they are called: one with a good score answers, and one
// with a score below the task's threshold is rejected, and its model is never asked.
func TestScoredSubAgents(t *testing.T) {
	for name, c := range map[string]struct {
		token  uint64
		status repute.RunStatus
		told   string
	}{
		"good": {goodToken, repute.RunCompleted, "forty-two"},
		"bad":  {badToken, repute.RunFailed, "trust"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &modeltest.Server{Script: func(n int, r *modeltest.Request) modeltest.Turn {
				switch {
				case r.Contains("You help."):
					return modeltest.Turn{Text: "forty-two"}
				case n == 0:
					return call("agent_acme_"+name, `{"task":"What is the answer?"}`)
				}
				return modeltest.Turn{Text: "the end"}
			}}
			h := newHouse(t, s)
			chain := h.scored()
			id := func(token uint64) *repute.AgentID {
				return &repute.AgentID{ChainID: chain.ID, Registry: chain.Identity, TokenID: *uint256.NewInt(token)}
			}
			module := func(def *format.Agent, token uint64) *oaf.Module {
				a, err := oafagent.New(t.Context(), def,
					oafagent.Options{Models: h.models, Getenv: func(string) string { return "" }})
				ok(t, err)
				m, err := oaf.New(a, id(token), "")
				ok(t, err)
				return m
			}
			main := agent("main", func(a *format.Agent) { a.Agents = []format.AgentRef{{Vendor: "acme", Agent: name}} })
			helper := agent(name, func(a *format.Agent) { a.Body = "You help." })
			h.run("", module(main, mainToken), module(helper, c.token))
			least := 0.0
			task, _, err := h.client.Submit(t.Context(),
				standard.Request{Goal: "How is the weather?", Coordinator: "acme-main",
					Terms: standard.Terms{Threshold: policy.Threshold{MinReputation: &least}}})
			ok(t, err)
			if run := h.ended(task); run.Status != repute.RunCompleted {
				t.Fatalf("%s: %s", run.Status, run.Error)
			}
			runs, err := rundb.TaskRuns(t.Context(), h.db, task.ID)
			ok(t, err)
			if len(runs) != 2 || runs[1].Status != c.status {
				t.Fatalf("runs %+v", runs)
			}
			seen := s.Seen()
			asked := 0
			for _, r := range seen {
				if r.Contains("You help.") {
					asked++
				}
			}
			if last := seen[len(seen)-1]; asked > 0 != (c.status == repute.RunCompleted) || !last.Contains(c.told) {
				t.Errorf("the helper's model was asked %d times; told %q", asked, last.Texts)
			}
			decisions, err := rundb.Decisions(t.Context(), h.db, runs[1].ID, 10)
			ok(t, err)
			if !slices.ContainsFunc(decisions,
				func(d repute.RunDecision) bool { return d.Kind == repute.DecisionTrust }) {
				t.Errorf("decisions %+v", decisions)
			}
		})
	}
}
