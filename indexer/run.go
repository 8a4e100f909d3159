package indexer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"repute"
	"repute/indexer/node"
	"repute/store"
	"repute/store/chaindb"
)

// Run follows the chain until ctx ends, which is no error, or until the block is
// stored that Options.Until or Options.Once name, also by another process. While another process
// holds the chain's lease it stands by; failures of node or database
// are retried with growing pauses and shown in the chain's status. It returns
// repute.ErrConflict when the chain is stored with other registries or another
// chain is behind the endpoint, and repute.ErrFinalized when a reorganization
// reaches below finality: both need an operator.
func (f *Follower) Run(ctx context.Context) error {
	retry := node.Backoff{Min: f.opts.RetryMin, Max: f.opts.RetryMax}
	added := false
	for ctx.Err() == nil {
		err := f.leadOnce(ctx, &added, &retry)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, repute.ErrConflict), errors.Is(err, repute.ErrFinalized):
			return f.halt(err)
		case errors.Is(err, ErrDone):
			f.status.setError(nil)
			return nil
		case errors.Is(err, repute.ErrHeld):
			f.status.setError(nil) // standing by is fine
			repute.Pause(ctx, min(f.opts.TTL/4, standByMost))
		case errors.Is(err, repute.ErrFenced):
			f.log.Info("another process took the lease of this chain; waiting for it")
		default:
			f.log.Warn("cannot follow the chain", "error", err)
			f.status.setError(err)
			repute.Pause(ctx, retry.Next())
		}
	}
	return nil
}

// standByMost is the longest pause of a process that stands by between two looks at
// the lease: a leader that was killed is replaced within it, not within the lease.
const standByMost = 500 * time.Millisecond

// leadOnce acquires the lease and follows the chain until the lease ends. The
// lease comes first: taking it ends the transaction of a dead leader, for whose
// lock on the chain AddChain would wait.
func (f *Follower) leadOnce(ctx context.Context, added *bool, retry *node.Backoff) error {
	if err := f.setGoal(ctx); err != nil {
		return err
	}
	if f.chain.WithoutRegistries() {
		if err := f.readTreasuries(ctx); err != nil {
			return err
		}
	}
	lease, err := f.db.Acquire(ctx, chaindb.LeaseName(f.chain.ID), f.opts.Owner, f.opts.TTL)
	if errors.Is(err, repute.ErrHeld) {
		return f.standBy(ctx, *added, err)
	}
	if err != nil {
		return err
	}
	defer f.release(ctx, lease)
	if !*added {
		err = f.addOrResume(ctx, lease)
	}
	if err == nil {
		*added = true
		err = f.readTreasuries(ctx)
	}
	if err == nil {
		err = f.lead(ctx, lease, retry)
	}
	if errors.Is(err, repute.ErrConflict) || errors.Is(err, repute.ErrFinalized) {
		f.publishHalt(ctx, lease, err)
	}
	return err
}

// setGoal sets the block after which Run ends to the head, with Options.Once.
func (f *Follower) setGoal(ctx context.Context) error {
	if !f.opts.Once || f.until > 0 {
		return nil
	}
	heads, err := f.source.Heads(ctx)
	if err == nil {
		err = f.sameChain(heads)
	}
	if err == nil {
		f.until = heads.Latest.Number
	}
	return err
}

// standBy runs while another process holds the lease. It returns repute.ErrConflict when that process
// follows other registries, and ErrDone when it has stored the last wanted block.
func (f *Follower) standBy(ctx context.Context, added bool, held error) error {
	if !added {
		held = errors.Join(f.takeOver(ctx), held)
	}
	if f.until == 0 {
		return held
	}
	if cursor, err := chaindb.Cursor(ctx, f.db, f.chain.ID); err == nil && cursor.Number >= f.until {
		return errors.Join(ErrDone, held)
	}
	return held
}

// publishHalt stores in the status of the chain why it halted, while the lease is held.
func (f *Follower) publishHalt(ctx context.Context, l store.Lease, err error) {
	if e := chaindb.SetError(ctx, f.db, f.chain.ID, l, err.Error(), errors.Is(err, repute.ErrFinalized)); e != nil {
		f.log.Warn("status not stored", "error", e)
	}
}

