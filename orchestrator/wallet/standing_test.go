package wallet_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/safety"
	"repute/orchestrator/standard"
	"repute/orchestrator/tasks"
	"repute/orchestrator/transaction"
	"repute/policy"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
	"repute/store/rundb"
	"repute/store/walletdb"
)

// known is a payer with an identity.
type known struct {
	payer
	agent repute.AgentID
}

func (k known) Info() standard.Info {
	i := k.payer.Info()
	i.Manifest.ERC8004 = &standard.ManifestIdentity{AgentRegistry: k.agent.Registry.Hex(),
		AgentID: json.Number(k.agent.TokenID.Dec()), ChainID: k.agent.ChainID}
	return i
}

// index stores a block with events of the identity registry, as the indexer does.
func (w *world) index(ctx context.Context, db *store.DB, events ...repute.Event) error {
	chain := w.d.Chain()
	if err := chaindb.AddChain(ctx, db, repute.Chain{ID: chain.ID, Name: "devnet", Identity: chain.Identity,
		Reputation: chain.Reputation, StartBlock: 1}); err != nil {
		return err
	}
	parent, err := chaindb.Cursor(ctx, db, chain.ID)
	if err != nil {
		return err
	}
	at := repute.Block{Number: parent.Number + 1, Parent: parent.Hash, Hash: common.Hash{byte(parent.Number + 1)},
		Time: time.Now().UTC().Truncate(time.Second)}
	batch := eventdb.Batch{ChainID: chain.ID, Parent: parent, To: at, Blocks: []repute.Block{at}}
	for i, e := range events {
		log := types.Log{Address: chain.Identity, Topics: []common.Hash{{1}}, BlockNumber: at.Number,
			BlockHash: at.Hash,
			Index:     uint(i)}
		batch.Records = append(batch.Records, repute.Record{Log: log, Time: at.Time, Event: e})
	}
	return eventdb.Apply(ctx, db, batch)
}

// losing is a run whose agent loses its standing while its second payment is being signed.
type losing struct {
	*world
	db     *store.DB
	agent  repute.AgentID
	policy atomic.Pointer[policy.Policy]
	change func(context.Context, *losing) error
	once   sync.Once
	failed atomic.Pointer[error] // of change
}

// lose makes the change once the second payment is journaled and its nonce is asked for: the
// next thing is its signature.
func (l *losing) lose(method string) *message {
	if method != "eth_getTransactionCount" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var journaled int
	err := l.db.Pool().QueryRow(ctx, `select count(*) from run_calls where kind = 'transaction'`).Scan(&journaled)
	if err == nil && journaled < 2 {
		return nil
	}
	l.once.Do(func() {
		if err == nil {
			err = l.change(ctx, l)
		}
		l.failed.Store(&err)
	})
	return nil
}

// run pays twice and gives the task as it ended.
func (l *losing) run() (repute.Task, repute.Run) {
	l.t.Helper()
	chain, ctx := l.d.Chain(), l.t.Context()
	owner := l.d.Account(identityAccount).Address
	ok(l.t, l.index(ctx, l.db, repute.Transfer{To: owner}, repute.Registered{Owner: owner}))
	purse, _ := l.open(l.config(l.proxy(l.lose, nil)))
	does := []transaction.Tx{l.pay("", "10").Tx, l.pay("", "20").Tx}
	e, err := orchestrator.New(l.db, orchestrator.Options{Policy: l.policy.Load, Chain: purse, TrustChain: chain.ID,
		ExecutionChain: chain.ID,
		Registries: []safety.Registries{{ChainID: chain.ID, Identity: chain.Identity, Reputation: chain.Reputation,
			Validations: chain.Validations}},
		Modules: []orchestrator.Module{known{payer{does}, l.agent}},
		Keys:    func(uint64, string) (common.Address, error) { return owner, nil }})
	ok(l.t, err)
	working, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Run(working) }()
	defer func() { cancel(); <-done }()
	client, err := tasks.NewClient(l.db)
	ok(l.t, err)
	until(l.t, "the agent is installed", func() bool { _, err := rundb.Module(ctx, l.db, "payer"); return err == nil })
	task, _, err := client.Submit(ctx, standard.Request{Goal: "pay", Coordinator: "payer"})
	ok(l.t, err)
	var run repute.Run
	until(l.t, "the task ends", func() bool {
		run, err = rundb.Run(ctx, l.db, task.Run)
		ok(l.t, err)
		return run.Status.Ended()
	})
	return task, run
}

// TestNothingIsSignedAfterStandingIsLost lets an agent lose its identity, its registration or
// the policy's consent after its payment was simulated, allowed and journaled: the wallet does
// not sign it, and the chain never sees it.
func TestNothingIsSignedAfterStandingIsLost(t *testing.T) {
	t.Parallel()
	parse := func(text string) *policy.Policy {
		p, err := policy.Parse([]byte("version: \"1\"\n" + text))
		ok(t, err)
		return p
	}
	never := parse("trust: {threshold: {minTrustScore: 1}}\n")
	for name, c := range map[string]struct {
		change func(context.Context, *losing) error
		says   string
	}{
		"identity sold": {func(ctx context.Context, l *losing) error {
			return l.index(ctx, l.db, repute.MetadataSet{Key: "agentWallet"},
				repute.Transfer{From: l.d.Account(identityAccount).Address, To: l.d.Account(strangerAccount).Address})
		}, "neither wallet nor owner"},
		"agent removed": {func(ctx context.Context, l *losing) error {
			return rundb.RemoveModule(ctx, l.db,
				"payer")
		}, "is not registered any more"},
		"gate turned to deny": {func(_ context.Context, l *losing) error { l.policy.Store(never); return nil },
			"identity checks do not reach the threshold"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.mining()
			_, db := w.open(w.config())
			l := &losing{world: w, db: db, agent: repute.AgentID{ChainID: w.d.Chain().ID,
				Registry: w.d.Chain().Identity},
				change: c.change}
			l.policy.Store(parse(""))
			_, run := l.run()
			if failed := l.failed.Load(); failed == nil || *failed != nil {
				t.Fatalf("nothing was lost while the second payment was signed: %v; run %s: %s", failed, run.Status,
					run.Error)
			}
			sent, err := w.d.Client().NonceAt(t.Context(), w.d.Account(operatorAccount).Address, nil)
			ok(t, err)
			if w.paid() != 10 || sent != 1 || run.Status == repute.RunCompleted {
				t.Errorf("paid %d wei by %d transactions, want 10 by one; run %s: %s", w.paid(), sent, run.Status,
					run.Error)
			}
			list, err := rundb.Receipts(t.Context(), db, run.ID)
			ok(t, err)
			var payments []repute.Receipt
			for _, r := range list {
				if r.Kind == repute.CallTransaction {
					payments = append(payments, r)
				}
			}
			if len(payments) != 2 || payments[0].Error != "" || !payments[1].Done ||
				!strings.Contains(payments[1].Error, c.says) {
				t.Fatalf("receipts %+v, want a second one that says %q", payments, c.says)
			}
			if _, err := walletdb.ReadIntent(t.Context(), db,
				run.ID+"/"+payments[1].Step+"/"+payments[1].Key); !errors.Is(err,
				repute.ErrNotFound) {
				t.Errorf("the second payment is signed: %v", err)
			}
		})
	}
}
