package control

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/orchestrator/approval"
	"repute/orchestrator/control/rest"
	"repute/orchestrator/control/treasury"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
)

// Run is the form of a run in answers.
type Run struct {
	RunLine
	TaskID       string                   `json:"taskId"`
	Root         string                   `json:"rootRunId"`
	Goal         string                   `json:"goal"`
	Input        json.RawMessage          `json:"input,omitempty" doc:"as whoever asked gave it"`
	Phase        string                   `json:"phase" doc:"the last that was recorded, none at first"`
	Limits       rest.Amounts             `json:"limits"`
	Used         *rest.Amounts            `json:"used,omitempty" doc:"by the run and all below it; of root runs"`
	Reasons      []policy.Reason          `json:"reasons" doc:"why it was refused"`
	Cancel       string                   `json:"cancel,omitempty" doc:"why it shall be cancelled"`
	Plan         *Plan                    `json:"plan,omitempty"`
	Summary      *RunSummary              `json:"summary,omitempty"`
	GateDecision *GateDecision            `json:"gateDecision,omitempty" doc:"of the trust gate, in the current attempt"`
	Phases       []Phase                  `json:"phases"`
	Steps        []Step                   `json:"steps"`
	Decisions    []PolicyDecision         `json:"decisions" doc:"about this run, in order: the newest 200. /v1/runs/{id}/decisions has all, in pages"`
	Head         DecisionsHead            `json:"decisionsHead" doc:"the end of the chain of all decisions about the run's task"`
	Approvals    []Approval               `json:"approvals" doc:"of the current attempt"`
	Awaited      []Awaited                `json:"awaited" doc:"what waits for a person's answer"`
	Treasury     []treasury.TreasuryEvent `json:"treasuryEvents" doc:"what treasuries say of the run"`
	CreatedAt    time.Time                `json:"createdAt"`
	StartedAt    *time.Time               `json:"startedAt,omitempty"`
	EndedAt      *time.Time               `json:"endedAt,omitempty"`
	EventsPath   string                   `json:"events" doc:"where to follow it"`
}

// Phase is the record of a phase.
type Phase struct {
	Phase   string             `json:"phase"`
	Attempt int                `json:"attempt"`
	Status  repute.PhaseStatus `json:"status" enum:"ok,failed,rejected,waiting"`
	Error   string             `json:"error,omitempty"`
	Result  rest.Object        `json:"result,omitempty" doc:"what the phase left behind"`
	Started time.Time          `json:"startedAt"`
	Ended   time.Time          `json:"endedAt"`
}

// Step is a step with its result.
type Step struct {
	ID     string          `json:"stepId"`
	Status string          `json:"status" enum:"running,completed,failed"`
	Result json.RawMessage `json:"result,omitempty" doc:"as the step's agent gave it: any JSON, mostly an object"`
	Error  string          `json:"error,omitempty"`
}

// PolicyDecision is a decision of a policy, a rule of the runtime or a person.
type PolicyDecision struct {
	Number   int64               `json:"number" doc:"its place in the chain of all decisions about the task"`
	Phase    string              `json:"phase"`
	Kind     repute.DecisionKind `json:"kind" enum:"trust,policy,call,value,standing,refused,approval"`
	Subject  string              `json:"subject" doc:"trust, policy, or the key of a call"`
	Attempt  int                 `json:"attempt"`
	Effect   string              `json:"effect" enum:"allow,deny,require_approval"`
	Reasons  []policy.Reason     `json:"reasons"`
	Policy   common.Hash         `json:"policy" doc:"sha256 of its bytes"`
	At       time.Time           `json:"at"`
	Previous common.Hash         `json:"previous" doc:"hash of the decision before, zeros for the first one"`
	Hash     common.Hash         `json:"hash" doc:"sha256 of the decision's record, which /v1/runs/{id}/decisions gives"`
}

// Approval is the answer of a person.
type Approval struct {
	Subject  string    `json:"subject"`
	Approved bool      `json:"approved"`
	By       string    `json:"by"`
	Reason   string    `json:"reason,omitempty"`
	At       time.Time `json:"at"`
}

