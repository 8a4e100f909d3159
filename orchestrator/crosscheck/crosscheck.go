// Package crosscheck compares what an agent says of its run with what the runtime stored of it: steps, calls,
// receipts, and the agent's records on chains.
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
	return []standard.Check{standard.StepsDone(plan, steps), standard.CallsEnded(c.Run.Attempt, receipts), claims,
		kept}, err
}

// claims checks that each receipt that the execution names is there.
func (c *Checker) claims(ctx context.Context, done standard.Execution, receipts []repute.Receipt) (standard.Check,
	error) {
	own, inner := done.Claims()
	if check := standard.ReceiptsExist(own, receipts); !check.Passed || len(inner) == 0 {
		return check, nil
	}
	all, err := c.taskReceipts(ctx)
	return standard.ReceiptsExist(inner, all), err
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
	claimed := s.Claims()
	if len(claimed) == 0 {
		return nil
	}
	all, err := c.taskReceipts(ctx)
	if err != nil {
		return err
	}
	if check := standard.ReceiptsExist(claimed, all); !check.Passed {
		return fmt.Errorf("the agent's summary: %s", check.Details)
	}
	return nil
}

// Manifest checks that the agent still declares the manifest of the run's beginning, of which digests are compared.
func Manifest(before, now string) standard.Check {
	return standard.Check{Name: "runtime.manifest", Passed: now == before,
		Details: map[bool]string{false: "the agent changed its manifest"}[now == before]}
}
