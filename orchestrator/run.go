package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/orchestrator/guard"
	"repute/orchestrator/journal"
	"repute/orchestrator/leases"
	"repute/orchestrator/lifecycle"
	"repute/orchestrator/standard"
	"repute/orchestrator/telemetry"
	"repute/orchestrator/transaction"
	"repute/orchestrator/trustgate"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
)

// work is a run that this process executes.
type work struct {
	e     *Engine
	lease rundb.Lease
	rundb.Work
	module repute.Module
	agent  Module // nil where it is not installed here
	broken error  // why the module of an agent on another server could not be created
	wanted error  // the agent is not the one that the plan above names
	info   standard.Info
	terms  standard.Terms
	depth  int // 0: the root run
	parent *work
	log    *slog.Logger
	// checkpoint is stored with each phase; nil in sub-runs.
	checkpoint func(ctx context.Context, tx pgx.Tx) error

	// Results of earlier phases.
	plan         standard.Plan
	gateDecision trustgate.Decision
	intended     []*transaction.Declared // the calls of the dry run
	dryRan       bool
	done         standard.Execution
	checked      standard.Verification
	summary      standard.Summary
	manifest     string // digest at the beginning

	moving       sync.Mutex // of a root run: transactions are decided one at a time
	mu           sync.Mutex
	waiting      []*ApprovalError // all that persons must decide
	fenced       error
	away         error // error of the database in this run or one below it
	wasCancelled bool  // of a root run
}

// outcome is the outcome of a phase.
type outcome struct {
	status    repute.PhaseStatus
	result    any
	err       error
	reasons   []policy.Reason
	receipts  []repute.Receipt
	decisions []rundb.Decision
	waits     *ApprovalError
}

// ErrAway is the only error that an agent, a step or a record sees when the database fails: the
// phase ends and is repeated. The driver's text is only logged.
var ErrAway = errors.New("the runtime waits for its database; what was begun is done again")

// lost records that nothing from now on can be stored: another engine owns the run, or the database
// failed. The phase ends and is repeated, whatever the agent does with the error.
func (w *work) lost(err error) error {
	root := w.root()
	switch {
	case errors.Is(err, repute.ErrFenced):
		root.mu.Lock()
		defer root.mu.Unlock()
		root.fenced = err
		return err
	case !errors.Is(err, store.ErrDatabase):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) &&
		!errors.Is(err, repute.ErrUnavailable):
		return ErrAway // the call was canceled; its cause is recorded elsewhere
	}
	for x := w; x != nil; x = x.parent { // what the runs above make of the error cannot be stored either
		x.mu.Lock()
		known := x.away != nil
		if !known {
			x.away = err
		}
		x.mu.Unlock()
		if x == w && !known {
			w.log.Warn("the database failed a run, which goes on later", "error", err)
		}
	}
	return ErrAway
}

// giveUp clears the error of the database, so that this run's phase fails by it. Other runs of the
// task that failed by the database are repeated.
func (w *work) giveUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = nil
}

// databaseFailed returns the first error of the database that lost recorded in this run or one
// below it; nil for none.
func (w *work) databaseFailed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.away
}

// root returns the run of the task itself, above all runs that it started.
func (w *work) root() *work {
	for w.parent != nil {
		w = w.parent
	}
	return w
}

// wait ends the run for now: a person must decide.
func (w *work) wait(e *ApprovalError) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, e)
}

// waits returns the approval that the run waits for, nil for none.
func (w *work) waits() *ApprovalError {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		return nil
	}
	return w.waiting[0]
}

// asks returns the events that announce each open approval.
func (w *work) asks() (out []repute.RunEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.waiting {
		about := map[string]any{"run": a.Run, "subject": a.Subject, "reasons": a.Reasons}
		if a.Shown != nil {
			about["shown"] = a.Shown
		}
		out = append(out, repute.RunEvent{Run: w.Run.ID, Kind: "approval.requested", Data: journal.JSON(about)})
	}
	return out
}

// load reads the stored results of earlier phases.
func (w *work) load(ctx context.Context) error {
	if err := json.Unmarshal(w.Task.Terms, &w.terms); err != nil {
		return fmt.Errorf("stored terms of task %s: %w", w.Task.ID, err)
	}
	var found discovered
	var dry dryRunResult
	into := map[repute.Phase]any{repute.PhaseDiscover: &found, repute.PhasePlan: &w.plan,
		repute.PhaseTrust: &w.gateDecision, repute.PhaseDryRun: &dry, repute.PhaseExecute: &w.done,
		repute.PhaseVerify: &w.checked, repute.PhaseSummarize: &w.summary}
	for phase, to := range into {
		if p, ok := w.Phases[phase]; ok && p.Status != repute.PhaseWaiting {
			if err := json.Unmarshal(p.Result, to); err != nil {
				return fmt.Errorf("stored phase %s of run %s: %w", phase, w.Run.ID, err)
			}
		}
	}
	w.manifest = found.ManifestDigest
	return w.intend(ctx, dry.DryRun, dry.Ran)
}

