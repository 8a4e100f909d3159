package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"repute"
	"repute/orchestrator/crosscheck"
	"repute/orchestrator/guard"
	"repute/orchestrator/journal"
	"repute/orchestrator/quote"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/orchestrator/trustgate"
	"repute/policy"
	"repute/store/rundb"
)

// discovered is the result of phase discover.
type discovered struct {
	Coordinator    string `json:"coordinator"`
	Version        string `json:"version"`
	ManifestDigest string `json:"manifestSha256"`
}

// discover finds the agent and asks whether it accepts the task.
func (w *work) discover(ctx context.Context) (o outcome) {
	if w.broken != nil {
		return outcome{err: fmt.Errorf("agent %q: register it again: %w", w.Run.Agent, w.broken)}
	}
	if w.agent == nil {
		return outcome{err: fmt.Errorf("agent %q is not installed: %w", w.Run.Agent, repute.ErrNotFound)}
	}
	w.manifest = journal.Digest(journal.JSON(w.info.Manifest))
	o.result = discovered{w.info.Slug, w.info.Version, w.manifest}
	can, err := guard.Call(ctx, func(ctx context.Context) (bool, error) { return w.agent.CanHandle(ctx, w.asked()) })
	if o.err = err; err == nil && !can {
		o.err = fmt.Errorf("agent %q cannot handle the task and gives no reason: its manifest says what it is for",
			w.Run.Agent)
	}
	return o
}

// asked returns the task of the agent: the root run's own, or a step of a plan.
func (w *work) asked() standard.Task {
	return standard.Task{ID: w.Run.Task, Goal: w.Run.Goal, Input: w.Run.Input, Tags: w.terms.Tags,
		ValueAtRisk: cmp.Or(w.terms.ValueAtRisk, "0"), Created: w.Run.Created}
}

// makePlan is phase 2: the agent plans, and the plan is checked against the budget and the
// registered agents.
func (w *work) makePlan(ctx context.Context) (o outcome) {
	plan, err := with(ctx, w, repute.PhasePlan,
		func(ctx context.Context, c *Context) (standard.Plan, error) { return w.agent.Plan(ctx, w.asked(), c) })
	if err != nil {
		return outcome{err: err}
	}
	registered, err := w.e.registered(ctx)
	if err != nil {
		return outcome{err: fmt.Errorf("%w: %w", journal.ErrRuntime, err)}
	}
	known := func(slug string) bool {
		_, ok := registered[slug]
		return ok
	}
	root := w.root()
	left := min(root.Run.Limits.Steps, int(w.info.Manifest.Budget().Steps))
	if err := standard.CheckPlan(plan, left, known); err != nil {
		return outcome{err: err, result: standard.Plan{}}
	}
	for _, slug := range plan.Agents() {
		if err := plan.CheckIdentity(slug, registered[slug]); err != nil {
			return outcome{err: err, result: standard.Plan{}}
		}
	}
	w.plan = plan
	return outcome{result: plan}
}

// checkTrust compares the agent with the thresholds. The decision and its evidence are stored with the run, as the
// evidence of a later epoch may be another.
func (w *work) checkTrust(ctx context.Context) outcome {
	v, err := w.judge(ctx, w.module, w.policyTask(w.e.o.Policy()))
	if err != nil {
		return outcome{err: fmt.Errorf("%w: %w", journal.ErrRuntime, err)}
	}
	w.gateDecision = v
	return w.ruled(ctx, v.Stored(repute.PhaseTrust, repute.DecisionTrust, "trust"+w.programSuffix(v.Decision.Effect)),
		v.Decision, v)
}

// programSuffix returns the suffix of an approval's subject that identifies the agent's program: its URL and
// the proof of its identity. An answer then does not apply to another program that registers under
// the same slug. It is empty if nobody is asked.
func (w *work) programSuffix(e policy.Effect) string {
	if e != policy.RequireApproval {
		return ""
	}
	var identity []byte
	if w.module.Agent != nil {
		identity = []byte(w.module.Agent.String())
	}
	return " " + journal.Digest(trustgate.ProofOf(w.module, true).Place(), identity)[:16]
}

// ruled returns the outcome of a decision by a policy: rejected, waiting for a person, or passed.
// The decision is stored with the phase's result, with which it MUST agree (audit.CheckDecisions).
func (w *work) ruled(ctx context.Context, stored rundb.Decision, d policy.Decision, result any) outcome {
	o := outcome{result: result, reasons: d.Reasons, decisions: []rundb.Decision{stored}}
	switch d.Effect {
	case policy.Deny:
		o.status = repute.PhaseRejected
	case policy.RequireApproval:
		waits, err := w.answered(ctx, stored.Subject, d, nil)
		var denied *transaction.DeniedError
		switch {
		case errors.As(err, &denied):
			o.status, o.reasons = repute.PhaseRejected, append(o.reasons, denied.Reasons...)
		case err != nil:
			o.err = fmt.Errorf("%w: %w", journal.ErrRuntime, err)
		case waits != nil:
			o.waits = waits
			w.wait(waits)
		}
	}
	return o
}