// Awaited is a decision that a run leaves to a person.
type Awaited struct {
	Subject string          `json:"subject" doc:"the answer names it"`
	Reasons []policy.Reason `json:"reasons"`
	// Shown describes the transaction that needs approval, with the evidence of the decision.
	Shown *approval.Shown `json:"shown,omitempty" doc:"what the answer is about, if it is a transaction: the subject has its hash, and an answer holds for exactly that"`
}

// ApprovalAnswer answers what a run waits for.
type ApprovalAnswer struct {
	Subject  string `json:"subject" minLength:"1" doc:"what the answer is about, one of the run's awaited"`
	Approved *bool  `json:"approved" doc:"must be given: silence is neither"`
	Reason   string `json:"reason,omitempty" maxLength:"2048"`
}

// Receipt is the runtime's record of a call.
type Receipt struct {
	ID      int64           `json:"id"`
	Step    string          `json:"stepId,omitempty"`
	Kind    repute.CallKind `json:"type" enum:"tool,http,chain_read,transaction,payment,sub_run,dry_run,verification,refused"`
	Ref     string          `json:"ref"`
	Summary string          `json:"summary"`
	Chain   uint64          `json:"chainId,omitempty"`
	Domain  string          `json:"domain,omitempty" doc:"trust, execution, or a host name"`
	Done    bool            `json:"done" doc:"false: it began and nobody saw its end"`
	Error   string          `json:"error,omitempty"`
	Request json.RawMessage `json:"request,omitempty" doc:"of a receipt that is asked for by itself"`
	Result  json.RawMessage `json:"result,omitempty" doc:"of a receipt that is asked for by itself"`
	Started time.Time       `json:"startedAt"`
	Ended   *time.Time      `json:"endedAt,omitempty"`
	// Treasury lists the treasury's events of the transaction.
	Treasury []treasury.TreasuryEvent `json:"treasuryEvents,omitempty"`
}

// ReceiptList is a page of receipts.
type ReceiptList struct {
	RunID    string    `json:"runId"`
	Receipts []Receipt `json:"receipts"`
	Next     string    `json:"nextCursor,omitempty"`
}

// run reads a run by the id that a caller gave.
func (c *Control) run(ctx context.Context, id string) (repute.Run, error) {
	if err := rest.Known("run", id); err != nil {
		return repute.Run{}, err
	}
	return rundb.Run(ctx, c.db, id)
}

// getRun serves GET /v1/runs/{id}.
func (c *Control) getRun(ctx context.Context, in *rest.IDInput) (*rest.Answer[Run], error) {
	w, err := c.Run(ctx, in.ID)
	return rest.Say(&w), err
}

// Run returns a run with everything that is stored about it. repute.ErrNotFound if there is none.
func (c *Control) Run(ctx context.Context, id string) (Run, error) { return ReadRun(ctx, c.db, id) }

// ReadRun is Control.Run of a database.
func ReadRun(ctx context.Context, db *store.DB, id string) (Run, error) {
	if err := rest.Known("run", id); err != nil {
		return Run{}, err
	}
	r, err := rundb.Run(ctx, db, id)
	if err != nil {
		return Run{}, err
	}
	w, err := ReadResult(ctx, db, r)
	if err != nil {
		return w, err
	}
	if w.Treasury, err = treasury.EventsOf(ctx, db, w.ID); err != nil {
		return w, err
	}
	if err := addDecisions(ctx, db, &w); err != nil {
		return w, err
	}
	open, err := rundb.Awaited(ctx, db, w.ID)
	if err != nil {
		return w, err
	}
	w.Awaited, err = AwaitedOf(open)
	return w, err
}

// AwaitedOf returns the decisions that are left to a person, with the description that is shown.
func AwaitedOf(open []rundb.Decision) ([]Awaited, error) {
	out := make([]Awaited, 0, len(open))
	for _, d := range open {
		asked, err := stored[struct{ Shown *approval.Shown }](d.Input)
		if err != nil {
			return nil, err
		}
		reasons, err := reasonsOf(d.Reasons)
		if err != nil {
			return nil, err
		}
		out = append(out, Awaited{d.Subject, reasons, asked.Shown})
	}
	return out, nil
}