// advance does the phase, unless it is done or must be skipped. The error is one of the runtime: it
// ends this attempt to work and not the run.
func (w *work) advance(ctx context.Context, p repute.Phase) error {
	if known, ok := w.Phases[p]; ok && known.Status != repute.PhaseWaiting {
		return nil
	}
	if w.Run.Awaiting != "" || lifecycle.Skips(w.Phases, p) {
		return nil
	}
	started := time.Now()
	ctx, end := w.e.trace.Start(ctx, p.String(), telemetry.AboutRun(&w.Run)...)
	o := w.perform(ctx, p)
	end(o.err)
	if failed := w.failure(o.err); failed != nil {
		if err := w.interrupted(ctx, p, failed); err != nil {
			return err
		}
		o = outcome{err: journal.ErrRuntime} // its text is the driver's
		w.giveUp()
	} else if err := w.interrupted(ctx, p, o.err); err != nil {
		return err
	}
	err := w.record(ctx, p, o, started)
	if lasting(err) { // the result cannot be stored, but the failure can
		err = w.record(ctx, p, outcome{err: err}, started)
	}
	return err
}

// interrupted returns an error if a phase ended by no fault of the run: the process stops, another
// engine owns the run, or the database is unavailable. The phase is repeated then.
func (w *work) interrupted(ctx context.Context, p repute.Phase, err error) error {
	root := w.root()
	root.mu.Lock()
	fenced := root.fenced
	root.mu.Unlock()
	switch {
	case fenced != nil:
		return fenced
	case cutOff(ctx):
		return fmt.Errorf("%w: %w", errStopping, context.Cause(ctx))
	case errors.Is(context.Cause(ctx), leases.ErrCancelled):
		root.mu.Lock()
		root.wasCancelled = true
		root.mu.Unlock()
	case errors.Is(err, journal.ErrRuntime) && !lasting(err), errors.Is(err, errEndpoints):
		return w.delayed(ctx, p, err)
	}
	return nil
}

// failure returns the error of the database that a phase met, whatever its agent made of it: the
// one that lost recorded, or the phase's own. Nil: no failure of the database.
func (w *work) failure(err error) error {
	if away := w.databaseFailed(); away != nil {
		return fmt.Errorf("%w: %w", journal.ErrRuntime, away)
	}
	switch {
	case !errors.Is(err, store.ErrDatabase):
		return nil
	case errors.Is(err, journal.ErrRuntime):
		return err
	}
	return fmt.Errorf("%w: %w", journal.ErrRuntime, err)
}

// Texts of the event of a delayed phase; the log contains the error.
const (
	databaseDelay  = "the database does not answer, or refuses what the phase needs"
	endpointsDelay = "the chain's endpoints do not answer"
)

// delayed returns err while the phase may be retried: for the time that the budget gives the whole
// run, measured since the first failed try of this attempt.
func (w *work) delayed(ctx context.Context, p repute.Phase, err error) error {
	root, reason := w.root(), databaseDelay
	if errors.Is(err, errEndpoints) {
		reason = endpointsDelay
	}
	since, now, failed := rundb.DelayPhase(ctx, w.e.db, w.lease, w.Run.ID, p, w.Run.Attempt, reason)
	if failed != nil {
		return errors.Join(err, w.lost(failed))
	}
	if errors.Is(err, repute.ErrUnavailable) || now.Sub(since) < root.Run.Limits.Runtime {
		return err
	}
	w.log.Warn("a phase fails that was tried for as long as the budget allows", "phase", p.String(), "since", since,
		"error", err)
	return nil
}

// lasting reports whether an error would return at every repetition: it fails the phase.
func lasting(err error) bool {
	return !errors.Is(err, repute.ErrUnavailable) && !errors.Is(err, repute.ErrFenced) &&
		(errors.Is(err, repute.ErrInvalid) || errors.Is(err, repute.ErrNotFound) || errors.Is(err, repute.ErrConflict))
}

// cutOff reports whether a context ended by no fault of the run: neither the budget nor a
// cancellation.
func cutOff(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return cause != nil && !errors.Is(cause, leases.ErrCancelled) && !errors.Is(cause, errTime)
}

// errEndpoints wraps the error of a chain whose endpoints did not answer: the phase is repeated
// while the budget allows.
var errEndpoints = errors.New("the chain could not be asked")

