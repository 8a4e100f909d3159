// Package crosscheck compares what an agent says of its run with what the runtime stored of it. It is the runtime's
// half of the phases verify and summarize, and believes nothing that an agent reports.
//
// Execution checks that the runtime itself has every step of the plan as completed, that it is known how each call
// ended, that the receipts that the agent names exist, and that no transaction changed records which the agent must
// not change (package safety), by the logs of the transactions. Summary refuses a text that names receipts or
// transactions which no run of the task has: people act on it. Manifest compares the agent's manifest with that of
// the run's beginning.
//
// A check that does not pass is a result, which fails the phase. An error is one of the runtime, after which the
// phase is repeated.
package crosscheck

import (
	"context"
	"fmt"

	"repute"
	"repute/orchestrator/journal"
	"repute/orchestrator/safety"
	"repute/orchestrator/standard"
	"repute/store"
	"repute/store/rundb"
)

// Checker checks one run. All members are required.
type Checker struct {
	Db  *store.DB
	Run *repute.Run
	// Records returns the records on a chain which the run must not change.
	Records func(chainID uint64) *safety.Records
}

// Execution checks an execution of a plan. The error is one of the runtime.
func (c *Checker) Execution(ctx context.Context, plan standard.Plan, done standard.Execution) ([]standard.Check,
	error) {
	receipts, err := rundb.Receipts(ctx, c.Db, c.Run.ID)
	if err != nil {
		return nil, err
	}
	steps, err := rundb.Steps(ctx, c.Db, c.Run.ID)
	if err != nil {
		return nil, err
	}
	claims, err := c.claims(ctx, done, receipts)
	if err != nil {
		return nil, err
	}
	kept, err := c.recordsKept(ctx, receipts)
	return []standard.Check{stepsDone(plan, steps), callsEnded(c.Run.Attempt, receipts), claims, kept}, err
}

// claims checks that each receipt that the execution names is there.
func (c *Checker) claims(ctx context.Context, done standard.Execution, receipts []repute.Receipt) (standard.Check,
	error) {
	own, inner := claimedBy(&done)
	if check := receiptsExist(own, receipts); !check.Passed || len(inner) == 0 {
		return check, nil
	}
	all, err := c.taskReceipts(ctx)
	return receiptsExist(inner, all), err
}

// recordsKept checks that no transaction changed the agent's identity or trust records, or rated a
// related agent, directly or through other contracts. The error is one of the runtime.
func (c *Checker) recordsKept(ctx context.Context, receipts []repute.Receipt) (standard.Check, error) {
	broken, err := safety.Broken(ctx, receipts, c.Records)
	return standard.Check{Name: "runtime.records", Passed: broken == "", Details: broken}, err
}

// taskReceipts returns the receipts of all runs of the task.
func (c *Checker) taskReceipts(ctx context.Context) (all []repute.Receipt, err error) {
	if all, err = rundb.TaskReceipts(ctx, c.Db, c.Run.Task); err != nil {
		return nil, fmt.Errorf("%w: %w", journal.ErrRuntime, err)
	}
	return all, nil
}

// Summary refuses a summary that names receipts which no run of the task has.
func (c *Checker) Summary(ctx context.Context, s *standard.Summary) error {
	claimed := namedBy(s)
	if len(claimed) == 0 {
		return nil
	}
	all, err := c.taskReceipts(ctx)
	if err != nil {
		return err
	}
	if check := receiptsExist(claimed, all); !check.Passed {
		return fmt.Errorf("the agent's summary: %s", check.Details)
	}
	return nil
}

// Manifest checks that the agent still declares the manifest of the run's beginning, of which digests are compared.
func Manifest(before, now string) standard.Check {
	return standard.Check{Name: "runtime.manifest", Passed: now == before,
		Details: map[bool]string{false: "the agent changed its manifest"}[now == before]}
}