// policyTask returns the task as the policy's rules see it.
func (w *work) policyTask(p *policy.Policy) policy.Task {
	return policy.Task{ID: w.Run.Task, Goal: w.Task.Goal, Coordinator: w.Task.Coordinator,
		Value: cmp.Or(w.terms.ValueAtRisk, "0"),
		Tags:  w.terms.Tags, Budget: p.Budget(w.terms.Budget)}
}

// policyInput returns the input of the policy's rules in phase 4.
func (w *work) policyInput(p *policy.Policy) policy.Input {
	return policy.Input{Phase: "policy", Task: w.policyTask(p), Agent: w.gateDecision.Agent,
		Plan: policy.Plan{Steps: int64(len(w.plan.Steps)), Agents: w.plan.Agents()}}
}

// policyResult is the result of phase policy.
type policyResult struct {
	Policy   string          `json:"policy"` // sha256 of its bytes
	Decision policy.Decision `json:"decision"`
	Budget   policy.Budget   `json:"budget"` // limits of the run
}

// checkPolicy is phase 4: the policy decides about the task, the agent and the plan. The policy's
// text is stored, so that the decision can be replayed.
func (w *work) checkPolicy(ctx context.Context) outcome {
	p := w.e.o.Policy()
	in := w.policyInput(p)
	d := p.Decide(ctx, &in)
	if err := w.bound(ctx, d, in.Task.Budget); err != nil {
		return outcome{err: err}
	}
	stored, err := w.stored(ctx, p, rundb.Decision{Phase: repute.PhasePolicy, Kind: repute.DecisionPolicy,
		Subject: w.policySubject(d.Effect), Input: journal.JSON(in)}, d)
	if err != nil {
		return outcome{err: fmt.Errorf("%w: %w", journal.ErrRuntime, err)}
	}
	return w.ruled(ctx, stored, d, policyResult{fmt.Sprintf("%x", p.Hash()), d, in.Task.Budget})
}

// policySubject returns the subject of the policy's decision. It includes the agent's program,
// unless the agent is part of this binary, which does not change while it runs.
func (w *work) policySubject(e policy.Effect) string {
	if w.module.URL == "" {
		return "policy"
	}
	return "policy" + w.programSuffix(e)
}

// bound sets the limits that the task left open to those of the policy, unless the policy denies
// the task.
func (w *work) bound(ctx context.Context, d policy.Decision, b policy.Budget) error {
	if d.Effect == policy.Deny {
		return nil
	}
	limits := standard.LimitsOf(b)
	if err := rundb.BoundRun(ctx, w.e.db, w.lease, limits); err != nil {
		return w.lost(err)
	}
	if w.parent == nil {
		w.Run.Limits = limits
	}
	return nil
}

// dryRunResult is the result of phase dry_run.
type dryRunResult struct {
	Ran bool `json:"ran"` // the agent has a dry run
	standard.DryRun
	Simulations []transaction.Simulation `json:"simulations"`      // the runtime's own, of each call
	Quotes      []quote.Quote            `json:"quotes,omitempty"` // the runtime's own, of each planned payment
}

