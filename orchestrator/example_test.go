package orchestrator_test

import (
	"context"

	"repute/orchestrator"
	"repute/orchestrator/standard"
	"repute/orchestrator/tasks"
	"repute/policy"
	"repute/store"
)

// An Engine works on runs until its context ends. Run registers the agents of its own binary first.
func ExampleEngine() {
	work := func(ctx context.Context, db *store.DB, agent orchestrator.Module, rules *policy.Policy) error {
		engine, err := orchestrator.New(db, orchestrator.Options{Modules: []orchestrator.Module{agent},
			Policy: func() *policy.Policy { return rules }})
		if err != nil {
			return err
		}
		return engine.Run(ctx)
	}
	_ = work
}

// A Client stores a task for a registered agent; any Engine on the database does it. The trust gate
// asks for a score of at least 50 before the agent begins.
func ExampleClient_Submit() {
	submit := func(ctx context.Context, db *store.DB) (string, error) {
		client, err := tasks.NewClient(db)
		if err != nil {
			return "", err
		}
		least := 50.0
		task, _, err := client.Submit(ctx, standard.Request{Goal: "pay the invoice", Coordinator: "payer",
			Terms: standard.Terms{Threshold: policy.Threshold{MinReputation: &least}}})
		return task.ID, err
	}
	_ = submit
}
