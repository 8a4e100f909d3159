package remote_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/internal/pgtest"
	"repute/orchestrator"
	"repute/orchestrator/remote"
	"repute/orchestrator/standard"
	"repute/orchestrator/tasks"
	"repute/orchestrator/transaction"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
)

// ready is a chain that confirms what it is sent.
type ready struct{ patient }

func (r ready) Send(_ context.Context, i transaction.Intent) (transaction.Sent, error) {
	r.sent <- i.ID
	return transaction.Sent{OK: true, FeeWei: "1", Hash: common.Hash{1}}, nil
}

// An agent that says it has no dry run sends nothing, unless the policy lets it.
func TestNoDryRunSendsNothing(t *testing.T) {
	t.Parallel()
	for text, most := range map[string]int{"version: \"1\"\n": 0,
		"version: \"1\"\nsendWithoutDryRun: true\nlimits: {maxOnchainWrites: 1}\n": 1} {
		agent := server(t, func(method string, w http.ResponseWriter) bool {
			if method != "info" {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(remote.Info{Protocol: remote.Protocol, Slug: "faraway",
				DisplayName:  "Faraway",
				Version:      "1.2.3",
				IdentityMode: standard.IdentityMode, Manifest: manifestOf("faraway")})
			return true
		})
		db, err := store.Open(t.Context(), pgtest.New(t), store.Options{})
		ok(t, err)
		t.Cleanup(db.Close)
		b, err := json.Marshal(manifestOf("faraway"))
		ok(t, err)
		ok(t, rundb.SaveModule(t.Context(), db, repute.Module{Slug: "faraway", URL: agent.URL + "/agent", Manifest: b}))
		p, err := policy.Parse([]byte(text))
		ok(t, err)
		chain := ready{patient{sent: make(chan string, 100)}}
		e, err := orchestrator.New(db, orchestrator.Options{Lenient: true, Policy: func() *policy.Policy { return p },
			Chain: chain, ExecutionChain: 7,
			Remote: func(known repute.Module) (orchestrator.Module, error) {
				return remote.Stored(known, remote.Options{Client: agent.Client()})
			}})
		ok(t, err)
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); _ = e.Run(ctx) }()
		t.Cleanup(func() { stop(); <-done })
		client, err := tasks.NewClient(db)
		ok(t, err)
		task, _, err := client.Submit(t.Context(), standard.Request{Goal: "pay", Coordinator: "faraway"})
		ok(t, err)
		run := ended(t, db, task)
		if len(chain.sent) != most || strings.Contains(run.Error, "without a receipt") {
			t.Errorf("with %q %d were sent: %s", text, len(chain.sent), run.Error)
		}
	}
}