// release gives up the lease, also after ctx has ended, so that another process need not wait
// until it expires.
func (f *Follower) release(ctx context.Context, l store.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := f.db.Release(ctx, l); err != nil {
		f.log.Warn("lease not released", "error", err)
	}
}

// finalDoubts is how often a reorganization of final blocks is checked again, by any endpoint that answers,
// before it halts the chain.
const finalDoubts = 4

// lead calls Step until ctx or the lease ends, or Step returns an error that Run handles.
func (f *Follower) lead(ctx context.Context, l store.Lease, retry *node.Backoff) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var background sync.WaitGroup
	background.Go(func() { cancel(f.db.KeepRenewed(ctx, l, f.opts.TTL)) })
	defer background.Wait()
	defer cancel(nil)
	defer f.prefetch.close()
	f.prefetch.dropAll()
	f.heads, f.claimed = node.Heads{}, chaindb.Head{} // another process may have held the lease meanwhile
	f.status.forgetPublished()
	doubts := 0
	f.progress.begin()
	background.Go(func() { f.watchProgress(ctx, l) })
	if f.opts.Verifier != nil {
		background.Go(func() { f.verify(ctx, l) })
	}
	for {
		err := f.Step(ctx, l)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch {
		case err == nil, errors.Is(err, repute.ErrReorged):
			f.publishOutcome(ctx, l, nil)
			retry.Reset()
			f.earlyLooks, doubts = 0, 0
			if f.atHead && f.until == 0 { // the next block is not due: another look would find nothing
				f.waitForHead(ctx, false)
			}
		case errors.Is(err, ErrNothingNew), errors.Is(err, ErrBehind):
			f.publishOutcome(ctx, l, nil)
			retry.Reset()
			doubts = 0
			f.waitForHead(ctx, errors.Is(err, ErrNothingNew))
		case errors.Is(err, repute.ErrFinalized) && doubts < finalDoubts: // one stale endpoint must not halt a chain
			doubts++
			f.publishOutcome(ctx, l, err)
			repute.Pause(ctx, retry.Next())
		case errors.Is(err, repute.ErrFenced), errors.Is(err, repute.ErrConflict), errors.Is(err, repute.ErrFinalized),
			errors.Is(err, ErrDone):
			return err
		case f.shorter(err): // the next request is shorter, so that it needs no pause
			f.log.Debug("range refused", "next", f.sizer.size, "error", err)
		default:
			f.opts.Metrics.stepErrors.WithLabelValues(f.label).Inc()
			f.publishOutcome(ctx, l, err)
			repute.Pause(ctx, retry.Next())
		}
	}
}

// verify runs the verifier for as long as the lease lasts.
func (f *Follower) verify(ctx context.Context, l store.Lease) {
	if err := f.opts.Verifier.Run(ctx, l, f.nudge); err != nil && ctx.Err() == nil {
		f.log.Error("verification ended", "error", err)
	}
}

// shorter reports whether the next range is shorter than the one that was refused.
func (f *Follower) shorter(err error) bool {
	var r *refusal
	return errors.As(err, &r) && f.sizer.size < r.asked
}

// halt logs why the chain halted, and returns the error for Run.
func (f *Follower) halt(err error) error {
	f.log.Error("chain halted", "error", err)
	f.status.setError(err)
	return fmt.Errorf("chain %d: %w", f.chain.ID, err)
}

// Ready is nil while the follower works or stands by, else the last failure.
func (f *Follower) Ready() error { return f.status.ready() }

// After a signal on Wake that brought no new block, the head is asked for again a few times after short
// pauses: the node that is asked may receive a block later than the node that sent the signal.
const (
	maxEarlyLooks = 5
	earlyLook     = 20 * time.Millisecond
)

// waitForHead waits until the head should be asked for again.
func (f *Follower) waitForHead(ctx context.Context, nothing bool) {
	d := f.poll.wait(time.Now())
	if nothing && f.earlyLooks > 0 {
		d = min(d, earlyLook<<(maxEarlyLooks-f.earlyLooks))
		f.earlyLooks--
	} else {
		f.earlyLooks = 0
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-f.opts.Wake:
		f.earlyLooks = maxEarlyLooks
	}
}