// dryRun requests the agent's planned transactions, and simulates each of them.
func (w *work) dryRun(ctx context.Context) (o outcome) {
	runner, can := w.agent.(DryRunner)
	if !can {
		o.result = dryRunResult{Simulations: []transaction.Simulation{}}
		if w.info.Manifest.Safety.RequiresDryRun {
			o.err = fmt.Errorf("the agent's manifest demands a dry run, but it has none: %w", repute.ErrInvalid)
		}
		return o
	}
	said, err := with(ctx, w, repute.PhaseDryRun, func(ctx context.Context, c *Context) (standard.DryRun, error) {
		return runner.DryRun(ctx, w.asked(), w.plan, c)
	})
	if err != nil {
		return outcome{err: err}
	}
	r := dryRunResult{Ran: true, DryRun: said, Simulations: []transaction.Simulation{}}
	for _, text := range said.Violations {
		o.reasons = append(o.reasons, policy.Reason{ID: "dry_run.violation", Effect: policy.Deny,
			Text: journal.Shorten(text)})
	}
	if most := w.root().Run.Limits.Writes; len(said.Calls) > most {
		o.reasons = append(o.reasons, policy.Reason{ID: "limit.maxOnchainWrites", Effect: policy.Deny,
			Text: "the dry run shows more transactions than are allowed",
			Have: fmt.Sprint(len(said.Calls)), Need: fmt.Sprint(most)})
		said.Calls = nil
	}
	r.Payments = nil // quotes show them, without what may be secret in their requests
	var reasons []policy.Reason
	if len(said.Payments) > 0 {
		r.Quotes, reasons = w.quoteAll(ctx, said.Payments)
		o.reasons = append(o.reasons, reasons...)
	}
	reasons, err = w.simulateAll(ctx, said.Calls, &r)
	if err != nil {
		return outcome{err: err}
	}
	if o.reasons = append(o.reasons, reasons...); len(o.reasons) > 0 {
		o.status = repute.PhaseRejected
	} else if err := w.intend(ctx, r.DryRun, true); err != nil {
		return outcome{err: err}
	}
	o.result = r
	o.receipts = []repute.Receipt{{Run: w.Run.ID, Kind: repute.CallDryRun,
		Key:     fmt.Sprintf("dry_run/%d", w.Run.Attempt),
		Ref:     "dry_run",
		Summary: fmt.Sprintf("dry run of %d transactions, %d refused", len(r.Simulations), len(o.reasons)),
		Chain:   w.e.o.ExecutionChain, Domain: "execution", Result: journal.JSON(r)}}
	return o
}

// simulateAll simulates the calls of the dry run. Calls with placeholders are decided by the worst values that the
// placeholders allow. The returned reasons forbid Execute. Each call is simulated on the state of the chain alone,
// and not on that which the calls before it would leave.
func (w *work) simulateAll(ctx context.Context, calls []transaction.Tx, r *dryRunResult) (out []policy.Reason,
	err error) {
	var list []*transaction.Declared
	for i := range calls {
		refused := func(id, text string) {
			out = append(out, policy.Reason{ID: id, Effect: policy.Deny, Text: fmt.Sprintf("call %d: %s", i+1, text)})
		}
		d, err := w.declare(ctx, calls[i])
		if errors.Is(err, journal.ErrRuntime) {
			return nil, err
		} else if err != nil {
			refused("dry_run.placeholder", err.Error())
			continue
		}
		s, reason, err := w.simulated(ctx, calls[i])
		if errors.Is(err, repute.ErrUnavailable) { // not a fault of the task
			return nil, fmt.Errorf("%w: %v", errEndpoints, err) //nolint:errorlint // the kind of err must not decide
		}
		if err != nil {
			return nil, err
		}
		r.Simulations = append(r.Simulations, s)
		if reason != "" {
			refused("dry_run.simulation", reason)
			continue
		}
		d.Leaves = transaction.Outflows(s.Treasury, s.Logs)
		list = append(list, d)
	}
	foreseen, err := w.foresee(ctx, list)
	return append(out, foreseen...), err
}

// simulated simulates a transaction of the dry run; reason says why it must not be sent.
func (w *work) simulated(ctx context.Context, tx transaction.Tx) (s transaction.Simulation, reason string, err error) {
	if err := tx.Check(); err != nil {
		return s, err.Error(), nil
	}
	if err := w.records(tx.ChainID).MayTouch(ctx, &tx); errors.Is(err, journal.ErrRuntime) {
		return s, "", err
	} else if err != nil {
		return s, err.Error(), nil
	}
	var denied *transaction.DeniedError
	if s, err = w.simulate(ctx, tx); errors.As(err, &denied) {
		return s, err.Error(), nil
	} else if err != nil {
		return s, "", err
	}
	if !s.OK {
		return s, "would fail: " + s.Reason, nil
	}
	return s, "", nil
}

// executed is the result of phase execute.
type executed struct {
	standard.Execution
	Regate *trustgate.Decision `json:"regate,omitempty"` // trust decision before execute, if it differs from the one of phase trust
}

// regated reports whether the waiting record of this attempt's execute holds a trust decision:
// the record that replaces it MUST hold one too.
func (w *work) regated() bool {
	var before executed
	p, waited := w.Phases[repute.PhaseExecute]
	return waited && json.Unmarshal(p.Result, &before) == nil && before.Regate != nil
}