// runOnWire converts a run into the form of the API, without its phases and decisions.
func runOnWire(r repute.Run) (Run, error) {
	reasons, err := reasonsOf(r.Reasons)
	w := Run{RunLine: lineOnWire(&r), TaskID: r.Task, Root: r.Root, Goal: r.Goal, Input: r.Input,
		Phase: r.Phase.String(), Reasons: reasons,
		Cancel:    r.Cancel,
		Limits:    rest.AmountsOf(r.Limits),
		CreatedAt: r.Created, StartedAt: rest.OptionalTime(r.Started), EndedAt: rest.OptionalTime(r.Ended),
		EventsPath: rest.Prefix + "/runs/" + r.ID + "/events"}
	if r.Parent == "" {
		used := rest.AmountsOf(repute.Limits(r.Used))
		w.Used = &used
	}
	return w, err
}

// ReadResult returns a run with only its phases, summary and steps. It needs the database and no Control: the
// command that watches a task shows its result by it.
func ReadResult(ctx context.Context, db *store.DB, r repute.Run) (Run, error) {
	w, err := runOnWire(r)
	if err != nil {
		return w, err
	}
	return w, addPhases(ctx, db, &w)
}

// addPhases adds the phases of a run, and what the newest attempt stored in them.
func addPhases(ctx context.Context, db *store.DB, w *Run) error {
	phases, err := rundb.Phases(ctx, db, w.ID)
	if err != nil {
		return err
	}
	w.Phases = []Phase{}
	for _, p := range phases {
		wire := Phase{Phase: p.Phase.String(), Attempt: p.Attempt, Status: p.Status, Error: p.Error, Started: p.Started,
			Ended: p.Ended}
		switch {
		case p.Phase == repute.PhaseTrust: // has a form of its own
		case p.Attempt != w.Attempt:
		case p.Phase == repute.PhasePlan:
			w.Plan, err = planOf(p.Result)
		case p.Phase == repute.PhaseSummarize:
			w.Summary, err = summaryOf(p.Result)
		default:
			wire.Result = rest.ObjectOf(p.Result)
		}
		if err != nil {
			return fmt.Errorf("phase %s of run %s: %w", p.Phase, w.ID, err)
		}
		w.Phases = append(w.Phases, wire)
		if v, found, err := gateDecisionOf(p); p.Attempt == w.Attempt && err == nil && found {
			w.GateDecision = gateDecisionOnWire(v)
		}
	}
	steps, err := rundb.Steps(ctx, db, w.ID)
	w.Steps = []Step{}
	for _, s := range steps {
		w.Steps = append(w.Steps, Step(s))
	}
	return err
}

// maxDecisions is how many decisions an answer about a run contains; the list of decisions has all.
const maxDecisions = 200

// addDecisions adds the newest decisions and the approvals of a run to its form on the wire.
func addDecisions(ctx context.Context, db *store.DB, w *Run) error {
	head, err := rundb.DecisionsHead(ctx, db, w.ID)
	if err != nil {
		return err
	}
	w.Head = headOnWire(&head)
	decisions, err := rundb.Decisions(ctx, db, w.ID, maxDecisions)
	if err != nil {
		return err
	}
	w.Decisions, w.Approvals = []PolicyDecision{}, []Approval{}
	for _, d := range decisions {
		wire, err := decisionOnWire(&d)
		if err != nil {
			return fmt.Errorf("decision %d of run %s: %w", d.Number, w.ID, err)
		}
		w.Decisions = append(w.Decisions, wire)
	}
	given, err := rundb.Approvals(ctx, db, w.ID, w.Attempt)
	for _, d := range decisions { // in the order of the decisions
		if a, ok := given[d.Subject]; ok && d.Effect == string(policy.RequireApproval) && d.Attempt == w.Attempt {
			w.Approvals = append(w.Approvals, approvalOnWire(a))
			delete(given, d.Subject)
		}
	}
	for _, subject := range slices.Sorted(maps.Keys(given)) { // of decisions that are not among the newest
		w.Approvals = append(w.Approvals, approvalOnWire(given[subject]))
	}
	return err
}

