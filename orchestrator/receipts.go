package orchestrator

import (
	"context"
	"fmt"

	"repute"
	"repute/orchestrator/journal"
	"repute/orchestrator/standard"
	"repute/store/rundb"
)

// claimsHold: each receipt that the execution names is there.
func (w *work) claimsHold(ctx context.Context, receipts []repute.Receipt) (standard.Check, error) {
	own, inner := w.done.Claims()
	if c := standard.ReceiptsExist(own, receipts); !c.Passed || len(inner) == 0 {
		return c, nil
	}
	all, err := w.taskReceipts(ctx)
	return standard.ReceiptsExist(inner, all), err
}

// taskReceipts returns the receipts of all runs of the task.
func (w *work) taskReceipts(ctx context.Context) (all []repute.Receipt, err error) {
	if all, err = rundb.TaskReceipts(ctx, w.e.db, w.Run.Task); err != nil {
		return nil, fmt.Errorf("%w: %w", journal.ErrRuntime, err)
	}
	return all, nil
}

// summaryHolds refuses a summary that names receipts which no run of the task has.
func (w *work) summaryHolds(ctx context.Context, s *standard.Summary) error {
	claimed := s.Claims()
	if len(claimed) == 0 {
		return nil
	}
	all, err := w.taskReceipts(ctx)
	if err != nil {
		return err
	}
	if c := standard.ReceiptsExist(claimed, all); !c.Passed {
		return fmt.Errorf("the agent's summary: %s", c.Details)
	}
	return nil
}