// perform does a phase within the rest of the run's time.
func (w *work) perform(ctx context.Context, p repute.Phase) outcome {
	ctx, cancel := w.timed(ctx, p)
	defer cancel()
	var o outcome
	if w.agent == nil && p > repute.PhaseDiscover && p < repute.PhaseRecord { // it was configured when the run began
		return outcome{err: fmt.Errorf("agent %q is not installed any more: %w", w.Run.Agent, repute.ErrNotFound)}
	}
	if w.agent != nil && w.wanted != nil && p < repute.PhaseRecord {
		return outcome{err: w.wanted}
	}
	switch p {
	case repute.PhaseDiscover:
		o = w.discover(ctx)
	case repute.PhasePlan:
		o = w.makePlan(ctx)
	case repute.PhaseTrust:
		o = w.checkTrust(ctx)
	case repute.PhasePolicy:
		o = w.checkPolicy(ctx)
	case repute.PhaseDryRun:
		o = w.dryRun(ctx)
	case repute.PhaseExecute:
		o = w.execute(ctx)
	case repute.PhaseVerify:
		o = w.verify(ctx)
	case repute.PhaseSummarize:
		o = w.summarize(ctx)
	case repute.PhaseRecord: // the run is closed; everything else is stored already
		o = outcome{result: json.RawMessage(`{}`)}
	}
	if cause := context.Cause(ctx); cause != nil && o.err != nil && !errors.Is(o.err, cause) {
		o.err = fmt.Errorf("%w: %w", cause, o.err)
	}
	return o
}

// errTime: the budget's time is used up.
var errTime = errors.New("budget: maxRuntimeMs is used up")

// errManifestTime is returned when the run time that the agent's manifest allows is exhausted.
var errManifestTime = fmt.Errorf("%w: that of the agent's manifest", errTime)

// timed bounds a phase by the task's time and by the manifest's. The summary and the record
// have a little of their own.
func (w *work) timed(ctx context.Context, p repute.Phase) (context.Context, context.CancelFunc) {
	root := w.root()
	left, cause := root.Run.Limits.Runtime-root.spent(), errTime
	if own := w.manifestTime(); own < left {
		left, cause = own, errManifestTime
	}
	if p >= repute.PhaseSummarize {
		left = max(left, 10*time.Second)
	}
	return context.WithTimeoutCause(ctx, max(0, left), cause)
}

// record stores the outcome of a phase together with the checkpoint, in one transaction.
func (w *work) record(ctx context.Context, p repute.Phase, o outcome, started time.Time) error {
	if o.status == "" {
		o.status = repute.PhaseOK
		if o.err != nil {
			o.status = repute.PhaseFailed
		}
	}
	if o.waits != nil {
		o.status = repute.PhaseWaiting
	}
	row := repute.RunPhase{Phase: p, Attempt: w.Run.Attempt, Status: o.status, Result: journal.JSON(o.result),
		Started: started.UTC()}
	row.Ended = row.Started.Add(time.Since(started)) // elapsed time is measured by the monotonic clock
	if o.err != nil {
		// a failed phase MUST have an error (CheckDecisions)
		row.Error = journal.Shorten(cmp.Or(o.err.Error(), "failed without a reason"))
	}
	out := w.outcomeOf(row, o)
	// Results are stored even if the run was cancelled meanwhile.
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	also := func(tx pgx.Tx) error {
		if w.checkpoint == nil || o.status == repute.PhaseWaiting {
			return nil
		}
		return w.checkpoint(saving, tx)
	}
	if err := rundb.SavePhase(saving, w.e.db, w.lease, out, also); err != nil {
		return w.lost(fmt.Errorf("%w: %w", journal.ErrRuntime, err))
	}
	w.taken(row, out)
	w.e.metrics.Phase(p, row.Status, row.Ended.Sub(row.Started))
	var panicked *guard.PanicError
	if errors.As(o.err, &panicked) {
		w.log.Error("the agent panicked", "phase", p.String(), "panic", fmt.Sprint(panicked.Value), "stack",
			string(panicked.Stack))
	}
	w.log.Debug("phase recorded", "phase", p.String(), "status", row.Status, "error", row.Error)
	return nil
}

// taken updates this value after the outcome was stored.
func (w *work) taken(row repute.RunPhase, out rundb.PhaseOutcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Phases[row.Phase] = row
	w.Run.Phase, w.Run.Status, w.Run.Awaiting = row.Phase, out.Status, out.Awaiting
	w.Run.Used.Runtime += row.Ended.Sub(row.Started)
	if out.Failure != "" {
		w.Run.Error = out.Failure
	}
}

// outcomeOf returns the changes of run and task that follow from a phase's outcome.
func (w *work) outcomeOf(row repute.RunPhase, o outcome) rundb.PhaseOutcome {
	ending := lifecycle.Ending{Run: &w.Run, Done: w.Phases, Phase: row, Reasons: o.reasons, Waits: o.waits != nil,
		IsCancelled: w.cancelled()}
	out := ending.Outcome()
	out.Receipts, out.Decisions = o.receipts, o.decisions
	if o.waits != nil {
		out.Events = append(out.Events, w.asks()...)
	}
	return out
}