// execute decides about trust again, because an epoch may have passed, the agent's data may have
// been rewound, or the policy may have changed; then the agent works. An approval of phase trust is
// not requested again.
func (w *work) execute(ctx context.Context) (o outcome) {
	again, err := w.judge(ctx, w.module, w.policyTask(w.e.o.Policy()))
	if err != nil {
		return outcome{err: fmt.Errorf("%w: %w", journal.ErrRuntime, err)}
	}
	var r executed
	if w.regated() || !again.Same(&w.gateDecision) {
		r.Regate = &again
		subject := w.gateDecision.Subject(&again) + w.programSuffix(again.Decision.Effect)
		o = w.ruled(ctx, again.Stored(repute.PhaseExecute, repute.DecisionTrust, subject), again.Decision, r)
		if o.status != "" || o.waits != nil || o.err != nil {
			return o
		}
		w.gateDecision = again // rules about calls see the agent of now
	}
	started := time.Now().UTC()
	r.Execution, err = with(ctx, w, repute.PhaseExecute, func(ctx context.Context, c *Context) (standard.Execution,
		error) {
		return w.agent.Execute(ctx, w.asked(), w.plan, c)
	})
	if waits := w.waits(); waits != nil {
		return outcome{waits: waits, result: r, decisions: o.decisions}
	}
	if r.Started.IsZero() {
		r.Started = started
	}
	if r.Ended.IsZero() {
		r.Ended = time.Now().UTC()
	}
	if err == nil && !r.Success {
		err = errors.New("the agent reports failure" + standard.FirstError(r.Steps))
	}
	w.done = r.Execution
	return outcome{result: r, err: err, decisions: o.decisions}
}

// verification is the result of phase verify: the agent's checks and the runtime's.
type verification struct {
	standard.Verification
	Runtime []standard.Check `json:"runtimeChecks"`
}

// verify is phase 7: the agent checks its work, and the orchestrator checks receipts and chain.
func (w *work) verify(ctx context.Context) (o outcome) {
	var r verification
	said, err := with(ctx, w, repute.PhaseVerify, func(ctx context.Context, c *Context) (standard.Verification, error) {
		return w.agent.Verify(ctx, w.asked(), w.done, c)
	})
	if err != nil {
		return outcome{err: err, result: r}
	}
	r.Verification = said
	if r.Runtime, err = w.runtimeChecks(ctx); err != nil {
		return outcome{err: fmt.Errorf("%w: %w", journal.ErrRuntime, err)}
	}
	w.checked = said
	failures := standard.FailedChecks(append(append([]standard.Check{}, said.Checks...), r.Runtime...))
	switch {
	case !(said.Score >= 0 && said.Score <= 1):
		o.err = fmt.Errorf("the agent's verification score %g is out of range (0 to 1)", said.Score)
	case w.info.Manifest.Safety.RequiresVerification && len(said.Checks) == 0:
		o.err = errors.New("the agent's manifest demands verification, but it checked nothing")
	case len(failures) > 0:
		o.err = fmt.Errorf("verification failed: %s", failures)
	case said.Score == 0:
		o.err = errors.New("the agent's own verification score is 0: it says that nothing is verified")
	}
	o.result = r
	o.receipts = []repute.Receipt{{Run: w.Run.ID, Kind: repute.CallVerification,
		Key: fmt.Sprintf("verification/%d", w.Run.Attempt), Ref: "verification",
		Summary: fmt.Sprintf("%d checks, %d failed", len(said.Checks)+len(r.Runtime), len(failures)), Domain: "runtime",
		Result: journal.JSON(r)}}
	return o
}

// runtimeChecks returns the checks of the runtime, which do not depend on the agent's statements.
func (w *work) runtimeChecks(ctx context.Context) ([]standard.Check, error) {
	checks, err := w.checker().Execution(ctx, w.plan, w.done)
	now := journal.Digest(journal.JSON(w.agent.Info().Manifest))
	return append(checks, crosscheck.Manifest(w.manifest, now)), err
}

// checker compares what the agent says of the run with what is stored.
func (w *work) checker() *crosscheck.Checker {
	return &crosscheck.Checker{Db: w.e.db, Run: &w.Run, Records: w.records}
}

// summarize is phase 8: the agent describes the result. A text that contradicts the receipts fails
// the phase.
func (w *work) summarize(ctx context.Context) outcome {
	s, err := with(ctx, w, repute.PhaseSummarize, func(ctx context.Context, c *Context) (standard.Summary, error) {
		return w.agent.Summarize(ctx, w.asked(), w.done, w.checked, c)
	})
	if most := standard.MaxStepText * 4; len(s.Text) > most {
		s.Warnings = append(s.Warnings,
			fmt.Sprintf("the text has %d bytes, of which %d are shown: the result of its step "+
				"has more of it", len(s.Text), most))
		s.Text = strings.ToValidUTF8(s.Text[:most], "")
	}
	w.summary = s
	if err == nil {
		err = w.checker().Summary(ctx, &s)
	}
	return outcome{result: s, err: err}
}