// approvalOnWire converts an answer of a person into the form of the API.
func approvalOnWire(a rundb.Approval) Approval {
	return Approval{a.Subject, a.Approved, a.By, a.Reason, a.At.UTC()}
}

// runPageInput requests a page of a numbered list of a run.
type runPageInput struct {
	ID string `path:"id"`
	rest.PageInput
}

// page returns the size of the page, and the number after which it begins.
func (in *runPageInput) page() (size int, after int64, err error) {
	if size, err = in.Size(); err != nil {
		return 0, 0, err
	}
	after, err = number("cursor", in.Cursor)
	return size, after, err
}

// listReceipts serves GET /v1/runs/{id}/receipts.
func (c *Control) listReceipts(ctx context.Context, in *runPageInput) (*rest.Answer[ReceiptList], error) {
	size, after, err := in.page()
	if err != nil {
		return nil, err
	}
	run, err := c.run(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	list, err := rundb.ReceiptPage(ctx, c.db, run.ID, after, size+1)
	if err != nil {
		return nil, err
	}
	out := ReceiptList{RunID: run.ID, Receipts: []Receipt{}}
	if len(list) > size {
		list = list[:size]
		out.Next = strconv.FormatInt(list[size-1].ID, 10)
	}
	for _, r := range list {
		out.Receipts = append(out.Receipts, receiptOnWire(r))
	}
	return rest.Say(&out), c.joinTreasury(ctx, run.ID, out.Receipts)
}

// joinTreasury adds the treasury's events to the receipts of transactions. They are what the chain says beside what
// the runtime recorded, and come later than a receipt.
func (c *Control) joinTreasury(ctx context.Context, run string, receipts []Receipt) error {
	events, err := treasury.EventsOf(ctx, c.db, run)
	for i := range receipts {
		for _, e := range events {
			if r := &receipts[i]; r.Kind == repute.CallTransaction && r.Ref == e.Transaction && r.Chain == e.ChainID {
				r.Treasury = append(r.Treasury, e)
			}
		}
	}
	return err
}

// maxNumber is the largest integer that JSON readers in every language represent exactly.
const maxNumber = 1<<53 - 1

// number parses a sequence number; empty is 0.
func number(field, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > maxNumber {
		return 0, repute.Invalid(field, fmt.Sprintf("%.40q is no number", text), "a number that was given out")
	}
	return n, nil
}

// receiptOnWire converts a receipt into the form of the API.
func receiptOnWire(r repute.Receipt) Receipt {
	return Receipt{ID: r.ID, Step: r.Step, Kind: r.Kind, Ref: r.Ref, Summary: r.Summary, Chain: r.Chain,
		Domain: r.Domain, Done: r.Done, Error: r.Error,
		Request: r.Request, Result: r.Result, Started: r.Started, Ended: rest.OptionalTime(r.Ended)}
}

// approveRun serves POST /v1/runs/{id}/approval: a person's answer to what the run waits for. The subject has the
// hash of what was shown: an answer to something that has changed meanwhile is refused by the client.
func (c *Control) approveRun(ctx context.Context, by string, in *rest.IDInput,
	a ApprovalAnswer) (*rest.Answer[Run], error) {
	switch err := checkReason(a.Reason); {
	case err != nil:
		return nil, err
	case a.Subject == "":
		return nil, repute.Invalid("subject", "is missing", "one of the run's awaited")
	case a.Approved == nil:
		return nil, repute.Invalid("approved", "is missing", "true or false")
	}
	if err := rest.Known("run", in.ID); err != nil {
		return nil, err
	}
	if err := c.client.Approve(ctx, in.ID, a.Subject, *a.Approved, by, a.Reason); err != nil {
		return nil, err
	}
	return c.getRun(ctx, in)
}
